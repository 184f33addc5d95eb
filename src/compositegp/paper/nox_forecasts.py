"""Forecasts of the NOx study by a method, their scores, and those of this library's own forecaster."""

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from compositegp.backend import Floats
from compositegp.forecasting import CompositeGPForecaster
from compositegp.predictive import PredictiveDistribution, point_scores

DAY = 24
DEFAULT = "CompositeGPForecaster()"
OWN_MEAN = "its own"  # the mean of this library's forecaster, which it learns
COLUMNS = ("method", "RMSE of mean", "RMSE of median", "MAE of median", "CRPS", "coverage 95 %", "seconds")


def in_weeks(size: int) -> str:
    """A size in words.

    Examples
    --------
    >>> in_weeks(1), in_weeks(5)
    ('1 week', '5 weeks')
    """
    return f"{size} week" if size == 1 else f"{size} weeks"


def weeks_of(method: str) -> int:
    """Weeks in the name of a method.

    Examples
    --------
    >>> weeks_of("CGP 5 weeks")
    5
    """
    return int(method.split()[1])


def named(station: str) -> str:
    """A station as readers are told of it.

    Examples
    --------
    >>> named("hornsgatan")
    'Hornsgatan'
    """
    return station[:1].upper() + station[1:]


class Work(NamedTuple):
    """Seconds of all that a forecaster did for some days.

    Attributes
    ----------
    fit, updates, predictions : float
    days : int

    Examples
    --------
    >>> Work(fit=8.0, updates=1.5, predictions=0.5, days=10).a_day
    1.0
    """

    fit: float
    updates: float
    predictions: float
    days: int

    @property
    def a_day(self) -> float:
        """All of it, divided by the days."""
        return (self.fit + self.updates + self.predictions) / self.days


class Forecasts(NamedTuple):
    """Forecasts of a method for the hours of all days, arrays of shape (n,), and the seconds of a day.

    Attributes
    ----------
    seconds : float
        Of one prediction, with its factorization; for a forecaster all its work, divided by the days.
    spread : float
        The largest less the least of the seconds, where a prediction was repeated.
    work : Work, optional
        Of a forecaster.
    """

    method: str
    times: pd.DatetimeIndex
    observed: Floats
    mean: Floats
    median: Floats
    lower: Floats
    upper: Floats
    crps: Floats
    seconds: float
    spread: float = 0.0
    work: Work | None = None

    @classmethod
    def of(
        cls, method: str, times: pd.DatetimeIndex, observed: Floats, found: PredictiveDistribution, seconds: float
    ) -> "Forecasts":
        """From a predictive distribution of these hours."""
        lower, upper = found.interval(0.95)
        crps = np.asarray(found.crps(observed))
        return cls(method, times, observed, found.mean, found.median, lower, upper, crps, seconds)

    @classmethod
    def joined(cls, parts: list["Forecasts"]) -> "Forecasts":
        """Forecasts of one method, one after the other; the seconds are their median."""
        names = ("observed", "mean", "median", "lower", "upper", "crps")
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        times = pd.DatetimeIndex(np.concatenate([part.times for part in parts]))
        seconds = float(np.median([part.seconds for part in parts]))
        return cls(parts[0].method, times, seconds=seconds, **arrays)

    def score(self) -> "Score":
        """Errors over all hours."""
        median = point_scores(self.median, self.observed)
        return Score(
            self.method,
            point_scores(self.mean, self.observed)["RMSE"],
            median["RMSE"],
            median["MAE"],
            float(self.crps.mean()),
            float(((self.lower < self.observed) & (self.observed < self.upper)).mean()),
            self.seconds,
            self.spread,
            self.work,
        )

    def table(self) -> pd.DataFrame:
        """One row for each hour."""
        columns = {"method": self.method, "time": self.times, "observed": self.observed, "mean": self.mean}
        return pd.DataFrame(columns | {"median": self.median, "q0.025": self.lower, "q0.975": self.upper})


class Score(NamedTuple):
    """Errors of a method over all days, and seconds as in `Forecasts`."""

    method: str
    rmse_mean: float
    rmse_median: float
    mae: float
    crps: float
    coverage: float
    seconds: float
    spread: float = 0.0
    work: Work | None = None

    def row(self) -> tuple[Any, ...]:
        """Its values of `COLUMNS`."""
        return tuple(self[: len(COLUMNS)])


def shipped_default(
    series: pd.Series, starts: pd.DatetimeIndex, forecaster: CompositeGPForecaster | None = None
) -> Forecasts:
    """Forecasts of this library's forecaster, called as a user calls it: fit once, then predict a day and take it in.

    Parameters
    ----------
    series : pandas Series
        Hourly.
    starts : pandas DatetimeIndex
        The first hours of the days, ascending.
    forecaster : CompositeGPForecaster, optional
        By default one without any argument.

    Returns
    -------
    Forecasts

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 30, freq="h")
    >>> values = np.exp(np.random.default_rng(0).normal(size=len(index)))
    >>> model = CompositeGPForecaster("log", seasons=["day"], search=False)
    >>> shipped_default(pd.Series(values, index), index[-48::24], model).times[0]
    Timestamp('2024-01-29 00:00:00')
    """
    model = clone(CompositeGPForecaster() if forecaster is None else forecaster)
    began = time.perf_counter()
    model.fit(series[series.index < starts[0]])
    fit, updates = time.perf_counter() - began, 0.0
    parts = []
    for start in starts:
        new = series[(series.index > model.last_) & (series.index < start)]
        if len(new):
            began = time.perf_counter()
            model.update(new)
            updates += time.perf_counter() - began
        day = series[(series.index >= start) & (series.index < start + pd.Timedelta(hours=DAY))]
        if len(day):
            began = time.perf_counter()
            found = model.predict_distribution(day.index, joint=False)
            seconds = time.perf_counter() - began
            parts.append(Forecasts.of(DEFAULT, day.index, day.to_numpy(), found, seconds))
    work = Work(fit, updates, sum(part.seconds for part in parts), len(parts))
    return Forecasts.joined(parts)._replace(seconds=work.a_day, work=work)
