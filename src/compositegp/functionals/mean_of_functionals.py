"""Mean functions lifted from points to functionals: the functional of the mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.functionals.functional_list import VALUE, Functionals
from compositegp.means import Functions, MeanModel, mean_derivative


@dataclass(frozen=True, eq=False)
class OfFunctionals:
    """A mean function, or basis functions, of rows that stand for points and for functionals.

    Attributes
    ----------
    function : callable
        Of points (n, d); returns (n,) or (n, q).
    functionals : Functionals
        Those that rows may name.
    """

    function: Functions
    functionals: Functionals

    def __call__(self, X: Floats) -> Floats:
        """Σ weight · D function(x) over the atoms of each row; of a part that is not the mean it is zero."""
        d = self.functionals.n_columns
        numbers = np.full(len(X), -1) if X.shape[1] == d else X[:, -1].astype(np.intp)
        named = numbers >= 0
        if not named.any():
            return np.asarray(self.function(X[:, :d]))
        chosen = self.functionals[numbers[named]]
        sums = _summed(self.function, chosen)
        if named.all():
            return sums
        plain = np.asarray(self.function(X[~named, :d]), dtype=np.float64)
        result = np.empty((len(X), *plain.shape[1:]))
        result[~named], result[named] = plain, sums
        return result


def _summed(function: Functions, chosen: Functionals) -> Floats:
    values = np.array(function(chosen.points), dtype=np.float64)
    for column in np.unique(chosen.columns[(chosen.columns != VALUE) & chosen.has_mean]):
        own = chosen.columns == column
        values[own] = mean_derivative(function, chosen.points[own], int(column))
    weights = chosen.weights * chosen.has_mean
    weighted = weights.reshape(-1, *(1,) * (values.ndim - 1)) * values
    if not weighted.size:
        return np.empty((len(chosen), *values.shape[1:]))
    return np.asarray(np.add.reduceat(weighted, chosen.starts[:-1], axis=0))


@mean_derivative.register(OfFunctionals)
def _derivative(function: OfFunctionals, X: Floats, column: int) -> Floats:
    return mean_derivative(function.function, X, column)


def lift_mean(mean: MeanModel, functionals: Functionals) -> MeanModel:
    """A mean of rows that stand for points and for functionals."""
    return MeanModel(
        OfFunctionals(_plain(mean.known), functionals),
        OfFunctionals(_plain(mean.functions), functionals),
        mean.coefficients,
    )


def _plain(function: Any) -> Any:
    return function.function if isinstance(function, OfFunctionals) else function
