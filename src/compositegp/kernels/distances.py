"""Squared distances between points, and functions and weighted sums of these, for batches of point sets."""

import math
from collections.abc import Callable

import numpy as np
from array_api_compat import array_namespace
from scipy.spatial.distance import cdist

from compositegp.backend import Array, fused_squared_distances, is_fused
from compositegp.kernels.strips import by_strips, strips_pay

_SMALL = 32 * 32  # pairs of a set up to which one pass over all beats a loop over the sets (benchmarks/kernels.py)
_FEW_COLUMNS, _FEW_PAIRS = 2, 2**13  # up to which it beats a loop whose threads wait for each other
_WIDE = 1e3  # extent in length scales beyond which products of coordinates lose more than six of their 16 digits


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances, computed from differences and not from products, so that they keep their digits.

    Parameters
    ----------
    X : array of shape (..., n, d)
    Y : array of shape (..., m, d)
        Its batch axes are those of `X`, or it has none.

    Returns
    -------
    array of shape (..., n, m), which a caller may overwrite
    """
    n, m, d = X.shape[-2], Y.shape[-2], X.shape[-1]
    if Y.shape[-1] != d:
        raise ValueError(f"points with {d} and {Y.shape[-1]} columns have no distance. Give both the same columns.")
    batch = X.shape[:-2]
    if isinstance(X, np.ndarray):
        if Y.ndim == 2:
            return cdist(X.reshape(-1, d), Y, "sqeuclidean").reshape(*batch, n, m)
        if n * m > (_FEW_PAIRS if d <= _FEW_COLUMNS else _SMALL):
            distances = np.empty((math.prod(batch), n, m))
            for out, x, y in zip(distances, X.reshape(-1, n, d), Y.reshape(-1, m, d), strict=True):
                cdist(x, y, "sqeuclidean", out=out)
            return distances.reshape(*batch, n, m)
    if is_fused(X):
        return fused_squared_distances(X, None if Y is X else Y)
    total = X[..., :, None, 0] - Y[..., None, :, 0]
    total *= total
    for column in range(1, d):
        difference = X[..., :, None, column] - Y[..., None, :, column]
        if hasattr(total, "addcmul_"):  # in one pass
            total.addcmul_(difference, difference)
        else:
            difference *= difference
            total += difference
    return total


def of_each_pair(X: Array, function: Callable[[Array], tuple[Array, ...]]) -> tuple[Array, ...]:
    """Symmetric matrices whose elements are functions of squared distances; of large sets each pair counts once.

    Parameters
    ----------
    X : array of shape (..., n, d)
    function : callable
        Maps squared distances, which it may overwrite, to arrays of the same shape, element by element.

    Returns
    -------
    tuple of arrays of shape (..., n, n), those of the function
    """
    if not strips_pay(X):
        return function(squared_distances(X, X))
    return by_strips(X, lambda some, others: function(squared_distances(X[..., some, :], X[..., others, :])))


def squared_differences(X: Array, column: int) -> Array:
    """(x_i − x_j)² in one column: shape (..., n, n) for `X` of shape (..., n, d)."""
    return (X[..., :, None, column] - X[..., None, :, column]) ** 2


def squared_difference_products(weights: Array, X: Array, vectors: Array) -> Array:
    """Products of the matrices (weights_ij (x_i − x_j)²), one for each column of `X`, with vectors.

    They are computed by matrix products, without an array of shape (n, n, d).

    Parameters
    ----------
    weights : array of shape (..., n, n)
    X : array of shape (..., n, d)
    vectors : array of shape (..., n, m)

    Returns
    -------
    array of shape (..., d, n, m)
    """
    xp = array_namespace(X)
    d, m = X.shape[-1], vectors.shape[-1]
    centered = X - xp.mean(X, axis=-2, keepdims=True)
    if xp.max(xp.abs(centered)) > _WIDE:
        return xp.stack([(weights * squared_differences(X, c)) @ vectors for c in range(d)], axis=-3)
    # Σ_j w_ij (x_i² − 2 x_i x_j + x_j²) v_j
    x, v = centered[..., None], vectors[..., None, :]
    moved = x * v  # (..., n, d, m)
    columns = xp.concat([v, moved, x * moved], axis=-2)  # (..., n, 1 + 2 d, m)
    sums = xp.reshape(weights @ xp.reshape(columns, (*X.shape[:-1], (1 + 2 * d) * m)), columns.shape)
    found = x * x * sums[..., :1, :] - 2 * x * sums[..., 1 : 1 + d, :] + sums[..., 1 + d :, :]
    return xp.moveaxis(found, -2, -3)
