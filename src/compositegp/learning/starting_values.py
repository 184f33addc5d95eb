"""Where to begin: length scales and variances of the data's own size, for what a user left at its default."""

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    Kernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Floats, Indices
from compositegp.kernels import OnColumns

_DEFAULT_BOUNDS = (1e-5, 1e5)
_NOISE_SHARE = 0.1
_SHORTER = (1.0, 1 / 4, 1 / 16, 1 / 64)
_HARDLY_VARIES = 1e-3  # spread of a column in segments, over that in all the data, which is chance or rounding


class DataScale(NamedTuple):
    """Typical sizes within a segment.

    Attributes
    ----------
    spreads : array of shape (d,)
        Standard deviation of each column.
    variance : float
        Variance of the target.
    """

    spreads: Floats
    variance: float


def data_scale(X: Floats, residuals: Floats, segments: list[Indices]) -> DataScale:
    """Typical sizes within segments; a ValueError if the target does not vary at all."""
    spreads = np.sqrt(np.mean([X[part].var(axis=0) for part in segments], axis=0))
    variance = float(np.mean([residuals[part].var() for part in segments]))
    overall = float(residuals.var())
    size = float(np.abs(residuals).max())
    if overall <= (1e-14 * size) ** 2:
        raise ValueError(
            f"y is constant (all values are {residuals[0]:g} once the mean is taken off): there is no covariance to "
            "learn. Check the target column."
        )
    whole = X.std(axis=0)
    varies = spreads > _HARDLY_VARIES * whole
    return DataScale(np.where(varies, spreads, np.where(whole > 0, whole, 1.0)), variance or overall)


def starting_kernel(kernel: Kernel, scale: DataScale) -> Kernel:
    """Copy of a kernel that begins at the data's scale wherever a free hyper-parameter was left at its default of one.

    Default bounds, 1e-5 to 1e5, are then taken relative to that scale.
    """
    started = clone(kernel)
    _start(started, scale, _count_signals(started))
    return started


def starting_points(kernel: Kernel, scale: DataScale) -> list[Floats]:
    """Values of ``kernel.theta`` to choose from: that of `starting_kernel`, and shorter length scales than the data's.

    A field may vary on many scales below the size of a segment, and its likelihood have a maximum for each.
    """
    bounds = starting_kernel(kernel, scale).bounds
    points = [
        np.clip(starting_kernel(kernel, scale._replace(spreads=factor * scale.spreads)).theta, *bounds.T)
        for factor in _SHORTER
    ]
    return list(np.unique(points, axis=0)[::-1])


@singledispatch
def _start(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    """Set a kernel's defaults in place; does nothing for kernels that have none with a scale."""


@_start.register(RBF)
@_start.register(RationalQuadratic)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    # Points are √(2 d) spreads apart on average.
    count = np.size(kernel.length_scale)
    if count == len(scale.spreads) > 1:
        _set(kernel, "length_scale", scale.spreads * np.sqrt(count))
    elif count == 1:  # any other number does not fit the data, as the kernel will say
        _set(kernel, "length_scale", float(np.sqrt((scale.spreads**2).sum())))


@_start.register(ConstantKernel)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    _set(kernel, "constant_value", scale.variance / n_signals)


@_start.register(WhiteKernel)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    _set(kernel, "noise_level", _NOISE_SHARE * scale.variance)


@_start.register(Sum)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    _start(kernel.k1, scale, n_signals)
    _start(kernel.k2, scale, n_signals)


@_start.register(Product)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    _start(kernel.k1, scale, n_signals)
    # Of two constants in a product one carries the variance.
    _start(kernel.k2, scale._replace(variance=1.0) if _has_constant(kernel.k1) else scale, n_signals)


@_start.register(Exponentiation)
def _(kernel: Kernel, scale: DataScale, n_signals: int) -> None:
    _start(kernel.kernel, scale._replace(variance=scale.variance ** (1 / kernel.exponent)), n_signals)


@_start.register(OnColumns)
def _(kernel: OnColumns, scale: DataScale, n_signals: int) -> None:
    _start(kernel.kernel, scale._replace(spreads=kernel.select(scale.spreads[None, :])[0]), n_signals)


def _set(kernel: Kernel, name: str, start: Floats | float) -> None:
    """Set one hyper-parameter if it is free and was left at one, and its bounds if they were left too."""
    bounds = getattr(kernel, f"{name}_bounds")
    if isinstance(bounds, str) or not np.all(np.asarray(getattr(kernel, name)) == 1.0):
        return
    lower, upper = np.asarray(bounds, dtype=np.float64).reshape(-1, 2).T
    if np.array_equal(np.asarray(bounds).ravel(), _DEFAULT_BOUNDS):
        new_bounds = np.stack([lower * start, upper * start], axis=-1)
        setattr(kernel, f"{name}_bounds", tuple(new_bounds[0]) if np.ndim(start) == 0 else new_bounds)
    else:
        start = np.clip(start, lower, upper) if np.ndim(start) else float(np.clip(start, lower[0], upper[0]))
    setattr(kernel, name, start)


def _count_signals(kernel: Kernel) -> int:
    """Parts of a sum that are not noise."""
    if isinstance(kernel, Sum):
        return _count_signals(kernel.k1) + _count_signals(kernel.k2)
    return 0 if isinstance(kernel, WhiteKernel) else 1


def _has_constant(kernel: Kernel) -> bool:
    if isinstance(kernel, Product):
        return _has_constant(kernel.k1) or _has_constant(kernel.k2)
    return isinstance(kernel, ConstantKernel)
