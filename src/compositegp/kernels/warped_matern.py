"""A Matérn kernel of a view of the points: what kernels of turned axes and of the sphere share."""

import math
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Hyperparameter, Kernel, Matern, NormalizedKernelMixin

from compositegp.backend import Array
from compositegp.kernels.evaluation import diagonal, gram, linearize, rule
from compositegp.kernels.noise import noise_variance
from compositegp.kernels.stationary import PROFILES
from compositegp.kernels.strips import Strip, covariances_of_pairs
from compositegp.kernels.warped import Warped


class WarpedMatern(Warped, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
    """A Matérn kernel of the distance between views, with hyper-parameters that decide the view.

    A subclass stores ``length_scale``, ``nu`` and ``length_scale_bounds`` and its own parameters, defines `view`,
    `view_slope` and `chart`, and has a rule for `linearize`, which needs the derivative in its own parameters.
    """

    length_scale: float
    nu: float
    length_scale_bounds: Any

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """Length scale of the distances between views."""
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    @property
    def inside(self) -> Kernel:
        """The kernel of the views: it has one length scale."""
        return self.matern(self.length_scale)

    def matern(self, length_scale: Any) -> Kernel:
        """The Matérn kernel of this smoothness with another length scale, or one for each column."""
        return RBF(length_scale) if math.isinf(self.nu) else Matern(length_scale, nu=self.nu)

    @property
    def profile(self) -> Any:
        """The kernel as a function of distance; a ValueError if there is none for `nu`."""
        if self.nu not in PROFILES:
            raise ValueError(f"nu must be 0.5, 1.5, 2.5 or inf for a {type(self).__name__}; found {self.nu!r}.")
        return PROFILES[self.nu]

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Kernel matrix (n, m) and, with `eval_gradient`, its gradient (n, n, p)."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if eval_gradient:
            if Y is not None:
                raise ValueError("Gradient can only be evaluated when Y is None.")
            found = linearize(self, X)
            return found.value, np.moveaxis(found.jacobian(), 0, -1)
        return gram(self, X, None if Y is None else np.atleast_2d(np.asarray(Y, dtype=np.float64)))


@rule(gram, WarpedMatern)
def _gram(kernel: WarpedMatern, X: Array, Y: Array | None = None) -> Array:
    _ = kernel.profile  # which checks the smoothness
    return gram(kernel.inside, kernel.view(X), None if Y is None else kernel.view(Y))


@rule(covariances_of_pairs, WarpedMatern)
def _of_pairs(kernel: WarpedMatern, X: Array) -> Strip | None:
    _ = kernel.profile  # which checks the smoothness
    return covariances_of_pairs(kernel.inside, kernel.view(X))


@rule(diagonal, WarpedMatern)
def _diagonal(kernel: WarpedMatern, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.inside, X)


@rule(noise_variance, WarpedMatern)
def _noise(kernel: WarpedMatern, X: Array) -> Array:
    return 0.0 * X[..., 0]
