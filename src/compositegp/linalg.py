"""The one seam to LAPACK: factorisations that cope with singular matrices and say what they did.

Every function takes leading batch axes.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dlauum, dpotrf, dpstrf, dtrtri

from compositegp.arrays import Array, Floats, add_to_diagonal, diagonals

SINGULAR = 1e-11
"""A covariance matrix is singular if a point has less than this fraction of its variance left, given the others."""
JITTER_START = 1e-10
"""First jitter tried on a singular covariance matrix, relative to its mean diagonal."""
JITTER_END = 1e-6
"""Largest jitter tried; beyond it the matrix is not a covariance."""
TEMPERING_START = 1e-13
"""Least fraction of a term's covariance that is added to it where its data pin the latent down beyond rounding."""
TEMPERING_END = 1e-4

_RECURSIVE, _LEAF = 640, 96  # sizes between which a triangle is inverted by halves
_SMALL = 32  # matrices up to this size are factorised and solved across the batch, larger ones one by one


class NumericalWarning(UserWarning):
    """A result rests on a matrix that had to be changed to be factorised; says by how much."""


class SingularMatrixError(LinAlgError):
    """A matrix in a batch could not be factorised; ``index`` says which (flat index into the batch)."""

    def __init__(self, index: int) -> None:
        super().__init__(f"matrix {index} of the batch is not positive definite")
        self.index = index


class Factor(NamedTuple):
    """Cholesky factors and what was added to factorise.

    Attributes
    ----------
    lower : array of shape (..., n, n); above the diagonal it is undefined
    jitter : array of shape (...), relative to the mean diagonal
    """

    lower: Array
    jitter: Floats


def cholesky(A: Floats) -> Factor:
    """Cholesky factors of covariance matrices, which are overwritten.

    A matrix that is singular (see `SINGULAR`) gets a jitter that starts at `JITTER_START` of its mean diagonal
    and grows tenfold up to `JITTER_END`; then `SingularMatrixError` is raised.

    Parameters
    ----------
    A : array of shape (..., n, n), C-contiguous and symmetric

    Returns
    -------
    Factor
    """
    batch, n = A.shape[:-2], A.shape[-1]
    matrices = A.reshape(-1, n, n)
    jitter = np.zeros(len(matrices))
    if n <= _SMALL and _factorise_batch(matrices):
        return Factor(A, jitter.reshape(batch))
    for index, matrix in enumerate(matrices):
        jitter[index] = _factorise(matrix, index)
    return Factor(A, jitter.reshape(batch))


def _factorise_batch(matrices: Floats) -> bool:
    """Factorise all in one call, in place; False, and nothing changed, if any one is singular."""
    floor = _pivot_floor(matrices)
    try:
        lower = np.linalg.cholesky(matrices)
    except LinAlgError:
        return False
    if not (diagonals(lower) > floor).all():
        return False
    matrices[...] = lower
    return True


def _factorise(matrix: Floats, index: int) -> float:
    """Factorise one matrix in place; returns the relative jitter that this took."""
    floor = _pivot_floor(matrix)
    original = np.diagonal(matrix).copy()
    jitter = 0.0
    while jitter <= JITTER_END * 1.01:
        # Read in Fortran order the matrix is its own transpose, so the upper factor is, in C order, the lower.
        _, info = dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
        if info == 0 and (np.diagonal(matrix) > floor).all():
            return jitter
        jitter = 10 * jitter or JITTER_START
        matrix[...] = np.triu(matrix, 1) + np.triu(matrix, 1).T  # what is above the diagonal is still there
        np.fill_diagonal(matrix, original + jitter * original.mean())
    raise SingularMatrixError(index)


def _pivot_floor(matrices: Floats) -> Floats:
    """Pivots under this, for each row, have too few digits left: shape (..., n)."""
    return np.asarray(np.sqrt(SINGULAR * np.abs(diagonals(matrices))))


def solve_lower(lower: Floats, B: Floats) -> Floats:
    """Solve lower · X = B for batches of triangular matrices; `B` is overwritten with X and returned.

    Parameters
    ----------
    lower : array of shape (..., n, n)
    B : array of shape (..., n, m), C-contiguous
    """
    n = lower.shape[-1]
    if not B.size:
        return B
    flat_lower, flat = lower.reshape(-1, n, n), B.reshape(-1, n, B.shape[-1])
    if n <= _SMALL and len(flat) > 1:
        for row in range(n):  # forward substitution, the whole batch at once
            if row:
                flat[:, row] -= (flat_lower[:, row, None, :row] @ flat[:, :row])[:, 0]
            flat[:, row] /= flat_lower[:, row, row, None]
        return B
    for matrix, right in zip(flat_lower, flat, strict=True):
        # X ᵀ lowerᵀ = Bᵀ, all read in Fortran order
        dtrsm(1.0, matrix.T, right.T, side=1, lower=0, overwrite_b=1)
    return B


def solve_lower_vectors(lower: Floats, b: Floats) -> Floats:
    """Solve lower · x = b for vectors: `b` of shape (..., n); returns a new array of that shape."""
    return solve_lower(lower, np.array(b[..., None], order="C"))[..., 0]


