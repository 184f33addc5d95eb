"""How far apart two points are to a kernel: its length scales, column by column."""

from functools import singledispatch

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Floats
from compositegp.kernels.columns import OnColumns


def in_length_scales(kernel: Kernel, X: Floats) -> Floats:
    """Points scaled so that Euclidean distance orders them as the kernel does, near first.

    Parts of a sum count by their variance, factors of a product add up, and a column that no part depends
    on is scaled to zero. Periodic and linear parts say nothing about nearness. With a kernel that has no
    length scale the points come back as they are.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)

    Returns
    -------
    array of shape (n, d)
    """
    _, metric = _metric(kernel, X.shape[1])
    return X * np.sqrt(metric) if metric.any() else X


@singledispatch
def _metric(kernel: Kernel, d: int) -> tuple[float, Floats]:
    """Variance of a kernel and its inverse squared length scales, shape (d,)."""
    return 1.0, np.ones(d)


@_metric.register(RBF)
@_metric.register(RationalQuadratic)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    length_scale = np.asarray(kernel.length_scale, dtype=np.float64)
    if length_scale.size not in (1, d):
        raise ValueError(
            f"kernel {kernel} has {length_scale.size} length scales, but the points have {d} column(s)."
        )
    return 1.0, np.broadcast_to(length_scale**-2.0, d)


@_metric.register(ExpSineSquared)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return 1.0, np.zeros(d)


@_metric.register(DotProduct)
@_metric.register(WhiteKernel)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return 0.0, np.zeros(d)


@_metric.register(ConstantKernel)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return float(kernel.constant_value), np.zeros(d)


@_metric.register(Sum)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    (variance1, metric1), (variance2, metric2) = _metric(kernel.k1, d), _metric(kernel.k2, d)
    variance = variance1 + variance2
    return variance, (variance1 * metric1 + variance2 * metric2) / (variance or 1.0)


@_metric.register(Product)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    (variance1, metric1), (variance2, metric2) = _metric(kernel.k1, d), _metric(kernel.k2, d)
    return variance1 * variance2, metric1 + metric2


@_metric.register(Exponentiation)
def _(kernel: Kernel, d: int) -> tuple[float, Floats]:
    variance, metric = _metric(kernel.kernel, d)
    return variance**kernel.exponent, kernel.exponent * metric


@_metric.register(OnColumns)
def _(kernel: OnColumns, d: int) -> tuple[float, Floats]:
    columns = kernel.select(np.arange(d)[None, :])[0]
    variance, selected = _metric(kernel.kernel, len(columns))
    metric = np.zeros(d)
    np.add.at(metric, columns, selected)
    return variance, metric
