"""Distance as a kernel sees it: its length scales, column by column."""

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
from compositegp.kernels.evaluation import rule
from compositegp.kernels.warped import unwarped

_SHARE = 0.25  # power of inverse squared length scales by which parts of a sum are averaged


@singledispatch
def in_length_scales(kernel: Kernel, X: Floats) -> Floats:
    """Points in units of the kernel's length scales, so that Euclidean distance says which are near to the kernel.

    Parts of a sum count by their variance, and factors of a product add up. A column that no part depends on becomes
    zero. Periodic and linear parts do not define nearness. With a kernel that has no length scale the points are
    returned unchanged. Where a part is `Warped`, the result has the columns that the parts of the kernel see, in the
    place of the points' own.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)

    Returns
    -------
    array of shape (n, d), or (n, d′) for a warped kernel

    Examples
    --------
    >>> in_length_scales(RBF([2.0, 10.0]), np.array([[2.0, 10.0]]))
    array([[1., 1.]])
    """
    plain, points = unwarped(kernel, X)
    _, inverse_squares = metric(plain, points.shape[1])
    if plain is not kernel:  # columns that no part depends on need not be looked at
        points, inverse_squares = points[:, inverse_squares > 0], inverse_squares[inverse_squares > 0]
    return points * np.sqrt(inverse_squares) if inverse_squares.any() else points


def length_scale_factors(kernel: Kernel, d: int) -> Floats | None:
    """Factors of d columns by which `in_length_scales` multiplies points; None where it does more than that.

    Parameters
    ----------
    kernel : scikit-learn kernel
    d : int

    Returns
    -------
    array of shape (d,) or None

    Examples
    --------
    >>> length_scale_factors(RBF([2.0, 10.0]), 2)
    array([0.5, 0.1])
    """
    if in_length_scales.dispatch(type(kernel)) is not in_length_scales.dispatch(object):
        return None
    if unwarped(kernel, np.zeros((1, d)))[0] is not kernel:
        return None
    _, inverse_squares = metric(kernel, d)
    return np.sqrt(inverse_squares) if inverse_squares.any() else np.ones(d)


@singledispatch
def metric(kernel: Kernel, d: int) -> tuple[float, Floats]:
    """Variance of a kernel, and its inverse squared length scales.

    Parameters
    ----------
    kernel : scikit-learn kernel
    d : int
        Number of columns of the points.

    Returns
    -------
    float
    array of shape (d,)
        Zero for a column that does not matter to nearness.

    Examples
    --------
    >>> metric(3.0 * RBF([1.0, 0.5]) + WhiteKernel(1.0), 2)
    (3.0, array([1., 4.]))
    """
    return 1.0, np.ones(d)


@rule(metric, RBF, inherited=True)
@rule(metric, RationalQuadratic, inherited=True)
def _radial(kernel: Kernel, d: int) -> tuple[float, Floats]:
    length_scale = np.asarray(kernel.length_scale, dtype=np.float64)
    if length_scale.size not in (1, d):
        raise ValueError(
            f"kernel {kernel} has {length_scale.size} length scales, but the points have {d} column(s)."
        )
    return 1.0, np.broadcast_to(length_scale**-2.0, d)


@rule(metric, ExpSineSquared, inherited=True)
def _periodic(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return 1.0, np.zeros(d)


@rule(metric, DotProduct, inherited=True)
@rule(metric, WhiteKernel, inherited=True)
def _without_distance(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return 0.0, np.zeros(d)


@rule(metric, ConstantKernel, inherited=True)
def _constant(kernel: Kernel, d: int) -> tuple[float, Floats]:
    return float(kernel.constant_value), np.zeros(d)


@rule(metric, Sum, inherited=True)
def _sum(kernel: Kernel, d: int) -> tuple[float, Floats]:
    (variance1, inverse1), (variance2, inverse2) = metric(kernel.k1, d), metric(kernel.k2, d)
    variance = variance1 + variance2
    # A power mean of the inverse length scales. With their squares a rough part of little variance would decide alone.
    mean = (variance1 * inverse1**_SHARE + variance2 * inverse2**_SHARE) / (variance or 1.0)
    return variance, mean ** (1 / _SHARE)


@rule(metric, Product, inherited=True)
def _product(kernel: Kernel, d: int) -> tuple[float, Floats]:
    (variance1, inverse1), (variance2, inverse2) = metric(kernel.k1, d), metric(kernel.k2, d)
    return variance1 * variance2, inverse1 + inverse2


@rule(metric, Exponentiation, inherited=True)
def _power(kernel: Kernel, d: int) -> tuple[float, Floats]:
    variance, inverse_squares = metric(kernel.kernel, d)
    return variance**kernel.exponent, kernel.exponent * inverse_squares


@rule(metric, OnColumns, inherited=True)
def _columns(kernel: OnColumns, d: int) -> tuple[float, Floats]:
    columns = kernel.view(np.arange(d)[None, :])[0]
    variance, selected = metric(kernel.kernel, len(columns))
    inverse_squares = np.zeros(d)
    np.add.at(inverse_squares, columns, selected)
    return variance, inverse_squares
