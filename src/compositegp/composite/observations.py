"""Observations: checked data with a kernel and a mean, which the terms of a composite read."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Booleans, Floats, Indices, current_device, fetch
from compositegp.composite.terms import Stack
from compositegp.functionals import Functionals, PointsLike, lift, lifted_kernel, matching_kernel, matching_mean
from compositegp.kernels import noise_variance, with_finite_bounds
from compositegp.means import MeanLike, MeanModel, as_mean, in_units_of
from compositegp.validation import check_kernel, check_noise_variance, check_points, check_targets


@dataclass(frozen=True, eq=False)
class Observations:
    """Checked data under a model.

    Attributes
    ----------
    kernel : scikit-learn kernel
        Its white part is the noise of the observations.
    mean : MeanModel
    X : array of shape (n, d)
        Under a kernel that is lifted to functionals: rows that name them.
    columns : array of shape (n, q + t)
        Basis functions of the mean, followed by the targets of the t outputs minus their known means.
    outputs : tuple of int
        The shape of one target: () if y is a vector, (t,) if it has t columns.
    noise_variance : array of shape (n,) or None
        Noise of each point, in addition to the noise of the kernel.
    weights : array of shape (n,) or None
        The kernel's noise of a point is divided by its weight; `noise_variance` is not.
    sent : dict
        Arrays that are already on a device; shared by the copies with other kernels.
    """

    kernel: Kernel
    mean: MeanModel
    X: Floats
    columns: Floats
    noise_variance: Floats | None
    outputs: tuple[int, ...] = ()
    weights: Floats | None = None
    sent: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def checked(
        cls,
        kernel: Kernel,
        X: PointsLike,
        y: ArrayLike,
        *,
        mean: MeanLike,
        noise_variance: ArrayLike | None,
        n_columns: int | None = None,
        names: tuple[str, str] = ("X", "y"),
    ) -> "Observations":
        """Build from a user's arguments; a ValueError names a bad one. The kernel is copied."""
        kernel, (rows,) = lift(check_kernel(kernel), **{names[0]: X})
        points = check_points(rows, names[0], n_columns)
        targets = check_targets(y, len(points), names[1], several=True)
        noise = check_noise_variance(noise_variance, len(points))
        model = matching_mean(kernel, as_mean(mean))
        if not isinstance(mean, MeanModel):
            model = in_units_of(model, points)
        return cls.of(with_finite_bounds(clone(kernel)), model, points, targets, noise)

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        mean: MeanModel,
        X: Floats,
        y: Floats,
        noise_variance: Floats | None,
        weights: Floats | None = None,
    ) -> "Observations":
        """Build from values that have been checked: y has shape (n,) or (n, t)."""
        mean = matching_mean(kernel, mean)
        known = mean.values(X)
        targets = y.reshape(len(X), -1)
        if known.shape[1] not in (1, targets.shape[1]):
            raise ValueError(
                f"mean must return one finite number for each of the {len(X)} point(s), shape ({len(X)},); found shape "
                f"{known.shape} from {mean.known!r}."
            )
        residuals = targets - known
        columns = np.concatenate([mean.columns(X), residuals], axis=1)
        return cls(kernel, mean, X, columns, noise_variance, y.shape[1:], weights)

    @property
    def n_outputs(self) -> int:
        """t, the number of outputs."""
        return math.prod(self.outputs)

    @property
    def basis(self) -> Floats:
        """Basis functions of the mean, shape (n, q)."""
        return self.columns[:, : self.columns.shape[1] - self.n_outputs]

    @property
    def residuals(self) -> Floats:
        """Targets minus their known means, shape (n, t)."""
        return self.columns[:, self.columns.shape[1] - self.n_outputs :]

    @property
    def targets(self) -> Floats:
        """The targets themselves, shape (n,) or (n, t)."""
        return (self.residuals + self.mean.values(self.X)).reshape(len(self.X), *self.outputs)

    def targets_of(self, rows: Indices) -> Floats:
        """The targets of some observations, shape (m,) or (m, t)."""
        return (self.residuals[rows] + self.mean.values(self.X[rows])).reshape(len(rows), *self.outputs)

    @property
    def noise(self) -> Floats:
        """Noise variance of each observation in all, the kernel's and its own: shape (n,)."""
        kernels = np.asarray(noise_variance(self.kernel, self.X))
        kernels = kernels if self.weights is None else kernels / self.weights
        return kernels if self.noise_variance is None else kernels + self.noise_variance

    def added_noise(self, stack: Stack) -> Array | None:
        """What noise adds to the diagonals of the kernel's Gram matrices of blocks, shape (blocks, n); None if nothing.

        It is negative where a weight above one makes the kernel's own noise smaller.
        """
        own = None if self.noise_variance is None else self.rows("noise_variance", stack)
        if self.weights is None:
            return own
        more = noise_variance(self.kernel, self.rows("X", stack)) * (1 / self.rows("weights", stack) - 1)
        return more if own is None else own + more

    def take(self, indices: Indices | Booleans | slice) -> "Observations":
        """Some of the observations, in the order given."""
        noise, weights = self.noise_variance, self.weights
        return replace(
            self,
            X=self.X[indices],
            columns=self.columns[indices],
            noise_variance=None if noise is None else noise[indices],
            weights=None if weights is None else weights[indices],
            sent={},
        )

    def rows(self, name: str, stack: Stack) -> Array:
        """Rows of "X", "columns", "noise_variance" or "weights" for blocks, on the device in use: (blocks, n, ...).

        The indices of the blocks may be there already.
        """
        values, device = getattr(self, name), current_device()
        if device is None:
            return values[stack.indices]
        key = (device.name, name)
        if key not in self.sent:
            if not device.holds(values.size):
                return device.send(values[fetch(stack.indices)])
            self.sent[key] = device.send(values)
        indices = stack.indices
        return self.sent[key][device.send(indices) if isinstance(indices, np.ndarray) else indices]

    def __getstate__(self) -> dict[str, Any]:
        """State without the arrays on a device."""
        return {**vars(self), "sent": {}}

    def with_kernel(self, kernel: Kernel) -> "Observations":
        """The same data under another kernel."""
        return replace(self, kernel=matching_kernel(kernel, self.kernel))

    def lifted(self, functionals: Functionals) -> "Observations":
        """The same data under the same model, lifted to functionals: those that the kernel may know, and more."""
        kernel = lifted_kernel(self.kernel, functionals)
        return replace(self, kernel=kernel, mean=matching_mean(kernel, self.mean))

    def with_mean(self, mean: MeanModel) -> "Observations":
        """The same data under another mean."""
        if mean.same_functions(self.mean):
            return replace(self, mean=mean)
        return Observations.of(self.kernel, mean, self.X, self.targets, self.noise_variance, self.weights)
