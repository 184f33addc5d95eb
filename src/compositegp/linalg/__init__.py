"""Linear algebra of covariance matrices: one seam, LAPACK behind it for NumPy and PyTorch for devices."""

from compositegp.linalg.outcomes import (
    JITTER_END,
    JITTER_START,
    SINGULAR,
    TEMPERING_END,
    TEMPERING_START,
    Factor,
    NumericalWarning,
    SingularMatrixError,
)
from compositegp.linalg.seam import (
    cholesky,
    cholesky_of_complement,
    invert_lower,
    last_rows_of_inverse,
    lower_of_weighted_inverse,
    psd_root,
    solve_lower,
    solve_lower_vectors,
    solve_right,
    solve_upper_vectors,
)

__all__ = [
    "JITTER_END",
    "JITTER_START",
    "SINGULAR",
    "TEMPERING_END",
    "TEMPERING_START",
    "Factor",
    "NumericalWarning",
    "SingularMatrixError",
    "cholesky",
    "cholesky_of_complement",
    "invert_lower",
    "last_rows_of_inverse",
    "lower_of_weighted_inverse",
    "psd_root",
    "solve_lower",
    "solve_lower_vectors",
    "solve_right",
    "solve_upper_vectors",
]
