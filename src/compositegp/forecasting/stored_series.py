"""A fitted series from what a file has: each part is checked, so that what was loaded can forecast."""

import re
from typing import Any

import numpy as np
import pandas as pd

from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.seasons import Season
from compositegp.forecasting.timeline import Timeline
from compositegp.kernels import gram
from compositegp.means import Basis, Constant, Estimated, Linear, as_mean, gaussian_prior
from compositegp.storage import Fields
from compositegp.validation import check_kernel

NAMES = ("kernel", "mean", "theta_standard_errors", "X", "y", "columns", "notes")
_ZONE = re.compile(
    r"UTC[+-]\d\d:\d\d|(?!dateutil/|pytz/)[A-Za-z][\w+-]*(/[A-Za-z][\w+-]*)*"
)  # and no path of a file
_YEARS = (1, 9999)  # that a series may have


def to_values(series: FittedSeries) -> dict[str, Any]:
    """A series as numbers, text, arrays, kernel and mean: the content of a file."""
    timeline = series.timeline
    return {
        "timeline": {"origin": timeline.origin.isoformat(), "step": timeline.step.value, "zone": timeline.zone},
        "seasons": [tuple(season) for season in series.seasons],
        "series": {name: getattr(series, name) for name in NAMES},
    }


def from_values(timeline: Any, seasons: Any, series: Any) -> FittedSeries:
    """The series that `to_values` wrote, checked; a ValueError says what is wrong."""
    parts = Fields(series, NAMES)
    columns = parts.texts("columns")
    X = parts.reals("X", None, 1 + len(columns))
    if not len(X) or (np.diff(X[:, 0]) <= 0).any():
        raise ValueError("the times of its observations are missing or not in order")
    kernel = check_kernel(parts["kernel"])
    covariance = np.asarray(gram(kernel, X[:2]))
    if not np.isfinite(covariance).all() or (np.diagonal(covariance) < 0).any():
        raise ValueError(f"kernel {kernel!r:.80} gives no covariances of the points")
    mean = parts["mean"]
    if not isinstance(mean, int | float | str | Constant | Linear | Basis | Estimated | None):
        raise ValueError(f"mean is no mean that a file can have; found {type(mean).__name__}")
    model = as_mean(mean)
    model.values(X[:1])
    prior = gaussian_prior(model.coefficients, model.columns(X[:1]).shape[1])
    if prior is not None and prior.mean.shape[1] != 1:
        raise ValueError("its mean is that of several outputs")
    return FittedSeries(
        _timeline(timeline, X[[0, -1], 0]),
        _seasons(seasons),
        kernel,
        mean,
        parts.reals("theta_standard_errors", len(kernel.theta), infinite=True),
        X,
        parts.reals("y", len(X)),
        columns,
        parts.texts("notes"),
    )


def _timeline(values: Any, ends: Any) -> Timeline:
    parts = Fields(values, ["origin", "step", "zone"])
    zone = None if parts["zone"] is None else parts.text("zone")
    if zone is not None:
        if not _ZONE.fullmatch(zone):
            raise ValueError(f"zone {zone!r:.60} is no name of a time zone")
        pd.Timestamp(0, tz=zone)  # an error if there is no such zone
    origin = pd.Timestamp(parts.text("origin"))
    if origin is pd.NaT or str(origin.tz) != "UTC":
        raise ValueError(f"origin {parts['origin']!r:.60} is no time in UTC")
    timeline = Timeline(origin, pd.Timedelta(parts.count("step", least=1), unit="ns"), zone)
    for place in ends:
        years = place * (timeline.step / pd.Timedelta(days=365.25))
        if not _YEARS[0] + 1 < origin.year + years < _YEARS[1] - 1:
            raise ValueError(f"an observation is {years:.3g} years from {origin}")
    return timeline


def _seasons(values: Any) -> list[Season]:
    if not isinstance(values, list) or not all(isinstance(item, tuple) and len(item) == 2 for item in values):
        raise ValueError("seasons must be names with their periods")
    found = [Fields({"name": name, "period": period}, ["name", "period"]) for name, period in values]
    return [Season(season.text("name"), season.number("period", above=0.0)) for season in found]
