"""Factorizations and solves of NumPy arrays by LAPACK, one matrix of a batch after the other."""

from functools import lru_cache

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm, dtrsv

from compositegp.backend import lapack_calls
from compositegp.backend.arrays import Floats, diagonals
from compositegp.backend.factorization import JITTER_END, JITTER_START, SINGULAR, Factor, SingularMatrixError

# The first part of benchmarks/learning.py, a pass against bare LAPACK, shows the effect of these three.
_RECURSIVE = 640  # larger triangles are inverted by LAPACK alone
_LEAF = 96  # triangles between this size and _RECURSIVE are split in halves, which are inverted separately
_BORDER = 144  # columns, at most, that are solved for as further columns of the matrix itself
_ROWS = 64  # of a triangle that are copied at once
_ENDLESS = 1e300  # variance of these columns, which leaves them positive definite
_SMALL = 32  # matrices up to this size are factorized and solved across the batch, larger ones one by one


def cholesky(A: Floats) -> Factor:
    """Cholesky factors, in place."""
    batch, n = A.shape[:-2], A.shape[-1]
    matrices = A.reshape(-1, n, n)
    jitter = np.zeros(len(matrices))
    if n <= _SMALL and _factorize_batch(matrices):
        return Factor(A, jitter.reshape(batch))
    for index, matrix in enumerate(matrices):
        jitter[index] = _factorize(matrix, index)
    return Factor(A, jitter.reshape(batch))


def _factorize_batch(matrices: Floats) -> bool:
    """Factorize all in one call, in place; False, and nothing changed, if any one is singular."""
    floor = _pivot_floor(matrices)
    try:
        lower = np.linalg.cholesky(matrices)
    except LinAlgError:
        return False
    if not (diagonals(lower) > floor).all():
        return False
    matrices[...] = lower
    return True


def _factorize(matrix: Floats, index: int) -> float:
    """Factorize one matrix in place; returns the relative jitter that this took."""
    floor = _pivot_floor(matrix)
    original = np.diagonal(matrix).copy()
    jitter = 0.0
    while jitter <= JITTER_END * 1.01:
        if lapack_calls.factorize_lower(matrix) == 0 and (np.diagonal(matrix) > floor).all():
            return jitter
        jitter = 10 * jitter or JITTER_START
        above = np.triu(matrix, 1)  # which has not changed
        matrix[...] = above + above.T
        np.fill_diagonal(matrix, original + jitter * original.mean())
    raise SingularMatrixError(index)


def _pivot_floor(matrices: Floats) -> Floats:
    """Smallest pivot of each row that still has enough correct digits: shape (..., n)."""
    return np.asarray(np.sqrt(SINGULAR * np.abs(diagonals(matrices))))


def solve_lower(lower: Floats, B: Floats) -> Floats:
    """lower⁻¹ B, in place of `B`."""
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
        lapack_calls.solve_lower(matrix, right)
    return B


