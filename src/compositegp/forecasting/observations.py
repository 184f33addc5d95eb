"""The observed values of a series, checked and in order of time."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from compositegp.backend import Booleans, Floats, Indices
from compositegp.forecasting.local_times import check_zone, in_utc, in_zone, once_of_twice, zone_of
from compositegp.forecasting.timeline import Timeline, usual_step

DUPLICATES = ("error", "mean", "last")
_GAP = 1.5  # steps between two observations from which there is a gap


@dataclass(frozen=True, eq=False)
class Observed:
    """The observed values of a series, in order of time.

    Attributes
    ----------
    stamps : DatetimeIndex
        In UTC, no two alike.
    values : array of shape (n,)
    extra : array of shape (n, k)
        Further columns.
    columns : list of str
        Their names.
    zone : str or None
        Time zone of the series, if it has one.
    notes : list of str
        What a user should know about the series: gaps, missing values, duplicates.

    Examples
    --------
    >>> seen = observe(pd.Series([1.0, np.nan, 3.0, 4.0], pd.date_range("2024", periods=4, freq="h")))
    >>> len(seen), seen.notes[0], seen.take(seen.values > 2).values
    (3, '1 of 4 values are missing', array([3., 4.]))
    """

    stamps: pd.DatetimeIndex
    values: Floats
    extra: Floats
    columns: list[str]
    zone: str | None
    notes: list[str]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def times(self) -> pd.DatetimeIndex:
        """The time stamps as the series has them: in its zone, or without one."""
        return self.stamps.tz_localize(None) if self.zone is None else self.stamps.tz_convert(self.zone)

    @cached_property
    def timeline(self) -> Timeline:
        """How its time is counted."""
        return Timeline.of(self.stamps, self.zone)

    def take(self, rows: Indices | Booleans | slice) -> "Observed":
        """Some of the observations, in order of time."""
        return replace(self, stamps=self.stamps[rows], values=self.values[rows], extra=self.extra[rows])


def observe(
    series: pd.Series | pd.DataFrame | Observed,
    extra: pd.DataFrame | None = None,
    *,
    duplicates: str = "error",
    gaps: bool = True,
    zone: str | None = None,
) -> Observed:
    """Check a series and take its observed values.

    Parameters
    ----------
    series : pandas Series with a DatetimeIndex, DataFrame of one column, or Observed
        An `Observed` was checked before and is returned as it is.
    extra : pandas DataFrame with the same index, optional
    duplicates : {"error", "mean", "last"}
        What to do with time stamps that occur more than once.
    gaps : bool
        Look for gaps and note them.
    zone : str, optional
        Zone of the clock that time stamps without a zone are of; without it they have none.

    Returns
    -------
    Observed

    Examples
    --------
    >>> seen = observe(pd.Series([3.0, 1.0], pd.to_datetime(["2024-01-02", "2024-01-01"])))
    >>> seen.values
    array([1., 3.])
    """
    if isinstance(series, Observed):
        if extra is not None:
            raise ValueError("X is not needed with a series that observe has checked: give it to observe.")
        if zone is not None and series.zone is None:
            raise ValueError("the series that observe has checked has no time zone: give observe the zone.")
        return series
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {', '.join(DUPLICATES)}; found {duplicates!r}.")
    if isinstance(series, pd.DataFrame) and series.shape[1] == 1:
        series = series.iloc[:, 0]
    if not isinstance(series, pd.Series) or not isinstance(series.index, pd.DatetimeIndex):
        index = f" with a {type(series.index).__name__}" if isinstance(series, pd.Series) else ""
        periods = index and isinstance(series.index, pd.PeriodIndex)
        remedy = "series.to_timestamp()" if periods else "pandas.Series(values, index=pandas.to_datetime(times))"
        raise ValueError(
            f"the series must be a pandas Series with a DatetimeIndex; found {type(series).__name__}{index}. Use "
            f"{remedy}."
        )
    numbers = pd.to_numeric(series, errors="coerce").astype(float)
    text = series[numbers.isna() & series.notna()]
    if len(text):
        raise ValueError(
            f"the series has {len(text)} value(s) that are no numbers, the first {text.iloc[0]!r} at "
            f"{text.index[0]}. Correct them, or mark them as not observed (NaN)."
        )
    columns, further = _further_columns(extra, series)
    notes = []
    index = series.index
    if zone is not None and index.tz is None:
        check_zone(zone)
        unclear = int(once_of_twice(index, zone).sum())
        index = in_zone(index, zone)
        if unclear:
            notes.append(f"{unclear} times occur twice on the clock of {zone}, and once here: the first is meant")
    # Columns are known by their place, so that they may have any name.
    frame = pd.DataFrame(np.column_stack([numbers.to_numpy(), further]), index=in_utc(index))
    missing = ~np.isfinite(frame[0]) | frame.index.isna()
    if missing.any():
        what = "missing or infinite" if np.isinf(frame[0]).any() else "missing"
        notes.append(f"{int(missing.sum())} of {len(frame)} values are {what}")
        frame = frame[~missing]
    if not len(frame):
        raise ValueError("the series has no observed value. Check the target column.")
    frame, note = _without_duplicates(frame, duplicates)
    notes += note
    if gaps and len(frame) > 2:
        notes += _gaps(frame.index)
    values = frame.to_numpy(dtype=np.float64)
    return Observed(frame.index, values[:, 0].copy(), values[:, 1:].copy(), columns, zone_of(index), notes)


def _further_columns(extra: pd.DataFrame | None, series: pd.Series) -> tuple[list[str], Floats]:
    """Names of the further columns of a series of n values, and their numbers: shape (n, k)."""
    if extra is None:
        return [], np.empty((len(series), 0))
    if not isinstance(extra, pd.DataFrame) or not extra.index.equals(series.index):
        raise ValueError("the extra columns must be a pandas DataFrame with the same index as the series.")
    names = [str(name) for name in extra.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"the extra columns must have different names; found {twice[0]!r} {len(twice)} times.")
    found = []
    for name, (_, column) in zip(names, extra.items(), strict=True):
        try:
            found.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (ValueError, TypeError) as error:
            raise ValueError(f"the extra column {name!r} must have numbers: {error}.") from error
    return names, np.column_stack(found) if found else np.empty((len(series), 0))


def _without_duplicates(frame: pd.DataFrame, duplicates: str) -> tuple[pd.DataFrame, list[str]]:
    frame = frame.sort_index(kind="stable")
    twice = frame.index.duplicated(keep=False)
    if not twice.any():
        return frame, []
    count, first = int(frame.index.duplicated().sum()), frame.index[twice][0]
    if duplicates == "error":
        raise ValueError(
            f"{count} time stamp(s) occur more than once, the first {first}. Drop them, or choose how to merge them: "
            "duplicates='mean' or 'last' (--duplicates on the command line)."
        )
    grouped = frame.groupby(level=0)
    return (grouped.mean() if duplicates == "mean" else grouped.last()), [
        f"{count} duplicates were merged ({duplicates})"
    ]


def _gaps(index: pd.DatetimeIndex) -> list[str]:
    differences, step = np.diff(index.asi8), usual_step(index)
    holes = differences[differences > _GAP * step]
    if not len(holes):
        return []
    lost = int(np.round(holes / step - 1).sum())
    longest = pd.Timedelta(int(holes.max()), unit=index.unit)
    return [f"{len(holes)} gaps, {lost} steps in all, the longest {longest}"]
