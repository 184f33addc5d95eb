"""Backtests: what forecasts would have been worth, had they been made when they could."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.timeline import Observed, Timeline, observe
from compositegp.predictive import crps, crps_log_normal
from compositegp.validation import check_count


@dataclass(frozen=True, eq=False)
class Backtest:
    """Scores of rolling forecasts beside simple ones.

    Attributes
    ----------
    scores : pandas DataFrame
        One row for each method; RMSE and MAE, and for this one CRPS and coverage of the 50 % and 95 % intervals.
    forecasts : pandas DataFrame
        ``observed``, ``mean``, ``median`` and the intervals, one row for each value that was forecast and observed.
    n_origins : int
    """

    scores: pd.DataFrame
    forecasts: pd.DataFrame
    n_origins: int


def backtest(
    forecaster: CompositeGPForecaster,
    y: Any,
    horizon: Any,
    n_origins: int,
    *,
    X: Any = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Backtest:
    """Roll the origin over the last `n_origins` horizons of a series.

    The model is learned once, from what is older than all of them, and takes in each horizon after it was forecast.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
        Its parameters are used; it is left as it was.
    y : pandas Series with a DatetimeIndex
    horizon : int, str or Timedelta
    n_origins : int
    X : pandas DataFrame, optional
    report : callable
        Called with the number of origins done, and of all.

    Returns
    -------
    Backtest
    """
    check_count(n_origins, "n_origins")
    model = copy.deepcopy(forecaster)
    seen = observe(y, X, duplicates=forecaster.duplicates)
    whole = Timeline.of(seen.stamps, None)
    steps, places = whole.steps(horizon), whole.places(seen.stamps)
    starts = np.floor(places[-1] + 1e-6) + 1 - steps * np.arange(n_origins, 0, -1)
    before = places < starts[0]
    if before.sum() < 3 * steps or before.sum() < 50:
        raise ValueError(
            f"a backtest of {n_origins} horizon(s) leaves {int(before.sum())} observation(s) to learn from, too few. "
            "Ask for fewer, or a shorter horizon."
        )
    columns = None if X is None else X.columns
    model.fit(*_part(seen, before, columns))
    period = model._known.seasons[-1].period if model._known.seasons else None
    rows = []
    for number, start in enumerate(starts):
        now = (places >= start) & (places < start + steps)
        if now.any():
            rows.append(_forecast(model, seen, places, now, start, period))
            model.update(*_part(seen, now, columns))
        report(number + 1, n_origins)
    forecasts = pd.concat(rows)
    return Backtest(_scores(forecasts, model.transform == "log"), forecasts, n_origins)


def _part(seen: Observed, chosen: Any, columns: Any) -> tuple[pd.Series, pd.DataFrame | None]:
    index = seen.stamps[chosen]
    extra = None if columns is None else pd.DataFrame(seen.extra[chosen], index=index, columns=columns)
    return pd.Series(seen.values[chosen], index=index), extra


def _forecast(
    model: CompositeGPForecaster, seen: Observed, places: Floats, now: Any, start: float, period: float | None
) -> pd.DataFrame:
    """The values of one horizon that were observed, and what was said of them at its origin."""
    own = model._known.timeline.places(seen.stamps[now])  # its step may be another
    found = model.predictive(own, seen.extra[now] if seen.extra.shape[1] else None)
    table = {
        "observed": seen.values[now],
        "mean": found.mean_and_std()[0],
        **{f"q{level:g}": found.quantile(level) for level in (0.025, 0.25, 0.5, 0.75, 0.975)},
        "persistence": np.full(int(now.sum()), seen.values[places < start][-1]),
        "model_mean": found.mean,
        "model_std": np.sqrt(found.variance),
    }
    if period is not None:
        table["seasonal naive"] = _a_season_ago(places, seen.values, places[now], start, period)
    return pd.DataFrame(table, index=seen.stamps[now])


def _a_season_ago(places: Floats, values: Floats, wanted: Floats, start: float, period: float) -> Floats:
    """The latest observed value a whole number of periods before each time, among those before the origin."""
    known = dict(zip(np.round(places[places < start], 6), values[places < start], strict=True))
    found = np.full(len(wanted), np.nan)
    for row, place in enumerate(wanted):
        for cycles in range(1, 9):
            value = known.get(
                np.round(place - np.ceil((place - start + 1) / period) * period - (cycles - 1) * period, 6)
            )
            if value is not None:
                found[row] = value
                break
    return found


def _scores(forecasts: pd.DataFrame, log: bool) -> pd.DataFrame:
    y = forecasts["observed"].to_numpy()
    rows = {}
    for name, column in (
        ("compositegp, mean", "mean"),
        ("compositegp, median", "q0.5"),
        ("persistence", "persistence"),
        ("seasonal naive", "seasonal naive"),
    ):
        if column in forecasts:
            errors = (forecasts[column] - y).dropna().to_numpy()
            if len(errors):
                rows[name] = {"RMSE": np.sqrt(np.mean(errors**2)), "MAE": np.mean(np.abs(errors))}
    mean, std = forecasts["model_mean"].to_numpy(), forecasts["model_std"].to_numpy()
    score = crps_log_normal(mean, std, y) if log else crps(mean, std, y)
    rows["compositegp, mean"] |= {
        "CRPS": score.mean(),
        "coverage 50 %": np.mean((forecasts["q0.25"] < y) & (y < forecasts["q0.75"])),
        "coverage 95 %": np.mean((forecasts["q0.025"] < y) & (y < forecasts["q0.975"])),
    }
    return pd.DataFrame(rows).T
