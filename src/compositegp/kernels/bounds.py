"""Bounds on the covariance between two regions, from their bounding boxes."""

from functools import singledispatch
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Floats
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.evaluation import gram, rule


class Boxes(NamedTuple):
    """Bounding boxes of sets of points.

    Attributes
    ----------
    low, high : arrays of shape (boxes, d)

    Examples
    --------
    >>> Boxes.around(np.array([[[0.0], [2.0], [1.0]]]))
    Boxes(low=array([[0.]]), high=array([[2.]]))
    """

    low: Floats
    high: Floats

    @classmethod
    def around(cls, points: Floats) -> "Boxes":
        """Boxes around points of shape (sets, n, d)."""
        return cls(points.min(axis=1), points.max(axis=1))


def covariance_bounds(kernel: Kernel, boxes: Boxes, others: Boxes) -> Floats:
    """Bounds on ``|k(x, z)|`` for x in a box of `boxes` and z in the corresponding box of `others`.

    Infinite where a kernel's covariance is not known to fall with distance.

    Parameters
    ----------
    kernel : scikit-learn kernel
    boxes : Boxes
    others : Boxes
        One for each of `boxes`, or a single one for all of them.

    Returns
    -------
    array of shape (boxes,)

    Examples
    --------
    >>> unit = Boxes(np.array([[0.0]]), np.array([[1.0]]))
    >>> far = Boxes(np.array([[3.0]]), np.array([[4.0]]))
    >>> covariance_bounds(RBF(1.0), unit, far)  # two length scales apart, or more
    array([0.13533528])
    """
    gaps = np.maximum(np.maximum(boxes.low - others.high, others.low - boxes.high), 0.0)
    return np.asarray(largest_covariance(kernel, gaps))


@singledispatch
def largest_covariance(kernel: Kernel, gaps: Floats) -> Floats:
    """Bound on ``|k(x, z)|`` for points that are at least some distance apart in each column.

    Infinite for a kernel whose covariance is not known to fall with distance.

    Parameters
    ----------
    kernel : scikit-learn kernel
    gaps : array of shape (boxes, d)

    Returns
    -------
    array of shape (boxes,)

    Examples
    --------
    >>> largest_covariance(RBF(1.0), np.array([[0.0], [10.0]]))
    array([1.00000000e+00, 1.92874985e-22])
    """
    return np.full(len(gaps), np.inf)


@rule(largest_covariance, RBF)
@rule(largest_covariance, Matern)
@rule(largest_covariance, RationalQuadratic)
def _falling(kernel: Kernel, gaps: Floats) -> Floats:
    # It falls with distance, so it is largest for points that are exactly the gaps apart.
    return np.asarray(gram(kernel, gaps[:, None, :], np.zeros_like(gaps)[:, None, :])[:, 0, 0])


@rule(largest_covariance, ExpSineSquared)
def _periodic(kernel: Kernel, gaps: Floats) -> Floats:
    return np.ones(len(gaps))


@rule(largest_covariance, ConstantKernel)
def _constant(kernel: Kernel, gaps: Floats) -> Floats:
    return np.full(len(gaps), abs(float(kernel.constant_value)))


@rule(largest_covariance, WhiteKernel)
def _white(kernel: Kernel, gaps: Floats) -> Floats:
    return np.zeros(len(gaps))  # the latent has no noise


@rule(largest_covariance, Sum)
def _sum(kernel: Kernel, gaps: Floats) -> Floats:
    return largest_covariance(kernel.k1, gaps) + largest_covariance(kernel.k2, gaps)


@rule(largest_covariance, Product)
def _product(kernel: Kernel, gaps: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        bound = largest_covariance(kernel.k1, gaps) * largest_covariance(kernel.k2, gaps)
    return np.where(np.isnan(bound), np.inf, bound)  # 0 · ∞ is not known


@rule(largest_covariance, Exponentiation)
def _power(kernel: Kernel, gaps: Floats) -> Floats:
    return np.asarray(largest_covariance(kernel.kernel, gaps) ** kernel.exponent)


@rule(largest_covariance, OnColumns)
def _columns(kernel: OnColumns, gaps: Floats) -> Floats:
    return largest_covariance(kernel.kernel, kernel.view(gaps))
