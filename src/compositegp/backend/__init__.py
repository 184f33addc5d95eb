"""Arrays, devices and linear algebra, with the same functions for NumPy and for PyTorch."""

from compositegp.backend.arrays import (
    Array,
    Booleans,
    Floats,
    IndexSets,
    Indices,
    RandomState,
    add_to_diagonal,
    diagonals,
    fetch,
    keep_freed_memory,
    like,
)
from compositegp.backend.blas_threads import available_threads, blas_threads_for
from compositegp.backend.devices import batch_elements, current_device, in_batches, on_processor, use_device
from compositegp.backend.factorization import (
    JITTER_END,
    JITTER_START,
    TEMPERING_END,
    Factor,
    NumericalWarning,
    SingularMatrixError,
)
from compositegp.backend.fused import fuses_radial, is_fused, points_within, radial_gram, radial_products
from compositegp.backend.inverse_information import (
    invert_information,
    pseudo_inverse_root,
    pseudo_invert_information,
)
from compositegp.backend.linear_algebra import (
    cholesky,
    cholesky_of_complement,
    half_of_weighted_inverse,
    invert_lower,
    last_rows_of_inverse,
    psd_root,
    solve_lower,
    solve_right,
    solve_upper,
    subtract_products,
)
from compositegp.backend.parallel import run_tasks
from compositegp.backend.warn import warn_caller

__all__ = [
    "JITTER_END",
    "JITTER_START",
    "TEMPERING_END",
    "Array",
    "Booleans",
    "Factor",
    "Floats",
    "IndexSets",
    "Indices",
    "NumericalWarning",
    "RandomState",
    "SingularMatrixError",
    "add_to_diagonal",
    "available_threads",
    "batch_elements",
    "blas_threads_for",
    "cholesky",
    "cholesky_of_complement",
    "current_device",
    "diagonals",
    "fetch",
    "fuses_radial",
    "half_of_weighted_inverse",
    "in_batches",
    "invert_information",
    "invert_lower",
    "is_fused",
    "keep_freed_memory",
    "last_rows_of_inverse",
    "like",
    "on_processor",
    "points_within",
    "psd_root",
    "pseudo_inverse_root",
    "pseudo_invert_information",
    "radial_gram",
    "radial_products",
    "run_tasks",
    "solve_lower",
    "solve_right",
    "solve_upper",
    "subtract_products",
    "use_device",
    "warn_caller",
]
