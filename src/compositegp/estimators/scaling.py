"""Inputs and target in units of their own, so that a kernel can be left to begin at one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from compositegp.arrays import Floats
from compositegp.means import Basis, Estimated, MeanModel, as_functions, as_mean, no_functions
from compositegp.posteriors import Marginals

_CONSTANT = 1e-13  # spread of a column, over its size, that is but rounding


@dataclass(frozen=True, eq=False)
class Scaling:
    """Units in which the kernel works: x' = (x − centre) / spread, y' = (y − offset) / unit.

    Attributes
    ----------
    centre, spread : arrays of shape (d,)
    offset, unit : float
    """

    centre: Floats
    spread: Floats
    offset: float
    unit: float

    @classmethod
    def none(cls, n_columns: int) -> "Scaling":
        """Leave everything as it is."""
        return cls(np.zeros(n_columns), np.ones(n_columns), 0.0, 1.0)

    @classmethod
    def of(cls, X: Floats, y: Floats) -> "Scaling":
        """Zero mean and unit variance; what does not vary is only centred."""
        centre, spread = _mean_and_spread(X)
        offset, unit = _mean_and_spread(y)
        return cls(centre, spread, float(offset), float(unit))

    @property
    def changes_nothing(self) -> bool:
        """Whether the units are those of the data."""
        return not self.centre.any() and bool((self.spread == 1).all()) and self.offset == 0 and self.unit == 1

    def points(self, X: Floats) -> Floats:
        """Points in the kernel's units."""
        return X if self.changes_nothing else np.ascontiguousarray((X - self.centre) / self.spread)

    def original_points(self, X: Floats) -> Floats:
        """Points in the data's units."""
        return X if self.changes_nothing else X * self.spread + self.centre

    def targets(self, y: Floats) -> Floats:
        """Targets in the kernel's units."""
        return (y - self.offset) / self.unit

    def variances(self, variances: Floats | None) -> Floats | None:
        """Variances of targets in the kernel's units."""
        return None if variances is None else variances / self.unit**2

    def restore(self, marginals: Marginals) -> Marginals:
        """Means and variances in the data's units."""
        return Marginals(self.offset + self.unit * marginals.mean, self.unit**2 * marginals.variance)

    def mean(self, mean: Any, X: Floats) -> Any:
        """A user's mean in the kernel's units; a transformer is fitted to the points `X` (in the data's) first.

        The functions of a name see points in the kernel's units, which are better behaved; a user's own see the data's.
        """
        if hasattr(mean, "fit") and hasattr(mean, "transform"):
            mean = Basis(clone(mean).fit(X))
        if self.changes_nothing or mean is None or isinstance(mean, str):
            return mean
        if isinstance(mean, Basis):
            prior_mean = None if mean.prior_mean is None else np.asarray(mean.prior_mean) / self.unit
            covariance = mean.prior_covariance
            covariance = None if covariance is None else np.asarray(covariance) / self.unit**2
            return Basis(self._functions(mean.functions), prior_mean, covariance)
        if isinstance(mean, Estimated):
            coefficients = np.asarray(mean.coefficients) / self.unit
            return Estimated(
                self._functions(mean.functions), coefficients, np.asarray(mean.covariance) / self.unit**2
            )
        return MeanModel(_KnownInOriginalUnits(as_mean(mean), self), no_functions, None)

    def _functions(self, functions: Any) -> Any:
        return functions if isinstance(functions, str) else _OfOriginalPoints(as_functions(functions), self)


@dataclass(frozen=True, eq=False)
class _OfOriginalPoints:
    functions: Any
    scaling: Scaling

    def __call__(self, X: Floats) -> Any:
        return self.functions(self.scaling.original_points(X))


@dataclass(frozen=True, eq=False)
class _KnownInOriginalUnits:
    model: MeanModel
    scaling: Scaling

    def __call__(self, X: Floats) -> Any:
        return self.scaling.targets(self.model.values(self.scaling.original_points(X)))


def _mean_and_spread(values: Floats) -> tuple[Any, Any]:
    mean = values.mean(axis=0)
    # In units of the largest value, so that no square overflows or vanishes.
    sizes = np.abs(values).max(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    spread = sizes * (values / sizes).std(axis=0)
    return mean, np.where(spread > _CONSTANT * sizes, spread, 1.0)
