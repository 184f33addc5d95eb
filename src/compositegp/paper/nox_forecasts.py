"""Forecasts of the NOx study by a method, their scores, and those of this library's own forecaster."""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from compositegp.backend import Floats
from compositegp.forecasting import CompositeGPForecaster
from compositegp.predictive import PredictiveDistribution, point_scores

DAY = 24
DEFAULT = "CompositeGPForecaster()"
COLUMNS = ("method", "RMSE of mean", "RMSE of median", "MAE of median", "CRPS", "coverage 95 %", "seconds")


def in_weeks(size: int) -> str:
    """A size in words.

    Examples
    --------
    >>> in_weeks(1), in_weeks(5)
    ('1 week', '5 weeks')
    """
    return f"{size} week" if size == 1 else f"{size} weeks"


def named(station: str) -> str:
    """A station as readers are told of it.

    Examples
    --------
    >>> named("hornsgatan")
    'Hornsgatan'
    """
    return station[:1].upper() + station[1:]


class Forecasts(NamedTuple):
    """Forecasts of a method for the hours of all days, arrays of shape (n,), and the seconds of one prediction."""

    method: str
    times: pd.DatetimeIndex
    observed: Floats
    mean: Floats
    median: Floats
    lower: Floats
    upper: Floats
    crps: Floats
    seconds: float

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
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
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
        )

    def table(self) -> pd.DataFrame:
        """One row for each hour."""
        columns = {"method": self.method, "time": self.times, "observed": self.observed, "mean": self.mean}
        return pd.DataFrame(columns | {"median": self.median, "q0.025": self.lower, "q0.975": self.upper})


class Score(NamedTuple):
    """Errors of a method over all days, and the seconds of one prediction."""

    method: str
    rmse_mean: float
    rmse_median: float
    mae: float
    crps: float
    coverage: float
    seconds: float


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
    model.fit(series[series.index < starts[0]])
    parts = []
    for start in starts:
        new = series[(series.index > model.last_) & (series.index < start)]
        if len(new):
            model.update(new)
        day = series[(series.index >= start) & (series.index < start + pd.Timedelta(hours=DAY))]
        if len(day):
            began = time.perf_counter()
            found = model.predict_distribution(day.index, joint=False)
            seconds = time.perf_counter() - began
            parts.append(Forecasts.of(DEFAULT, day.index, day.to_numpy(), found, seconds))
    return Forecasts.joined(parts)
