"""Averages of a forecast over days, weeks or months, with error bars that account for correlation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from compositegp.forecasting.local_times import in_utc
from compositegp.forecasting.timeline import Horizon
from compositegp.predictive import combine_predictions

if TYPE_CHECKING:
    from compositegp.forecasting.forecaster import CompositeGPForecaster

PERIODS = {"hour": "h", "day": "D", "week": "W", "month": "M", "year": "Y"}
_MOST_STEPS = 5_000  # of a horizon, whose covariance is held


def aggregate_forecast(
    model: "CompositeGPForecaster",
    horizon: Horizon,
    period: str,
    quantiles: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975),
    X: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Forecast the averages of the series over periods of the calendar, in the time zone of the series.

    The errors of the steps of a day are correlated, so that the error of its average is larger than if they were not.

    Parameters
    ----------
    model : CompositeGPForecaster
        Fitted.
    horizon : int, str or Timedelta
        Steps after the latest observation, or a duration such as "7d".
    period : {"hour", "day", "week", "month", "year"}
    quantiles : sequence of floats between 0 and 1
    X : pandas DataFrame, optional
        The further columns in the steps of the horizon.

    Returns
    -------
    pandas DataFrame
        Indexed by the start of each period: ``steps``, the number of steps of the horizon that are in it (the first and
        the last period may not be whole), ``mean``, ``std`` and ``q…`` of the average of the values that will be
        observed in these steps.

    Examples
    --------
    >>> from compositegp.forecasting import CompositeGPForecaster
    >>> index = pd.date_range("2024-01-01", periods=240, freq="h")
    >>> noise = np.random.default_rng(0).normal(size=240)
    >>> series = pd.Series(5 + np.sin(2 * np.pi * np.arange(240) / 24) + 0.1 * noise, index=index)
    >>> model = CompositeGPForecaster(None, search=False).fit(series)
    >>> table = aggregate_forecast(model, "36h", "day", quantiles=[0.05, 0.95])
    >>> list(table.columns), table["steps"].tolist()
    (['steps', 'mean', 'std', 'q0.05', 'q0.95'], [24, 12])
    """
    if period not in PERIODS:
        raise ValueError(f"period must be one of {', '.join(PERIODS)}; found {period!r}.")
    levels = [float(level) for level in quantiles]
    if not all(0 < level < 1 for level in levels):
        raise ValueError(f"quantiles must be numbers between 0 and 1; found {quantiles!r}.")
    timeline = model.timeline_
    steps = timeline.steps(horizon)
    check_aggregation(steps)
    start = timeline.places(in_utc(pd.DatetimeIndex([model.last_])))[0]
    times = timeline.stamps(start + 1.0 + np.arange(steps))
    keys = (times if times.tz is None else times.tz_localize(None)).to_period(PERIODS[period])
    periods = keys.unique()
    inside = np.asarray([keys == one for one in periods], dtype=np.float64)
    found = model.predict_distribution(horizon, X, joint=True)
    averages = combine_predictions(found, inside / inside.sum(axis=1, keepdims=True))
    table = {"steps": inside.sum(axis=1).astype(int), "mean": averages.mean, "std": averages.std}
    table |= {f"q{level:g}": averages.quantile(level) for level in levels}
    return pd.DataFrame(table, index=pd.DatetimeIndex(periods.start_time, name=period))


def check_aggregation(steps: int) -> None:
    """Raise a ValueError if a horizon has too many steps for averages.

    Parameters
    ----------
    steps : int

    Examples
    --------
    >>> check_aggregation(24)
    """
    if steps > _MOST_STEPS:
        raise ValueError(
            f"horizon has {steps} steps, and averages need the covariances of all of them: {_MOST_STEPS} at most. Give "
            "a shorter horizon."
        )
