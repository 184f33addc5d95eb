"""Symmetric matrices of large point sets by strips of their rows: little more than half of it, and in a cache."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from compositegp.backend import Array, diagonals
from compositegp.kernels.evaluation import diagonal, gram

_LEAST = 128  # points from which on strips are quicker than the whole
_ELEMENTS = 2**17  # of a strip, about: more leave the cache, fewer keep threads waiting for the interpreter
_ROWS = 16, 256  # of a strip, at least and at most: half a square of them is computed in vain

Strip = Callable[[slice, slice], Array]
"""Maps two ranges of the points to the matrix of their pairs, which a caller may overwrite."""


@singledispatch
def covariances_of_pairs(kernel: Any, X: Array) -> Strip | None:
    """Covariances of pairs of some points, without noise, for strips of their Gram matrix.

    What all strips need, such as points in units of the length scales, is computed once.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Noise, if it has any, is on the diagonal of its Gram matrix.
    X : array of shape (..., n, d)

    Returns
    -------
    Strip, or None for a kernel without a rule, which is asked for the whole matrix

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, PairwiseKernel, WhiteKernel
    >>> X = np.array([[0.0], [0.0], [9.0]])
    >>> covariances_of_pairs(2.0 * RBF() + WhiteKernel(), X)(slice(0, 1), slice(0, 3)).round()
    array([[2., 2., 0.]])
    >>> covariances_of_pairs(PairwiseKernel(), X) is None
    True
    """
    return None


def upper_gram(kernel: Any, X: Array) -> Array:
    """Gram matrices (..., n, n) for those who read their upper triangles alone; below them there may be anything."""
    found = gram_by_strips(kernel, X, mirrored=False)
    return gram(kernel, X) if found is None else found


def gram_by_strips(kernel: Any, X: Array, *, mirrored: bool = True) -> Array | None:
    """Gram matrices (..., n, n) whose strips leave the cache when all parts of the kernel are added up.

    None where strips do not pay, or for a kernel of which no rule tells the covariances of pairs. Without `mirrored`
    there may be anything below the diagonals.
    """
    strip = covariances_of_pairs(kernel, X) if strips_pay(X) else None
    if strip is None:
        return None
    (K,) = by_strips(X, lambda some, others: (strip(some, others),), mirrored=mirrored)
    diagonals(K)[...] = diagonal(kernel, X)
    return K


def strips_pay(X: Array) -> bool:
    """Whether point sets of shape (..., n, d) are large enough for strips, and are NumPy's."""
    return isinstance(X, np.ndarray) and X.shape[-2] >= _LEAST


def by_strips(
    X: Array, function: Callable[[slice, slice], tuple[Array, ...]], *, mirrored: bool = True
) -> tuple[Array, ...]:
    """Symmetric matrices of large point sets.

    Parameters
    ----------
    X : array of shape (..., n, d)
    function : callable
        Maps two ranges of the points to matrices of their pairs.
    mirrored : bool
        Whether the lower triangles are wanted too.

    Returns
    -------
    tuple of arrays of shape (..., n, n), those of the function
    """
    n = X.shape[-2]
    rows = min(max(_ELEMENTS // max(math.prod(X.shape[:-1]), 1), _ROWS[0]), _ROWS[1])
    wholes: tuple[Array, ...] = ()
    for start in range(0, n, rows):  # from the diagonal to the right
        stop = min(start + rows, n)
        parts = function(slice(start, stop), slice(start, n))
        if not wholes:
            made = {id(part): np.empty((*X.shape[:-1], n)) for part in parts}  # one array may be there twice
            wholes = tuple(made[id(part)] for part in parts)
        for whole, part in {id(part): (whole, part) for whole, part in zip(wholes, parts, strict=True)}.values():
            whole[..., start:stop, start:] = part
            if mirrored:
                whole[..., stop:, start:stop] = part[..., stop - start :].mT
    return wholes
