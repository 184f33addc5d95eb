"""The forecast of one day of the NOx study, by the paper's composite."""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from compositegp.backend import Floats
from compositegp.composite import Composite, segment
from compositegp.paper.nox_forecasts import DAY
from compositegp.paper.nox_model import WEEK, Model
from compositegp.posteriors import posterior


def forecast_day(series: pd.Series, model: Model, day: pd.Timestamp, n: int) -> dict[str, Floats]:
    """Forecast of a day by the paper's composite with segments of five weeks.

    Parameters
    ----------
    series : pandas Series
        Hourly, without gaps.
    model : Model
    day : pandas Timestamp
    n : int
        Hours of history.

    Returns
    -------
    dict of str to array of shape (24,)
        ``observed`` and quantiles ``q…``.

    Examples
    --------
    >>> from compositegp.paper.nox_kernel import kernel_of
    >>> from compositegp.means import Estimated
    >>> index = pd.date_range("2013-12-20", "2014-01-03", freq="h")
    >>> values = np.exp(np.random.default_rng(0).normal(3.0, 0.5, size=len(index)))
    >>> model = Model(kernel_of([], 0.25), Estimated("constant", [3.0], [[0.0]]))
    >>> shown = forecast_day(pd.Series(values, index), model, pd.Timestamp("2014-01-01"), 200)
    >>> bool((shown["q0.025"] < shown["q0.975"]).all())
    True
    """
    start = int(np.searchsorted(series.index.to_numpy(), (day + pd.Timedelta(hours=1)).to_datetime64()))
    n = min(n, start)
    hours = np.arange(len(series), dtype=np.float64)
    X, Z = hours[start - n : start, None], hours[start : start + DAY, None]
    residuals = np.log(series.to_numpy()[start - n : start]) - model.level(X[:, 0])
    composite = Composite.marginal(segment(X, min(5 * WEEK, n), "sequential"))
    belief = posterior(model.kernel, X, residuals, Z, composite)
    mean, std = model.level(Z[:, 0]) + belief.mean, np.sqrt(belief.variance + model.noise)
    quantiles = {f"q{level:g}": np.exp(mean + ndtri(level) * std) for level in (0.025, 0.25, 0.5, 0.75, 0.975)}
    return {"observed": series.to_numpy()[start : start + DAY]} | quantiles


def day_table(shown: dict[str, Floats], day: pd.Timestamp) -> pd.DataFrame:
    """A day's forecast as a table with a row for each hour; the first hour of a day ends at one o'clock.

    Examples
    --------
    >>> table = day_table({"q0.5": np.ones(24)}, pd.Timestamp("2014-03-12"))
    >>> str(table["time"][0]), str(table["time"][23])
    ('2014-03-12 01:00:00', '2014-03-13 00:00:00')
    """
    hours = np.arange(1, DAY + 1)
    return pd.DataFrame({"time": day + pd.to_timedelta(hours, unit="h"), "hour": hours} | shown)
