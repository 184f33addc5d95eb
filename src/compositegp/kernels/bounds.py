"""How large a covariance can be between two regions: an upper bound from their bounding boxes."""

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
    """

    low: Floats
    high: Floats

    @classmethod
    def around(cls, points: Floats) -> "Boxes":
        """Boxes around points of shape (sets, n, d)."""
        return cls(points.min(axis=1), points.max(axis=1))


def covariance_bounds(kernel: Kernel, boxes: Boxes, others: Boxes) -> Floats:
    """Bounds on |k(x, z)| for x in any of `boxes` and z in the one of `others` beside it.

    Infinite where a kernel's covariance is not known to fall with distance.

    Parameters
    ----------
    kernel : scikit-learn kernel
    boxes : Boxes
    others : Boxes
        As many, or a single one.

    Returns
    -------
    array of shape (boxes,)
    """
    gaps = np.maximum(np.maximum(boxes.low - others.high, others.low - boxes.high), 0.0)
    return np.asarray(_bound(kernel, gaps))


@singledispatch
def _bound(kernel: Kernel, gaps: Floats) -> Floats:
    """Bound for boxes that are `gaps` apart in each column, shape (boxes, d)."""
    return np.full(len(gaps), np.inf)


@rule(_bound, RBF)
@rule(_bound, Matern)
@rule(_bound, RationalQuadratic)
def _falling(kernel: Kernel, gaps: Floats) -> Floats:
    # Falls with the scaled distance, so it is largest across the gap itself.
    return np.asarray(gram(kernel, gaps[:, None, :], np.zeros_like(gaps)[:, None, :])[:, 0, 0])


@rule(_bound, ExpSineSquared)
def _periodic(kernel: Kernel, gaps: Floats) -> Floats:
    return np.ones(len(gaps))


@rule(_bound, ConstantKernel)
def _constant(kernel: Kernel, gaps: Floats) -> Floats:
    return np.full(len(gaps), abs(float(kernel.constant_value)))


@rule(_bound, WhiteKernel)
def _white(kernel: Kernel, gaps: Floats) -> Floats:
    return np.zeros(len(gaps))  # noise is no part of the latent


@rule(_bound, Sum)
def _sum(kernel: Kernel, gaps: Floats) -> Floats:
    return _bound(kernel.k1, gaps) + _bound(kernel.k2, gaps)


@rule(_bound, Product)
def _product(kernel: Kernel, gaps: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        bound = _bound(kernel.k1, gaps) * _bound(kernel.k2, gaps)
    return np.where(np.isnan(bound), np.inf, bound)  # 0 · ∞: not known


@rule(_bound, Exponentiation)
def _power(kernel: Kernel, gaps: Floats) -> Floats:
    return np.asarray(_bound(kernel.kernel, gaps) ** kernel.exponent)


@rule(_bound, OnColumns)
def _columns(kernel: OnColumns, gaps: Floats) -> Floats:
    return _bound(kernel.kernel, kernel.select(gaps))
