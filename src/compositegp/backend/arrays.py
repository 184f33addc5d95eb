"""Array types and the few array helpers that every layer shares."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

Array: TypeAlias = Any
"""An array of any namespace that follows the array API (NumPy, PyTorch)."""

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.intp]
Booleans: TypeAlias = npt.NDArray[np.bool_]

IndexSets: TypeAlias = Sequence[ArrayLike] | npt.NDArray[np.integer[Any]]
"""Sets of points, each an array of indices, as a user gives them."""

RandomState: TypeAlias = int | np.random.RandomState | None
"""What scikit-learn's ``check_random_state`` takes: a seed, a generator, or None for a different one each time."""

_LARGEST_REUSABLE_BLOCK = 32 * 2**20 - 2**16  # bytes; the GNU allocator reuses no larger block
_kept = False


def keep_freed_memory() -> None:
    """Let the allocator reuse freed matrices instead of returning them to the system.

    The GNU allocator asks the system for every block above a threshold, and the pages of such a block are mapped again
    each time. At 512 × 512 this costs more than the exponential of the whole matrix. The threshold rises to the size of
    the largest block that was freed, so it is enough to free one large block, which is never written to. With other
    allocators this does nothing.
    """
    global _kept
    if not _kept:
        np.empty(_LARGEST_REUSABLE_BLOCK, dtype=np.uint8)
        _kept = True


def like(values: npt.NDArray[Any], A: Array) -> Array:
    """A NumPy array as an array of the namespace and device of `A`."""
    if isinstance(A, np.ndarray):
        return np.asarray(values)
    return array_namespace(A).asarray(writeable(values), device=A.device)


def writeable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same NumPy array, or a copy if it is read-only: PyTorch warns about read-only arrays."""
    return values if values.flags.writeable else values.copy()


def fetch(A: Array) -> Any:
    """An array of any namespace and device as a NumPy array."""
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
