"""Backtests: scores of the forecasts that could have been made in the past."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import clone

from compositegp.backend import Booleans, Floats
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.timeline import Horizon, Observed, observe
from compositegp.predictive import point_scores
from compositegp.validation import check_count

_FEWEST_HORIZONS, _FEWEST_OBSERVATIONS = 3, 50  # a model is learned from at least these
_MOST_PERIODS = 8  # a seasonal naive forecast looks back over at most these


@dataclass(frozen=True, eq=False)
class Backtest:
    """Scores of rolling forecasts and of simple ones to compare with.

    Attributes
    ----------
    scores : pandas DataFrame
        One row for each method, with RMSE and MAE. ``compositegp, mean`` also has CRPS and the coverage of the 50 % and
        95 % intervals.
    forecasts : pandas DataFrame
        One row for each value that was forecast and observed: ``observed``, ``mean``, quantiles ``q…``, the simple
        forecasts, and mean and standard deviation on the model's scale.
    n_origins : int
        Number of forecasts.

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> values = np.sin(2 * np.pi * np.arange(len(index)) / 24) + np.random.default_rng(0).normal(size=len(index))
    >>> done = backtest(CompositeGPForecaster(seasons=["day"]), pd.Series(values, index), "12h", 1)
    >>> done.n_origins, len(done.forecasts)
    (1, 12)
    """

    scores: pd.DataFrame
    forecasts: pd.DataFrame
    n_origins: int


def backtest(
    forecaster: CompositeGPForecaster,
    y: pd.Series | Observed,
    horizon: Horizon,
    n_origins: int,
    *,
    X: pd.DataFrame | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Backtest:
    """Forecast each of the last `n_origins` horizons of a series from the values before it, and score the forecasts.

    The model is learned once, from the values before all of these horizons. It takes in the values of each horizon
    after its forecast.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
        A copy of it, with the same parameters, is fitted.
    y : pandas Series with a DatetimeIndex, or Observed
    horizon : int, str or Timedelta
    n_origins : int
        Number of horizons.
    X : pandas DataFrame, optional
        Further columns.
    report : callable
        Called with the number of horizons done, and the number of all.

    Returns
    -------
    Backtest

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> values = np.sin(2 * np.pi * np.arange(len(index)) / 24) + np.random.default_rng(0).normal(size=len(index))
    >>> done = backtest(CompositeGPForecaster(seasons=["day"]), pd.Series(values, index), "12h", 2)
    >>> list(done.scores.index)
    ['compositegp, mean', 'compositegp, median', 'persistence', 'seasonal naive']
    """
    check_count(n_origins, "n_origins")
    model = clone(forecaster)
    seen = observe(y, X, duplicates=forecaster.duplicates)
    steps, places = seen.timeline.steps(horizon), seen.timeline.places(seen.stamps)
    starts = np.floor(places[-1] + 1e-6) + 1 - steps * np.arange(n_origins, 0, -1)
    before = places < starts[0]
    if before.sum() < max(_FEWEST_HORIZONS * steps, _FEWEST_OBSERVATIONS):
        raise ValueError(
            f"a backtest of {n_origins} horizon(s) leaves {int(before.sum())} observation(s) to learn from, too few. "
            "Ask for fewer, or a shorter horizon."
        )
    model.fit(seen.take(before))
    period = model.seasons_[-1].period if model.seasons_ else None
    rows = []
    for number, start in enumerate(starts):
        now = (places >= start) & (places < start + steps)
        if now.any():
            rows.append(_forecast(model, seen, places, now, start, period))
            model.update(seen.take(now))
        report(number + 1, n_origins)
    forecasts = pd.concat(rows)
    return Backtest(_scores(forecasts), forecasts, n_origins)


def _forecast(
    model: CompositeGPForecaster, seen: Observed, places: Floats, now: Booleans, start: float, period: float | None
) -> pd.DataFrame:
    """The observed values of one horizon, and the forecasts of them."""
    extra = pd.DataFrame(seen.extra[now], columns=seen.columns) if seen.columns else None
    found = model.predict_distribution(seen.stamps[now], extra, joint=False)
    table = {
        "observed": seen.values[now],
        "mean": found.mean,
        **{f"q{level:g}": found.quantile(level) for level in (0.025, 0.25, 0.5, 0.75, 0.975)},
        "persistence": np.full(int(now.sum()), seen.values[places < start][-1]),
        "CRPS": found.crps(seen.values[now]),
    }
    if period is not None:
        table["seasonal naive"] = _a_season_ago(places, seen.values, places[now], start, period)
    return pd.DataFrame(table, index=seen.stamps[now])


def _a_season_ago(places: Floats, values: Floats, wanted: Floats, start: float, period: float) -> Floats:
    """The latest observed value a whole number of periods before each time, among those before the origin."""
    known = dict(zip(np.round(places[places < start], 6), values[places < start], strict=True))
    found = np.full(len(wanted), np.nan)
    for row, place in enumerate(wanted):
        for cycles in range(1, 1 + _MOST_PERIODS):
            value = known.get(
                np.round(place - np.ceil((place - start + 1) / period) * period - (cycles - 1) * period, 6)
            )
            if value is not None:
                found[row] = value
                break
    return found


def _scores(forecasts: pd.DataFrame) -> pd.DataFrame:
    y = forecasts["observed"].to_numpy()
    rows = {}
    for name, column in (
        ("compositegp, mean", "mean"),
        ("compositegp, median", "q0.5"),
        ("persistence", "persistence"),
        ("seasonal naive", "seasonal naive"),
    ):
        if column in forecasts:
            there = forecasts[column].notna().to_numpy()
            if there.any():
                pair = y[there], forecasts[column].to_numpy()[there]
                rows[name] = point_scores(pair[1], pair[0])
    rows["compositegp, mean"] |= {
        "CRPS": forecasts["CRPS"].mean(),
        "coverage 50 %": np.mean((forecasts["q0.25"] < y) & (y < forecasts["q0.75"])),
        "coverage 95 %": np.mean((forecasts["q0.025"] < y) & (y < forecasts["q0.975"])),
    }
    return pd.DataFrame(rows).T
