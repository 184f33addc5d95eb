"""BLAS and LAPACK on matrices in C order, in place, while other threads run: SciPy's wrappers hold them up.

The functions are those that SciPy offers to compiled code. Read in Fortran order a matrix is its own transpose, so that
the upper triangle of LAPACK is the lower one here.
"""

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from compositegp.backend.arrays import Floats

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_address = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype, _address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _function(module: Any, name: str) -> tuple[Any, Any]:
    """A function that leaves the interpreter free while it runs, and the type of its integers."""
    capsule = module.__pyx_capi__[name]
    signature = _name(capsule)
    arguments = signature.count(b"*")
    integer = ctypes.c_int if b" int *" in signature or b"(int *" in signature else ctypes.c_int64
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(_address(capsule, signature)), integer


_potrf, _int = _function(cython_lapack, "dpotrf")
_trtri, _ = _function(cython_lapack, "dtrtri")
_lauum, _ = _function(cython_lapack, "dlauum")
_trsm, _ = _function(cython_blas, "dtrsm")
_syrk, _ = _function(cython_blas, "dsyrk")
_UPPER, _LOWER, _LEFT, _RIGHT, _PLAIN = (ctypes.c_char(letter) for letter in (b"U", b"L", b"L", b"R", b"N"))


def _at(value: Any) -> Any:
    return ctypes.byref(value)


def _row(matrix: Floats) -> Any:
    """Distance from one row to the next, in numbers."""
    return _int(max(1, matrix.shape[1], matrix.strides[0] // matrix.itemsize))


def _in_rows(matrix: Floats) -> Floats:
    """The same matrix, or a copy if its rows are not contiguous, as those of some PyTorch arrays."""
    return matrix if matrix.shape[1] < 2 or matrix.strides[1] == matrix.itemsize else np.ascontiguousarray(matrix)


def _in_place(function: Any, matrix: Floats, *letters: Any) -> int:
    info, own = _int(0), _in_rows(matrix)
    function(*map(_at, (*letters, _int(len(own)))), own.ctypes.data, _at(_row(own)), _at(info))
    if own is not matrix:
        matrix[...] = own
    return int(info.value)


def factorize_lower(matrix: Floats) -> int:
    """Cholesky factor in the lower triangle of a matrix (n, n); returns 0, or the number of the pivot that failed."""
    return _in_place(_potrf, matrix, _UPPER)


def factorize_upper(matrix: Floats) -> int:
    """R in the upper triangle of a matrix Rᵀ R (n, n), which is faster; returns 0, or the number of a failed pivot."""
    return _in_place(_potrf, matrix, _LOWER)


def square_lower(matrix: Floats) -> int:
    """Lᵀ L in the lower triangle of a lower triangular matrix L (n, n)."""
    return _in_place(_lauum, matrix, _UPPER)


def invert_lower(matrix: Floats) -> int:
    """The inverse in the lower triangle of a lower triangular matrix (n, n)."""
    return _in_place(_trtri, matrix, _UPPER, _PLAIN)


def solve_lower(lower: Floats, B: Floats, scale: float = 1.0) -> None:
    """Scale · lower⁻¹ B in the place of B (n, m)."""
    rows, columns = B.shape
    _solve(_RIGHT, lower, B, columns, rows, scale)


def solve_lower_right(lower: Floats, B: Floats, scale: float = 1.0) -> None:
    """Scale · B lower⁻¹ in the place of B (m, n)."""
    rows, columns = B.shape
    _solve(_LEFT, lower, B, columns, rows, scale)


def _solve(side: Any, lower: Floats, B: Floats, m: int, n: int, scale: float) -> None:
    if not B.size:  # BLAS complains, on standard output, about rows of no length
        return
    lower, own = _in_rows(lower), _in_rows(B)
    _trsm(
        _at(side),
        _at(_UPPER),
        _at(_PLAIN),
        _at(_PLAIN),
        _at(_int(m)),
        _at(_int(n)),
        _at(ctypes.c_double(scale)),
        lower.ctypes.data,
        _at(_row(lower)),
        own.ctypes.data,
        _at(_row(own)),
    )
    if own is not B:
        B[...] = own


def add_square(weight: float, rows: Floats, out: Floats) -> None:
    """Add weight · rowsᵀ rows, for rows (m, n), to the lower triangle of `out` (n, n)."""
    (m, n), rows = rows.shape, _in_rows(rows)
    _syrk(
        _at(_UPPER),
        _at(_PLAIN),
        _at(_int(n)),
        _at(_int(m)),
        _at(ctypes.c_double(weight)),
        rows.ctypes.data,
        _at(_row(rows)),
        _at(ctypes.c_double(1.0)),
        out.ctypes.data,
        _at(_row(out)),
    )
