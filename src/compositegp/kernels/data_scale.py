"""Hyper-parameters at the scale of the data: length scales of the points' spread, variances of the target's."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
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

from compositegp.backend import Floats
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.evaluation import free_hyperparameters, rule

_NOISE_SHARE = 0.1  # of the target's variance that noise begins with; a guess, no benchmark depends on it


class DataScale(NamedTuple):
    """Typical sizes within a segment.

    Attributes
    ----------
    spreads : array of shape (d,)
        Standard deviation of each column.
    variance : float
        Variance of the target.

    Examples
    --------
    >>> DataScale(np.array([3.0, 4.0]), 2.0).length_scale(1)
    5.0
    """

    spreads: Floats
    variance: float

    def length_scale(self, count: int) -> Any:
        """A typical length scale: a number if there is one for all columns (`count` 1), else an array of shape (d,).

        None where `count` length scales do not fit the columns.
        """
        # With equal spreads s two points are √(2 d) s apart (root mean square): this is that distance over √2.
        if count == 1:
            return float(np.sqrt((self.spreads**2).sum()))
        return self.spreads * np.sqrt(count) if count == len(self.spreads) else None


@singledispatch
def typical_values(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    """Values that hyper-parameters of a kernel would typically have for data of some scale.

    Parameters
    ----------
    kernel : scikit-learn kernel
    scale : DataScale

    Returns
    -------
    dict of str to float or array
        By the names in ``kernel.get_params()``. Hyper-parameters that have no scale, such as an exponent, are left
        out.

    Examples
    --------
    >>> typical_values(1.0 * RBF() + WhiteKernel(), DataScale(np.array([3.0]), 2.0))
    {'k1__k1__constant_value': 2.0, 'k1__k2__length_scale': 3.0, 'k2__noise_level': 0.2}
    """
    return {}


@rule(typical_values, RBF, inherited=True)
@rule(typical_values, RationalQuadratic, inherited=True)
def _radial(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    length_scale = scale.length_scale(np.size(kernel.length_scale))
    # A number of length scales that does not fit the columns is an error that `gram` raises.
    return {} if length_scale is None else {"length_scale": length_scale}


@rule(typical_values, ConstantKernel, inherited=True)
def _constant(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    return {"constant_value": scale.variance}


@rule(typical_values, WhiteKernel, inherited=True)
def _white(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    return {"noise_level": _NOISE_SHARE * scale.variance}


@rule(typical_values, Sum, inherited=True)
def _sum(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    # The signals share the variance; noise has its share of the whole.
    first, second = _count_signals(kernel.k1), _count_signals(kernel.k2)
    found: dict[str, Any] = {}
    for name, count in (("k1", first), ("k2", second)):
        share = count / (first + second) if count else 1.0
        found |= typical_inside(name, getattr(kernel, name), scale._replace(variance=share * scale.variance))
    return found


@rule(typical_values, Product, inherited=True)
def _product(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    # Of two constants in a product one carries the variance.
    rest = scale._replace(variance=1.0) if _has_free_constant(kernel.k1) else scale
    return typical_inside("k1", kernel.k1, scale) | typical_inside("k2", kernel.k2, rest)


@rule(typical_values, Exponentiation, inherited=True)
def _power(kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    root = scale._replace(variance=scale.variance ** (1 / kernel.exponent))
    return typical_inside("kernel", kernel.kernel, root)


@rule(typical_values, OnColumns, inherited=True)
def _columns(kernel: OnColumns, scale: DataScale) -> dict[str, Any]:
    return typical_inside("kernel", kernel.kernel, scale._replace(spreads=kernel.view(scale.spreads[None, :])[0]))


def typical_inside(name: str, kernel: Kernel, scale: DataScale) -> dict[str, Any]:
    """Typical values of a kernel that is the parameter `name` of another one, by their names there."""
    return {f"{name}__{inner}": value for inner, value in typical_values(kernel, scale).items()}


def _count_signals(kernel: Kernel) -> int:
    """Parts of a sum that are not noise."""
    if isinstance(kernel, Sum):
        return _count_signals(kernel.k1) + _count_signals(kernel.k2)
    return 0 if isinstance(kernel, WhiteKernel) else 1


def _has_free_constant(kernel: Kernel) -> bool:
    if isinstance(kernel, Product):
        return _has_free_constant(kernel.k1) or _has_free_constant(kernel.k2)
    return isinstance(kernel, ConstantKernel) and bool(free_hyperparameters(kernel, "constant_value"))
