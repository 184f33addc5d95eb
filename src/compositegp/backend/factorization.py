"""Results and errors of factorizations, and the limits on how far a matrix may be changed to factorize it."""

from typing import NamedTuple

from numpy.linalg import LinAlgError

from compositegp.backend.arrays import Array, Floats

SINGULAR = 1e-11
"""A covariance matrix is singular if a point, given the others, has less than this fraction of its variance."""
JITTER_START = 1e-10
"""First jitter tried on a singular covariance matrix, relative to its mean diagonal."""
JITTER_END = 1e-6
"""Largest jitter tried; beyond it the matrix is not a covariance."""
TEMPERING_START = 1e-13
"""Smallest fraction of a term's covariance that is added to it, if its data determine the latent beyond rounding."""
TEMPERING_END = 1e-4
"""Largest fraction of a term's covariance that is added to it."""


class NumericalWarning(UserWarning):
    """A result depends on a matrix that had to be changed to be factorized; the message says by how much.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", NumericalWarning)  # accept such results in silence
    """


class SingularMatrixError(LinAlgError):
    """A matrix of a batch could not be factorized; ``index`` is its flat index in the batch."""

    def __init__(self, index: int) -> None:
        super().__init__(f"matrix {index} of the batch is not positive definite")
        self.index = index


class Factor(NamedTuple):
    """Cholesky factors, and the jitter that was added to factorize.

    Attributes
    ----------
    lower : array of shape (..., n, n); above the diagonal it is undefined
    jitter : array of shape (...), relative to the mean diagonal
    """

    lower: Array
    jitter: Floats
