"""All the linear algebra of the library: factorizations that handle singular matrices and report what they changed.

Every function takes arrays with leading batch axes. LAPACK computes on NumPy arrays, PyTorch on arrays of a device.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from compositegp.backend import lapack, torch
from compositegp.backend.arrays import Array, Floats, add_to_diagonal
from compositegp.backend.factorization import TEMPERING_END, TEMPERING_START, Factor, SingularMatrixError


def _for(A: Array) -> Any:
    return lapack if isinstance(A, np.ndarray) else torch


def cholesky(A: Array) -> Factor:
    """Cholesky factors of covariance matrices, which may be overwritten.

    A matrix that is singular (see `SINGULAR`) gets a jitter that starts at `JITTER_START` of its mean diagonal
    and grows tenfold up to `JITTER_END`; then `SingularMatrixError` is raised.

    Parameters
    ----------
    A : array of shape (..., n, n), C-contiguous and symmetric

    Returns
    -------
    Factor
    """
    return _for(A).cholesky(A)  # type: ignore[no-any-return]


def cholesky_and_inverse(A: Array) -> tuple[Factor, Array]:
    """Cholesky factors as those of `cholesky`, and the inverses of the triangular matrices, zero above the diagonal.

    Parameters
    ----------
    A : array of shape (..., n, n), C-contiguous and symmetric, which may be overwritten

    Returns
    -------
    Factor
    array of shape (..., n, n)
    """
    return _for(A).cholesky_and_inverse(A)  # type: ignore[no-any-return]


def pivots_and_solve(A: Array, B: Array) -> tuple[Array, Array]:
    """Diagonals of the Cholesky factors C of covariance matrices, and C⁻¹ B; both may be overwritten.

    Singular matrices are treated as by `cholesky`.

    Parameters
    ----------
    A : array of shape (..., n, n), C-contiguous and symmetric; of NumPy's only the upper triangles are read
    B : array of shape (..., n, m), C-contiguous

    Returns
    -------
    array of shape (..., n)
    array of shape (..., n, m)
    """
    return _for(A).pivots_and_solve(A, B)  # type: ignore[no-any-return]


def solve_lower(lower: Array, B: Array) -> Array:
    """Solve lower · X = B for batches of triangular matrices; `B` may be overwritten with X, which is returned.

    Parameters
    ----------
    lower : array of shape (..., n, n)
    B : array of shape (..., n, m), C-contiguous
    """
    return _for(lower).solve_lower(lower, B)


def invert_lower(lower: Array) -> Array:
    """Inverses of triangular matrices (..., n, n), zero above the diagonal; the matrices may be overwritten."""
    return _for(lower).invert_lower(lower)


def last_rows_of_inverse(lower: Array, first: int) -> Array:
    """Rows from `first` on of the inverses of triangular matrices (..., n, n), which may be overwritten."""
    return _for(lower).last_rows_of_inverse(lower, first) if first else invert_lower(lower)


def solve_upper(lower: Array, B: Array) -> Array:
    """Solve lowerᵀ · X = B for a few columns: `B` of shape (..., n, t); returns a new array of that shape."""
    return _for(lower).solve_upper(lower, B)


def half_of_weighted_inverse(rows: Array, weights: Array | None) -> Array:
    """H with H + Hᵀ = rowsᵀ · diag(weights) · rows, for the last rows of an inverse that is lower triangular.

    With all the rows, and weights of one, H + Hᵀ is the inverse of the matrix whose Cholesky factor was inverted.
    LAPACK is fastest at a lower triangle, with half of the diagonal; a device at half of the whole. May overwrite the
    rows.

    Parameters
    ----------
    rows : array of shape (..., m, n)
    weights : array of shape (..., m) or None
        None for weights of one.

    Returns
    -------
    array of shape (..., n, n)
    """
    return _for(rows).half_of_weighted_inverse(rows, weights)


def subtract_products(A: Array, left: Array, right: Array) -> None:
    """A −= left · rightᵀ for batches of matrices: shapes (b, n, n), (b, n, t) and (b, n, t)."""
    _for(A).subtract_products(A, left, right)


def solve_right(lower: Array, B: Array) -> Array:
    """B · lower⁻ᵀ for one triangular matrix (n, n) and rows `B`, shape (..., n), which may be overwritten."""
    return _for(lower).solve_right(lower, B)


def cholesky_of_complement(A: Array, limit: float = TEMPERING_END) -> tuple[Array, float]:
    """Cholesky factors of I − A, where the eigenvalues of A lie in [0, 1] up to rounding.

    Raises `SingularMatrixError` where they do not.

    If an eigenvalue of A is so near to one that I − A has no correct digits, A is multiplied by 1 − δ (tempered). This
    is as if the covariance of the data behind A were larger by the fraction δ. δ is the smallest power of ten from
    `TEMPERING_START` on that works. It is the same for the whole batch, and is returned.

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
        return 1.0 * A, 0.0
    tempering, floor, singular = 0.0, n * float(np.finfo(np.float64).eps), 0
    while tempering <= 1.01 * limit:
        complement = (tempering - 1.0) * A
        add_to_diagonal(complement, 1.0)
        found = _for(A).factorize_above(complement.reshape(-1, n, n), math.sqrt(floor))
        if found is None:
            return complement, tempering
        tempering, singular = 10 * tempering or TEMPERING_START, found
        floor = max(floor, 0.1 * tempering)
    raise SingularMatrixError(singular)


def psd_root(A: Floats) -> Floats:
    """A root of a positive semi-definite matrix (n, n): (n, r) with root · rootᵀ = A, up to rounding."""
    factor, pivots, rank, _ = dpstrf(A, lower=1)
    root = np.zeros((len(A), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    return root