def invert_lower(lower: Floats) -> Floats:
    """Inverses of triangular matrices (..., n, n), zero above the diagonal; the matrices are overwritten."""
    n = lower.shape[-1]
    if n <= _SMALL:
        return solve_lower(lower, np.broadcast_to(np.eye(n), lower.shape).copy())
    lower *= _on_and_below(n)
    for matrix in lower.reshape(-1, n, n):
        _invert_triangle(matrix)
    return lower


def _invert_triangle(matrix: Floats) -> None:
    """Invert one triangular matrix in place."""
    n = len(matrix)
    if n > _RECURSIVE:
        dtrtri(matrix.T, lower=0, overwrite_c=1)
    elif n <= _LEAF:
        matrix[...] = dtrtri(matrix.T, lower=0)[0].T
    else:  # by halves, whose products are faster than LAPACK's own loops at these sizes
        first, second = slice(0, n // 2), slice(n // 2, n)
        _invert_triangle(matrix[first, first])
        _invert_triangle(matrix[second, second])
        matrix[second, first] = -(matrix[second, second] @ (matrix[second, first] @ matrix[first, first]))


@lru_cache(maxsize=8)
def _on_and_below(n: int) -> Floats:
    return np.tri(n)


def lower_of_weighted_inverse(inverse: Floats, weights: Floats) -> Floats:
    """Lower triangles of inverseᵀ · diag(weights) · inverse, for an inverse that is lower triangular.

    With weights of one this is the inverse of the matrix whose Cholesky factor was inverted. Overwrites the inverse.

    Parameters
    ----------
    inverse : array of shape (..., n, n)
    weights : array of shape (..., n)

    Returns
    -------
    array of shape (..., n, n), zero above the diagonal
    """
    n = inverse.shape[-1]
    if n <= _SMALL:
        return np.tril(np.swapaxes(inverse, -1, -2) @ (weights[..., None] * inverse))
    for matrix, row_weights in zip(inverse.reshape(-1, n, n), weights.reshape(-1, n), strict=True):
        # Read in Fortran order: the upper triangle of matrixᵀ diag(w) matrix.
        if (row_weights == 1).all():
            dlauum(matrix.T, lower=0, overwrite_c=1)
            continue
        parts = [(weight, matrix[row_weights == weight]) for weight in np.unique(row_weights[row_weights != 0])]
        matrix[...] = 0
        for weight, rows in parts:
            dsyrk(weight, rows.T, beta=1.0, c=matrix.T, overwrite_c=1)
    return inverse


def solve_right(lower: Floats, B: Floats) -> Floats:
    """B · lower⁻ᵀ for one triangular matrix (n, n) and rows `B`, shape (..., n), which are overwritten."""
    if not B.size:
        return B
    rows = B.reshape(-1, lower.shape[-1])
    # lower · Xᵀ = Bᵀ, read in Fortran order
    dtrsm(1.0, lower.T, rows.T, side=0, lower=0, trans_a=1, overwrite_b=1)
    return B


def cholesky_of_complement(A: Floats, limit: float = TEMPERING_END) -> tuple[Floats, float]:
    """Cholesky factors of I − A, where the eigenvalues of A lie in [0, 1] up to rounding.

    Raises `SingularMatrixError` where they do not.

    Where an eigenvalue of A is so near to one that I − A has lost all its digits, A is tempered: multiplied by
    1 − δ, which is as if the data behind A had a covariance larger by the fraction δ. δ starts at
    `TEMPERING_START`, is the least power of ten that works, is the same for the whole batch, and is returned.

    Parameters
    ----------
    A : array of shape (..., n, n)
    limit : float
        Largest δ to try.

    Returns
    -------
    lower : array of shape (..., n, n)
    tempering : float
    """
    n = A.shape[-1]
    if not n:
        return A.copy(), 0.0
    tempering, floor, singular = 0.0, n * np.finfo(np.float64).eps, 0
    while tempering <= 1.01 * limit:
        complement = (tempering - 1.0) * A
        add_to_diagonal(complement, 1.0)
        found = _factorise_above(complement.reshape(-1, n, n), math.sqrt(floor))
        if found is None:
            return complement, tempering
        tempering, singular = 10 * tempering or TEMPERING_START, found
        floor = max(floor, 0.1 * tempering)
    raise SingularMatrixError(singular)


def _factorise_above(matrices: Floats, floor: float) -> int | None:
    """Factorise in place; returns the index of a matrix that has a pivot under the floor, if there is one."""
    if matrices.shape[-1] <= _SMALL:
        try:
            matrices[...] = np.linalg.cholesky(matrices)
        except LinAlgError:
            return int(np.linalg.eigvalsh(matrices)[:, 0].argmin())
    else:
        for index, matrix in enumerate(matrices):
            if dpotrf(matrix.T, lower=0, clean=1, overwrite_a=1)[1]:
                return index
    smallest = diagonals(matrices).min(axis=1)
    return int(smallest.argmin()) if smallest.min(initial=np.inf) <= floor else None


def psd_root(A: Floats) -> Floats:
    """A root of a positive semi-definite matrix (n, n): (n, r) with root · rootᵀ = A, up to rounding."""
    factor, pivots, rank, _ = dpstrf(A, lower=1)
    root = np.zeros((len(A), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    return root