def invert_lower(lower: Floats) -> Floats:
    """Inverses of triangular matrices, in place."""
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
        lapack_calls.invert_lower(matrix)
    elif n <= _LEAF:
        own = matrix.copy()
        lapack_calls.invert_lower(own)
        matrix[...] = own
    else:  # by halves: at these sizes their products are faster than the loops of LAPACK
        first, second = slice(0, n // 2), slice(n // 2, n)
        _invert_triangle(matrix[first, first])
        _invert_triangle(matrix[second, second])
        matrix[second, first] = -(matrix[second, second] @ (matrix[second, first] @ matrix[first, first]))


@lru_cache(maxsize=8)
def _on_and_below(n: int) -> Floats:
    return np.tri(n)


def last_rows_of_inverse(lower: Floats, first: int) -> Floats:
    """Rows of the inverses from `first` on."""
    n = lower.shape[-1]
    rows = np.zeros((*lower.shape[:-2], n - first, n))
    for matrix, out in zip(lower.reshape(-1, n, n), rows.reshape(-1, n - first, n), strict=True):
        # [−C₂₂⁻¹ C₂₁ C₁₁⁻¹, C₂₂⁻¹], the product with C₁₁⁻¹ by a solve
        own = np.tril(matrix[first:, first:])
        _invert_triangle(own)
        before = matrix[first:, :first].copy()
        lapack_calls.solve_lower_right(matrix[:first, :first], before, -1.0)
        np.matmul(own, before, out=out[:, :first])
        out[:, first:] = own
    return rows


def solve_upper(lower: Floats, B: Floats) -> Floats:
    """lower⁻ᵀ B for a few columns."""
    solved = np.array(B)
    for index in np.ndindex(B.shape[:-2]) if B.size else ():
        for column in range(B.shape[-1]):
            solved[index][:, column] = dtrsv(lower[index].T, B[index][:, column], lower=0)
    return solved


def cholesky_and_inverse(A: Floats) -> tuple[Factor, Floats]:
    """Cholesky factors, and their inverses in other arrays."""
    factor = cholesky(A)
    return factor, invert_lower(factor.lower.copy())


def pivots_and_solve(A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """Diagonals of Cholesky factors C, and C⁻¹ B in place of `B`.

    The columns of B, as further columns of A, are C⁻¹ B when A is factorized: quicker than a solve of a few of them.
    Only the upper triangle of A is read.
    """
    n, m = B.shape[-2:]
    if n <= _SMALL or m > _BORDER:
        _mirror(A)
        lower, _ = cholesky(A)
        return diagonals(lower).copy(), solve_lower(lower, B)
    pivots, bordered = np.empty(B.shape[:-1]), np.empty((n + m, n + m))
    both = zip(A.reshape(-1, n, n), B.reshape(-1, n, m), pivots.reshape(-1, n), strict=True)
    for index, (matrix, columns, own) in enumerate(both):
        for start in range(0, n, _ROWS):
            some = slice(start, min(start + _ROWS, n))
            bordered[some, start:n] = matrix[some, start:]
        bordered[:n, n:] = columns
        bordered[n:, n:] = np.diag(np.full(m, _ENDLESS))
        found = np.diagonal(bordered)[:n]
        if lapack_calls.factorize_upper(bordered) == 0 and (found > _pivot_floor(matrix)).all():
            columns[...], own[...] = bordered[:n, n:], found
            continue
        _mirror(matrix)
        _factorize(matrix, index)
        lapack_calls.solve_lower(matrix, columns)
        own[...] = np.diagonal(matrix)
    return pivots, B


def _mirror(A: Floats) -> None:
    """Copy the upper triangles of matrices (..., n, n) to the lower ones."""
    np.copyto(A, np.swapaxes(A, -1, -2).copy(), where=_on_and_below(A.shape[-1]) != 0)


def half_of_weighted_inverse(rows: Floats, weights: Floats | None) -> Floats:
    """Lower triangles of rowsᵀ diag(weights) rows with half of the diagonals, in place if `rows` has all the rows."""
    weights = np.ones(rows.shape[:-1]) if weights is None else weights
    half = _lower_of_weighted_inverse(rows, weights)
    diagonals(half)[...] *= 0.5
    return half


def _lower_of_weighted_inverse(rows: Floats, weights: Floats) -> Floats:
    m, n = rows.shape[-2:]
    if n <= _SMALL:
        return np.tril(np.swapaxes(rows, -1, -2) @ (weights[..., None] * rows))
    result = rows if m == n else np.zeros((*rows.shape[:-2], n, n))
    flat = zip(rows.reshape(-1, m, n), weights.reshape(-1, m), result.reshape(-1, n, n), strict=True)
    for matrix, row_weights, out in flat:
        if m == n and (row_weights == 1).all():
            lapack_calls.square_lower(matrix)
            continue
        parts = [(weight, matrix[row_weights == weight]) for weight in np.unique(row_weights[row_weights != 0])]
        out[...] = 0
        for weight, some in parts:
            lapack_calls.add_square(float(weight), some, out)
    return result


def subtract_products(A: Floats, left: Floats, right: Floats) -> None:
    """A −= left rightᵀ."""
    A -= left @ np.swapaxes(right, -1, -2)


def solve_right(lower: Floats, B: Floats) -> Floats:
    """B lower⁻ᵀ, in place of `B`."""
    if not B.size:
        return B
    rows = B.reshape(-1, lower.shape[-1])
    # lower · Xᵀ = Bᵀ, read in Fortran order
    dtrsm(1.0, lower.T, rows.T, side=0, lower=0, trans_a=1, overwrite_b=1)
    return B


def factorize_above(matrices: Floats, floor: float) -> int | None:
    """Factorize in place; returns the index of a matrix that has a pivot under the floor, if there is one."""
    if matrices.shape[-1] <= _SMALL:
        try:
            matrices[...] = np.linalg.cholesky(matrices)
        except LinAlgError:
            return int(np.linalg.eigvalsh(matrices)[:, 0].argmin())
    else:
        for index, matrix in enumerate(matrices):
            if lapack_calls.factorize_lower(matrix):
                return index
            matrix *= _on_and_below(len(matrix))
    smallest = diagonals(matrices).min(axis=1)
    return int(smallest.argmin()) if smallest.min(initial=np.inf) <= floor else None
