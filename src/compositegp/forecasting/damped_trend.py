"""A trend whose slope wanders and is damped: the kernel of a level that its slope moves and that hardly returns.

The slope forgets over `slope_length` and the level over `level_length`: x solves (d/dt + a)(d/dt + b) x = white noise
with a = 1 / level_length and b = 1 / slope_length. Equal lengths are the Matérn 3/2 kernel (in the unit where it is
(1 + a τ) e^(−a τ)), whose level returns as fast as its slope is damped. With a level that lasts far longer than its
slope it is the damped trend of exponential smoothing, which goes on from the latest level with less and less of the
latest slope.
"""

from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from compositegp.backend import Floats
from compositegp.kernels import (
    Linearized,
    diagonal,
    free_hyperparameters,
    gram,
    linearize,
    noise_variance,
    register_storable,
    rule,
)

_NAMES = ("level_length", "slope_length")
_SMALL = 1e-2  # under which a series takes the place of a quotient
# Coefficients of (e^(−x) (1 + x) − 1) / x² and of (1 − x − e^(−x)) / x².
_FASTER = (-1 / 2, 1 / 3, -1 / 8, 1 / 30, -1 / 144)
_SLOWER = (-1 / 2, 1 / 6, -1 / 24, 1 / 120, -1 / 720)


@register_storable
class DampedTrend(StationaryKernelMixin, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
    """Kernel (b e^(−a τ) − a e^(−b τ)) / (b − a) of the time difference τ, a = 1 / level_length, b = 1 / slope_length.

    Parameters
    ----------
    slope_length : float
        Time over which a slope is damped.
    level_length : float
        Time over which the level returns to the mean.
    slope_length_bounds, level_length_bounds : (float, float) or "fixed"

    Examples
    --------
    >>> times = np.array([[0.0], [1.0], [2.0]])
    >>> DampedTrend(3.0, 1000.0)(times).round(5)[0]
    array([1.     , 0.99985, 0.99946])
    """

    def __init__(
        self,
        slope_length: float = 1.0,
        level_length: float = 100.0,
        slope_length_bounds: Any = (1e-5, 1e5),
        level_length_bounds: Any = "fixed",
    ) -> None:
        self.slope_length = slope_length
        self.level_length = level_length
        self.slope_length_bounds = slope_length_bounds
        self.level_length_bounds = level_length_bounds

    @property
    def hyperparameter_level_length(self) -> Hyperparameter:
        """Of the level."""
        return Hyperparameter("level_length", "numeric", self.level_length_bounds)

    @property
    def hyperparameter_slope_length(self) -> Hyperparameter:
        """Of the slope."""
        return Hyperparameter("slope_length", "numeric", self.slope_length_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Gram matrix, with its derivative in theta (n, n, p) if asked for."""
        distances = cdist(X, X if Y is None else Y)
        value = _values(self, distances)
        if not eval_gradient:
            return value
        slopes = [_slope(self, distances, name) for name in free_hyperparameters(self, *_NAMES)]
        return value, np.stack(slopes, axis=-1) if slopes else np.empty((*value.shape, 0))

    def __repr__(self) -> str:
        return f"DampedTrend(slope_length={self.slope_length:.3g}, level_length={self.level_length:.3g})"


def _values(kernel: DampedTrend, distances: Floats) -> Floats:
    """e^(−a τ) (1 + a τ φ((b − a) τ)) with a the slower rate and φ(x) = (1 − e^(−x)) / x, for any two lengths."""
    slow, fast = sorted([1 / kernel.level_length, 1 / kernel.slope_length])
    x = (fast - slow) * distances
    phi = -np.expm1(-x) / np.where(x > 0, x, 1.0) + (x == 0)
    return np.asarray(np.exp(-slow * distances) * (1 + slow * distances * phi))


def _slope(kernel: DampedTrend, distances: Floats, name: str) -> Floats:
    """Derivative in the logarithm of one of the lengths: the kernel is the same with the lengths exchanged."""
    own, other = 1 / getattr(kernel, name), 1 / getattr(kernel, _NAMES[1 - _NAMES.index(name)])
    slow, fast = min(own, other), max(own, other)
    x = (fast - slow) * distances
    # ∂k/∂b = e^(−a τ) a τ² φ′((b − a) τ). If b is the slower rate, e^x is moved from φ′(−x) to e^(−a τ).
    quotient, series = (np.exp(-x) * (1 + x) - 1, _FASTER) if own == fast else (1 - x - np.exp(-x), _SLOWER)
    by_phi = np.where(x > _SMALL, quotient / np.maximum(x, _SMALL) ** 2, polyval(np.minimum(x, _SMALL), series))
    return np.asarray(-own * other * distances**2 * np.exp(-slow * distances) * by_phi)


def _distances(X: Floats, Y: Floats) -> Floats:
    return np.asarray(np.sqrt(((X[..., :, None, :] - Y[..., None, :, :]) ** 2).sum(axis=-1)))


@rule(gram, DampedTrend)
def _gram(kernel: DampedTrend, X: Floats, Y: Floats | None = None) -> Floats:
    return _values(kernel, _distances(X, X if Y is None else Y))


@rule(diagonal, DampedTrend)
def _diagonal(kernel: DampedTrend, X: Floats, *, noise: bool = True) -> Floats:
    return np.ones(X.shape[:-1])


@rule(noise_variance, DampedTrend)
def _noise_variance(kernel: DampedTrend, X: Floats) -> Floats:
    return np.zeros(X.shape[:-1])


@rule(linearize, DampedTrend)
def _linearize(kernel: DampedTrend, X: Floats) -> Linearized:
    distances = _distances(X, X)
    free = [lambda name=name: _slope(kernel, distances, name) for name in free_hyperparameters(kernel, *_NAMES)]
    return Linearized.of_matrices(_values(kernel, distances), free)
