"""Terms of a short series: each value given all the values before it, and each step of a horizon given all the past.

With the Cholesky factor L of the covariance of all the values, in order of time, and z = L⁻¹ y, the error of the
forecast of value i from the values before i − s is Σ_{d ≤ s} L_{i, i−d} z_{i−d}, and its variance is
Σ_{d ≤ s} L²_{i, i−d}: one factorization serves all origins. The effects are part of the covariance, so that their
coefficients are never estimated from what is forecast. The terms with s = 0 add up to the log likelihood, from which
the kernel is learned: a short series has too few horizons to learn from them alone.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from compositegp.backend import Floats, Indices
from compositegp.forecasting.coefficients import Forecasts, Information

_JITTER = 1e-8  # added to the variance of the values, over that of the series
_UNKNOWN = 1e7  # variance of the noise of a missing value, over that of the series


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
    """

    values: Floats
    functions: Floats
    prior_variance: float

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
        return WholePast(self.values[-count:], self.functions[-count:], self.prior_variance)

    def first(self, count: int) -> "WholePast":
        """The first values alone."""
        return WholePast(self.values[:count], self.functions[:count], self.prior_variance)

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
        """Log scores p(y_i | all before) of each value that is known, shape (count,)."""
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

        Arrays of shape (N − horizon + 1, horizon).
        """
        factor, z = self._factored(k)
        rows, places = np.arange(len(z))[:, None], np.arange(len(z))[:, None] - np.arange(horizon)
        band = np.where(places >= 0, factor[rows, np.maximum(places, 0)], 0.0)
        errors = np.cumsum(band * z[np.maximum(places, 0)], axis=1)
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
