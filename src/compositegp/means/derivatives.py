"""Derivatives of mean functions and of their basis functions in a column of the points."""

from functools import singledispatch
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.means.functions import (
    Constant,
    Linear,
    PeriodicLevels,
    constant_functions,
    linear_functions,
    no_functions,
)
from compositegp.means.least_squares import check_coefficients
from compositegp.means.model import WithCoefficients, as_functions
from compositegp.means.units import InUnitsOfData

_LEVELS = 24  # steps by which the width of differences is halved
_FIRST_STEP = 1e-2  # widest difference, over 1 + |x|
_ACCURATE = 1e-6  # largest error of a numerical derivative that is accepted, over its size


@singledispatch
def mean_derivative(function: Any, X: Floats, column: int) -> Floats:
    """Derivative of a mean function, or of basis functions, in one column.

    A function with a method ``derivative(X, column)`` answers by it. Others are differentiated numerically, by
    differences whose width is halved until they agree; a ValueError says where they do not.

    Parameters
    ----------
    function : callable
        Of points (n, d); returns (n,) or (n, q).
    X : array of shape (n, d)
    column : int

    Returns
    -------
    array of the shape that the function returns

    Examples
    --------
    >>> mean_derivative(lambda X: X[:, 0] ** 3, np.array([[1.0], [2.0]]), 0).round(6)
    array([ 3., 12.])
    """
    if function is no_functions:
        return np.empty((len(X), 0))
    if function is constant_functions:
        return np.zeros((len(X), 1))
    if function is linear_functions:
        slopes = np.zeros((len(X), 1 + X.shape[1]))
        slopes[:, 1 + column] = 1.0
        return slopes
    if hasattr(function, "derivative"):
        return np.asarray(function.derivative(X, column), dtype=np.float64)
    return _numerical(function, X, column)


@mean_derivative.register(Constant)
@mean_derivative.register(PeriodicLevels)
def _flat(function: Any, X: Floats, column: int) -> Floats:
    return np.zeros_like(np.asarray(function(X)))  # levels are constant between their jumps


@mean_derivative.register(Linear)
def _linear(function: Linear, X: Floats, column: int) -> Floats:
    return np.full(len(X), np.atleast_1d(np.asarray(function.coefficients, dtype=np.float64))[column])


@mean_derivative.register(WithCoefficients)
def _with_coefficients(function: WithCoefficients, X: Floats, column: int) -> Floats:
    known = mean_derivative(function.mean.known, X, column).reshape(len(X), -1)
    slopes = mean_derivative(function.mean.functions, X, column)
    return np.asarray(known + slopes @ check_coefficients(function.estimate.coefficients, slopes.shape[1]))


@mean_derivative.register(InUnitsOfData)
def _in_units(function: InUnitsOfData, X: Floats, column: int) -> Floats:
    return function.of_values(mean_derivative(as_functions(function.functions), X, column))


def _numerical(function: Any, X: Floats, column: int) -> Floats:
    """Ridders' method: central differences of ever smaller width, extrapolated to width zero."""
    step = _FIRST_STEP * (1 + np.abs(X[:, column]))
    best: Any = None
    error: Any = np.inf
    earlier: list[Floats] = []
    for _ in range(_LEVELS):
        ahead, behind = X.copy(), X.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        difference = np.asarray(function(ahead), dtype=np.float64) - np.asarray(function(behind), dtype=np.float64)
        width = (ahead - behind)[:, column]
        row = [difference / width.reshape(-1, *(1,) * (difference.ndim - 1))]
        for order, before in enumerate(earlier, start=1):
            row.append((4.0**order * row[-1] - before) / (4.0**order - 1))
        if earlier:
            for order in range(1, len(row)):
                found = np.maximum(np.abs(row[order] - row[order - 1]), np.abs(row[order] - earlier[order - 1]))
                better = found < error
                best, error = (
                    np.where(better, row[order], 0.0 if best is None else best),
                    np.where(better, found, error),
                )
        earlier = row
        step = step / 2
    wrong = error > _ACCURATE * (1 + np.abs(best))
    if wrong.any():
        raise ValueError(
            f"mean {function!r} has no derivative in column {column} at point {X[np.argwhere(wrong)[0][0]]}, or jumps "
            "near it. Give it a method derivative(X, column), or a mean that is smooth."
        )
    return np.asarray(best)
