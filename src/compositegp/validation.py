"""Checks of arguments: a ValueError names the argument, says what was found, and says what to do."""

import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from compositegp.backend import Floats, Indices

LARGEST_TARGET = 1e150
"""Largest size of a target: the variances of larger ones, times the bounds of kernels, are not finite."""


def check_kernel(kernel: Any) -> Kernel:
    """A scikit-learn kernel with one output."""
    if not isinstance(kernel, Kernel) or isinstance(kernel, CompoundKernel):
        raise ValueError(
            f"kernel must be a kernel object of sklearn.gaussian_process.kernels, such as "
            f"1.0 * RBF() + WhiteKernel(); found {_describe(kernel)}."
        )
    return kernel


def check_points(X: Any, name: str, n_columns: int | None = None) -> Floats:
    """Points as a C-contiguous float64 array (n, d), finite, with n ≥ 1 and d ≥ 1."""
    points = _as_floats(X, name)
    if points.ndim != 2:
        raise ValueError(
            f"{name} must have two axes (points, columns); found shape {points.shape}. "
            f"Use {name}.reshape(-1, 1) if there is a single column, {name}.reshape(1, -1) for a single point."
        )
    if 0 in points.shape:
        raise ValueError(f"{name} is empty: found shape {points.shape}. Give at least one point and one column.")
    if n_columns is not None and points.shape[1] != n_columns:
        raise ValueError(
            f"{name} has {points.shape[1]} column(s), but the other points have {n_columns}. "
            "Give the same columns in the same order."
        )
    _check_finite(points, name)
    return np.ascontiguousarray(points)


def check_targets(y: Any, n_samples: int, name: str = "y", *, several: bool = False) -> Floats:
    """Targets as a float64 array (n_samples,), finite; with `several` outputs allowed, (n_samples, t) too."""
    targets = _as_floats(y, name)
    if targets.ndim != 1 and not (several and targets.ndim == 2 and targets.shape[1]):
        raise ValueError(
            f"{name} must have one axis, one value for each point; found shape {targets.shape}. "
            f"Use {name}.ravel() if there is a single column."
        )
    if len(targets) != n_samples:
        raise ValueError(f"{name} has {len(targets)} value(s), but there are {n_samples} point(s) in X.")
    _check_finite(targets, name)
    return check_magnitude(targets, name)


def check_magnitude(y: Floats, name: str = "y") -> Floats:
    """Targets whose squares, and sums of them, are numbers in double precision."""
    size = float(np.abs(y).max(initial=0.0))
    if size > LARGEST_TARGET:
        where = np.unravel_index(int(np.abs(y).argmax()), y.shape)
        raise ValueError(
            f"{name} has the value {y[where]:.3g} at index {int(where[0])}, and variances of that size are beyond "
            f"double precision. Divide {name} by a constant, or check that value."
        )
    return y


def check_noise_variance(noise_variance: Any, n_samples: int, name: str = "noise_variance") -> Floats | None:
    """Noise variances of the points as an array (n_samples,), or None if only the kernel has noise."""
    if noise_variance is None:
        return None
    if not isinstance(noise_variance, Sequence | np.ndarray) and np.ndim(noise_variance) == 0:
        noise_variance = np.full(n_samples, noise_variance)
    variances = check_targets(noise_variance, n_samples, name)
    if (variances < 0).any():
        raise ValueError(
            f"{name} has a negative value ({variances.min():g} at index {variances.argmin()}). "
            "Give variances, not logarithms or weights."
        )
    return variances


def check_index_sets(sets: Any, name: str) -> list[Indices]:
    """One-dimensional index arrays of whole numbers ≥ 0, each without repetition; an array may be empty."""
    if isinstance(sets, (str, bytes)) or not isinstance(sets, Sequence | np.ndarray):
        raise ValueError(f"{name} must be a list of index arrays; found {_describe(sets)}.")
    return [_check_indices(indices, f"{name}[{position}]") for position, indices in enumerate(sets)]


def check_filled(sets: list[Indices], name: str) -> None:
    """Check that no index array is empty."""
    for number, indices in enumerate(sets):
        if not len(indices):
            raise ValueError(f"{name}[{number}] is empty. Leave it out.")


def check_segments(segments: Any, name: str) -> list[Indices]:
    """Index arrays, at least one, none empty, that share no point."""
    sets = check_index_sets(segments, name)
    if not sets:
        raise ValueError(f"{name} is empty. Give at least one segment.")
    check_filled(sets, name)
    values, counts = np.unique(np.concatenate(sets), return_counts=True)
    if counts.max() > 1:
        raise ValueError(
            f"{name} name point {values[counts.argmax()]} twice. Give each point to one segment; for terms that "
            "share points use Composite(terms)."
        )
    return sets


def _check_indices(indices: Any, name: str) -> Indices:
    try:
        array = np.asarray(indices)
    except ValueError:  # ragged
        array = np.empty((0, 0))
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a one-dimensional array of whole numbers; found {_describe(indices)}.")
    if array.min() < 0:
        raise ValueError(f"{name} has the negative index {array.min()}. Count points from zero.")
    values, counts = np.unique(array, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"{name} has index {values[counts.argmax()]} twice. Give each point once in a set.")
    return array.astype(np.intp)


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; found {value!r}.")
    return int(value)


def is_real(value: Any) -> bool:
    """Whether a value is a real number; true and false are none."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def are_finite(value: Any) -> bool:
    """Whether a value is a finite real number, or an array, list or tuple of them."""
    if isinstance(value, list | tuple):
        return all(map(are_finite, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf" and bool(np.isfinite(value).all())
    return is_real(value) and bool(abs(value) <= sys.float_info.max)  # of any size, as Python's whole numbers are


def _as_floats(values: Any, name: str) -> Floats:
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} has masked values. Drop those rows or fill them in.")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers; found {_describe(values)} ({error}). "
            "Encode text and categories as numbers, and give every row the same length."
        ) from error


def _check_finite(values: Floats, name: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), values.shape)
        where = int(first[0]) if values.ndim == 1 else tuple(int(i) for i in first)
        kind = "NaN" if np.isnan(values[bad]).any() else "infinity"
        raise ValueError(
            f"{name} contains {kind}: {int(bad.sum())} value(s) not finite, the first at index {where}. "
            "Drop those rows or fill them in."
        )


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
