"""Basis functions in units of the data: what is computed depends neither on the origin of a column nor on its unit.

A trend over Unix times, or over UTM coordinates, is a small difference of large numbers: its intercept at zero is far
outside the data, and known so badly that it hides what the data do say. So coefficients are computed for functions that
are centered and scaled by the data, and reported for the functions that were given.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Floats
from compositegp.means.functions import Basis, Estimated, Functions, Transformer
from compositegp.means.least_squares import check_coefficients, check_covariance
from compositegp.means.model import MeanModel, as_functions

_CONSTANT = 1e-12  # spread of a function over its size, under which it is a constant
_Coefficients = TypeVar("_Coefficients", Basis, Estimated)


@dataclass(frozen=True, eq=False)
class InUnitsOfData:
    """Basis functions minus their centers, over their scales: the same space of functions, other coefficients.

    Parameters
    ----------
    functions : as in `Basis`
    centers, scales : arrays of shape (q,)
    constant : int
        The function that is a constant, of which the others are centered by a multiple; -1 if there is none.

    Examples
    --------
    >>> years = InUnitsOfData("linear", [0.0, 2020.0], [1.0, 5.0], 0)
    >>> years(np.array([[2020.0], [2030.0]]))
    array([[1., 0.],
           [1., 2.]])
    >>> years.given_coefficients([[3.0], [1.0]]).ravel().tolist()  # 3 + (t − 2020) / 5 = −401 + 0.2 t
    [-401.0, 0.2]
    """

    functions: str | Functions | Transformer
    centers: ArrayLike
    scales: ArrayLike
    constant: int

    def __call__(self, X: Floats) -> Floats:
        """Values at the points `X`, shape (n, q)."""
        return self.of_values(np.asarray(as_functions(self.functions)(X), dtype=np.float64))

    def of_values(self, values: Floats) -> Floats:
        """These functions from values of those that were given, shape (n, q), or from their derivatives."""
        centers, scales = np.asarray(self.centers), np.asarray(self.scales)
        if self.constant >= 0:
            level = values[:, self.constant : self.constant + 1] / scales[self.constant]
            values = values - level * centers
        return np.asarray(values / scales)

    @property
    def map(self) -> Floats:
        """A, shape (q, q): given coefficients are A times those of these functions."""
        scales = np.asarray(self.scales, dtype=np.float64)
        matrix = np.diag(1 / scales)
        if self.constant >= 0:
            matrix[self.constant] -= np.asarray(self.centers) / (scales * scales[self.constant])
        return matrix

    @property
    def inverse_map(self) -> Floats:
        """A⁻¹, in closed form: shape (q, q)."""
        matrix = np.diag(np.asarray(self.scales, dtype=np.float64))
        if self.constant >= 0:
            matrix[self.constant] += np.asarray(self.centers)
        return matrix

    def given_coefficients(self, coefficients: ArrayLike) -> Floats:
        """Coefficients (q, t) or (q,) of the functions that were given."""
        return np.asarray(self.map @ np.asarray(coefficients, dtype=np.float64))

    def given_covariance(self, covariance: ArrayLike) -> Floats:
        """Their error covariance (q, q)."""
        return np.asarray(self.map @ np.asarray(covariance, dtype=np.float64) @ self.map.T)


def in_units_of(mean: MeanModel, X: Floats) -> MeanModel:
    """The same mean, its basis functions in units of the points `X` (n, d); as it is where it has units already."""
    given = mean.coefficients
    if given is None or isinstance(given.functions, InUnitsOfData) or not len(X):
        return mean
    units = _units(given.functions, mean.columns(X))
    if units is None:
        return mean
    inverse, q = units.inverse_map, len(units.inverse_map)
    if isinstance(given, Estimated):
        covariance = inverse @ check_covariance(given.covariance, q) @ inverse.T
        found: Basis | Estimated = Estimated(units, inverse @ check_coefficients(given.coefficients, q), covariance)
    else:
        found = Basis(units)
        if given.prior_mean is not None:
            found = replace(found, prior_mean=inverse @ check_coefficients(given.prior_mean, q))
        if given.prior_covariance is not None:
            covariance = inverse @ check_covariance(given.prior_covariance, q) @ inverse.T
            found = replace(found, prior_covariance=0.5 * (covariance + covariance.T))
    return MeanModel(mean.known, units, found)


def as_given(estimate: Estimated) -> Estimated:
    """An estimate of the coefficients of the functions that were given."""
    units = estimate.functions
    if not isinstance(units, InUnitsOfData):
        return estimate
    return Estimated(
        units.functions,
        units.given_coefficients(estimate.coefficients),
        units.given_covariance(estimate.covariance),
    )


def _units(functions: Any, values: Floats) -> InUnitsOfData | None:
    """Units of basis functions with the values (n, q); None where they change nothing."""
    q = values.shape[1]
    sizes = np.abs(values).max(axis=0)
    sizes[sizes == 0] = 1.0
    relative = values / sizes
    levels, spreads = sizes * relative.mean(axis=0), sizes * relative.std(axis=0)
    flat = spreads <= _CONSTANT * sizes
    (constants,) = np.nonzero(flat & (levels != 0))
    if not len(constants):
        constant, centers = -1, np.zeros(q)
        scales = sizes * np.sqrt((relative**2).mean(axis=0))
        scales[scales == 0] = 1.0
    else:
        constant = int(constants[0])
        centers, scales = levels, np.where(flat, 1.0, spreads)
        centers[constant], scales[constant] = 0.0, levels[constant]
    if not centers.any() and (scales == 1.0).all():
        return None
    return InUnitsOfData(functions, centers, scales, constant)
