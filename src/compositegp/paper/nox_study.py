"""24 hours ahead from midnight, day after day, by many choices of terms."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from compositegp.analysis import predictor
from compositegp.backend import Floats
from compositegp.composite import Composite, Observations, conditioning_sets, segment
from compositegp.kernels import diagonal, gram
from compositegp.paper.nox_forecasts import DAY, Forecasts, in_weeks
from compositegp.paper.nox_model import FIRST, WEEK, Model, hours_of
from compositegp.posteriors import posterior
from compositegp.predictive import LogTarget, PredictiveDistribution

_QUICK = 5.0  # seconds


class Choice(NamedTuple):
    """A choice of terms for a history of n hours."""

    name: str
    composite: Composite | None  # None: all the history, the exact GP
    inducing: Any = None


def choices(X: Floats, weeks: int) -> Iterator[Choice]:
    """The methods that are compared.

    Parameters
    ----------
    X : array of shape (n, 1)
        Hours of the history.
    weeks : int
        Its length.

    Yields
    ------
    Choice

    Examples
    --------
    >>> print(*(choice.name for choice in choices(np.arange(2.0 * WEEK)[:, None], 2)), sep=", ")
    GP, CGP 1 week, FITC 1 week
    """
    yield Choice("GP", None)
    n = len(X)
    sizes = [size for size in (1, 2, 5, 10, 25) if size <= weeks // 2]
    for size in sizes:
        yield Choice(f"CGP {in_weeks(size)}", Composite.marginal(segment(X, size * WEEK, "sequential")))
    for size in sizes:
        yield Choice(f"FITC {in_weeks(size)}", Composite.pointwise(n), X[-size * WEEK :])
    for size, given in ((1, 2), (5, 5)):
        if (size + given) * WEEK < n:
            newest_first = segment(X, size * WEEK, "sequential")[::-1]
            sets = conditioning_sets(X, newest_first, given * WEEK)
            yield Choice(f"conditional {in_weeks(size)} given {given}", Composite.conditional(newest_first, sets))


def study(
    series: pd.Series, model: Model, days: int, weeks: int, known_seconds: dict[str, list[float]]
) -> list[Forecasts]:
    """Forecasts of all methods for days of 2014.

    The kernel is stationary and no hour is missing, so that all days have the same covariances: the weights of a
    method are computed once.

    Parameters
    ----------
    series : pandas Series
        Hourly, without gaps.
    model : Model
    days : int
        Number of days, spread evenly over 2014.
    weeks : int
        History of each prediction.
    known_seconds : dict of str to list of float
        Seconds of predictions by methods that were measured before; these are not measured again. Others are added.

    Returns
    -------
    list of Forecasts
    """
    n = WEEK * weeks
    X, Z = np.arange(n, dtype=np.float64)[:, None], n + np.arange(DAY, dtype=np.float64)[:, None]
    origins = origins_of(series, days, n)
    hours = np.arange(len(series), dtype=np.float64)
    y = series.to_numpy()
    level = model.level(hours)
    residuals = np.log(y) - level
    past = np.stack([residuals[origin - n : origin] for origin in origins])
    ahead = (origins[:, None] + np.arange(DAY)).ravel()
    forecasts = []
    for choice in choices(X, weeks):
        weights, variance = _weights(model, X, Z, choice)
        mean = past @ weights.T + level[ahead].reshape(-1, DAY)
        phases = {
            phase: _coefficient_error(model, phase + WEEK * weeks, n, weights) for phase in set(origins % WEEK)
        }
        error = np.stack([phases[origin % WEEK] for origin in origins])
        std = np.sqrt(variance + model.noise + error)
        if choice.name not in known_seconds:
            known_seconds[choice.name] = _seconds(model, X, Z, residuals[origins[0] - n : origins[0]], choice)
        took = known_seconds[choice.name]
        found = PredictiveDistribution(mean.ravel(), std.ravel(), LogTarget())
        made = Forecasts.of(choice.name, series.index[ahead], y[ahead], found, min(took))
        forecasts.append(made._replace(spread=max(took) - min(took)))
    return forecasts


def gp_seconds(series: pd.Series, model: Model, weeks: Sequence[int]) -> dict[int, float]:
    """Seconds of one prediction by the exact GP, by the weeks of its history."""
    residuals = np.log(series.to_numpy()) - model.level(np.arange(len(series), dtype=np.float64))
    found = {}
    for each in weeks:
        n = WEEK * each
        X, Z = np.arange(n, dtype=np.float64)[:, None], n + np.arange(DAY, dtype=np.float64)[:, None]
        found[each] = min(_seconds(model, X, Z, residuals[:n], Choice("GP", None)))
    return found


def study_with_gaps(series: pd.Series, model: Model, starts: pd.DatetimeIndex, weeks: int) -> list[Forecasts]:
    """Forecasts of all methods for days of a series with gaps: each day is predicted alone.

    Parameters
    ----------
    series : pandas Series
        Hourly, with gaps.
    model : Model
    starts : pandas DatetimeIndex
        The first hours of the days.
    weeks : int
        History of each prediction.

    Returns
    -------
    list of Forecasts
    """
    hours, y = hours_of(series), series.to_numpy()
    residuals = np.log(y) - model.level(hours)
    forecasts: dict[str, list[Forecasts]] = {}
    for start in (starts - series.index[0]) / pd.Timedelta(hours=1):
        past = (hours >= start - WEEK * weeks) & (hours < start)
        day = (hours >= start) & (hours < start + DAY)
        if day.any() and past.sum() > 2 * WEEK:
            for choice in choices(hours[past, None], weeks):
                mean, std, seconds = _predict_alone(model, hours[past], residuals[past], hours[day], choice)
                found = PredictiveDistribution(mean, std, LogTarget())
                part = Forecasts.of(choice.name, series.index[day], y[day], found, seconds)
                forecasts.setdefault(choice.name, []).append(part)
    return [Forecasts.joined(parts) for parts in forecasts.values()]


def _predict_alone(
    model: Model, past: Floats, residuals: Floats, day: Floats, choice: Choice
) -> tuple[Floats, Floats, float]:
    """Mean and standard deviation of ln NOx, and the seconds that they took."""
    began = time.perf_counter()
    composite = choice.composite or Composite.full(len(past))
    belief = posterior(model.kernel, past[:, None], residuals, day[:, None], composite, inducing=choice.inducing)
    seconds = time.perf_counter() - began
    return model.level(day) + belief.mean, np.sqrt(belief.variance + model.noise), seconds


def origins_of(series: pd.Series, days: int, n: int) -> Any:
    """Positions of the first hour of each day: one o'clock of 2014's days, evenly chosen."""
    first = int(np.searchsorted(series.index.to_numpy(), (FIRST + pd.Timedelta(hours=1)).to_datetime64()))
    every = np.arange(first, len(series) - DAY + 1, DAY)[:364]
    if first < n or not len(every):
        raise ValueError(f"the series has {first} hours before 2014, too few for a history of {n}.")
    return every[np.unique(np.linspace(0, len(every) - 1, min(days, len(every))).round().astype(int))]


def _weights(model: Model, X: Floats, Z: Floats, choice: Choice) -> tuple[Floats, Floats]:
    """Weights (24, n) of the mean of ln NOx, and its claimed variances (24,)."""
    if choice.composite is None:
        K = gram(model.kernel, X)
        cross = gram(model.kernel, X, Z)
        weights = cho_solve(cho_factor(K, lower=True, overwrite_a=True), cross).T
        variance = diagonal(model.kernel, Z, noise=False) - np.einsum("mn,nm->m", weights, cross)
        return weights, np.asarray(variance)
    if choice.inducing is not None:
        return _sparse_weights(model, X, Z, choice.inducing)
    data = Observations.checked(model.kernel, X, np.zeros(len(X)), mean=None, noise_variance=None)
    found = predictor(data, Z, choice.composite, None)
    return found.coefficients, found.claimed_variance


def _sparse_weights(model: Model, X: Floats, Z: Floats, U: Floats) -> tuple[Floats, Floats]:
    """The same for FITC, by Cholesky factors: several times faster than `posterior`, which bears singular Σ_uu."""
    lower = np.linalg.cholesky(gram(model.kernel, U, U))
    V = solve_triangular(lower, gram(model.kernel, U, X), lower=True)
    W = solve_triangular(lower, gram(model.kernel, U, Z), lower=True)
    noise = diagonal(model.kernel, X) - np.einsum("un,un->n", V, V)  # of each observation, given u
    scaled = V / np.sqrt(noise)
    solved = cho_solve(cho_factor(np.eye(len(U)) + scaled @ scaled.T, lower=True, overwrite_a=True), W)
    variance = diagonal(model.kernel, Z, noise=False) - np.einsum("um,um->m", W, W - solved)
    return solved.T @ (V / noise), np.asarray(variance)


def _coefficient_error(model: Model, origin: int, n: int, weights: Floats) -> Floats:
    """Variance from the error of the mean's coefficients, for a day that begins at a phase of the week."""
    functions = model.functions(np.arange(origin - n, origin + DAY, dtype=np.float64))
    sensitivity = functions[n:] - weights @ functions[:n]
    return np.asarray(((sensitivity @ model.root) ** 2).sum(axis=1))


def _seconds(model: Model, X: Floats, Z: Floats, residuals: Floats, choice: Choice) -> list[float]:
    """Seconds of predictions, each made alone: three, or fewer where these take long."""
    composite = Composite.full(len(X)) if choice.composite is None else choice.composite
    took: list[float] = []
    while len(took) < 3 and sum(took) < _QUICK:
        began = time.perf_counter()
        if choice.inducing is None:
            posterior(model.kernel, X, residuals, Z, composite)
        else:
            _sparse_weights(model, X, Z, choice.inducing)
        took.append(time.perf_counter() - began)
    return took
