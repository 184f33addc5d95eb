"""Array types and the few array helpers that every layer shares."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

Array: TypeAlias = Any
"""An array of any namespace that follows the array API (NumPy, PyTorch)."""

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.intp]

_LARGEST_REUSABLE_BLOCK = 32 * 2**20 - 2**16
_kept = False


def keep_freed_memory() -> None:
    """Let the allocator reuse freed matrices instead of returning them to the system.

    The GNU allocator asks the system for every block above a threshold, and page-faults it in anew each
    time: at 512 × 512 that costs more than the exponential of the whole matrix. The threshold rises to the
    size of the largest such block ever freed, so freeing one block, never touched, is enough. Elsewhere
    this does nothing.
    """
    global _kept
    if not _kept:
        np.empty(_LARGEST_REUSABLE_BLOCK, dtype=np.uint8)
        _kept = True


def like(values: Any, A: Array) -> Array:
    """`values`, an array of NumPy's, as one of the namespace and device of `A`."""
    if isinstance(A, np.ndarray):
        return np.asarray(values)
    return array_namespace(A).asarray(writeable(values), device=A.device)


def writeable(values: Any) -> Any:
    """An array of NumPy's that PyTorch takes without a warning: itself, or a copy of one that is read-only."""
    return values if values.flags.writeable else values.copy()


def fetch(A: Array) -> Any:
    """An array of any namespace and device as one of NumPy's."""
    return A if isinstance(A, np.ndarray) else A.cpu().numpy()


def diagonals(A: Array) -> Array:
    """Diagonals of matrices (..., n, n), as a view of shape (..., n)."""
    if isinstance(A, np.ndarray):
        return np.einsum("...ii->...i", A)
    return A.diagonal(dim1=-2, dim2=-1)


def add_to_diagonal(A: Array, values: Array) -> None:
    """Add `values` (a scalar, or shape (..., n)) to the diagonals of `A`, shape (..., n, n), in place."""
    view = diagonals(A)
    view += values
