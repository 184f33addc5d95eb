"""Kernels of a distance, and searches for near points, in one pass over the memory of a GPU, by Triton.

PyTorch writes and reads a matrix for every operation. Where Triton is installed, as it is with PyTorch for CUDA, these
compute a matrix or its products from the points at once. On other devices the operations of PyTorch do the same.
"""

import math
from functools import cache
from typing import Any

from compositegp.backend.arrays import Array

_TILE = 32  # rows and columns of a tile of a matrix
_MOST_COLUMNS = 128  # of the points, up to which the sums of a row stay in registers
_SMOOTHNESS = {math.inf: 0, 0.5: 1, 1.5: 3, 2.5: 5}
_DISTANCES = -1  # in the place of a smoothness: the squared distances themselves
_TESTS, _POINTS = 32, 128  # tests and points whose distances are compared at once
_PROGRAMS = 4096  # programs of a search, at least, which keep any device busy


@cache
def _programs() -> Any:
    try:
        from compositegp.backend import fused_kernels
    except ImportError:  # a build of PyTorch that came without Triton
        return None
    return fused_kernels


def is_fused(A: Array) -> bool:
    """Whether work on an array is done in one pass: a PyTorch array of a GPU, with Triton installed."""
    return bool(getattr(A, "is_cuda", False)) and _programs() is not None


def fuses_radial(X: Array, smoothness: float) -> bool:
    """Whether `radial_gram` and `radial_products` serve such points, and a kernel of this smoothness."""
    return smoothness in _SMOOTHNESS and is_fused(X) and X.shape[-1] <= _MOST_COLUMNS


def radial_gram(X: Array, Y: Array | None, smoothness: float) -> Array:
    """φ(|x − y|²) of all pairs, in one pass; of a single set half of them are computed.

    The squared distances are computed from differences, so that they keep their digits.

    Parameters
    ----------
    X : array of shape (..., n, d)
        In the kernel's own unit of length.
    Y : array of shape (..., m, d) or None
        Its batch axes are those of `X`, or it has none. None for the pairs of `X`.
    smoothness : float
        ν of a Matérn kernel: 0.5, 1.5, 2.5, or infinity for a Gaussian.

    Returns
    -------
    array of shape (..., n, m)
    """
    return _of_pairs(X, Y, _SMOOTHNESS[smoothness])


def fused_squared_distances(X: Array, Y: Array | None) -> Array:
    """|x − y|² of all pairs, in one pass: as `radial_gram`, for points of any unit."""
    return _of_pairs(X, Y, _DISTANCES)


def _of_pairs(X: Array, Y: Array | None, smoothness: int) -> Array:
    X = X.contiguous()
    other = X if Y is None else Y.contiguous()
    (n, d), m = X.shape[-2:], other.shape[-2]
    out = X.new_empty((*X.shape[:-1], m))
    count = math.prod(X.shape[:-2]) * -(-n // _TILE) * -(-m // _TILE)
    if count:
        _programs().gram[(count,)](
            X, other, out, n, m, m * d if other.ndim > 2 else 0, smoothness, d, Y is None, _TILE
        )
    return out


def radial_products(X: Array, smoothness: float, weights: Array, vectors: Array) -> Array:
    """Products of the weighted kernel and of its derivatives in the logs of d length scales with vectors.

    Parameters
    ----------
    X : array of shape (..., n, d)
        In the kernel's own unit of length.
    smoothness : float
    weights : array of shape (..., n, n)
        Entrywise factors C; a broadcast view takes no memory.
    vectors : array of shape (..., n, m)

    Returns
    -------
    array of shape (..., 1 + d, n, m)
        (C ∘ K) V, followed by (C ∘ ∂K/∂log ℓ_i) V.
    """
    X, vectors, (n, d), m = X.contiguous(), vectors.contiguous(), X.shape[-2:], vectors.shape[-1]
    batch = X.shape[:-2]
    weights = weights.expand(*batch, n, n).reshape(-1, n, n)
    out = X.new_empty((*batch, 1 + d, n, m))
    count = math.prod(batch) * -(-n // _TILE) * m
    if count:
        columns = max(2, 1 << (d - 1).bit_length())
        _programs().products[(count,)](
            X, weights, vectors, out, n, m, *weights.stride(), _SMOOTHNESS[smoothness], d, columns, _TILE
        )
    return out


def points_within(points: Array, tests: Array, bounds: Array, capacity: int) -> tuple[Array, Array, Array]:
    """Points within a squared distance of each test point, in no order; the distances are never all in memory.

    Parameters
    ----------
    points : array of shape (d, n)
    tests : array of shape (d, m)
    bounds : array of shape (m,)
    capacity : int
        Points of a test point that are kept.

    Returns
    -------
    counts : int array of shape (m,)
        How many points there are, also where they are more than are kept.
    positions : int array of shape (m, capacity)
    distances : array of shape (m, capacity)
        Squared; infinite in places that are not filled.
    """
    (d, n), m = points.shape, tests.shape[1]
    counts = bounds.new_zeros((m,), dtype=_torch().int32)
    positions = bounds.new_zeros((m, capacity), dtype=_torch().int32)
    distances = bounds.new_full((m, capacity), math.inf)
    down = -(-m // _TESTS)
    parts = max(1, min(-(-_PROGRAMS // max(down, 1)), -(-n // _POINTS)))
    share = -(-n // (parts * _POINTS)) * _POINTS
    if down:
        _programs().within[(down * -(-n // share),)](
            points, tests, bounds, counts, positions, distances, n, m, capacity, share, d, _TESTS, _POINTS
        )
    return counts, positions, distances


def _torch() -> Any:
    import torch

    return torch
