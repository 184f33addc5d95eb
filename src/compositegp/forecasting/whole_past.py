"""Terms of a short series: each value given all the values before it, and each step of a horizon given all the past.

With the Cholesky factor L of the covariance of all the values, in order of time, and z = L⁻¹ y, the error of the
forecast of value i from the values before i − s is Σ_{d ≤ s} L_{i, i−d} z_{i−d}, and its variance is
Σ_{d ≤ s} L²_{i, i−d}: one factorization serves all origins. The effects are part of the covariance, so that their
coefficients are never estimated from what is forecast. The terms with s = 0 add up to the log likelihood, from which
the kernel is learned: a short series has too few horizons to learn from them alone.

An outlier, such as the month of a lockdown, would change the season and the level of all forecasts after it. So a value
farther from its forecast than some standard deviations counts as that far (`WholePast.tempered`): z is cut off, as
Gelper, Fried and Croux (2010) do for exponential smoothing.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from compositegp.backend import Floats, Indices
from compositegp.forecasting.coefficients import Forecasts, Information

_JITTER = 1e-8  # added to the variance of the values, over that of the series
_UNKNOWN = 1e7  # variance of the noise of a missing value, over that of the series
_CREDIBLE = 4.0  # standard deviations from its forecast up to which a value counts as it is


@dataclass(frozen=True, eq=False)
class WholePast:
    """A series whose values are forecast from all that was before.

    Attributes
    ----------
    values : array of shape (N,)
        One for each step, less their center; NaN where it is missing.
    functions : array of shape (N, q)
        Basis functions of the effects.
    prior_variance : float
        Of their coefficients.
    observed : array of shape (N,) or None
        What was observed, where outliers are tempered in the values; None where they are not.
    """

    values: Floats
    functions: Floats
    prior_variance: float
    observed: Floats | None = None

    @property
    def reach(self) -> int:
        """Number of different lags between the values."""
        return len(self.values)

    @property
    def count(self) -> int:
        """Number of values that are known."""
        return int(np.isfinite(self.values).sum())

    def latest(self, count: int) -> "WholePast":
        """The latest values alone."""
        return self._part(slice(-count, None))

    def first(self, count: int) -> "WholePast":
        """The first values alone."""
        return self._part(slice(0, count))

    def _part(self, rows: slice) -> "WholePast":
        observed = None if self.observed is None else self.observed[rows]
        return WholePast(self.values[rows], self.functions[rows], self.prior_variance, observed)

    def tempered(self, k: Floats, first: int = 0) -> "WholePast":
        """The series with its outliers nearer to their forecasts, under the covariances k by lag.

        A value, from row `first` on, that is more than four standard deviations from its forecast, given the values
        before it as they are tempered, is put at that distance. Forecasts are scored by what was observed.
        """
        factor, z = self._factored(k)
        if np.abs(z[first:]).max(initial=0.0) <= _CREDIBLE:
            return self
        known, moved = np.where(np.isfinite(self.values), self.values, 0.0), z.copy()
        for row in range(first, len(z)):
            z[row] = (known[row] - factor[row, :row] @ moved[:row]) / factor[row, row]
            moved[row] = np.clip(z[row], -_CREDIBLE, _CREDIBLE)
        values = self.values + np.diagonal(factor) * (moved - z)
        return replace(self, values=values, observed=self.values if self.observed is None else self.observed)

    def score(self, k: Floats) -> tuple[float, Floats]:
        """The log likelihood, and its derivative in the covariances k by lag: a number, shape (N,)."""
        factor, z = self._factored(k)
        value = float(self._one_step(factor, z).sum())
        half, _ = dpotri(factor, lower=1)  # the lower triangle of K⁻¹
        solved = solve_triangular(factor, z, lower=True, trans=1, check_finite=False)
        by_covariance = np.tril(np.outer(solved, solved) - half)  # twice over, but on the diagonal
        np.fill_diagonal(by_covariance, 0.5 * np.diagonal(by_covariance))
        slope = np.bincount(self._lags.ravel(), by_covariance.ravel(), minlength=len(z))
        slope[0] += _JITTER * float(np.trace(by_covariance))
        return value, np.asarray(slope)

    def log_scores(self, k: Floats) -> Floats:
        """Log densities log p(y_i | all before) of each value that is known, shape (count,)."""
        return self._one_step(*self._factored(k))

    def fisher(self, k: Floats, slopes: Floats) -> Floats:
        """Fisher information of the likelihood, ½ tr(K⁻¹ ∂K K⁻¹ ∂K), from k and its slopes (p, N): shape (p, p)."""
        factor, _ = self._factored(k)
        halves = []
        for slope in slopes:
            change = slope[self._lags]
            change[np.diag_indices(len(change))] += _JITTER * slope[0]
            half = solve_triangular(factor, change, lower=True, check_finite=False)
            halves.append(solve_triangular(factor, half.T, lower=True, check_finite=False))
        whitened = np.stack(halves)
        return np.asarray(0.5 * np.einsum("aij,bij->ab", whitened, whitened))

    def forecasts(self, k: Floats, horizon: int) -> Forecasts:
        """Errors and their variances by origin: the first from no value, the last of the latest horizon.

        Arrays of shape (N − horizon + 1, horizon). Errors are those of what was observed.
        """
        factor, z = self._factored(k)
        rows, places = np.arange(len(z))[:, None], np.arange(len(z))[:, None] - np.arange(horizon)
        band = np.where(places >= 0, factor[rows, np.maximum(places, 0)], 0.0)
        errors = np.cumsum(band * z[np.maximum(places, 0)], axis=1)
        if self.observed is not None:
            errors += (self.observed - self.values)[:, None]
        errors[~np.isfinite(self.values)] = np.nan
        variance = np.cumsum(band**2, axis=1)
        origins, steps = np.arange(len(z) - horizon + 1)[:, None], np.arange(horizon)
        return Forecasts(errors[origins + steps, steps], variance[origins + steps, steps])

    def information(self, k: Floats, weight: float) -> Information:
        """All that the series tells about the coefficients, as windows of some weight would."""
        known = np.isfinite(self.values)
        matrix = k[self._lags[np.ix_(known, known)]]
        matrix[np.diag_indices(len(matrix))] += _JITTER * k[0]
        F = self.functions[known]
        solved = cho_solve((cholesky(matrix, lower=True, check_finite=False), True), F, check_finite=False)
        moment = solved.T @ self.values[known]
        return Information(F.T @ solved / weight, moment / weight, self.prior_variance, weight)

    @cached_property
    def _lags(self) -> Indices:
        at = np.arange(len(self.values))
        return np.asarray(np.abs(at[:, None] - at))

    @cached_property
    def _of_effects(self) -> Floats:
        return np.asarray(self.prior_variance * self.functions @ self.functions.T)

    def _factored(self, k: Floats) -> tuple[Floats, Floats]:
        matrix = k[self._lags] + self._of_effects
        missing = ~np.isfinite(self.values)
        matrix[np.diag_indices(len(matrix))] += _JITTER * k[0] + _UNKNOWN * self.prior_variance * missing
        factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        values = np.where(missing, 0.0, self.values)
        return factor, np.asarray(solve_triangular(factor, values, lower=True, check_finite=False))

    def _one_step(self, factor: Floats, z: Floats) -> Floats:
        each = -0.5 * (z**2 + np.log(2 * np.pi)) - np.log(np.diagonal(factor))
        return np.asarray(each[np.isfinite(self.values)])
