"""A series on a regular grid of steps, and what its time step suggests: horizon, lags, patterns."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from compositegp.backend import Floats, Indices
from compositegp.forecasting.observations import Observed
from compositegp.forecasting.timeline import Timeline

_MOST_LAGS = 672  # known values that a forecast is made from
_DAY = pd.Timedelta(days=1)
_SUB_DAILY = 1.5  # values a day, above which there are several
_HISTORIES = (0.25, 1.0, 3.0)  # days over which the history of a column is averaged


class Rhythm(NamedTuple):
    """What the time step suggests.

    Attributes
    ----------
    block : int
        Steps of the usual horizon: a day, a week of days, a year of months.
    reach : int
        Steps that a forecast looks back: two weeks, eight weeks of days, four years of months.
    patterns : dict
        Steps of the patterns that may drift, by name.
    per_day : float
        Steps a day.
    """

    block: int
    reach: int
    patterns: dict[str, float]
    per_day: float

    @property
    def is_sub_daily(self) -> bool:
        """Whether there are several values a day."""
        return self.per_day > _SUB_DAILY

    @classmethod
    def of(cls, timeline: Timeline) -> "Rhythm":
        """What the step of a timeline suggests.

        Examples
        --------
        >>> hourly = Timeline.of(pd.date_range("2024", periods=4, freq="h", tz="UTC"), None)
        >>> Rhythm.of(hourly)
        Rhythm(block=24, reach=336, patterns={'day': 24.0, 'week': 168.0}, per_day=24.0)
        """
        per_day = _DAY / timeline.step
        if timeline.unit in ("month", "month end"):
            year = 12 / timeline.months
            return cls(max(round(year), 1), max(round(4 * year), 8), {"year": year} if year >= 2 else {}, per_day)
        if timeline.unit == "business day":
            return cls(5, 60, {"week": 5.0}, per_day)
        if per_day > _SUB_DAILY:
            patterns = {"day": per_day, "week": 7 * per_day}
            return cls(max(round(per_day), 1), round(14 * per_day), patterns, per_day)
        if per_day > 0.3:
            return cls(round(7 * per_day), round(56 * per_day), {"week": 7 * per_day}, per_day)
        year = 365.25 * per_day
        return cls(max(round(year / 4), 1), max(round(2 * year), 12), {"year": year} if year >= 4 else {}, per_day)


def past_lags(reach: int, most: int = _MOST_LAGS) -> Indices:
    """Lags of the known values that a forecast is made from: at most `most`, fewer and fewer with their age.

    Examples
    --------
    >>> past_lags(4), len(past_lags(20_000)) <= 672
    (array([1, 2, 3, 4]), True)
    """
    dense = most
    while True:
        lags, lag = [], 1
        while lag <= reach:
            lags.append(lag)
            lag += max(1, lag // dense)
        if len(lags) <= most or dense <= 1:
            return np.asarray(lags[:most], dtype=np.intp)
        dense = dense * 9 // 10


@dataclass(frozen=True, eq=False)
class Grid:
    """A series with one row for each step.

    Attributes
    ----------
    first : int
        Step of the first row, since the origin of the timeline.
    values : array of shape (N,)
        In the user's unit; NaN where nothing was observed.
    columns : array of shape (N, k)
        Further columns, with their histories; NaN where they are missing.
    """

    first: int
    values: Floats
    columns: Floats

    @property
    def points(self) -> Floats:
        """Time in steps, and the further columns: shape (N, 1 + k)."""
        places = self.first + np.arange(len(self.values), dtype=np.float64)
        return np.column_stack([places, self.columns])


def on_grid(seen: Observed, timeline: Timeline, history: int) -> tuple[Grid, list[str]]:
    """The latest `history` steps of a series, and notes: of times off the grid, and of older values that are left out.

    Several observations of one step are averaged.
    """
    steps = np.round(timeline.places(seen.stamps)).astype(np.int64)
    notes, n_off = [], int(timeline.are_off_grid(seen.stamps).sum())
    if n_off:
        notes.append(f"{n_off} times are not on the grid of the step and are taken at the nearest step")
    first = max(int(steps[0]), int(steps[-1]) + 1 - history)
    rows = steps - first
    inside = rows >= 0
    if not inside.all():
        notes.append(
            f"the series is learned from its latest {history:,} steps (history={history}): "
            f"{int((~inside).sum()):,} older observation(s) are left out"
        )
    size = int(steps[-1]) - first + 1
    table = np.column_stack([seen.values, seen.extra])[inside]
    found = np.full((size, table.shape[1]), np.nan)
    for j in range(table.shape[1]):
        there = np.isfinite(table[:, j])
        counts = np.bincount(rows[inside][there], minlength=size)
        sums = np.bincount(rows[inside][there], table[there, j], minlength=size)
        found[counts > 0, j] = sums[counts > 0] / counts[counts > 0]
    return Grid(first, found[:, 0], found[:, 1:]), notes


def history_names(name: str) -> list[str]:
    """Names of the histories of a column."""
    return [f"{name} over {days:g} day(s)" for days in _HISTORIES]


def column_histories(column: Floats, per_day: float, before: Floats | None = None) -> Floats:
    """Running means of a column (N,) over a quarter of a day, a day and three days: shape (N, 3).

    Where the column is missing the means stay as they were. `before` are the means (3,) before the first row.
    """
    known = np.isfinite(column)
    if not known.any():
        return np.full((len(column), len(_HISTORIES)), np.nan if before is None else before)
    latest = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
    filled = np.where(latest >= 0, column[latest], column[np.argmax(known)])
    found = np.empty((len(column), len(_HISTORIES)))
    for j, days in enumerate(_HISTORIES):
        keep = np.exp(-1 / (days * per_day))
        start = filled[0] if before is None or not np.isfinite(before[j]) else before[j]
        found[:, j] = lfilter([1 - keep], [1, -keep], filled, zi=[keep * start])[0]
    return found
