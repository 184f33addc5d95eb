"""Backtests: scores of the forecasts that could have been made in the past."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compositegp.backend import blas_threads_for
from compositegp.forecasting.forecaster import CompositeGPForecaster
from compositegp.forecasting.observations import Observed, observe
from compositegp.forecasting.rolling_forecasts import rolling_forecasts
from compositegp.forecasting.simple_forecasts import simple_forecasts
from compositegp.forecasting.timeline import Horizon
from compositegp.predictive import point_scores

_SMALLEST = float(np.finfo(np.float64).tiny)  # of the values that a logarithm has


@dataclass(frozen=True, eq=False)
class Backtest:
    """Scores of rolling forecasts and of simple ones to compare with.

    Attributes
    ----------
    scores : pandas DataFrame
        One row for each method, with RMSE and MAE. ``compositegp, mean`` also has CRPS and the coverage of the 50 %,
        80 % and 95 % intervals.
    forecasts : pandas DataFrame
        One row for each value that was forecast and observed: ``observed``, ``cutoff``, ``step``, ``mean``, quantiles
        ``q…``, ``CRPS``, ``PIT`` (the probability that the forecast gave to values below the observed one) and the
        simple forecasts: ``persistence`` (the last value), ``seasonal naive`` (the value one season ago) and
        ``decomposition`` (seasons and trend by moving averages, and exponential smoothing: a small MSTL).
    n_origins : int
        Number of forecasts.

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> values = np.sin(2 * np.pi * np.arange(len(index)) / 24) + np.random.default_rng(0).normal(size=len(index))
    >>> done = backtest(CompositeGPForecaster(None, seasons=["day"], search=False), pd.Series(values, index), "12h", 1)
    >>> done.n_origins, len(done.forecasts)
    (1, 12)
    """

    scores: pd.DataFrame
    forecasts: pd.DataFrame
    n_origins: int

    def by(self, key: pd.Series | pd.Index | np.ndarray) -> pd.DataFrame:
        """RMSE, CRPS and coverage for each value of a key, such as ``forecasts["step"]`` or ``forecasts.index.hour``.

        Parameters
        ----------
        key : array of shape (n,)

        Returns
        -------
        pandas DataFrame
        """
        table = self.forecasts
        y = table["observed"]
        each = pd.DataFrame(
            {
                "RMSE": (table["mean"] - y) ** 2,
                "CRPS": table["CRPS"],
                "coverage 50 %": (table["q0.25"] <= y) & (y <= table["q0.75"]),
                "coverage 95 %": (table["q0.025"] <= y) & (y <= table["q0.975"]),
            }
        )
        found = each.groupby(np.asarray(key)).mean()
        found["RMSE"] = np.sqrt(found["RMSE"])
        return found


@blas_threads_for(0)
def backtest(
    forecaster: CompositeGPForecaster,
    y: pd.Series | Observed,
    horizon: Horizon,
    n_origins: int,
    *,
    X: pd.DataFrame | None = None,
    refit_every: int | str | None = "auto",
    fitted: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Backtest:
    """Forecast each of the last `n_origins` horizons of a series from the values before it, and score the forecasts.

    The model is learned from the values before all of these horizons. It takes in the values of each horizon after its
    forecast. A series of at most 1,000 values is learned anew before each of them, or twelve times.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
        A copy of it, with the same parameters, is fitted for this horizon.
    y : pandas Series with a DatetimeIndex, or Observed
    horizon : int, str or Timedelta
    n_origins : int
        Number of horizons.
    X : pandas DataFrame, optional
        Further columns.
    refit_every : int, "auto" or None
        Learn everything anew after as many horizons; 7 is weekly for horizons of a day. None never does, and "auto"
        only for short series, whose latest years teach much of what can be known.
    fitted : bool
        The forecaster was fitted to the values before these horizons (`rows_before`): it is used as it is.
    report : callable
        Called with the number of horizons done, and the number of all.

    Returns
    -------
    Backtest

    Examples
    --------
    >>> index = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> values = np.sin(2 * np.pi * np.arange(len(index)) / 24) + np.random.default_rng(0).normal(size=len(index))
    >>> done = backtest(CompositeGPForecaster(None, seasons=["day"], search=False), pd.Series(values, index), "12h", 2)
    >>> list(done.scores.index)
    ['compositegp, mean', 'compositegp, median', 'persistence', 'seasonal naive', 'decomposition']
    """
    seen = observe(y, X, duplicates=forecaster.duplicates, zone=forecaster.timezone)
    rows = []
    for made in rolling_forecasts(forecaster, seen, horizon, n_origins, refit_every, report, fitted=fitted):
        found, now, values = made.found, made.now, seen.values[made.now]
        # A forecast on a scale of positive values has nothing below them, and its CRPS is |y − y₀| + that of y₀ there.
        inside = values if made.model.takes(values) else np.maximum(values, _SMALLEST)
        table = {
            "observed": values,
            "cutoff": made.model.last_,
            "step": np.round(made.places[now] - made.start).astype(int) + 1,
            "mean": found.mean,
            **{f"q{level:g}": found.quantile(level) for level in (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)},
            "CRPS": found.crps(inside) + (inside - values),
            "PIT": found.cdf(inside) * (values >= np.minimum(inside, 0.0)),
            **simple_forecasts(forecaster, seen, made),
        }
        index = made.model.timeline_.stamps(np.round(made.places[now]))
        rows.append(pd.DataFrame(table, index=index))
    forecasts = pd.concat(rows)
    return Backtest(_scores(forecasts), forecasts, n_origins)


@blas_threads_for(0)
def cross_validation(
    forecaster: CompositeGPForecaster,
    df: pd.DataFrame,
    horizon: Horizon,
    n_windows: int = 1,
    *,
    quantiles: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975),
    refit_every: int | str | None = "auto",
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> pd.DataFrame:
    """Rolling forecasts of one or many series as one tidy table, in the words of Nixtla's libraries.

    Parameters
    ----------
    forecaster : CompositeGPForecaster
        A copy of it is fitted to each series.
    df : pandas DataFrame
        Columns of the series' names, times and values; all others are further columns whose future is known.
    horizon : int, str or Timedelta
    n_windows : int
        Horizons at the end of each series that are forecast.
    quantiles : sequence of floats between 0 and 1
    refit_every : int, "auto" or None
        As for `backtest`.
    id_col, time_col, target_col : str
        Names of the columns; without a column `id_col` the table is one series.

    Returns
    -------
    pandas DataFrame
        Columns `id_col`, `time_col`, ``cutoff``, `target_col`, ``mean`` and ``q…``.

    Examples
    --------
    >>> times = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
    >>> values = np.sin(2 * np.pi * np.arange(len(times)) / 24) + np.random.default_rng(0).normal(size=len(times))
    >>> table = pd.DataFrame({"unique_id": "a", "ds": times, "y": values})
    >>> forecaster = CompositeGPForecaster(None, seasons=["day"], search=False)
    >>> found = cross_validation(forecaster, table, "12h", quantiles=[0.1, 0.9])
    >>> list(found.columns), len(found)
    (['unique_id', 'ds', 'cutoff', 'y', 'mean', 'q0.1', 'q0.9'], 12)
    """
    missing = [name for name in (time_col, target_col) if name not in df.columns]
    if missing:
        raise ValueError(f"df must have the column {missing[0]!r}; found {list(df.columns)}.")
    named = df if id_col in df.columns else df.assign(**{id_col: target_col})
    columns = [name for name in named.columns if name not in (id_col, time_col, target_col)]
    tables = []
    for name, part in named.groupby(id_col, sort=False, observed=True):
        index = pd.DatetimeIndex(part[time_col])
        extra = part[columns].set_axis(index) if columns else None
        values = pd.Series(part[target_col].to_numpy(), index=index)
        seen = observe(values, extra, duplicates=forecaster.duplicates, zone=forecaster.timezone)
        for made in rolling_forecasts(forecaster, seen, horizon, n_windows, refit_every, lambda done, total: None):
            table = {
                id_col: name,
                time_col: made.model.timeline_.stamps(np.round(made.places[made.now])),
                "cutoff": made.model.last_,
                target_col: seen.values[made.now],
                "mean": made.found.mean,
            }
            table |= {f"q{float(level):g}": made.found.quantile(float(level)) for level in quantiles}
            tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True)


def _scores(forecasts: pd.DataFrame) -> pd.DataFrame:
    y = forecasts["observed"].to_numpy()
    rows = {}
    for name, column in (
        ("compositegp, mean", "mean"),
        ("compositegp, median", "q0.5"),
        ("persistence", "persistence"),
        ("seasonal naive", "seasonal naive"),
        ("decomposition", "decomposition"),
    ):
        if column in forecasts:
            there = forecasts[column].notna().to_numpy()
            if there.any():
                pair = y[there], forecasts[column].to_numpy()[there]
                rows[name] = point_scores(pair[1], pair[0])
    rows["compositegp, mean"]["CRPS"] = forecasts["CRPS"].mean()
    for level in (0.5, 0.8, 0.95):
        low, high = (forecasts[f"q{0.5 + sign * level / 2:g}"].to_numpy() for sign in (-1, 1))
        rows["compositegp, mean"][f"coverage {100 * level:g} %"] = np.mean((low <= y) & (y <= high))
    return pd.DataFrame(rows).T
