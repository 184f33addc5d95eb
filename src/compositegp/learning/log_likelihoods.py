"""Log likelihoods of terms alone, without the derivatives that a maximization needs."""

import math
from functools import partial

import numpy as np

from compositegp.backend import Floats, blas_threads_for, fetch, in_batches
from compositegp.composite import Composite, Observations, Stack, whiten_by_covariance
from compositegp.kernels import upper_gram


def log_likelihoods_of_pieces(
    data: Observations, composite: Composite, coefficients: Floats, least: int = 1
) -> Floats:
    """Log likelihoods of the blocks of a composite; where they are few, of consecutive points in each of them.

    Parameters
    ----------
    data : Observations
    composite : Composite
    coefficients : array of shape (q, t)
    least : int
        Pieces, at least.

    Returns
    -------
    array of shape (pieces,)
    """
    parts = -(-least // composite.n_blocks)
    found = []
    with blas_threads_for(0):  # the same bits whatever the number of threads
        for stack in composite.stacks:
            size = stack.indices.shape[1] ** 2
            some = in_batches(len(stack), size, partial(_log_densities, data, stack, coefficients))
            for densities, weights in zip(np.concatenate(some), stack.row_weights, strict=True):
                counted = weights != 0
                pieces = np.array_split((weights * densities)[counted], parts)
                found += [float(piece.sum()) for piece in pieces]
    return np.array(found)


def _log_densities(data: Observations, whole: Stack, coefficients: Floats, blocks: slice) -> Floats:
    """Log density of each point given those before it in its block, shape (blocks, n)."""
    stack = whole[blocks]
    covariances = upper_gram(data.kernel, data.rows("X", stack))
    pivots, columns = map(fetch, whiten_by_covariance(data, stack, covariances, data.rows("columns", stack)))
    q, t = coefficients.shape
    residuals = columns[..., q:] - columns[..., :q] @ coefficients
    scales = np.log(pivots)
    return np.asarray(-0.5 * ((residuals**2).sum(-1) + t * math.log(2 * math.pi)) - t * scales)
