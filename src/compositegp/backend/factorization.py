"""What factorisations return, how far they go to succeed, and what they raise."""

from typing import NamedTuple

from numpy.linalg import LinAlgError

from compositegp.backend.arrays import Array, Floats

SINGULAR = 1e-11
"""A covariance matrix is singular if a point has less than this fraction of its variance left, given the others."""
JITTER_START = 1e-10
"""First jitter tried on a singular covariance matrix, relative to its mean diagonal."""
JITTER_END = 1e-6
"""Largest jitter tried; beyond it the matrix is not a covariance."""
TEMPERING_START = 1e-13
"""Least fraction of a term's covariance that is added to it where its data pin the latent down beyond rounding."""
TEMPERING_END = 1e-4


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
