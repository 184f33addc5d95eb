"""Coefficients of the effects: information from windows in order of time, and forecasts that use only what came before.

For a window with filter W and error variances v the coefficients w of the basis functions F are seen through
(y_ahead − W y_past) = (F_ahead − W F_past) w + error. Each window adds its normal equations; steps of one window err
alike, so that a window counts with a weight below one, which is chosen by the score of forecasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from compositegp.backend import Floats, Indices
from compositegp.forecasting.horizon_terms import Filter, Geometry

WEIGHTS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of a window, of which one is chosen


@dataclass(frozen=True, eq=False)
class Information:
    """What is known about the coefficients: a sum over windows, with a prior.

    Attributes
    ----------
    matrix : array of shape (q, q)
        Σ FᵀF / v, with every window counted fully.
    moment : array of shape (q,)
        Σ Fᵀy / v.
    prior_variance : float
        Of every coefficient; its prior mean is zero.
    weight : float
        Of a window.
    """

    matrix: Floats
    moment: Floats
    prior_variance: float
    weight: float

    @classmethod
    def none(cls, q: int, prior_variance: float, weight: float = 1.0) -> "Information":
        """What is known before any window."""
        return cls(np.zeros((q, q)), np.zeros(q), prior_variance, weight)

    def plus(self, functions: Floats, values: Floats) -> "Information":
        """With standardized basis functions (n, q) and values (n,) of further windows; NaN does not count."""
        rows = np.isfinite(values)
        F, y = functions[rows], values[rows]
        return replace(self, matrix=self.matrix + F.T @ F, moment=self.moment + F.T @ y)

    def estimate(self) -> "Estimate":
        """The posterior of the coefficients."""
        precision = self.weight * self.matrix
        precision[np.diag_indices(len(precision))] += 1 / self.prior_variance
        factor = cho_factor(precision, lower=True, overwrite_a=True, check_finite=False)
        return Estimate(cho_solve(factor, self.weight * self.moment, check_finite=False), factor[0])


class Estimate(NamedTuple):
    """A posterior of coefficients.

    Attributes
    ----------
    mean : array of shape (q,)
    factor : array of shape (q, q)
        Lower Cholesky factor of the precision.
    """

    mean: Floats
    factor: Floats

    @property
    def covariance(self) -> Floats:
        """Covariance of the coefficients, shape (q, q)."""
        return np.asarray(cho_solve((self.factor, True), np.eye(len(self.mean)), check_finite=False))

    def variance_of(self, functions: Floats) -> Floats:
        """Variances of F w for basis functions F (n, q): shape (n,)."""
        half = solve_triangular(self.factor, functions.T, lower=True, check_finite=False)
        return np.asarray((half**2).sum(axis=0))


@dataclass(frozen=True, eq=False)
class SeenThrough:
    """Series and basis functions as the forecasts of many windows see them.

    Attributes
    ----------
    starts : array of int, shape (D,)
        Origins, in order of time.
    steps : array of int, shape (D, m)
        Steps of each horizon.
    functions : array of shape (D, m, q)
        F_ahead − W F_past.
    values : array of shape (D, m)
        y_ahead − W y_past; NaN where it is missing.
    variance : array of shape (D, m)
        Of the errors, noise included.
    """

    starts: Indices
    steps: Indices
    functions: Floats
    values: Floats
    variance: Floats

    def standardized(self, rows: slice) -> tuple[Floats, Floats]:
        """Basis functions (n, q) and values (n,) of some windows over their standard deviations."""
        spread = np.sqrt(self.variance[rows]).ravel()
        functions = self.functions[rows].reshape(len(spread), self.functions.shape[2]) / spread[:, None]
        return functions, self.values[rows].ravel() / spread


def look_through(
    series: Floats, functions: Floats, starts: Indices, geometry: Geometry, k: Floats, stride: int = 1
) -> SeenThrough:
    """Forecast errors of a series and of basis functions, as if each were the series.

    Parameters
    ----------
    series : array of shape (N,)
        On a regular grid; NaN where a value is missing.
    functions : array of shape (N, q)
    starts : array of int, shape (D,)
    geometry : Geometry
        Lags, and all the steps of the horizon.
    k : array
        Covariances by lag.
    stride : int
        Every `stride`-th step is taken, beginning with another one in each window.

    Returns
    -------
    SeenThrough
    """
    shared = geometry.filter(k)
    count = len(geometry.steps) // stride
    values = np.empty((len(starts), count))
    variance, steps = np.empty_like(values), np.empty(values.shape, dtype=np.intp)
    through = np.empty((*values.shape, functions.shape[1]))
    for i, start in enumerate(starts):
        taken = (i % stride) + stride * np.arange(count)
        past = start - geometry.lags
        known = np.isfinite(series[past])
        used: Filter = shared
        if not known.all():
            past, used = past[known], geometry.only(known).filter(k)
        ahead, weights = start + geometry.steps[taken], used.weights[taken]
        values[i] = series[ahead] - weights @ series[past]
        through[i] = functions[ahead] - weights @ functions[past]
        variance[i], steps[i] = used.variance[taken], geometry.steps[taken]
    return SeenThrough(np.asarray(starts), steps, through, values, variance)


class Forecasts(NamedTuple):
    """Errors of forecasts of windows by coefficients that were known at their origins.

    Attributes
    ----------
    errors : array of shape (D, m)
        Observed less forecast; NaN where nothing was observed.
    variance : array of shape (D, m)
        Of the errors, with that of the coefficients.
    """

    errors: Floats
    variance: Floats


def forecast_in_order(
    seen: SeenThrough,
    prior_variance: float,
    weights: Sequence[float],
    first: int,
    every: int,
) -> tuple[list[Forecasts], Information]:
    """Forecast windows from `first` on, each with coefficients from windows that ended before its origin.

    Parameters
    ----------
    seen : SeenThrough
    prior_variance : float
    weights : sequence of floats
        Weights of a window to be tried.
    first : int
        The first window that is forecast.
    every : int
        Coefficients are estimated anew after as many windows.

    Returns
    -------
    list of Forecasts, one for each weight
    Information from all the windows, of weight 1
    """
    total, q = len(seen.starts), seen.functions.shape[2]
    ends = seen.starts + seen.steps.max(axis=1)
    information, done = Information.none(q, prior_variance), 0
    shape = (total - first, seen.values.shape[1])
    found = [Forecasts(np.empty(shape), np.empty(shape)) for _ in weights]
    for start in range(first, total, every):
        over = int(np.searchsorted(ends, seen.starts[start]))
        information, done = information.plus(*seen.standardized(slice(done, over))), over
        now = slice(start, min(start + every, total))
        functions = seen.functions[now].reshape(-1, q)
        for weight, forecasts in zip(weights, found, strict=True):
            estimate = replace(information, weight=weight).estimate()
            rows = slice(now.start - first, now.stop - first)
            forecasts.errors[rows] = seen.values[now] - seen.functions[now] @ estimate.mean
            own = estimate.variance_of(functions).reshape(-1, shape[1])
            forecasts.variance[rows] = seen.variance[now] + own
    return found, information.plus(*seen.standardized(slice(done, total)))
