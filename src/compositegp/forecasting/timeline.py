"""Time stamps as numbers of steps, and the observed values of a series."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from compositegp.backend import Booleans, Floats, Indices

DUPLICATES = ("error", "mean", "last")
_COMMON = 0.3  # a time difference that is this part of all differences is the step of the series
_MONTH = pd.Timedelta(days=365.25 / 12)
_GAP = 1.5  # steps between two observations from which there is a gap
_LONGEST_GAP_STEPS, _LONGEST_GAP = 1000, pd.Timedelta(days=30)  # the longer is how far ahead an observation may be

Horizon: TypeAlias = int | str | pd.Timedelta
"""A number of steps, or a duration such as "24h"."""


@dataclass(frozen=True)
class Timeline:
    """How time is counted: in steps from an origin.

    Attributes
    ----------
    origin : pandas Timestamp
        In UTC.
    step : pandas Timedelta
        For calendar months and business days, their usual length.
    zone : str or None
        The zone to show times in, and whose clock the series follows; None for series without one.
    unit : {"time", "day", "month", "month end", "business day"}
        What a step consists of; a day of a local clock may have 23 or 25 hours.
    months : int
        Calendar months in a step.

    Examples
    --------
    >>> timeline = Timeline.of(pd.date_range("2024", periods=4, freq="15min", tz="UTC"), None)
    >>> timeline.steps("1h"), str(timeline.stamps([4])[0])
    (4, '2024-01-01 01:00:00')
    >>> monthly = Timeline.of(pd.date_range("2024", periods=4, freq="MS", tz="UTC"), None)
    >>> str(monthly.stamps([13])[0])
    '2025-02-01 00:00:00'
    """

    origin: pd.Timestamp
    step: pd.Timedelta
    zone: str | None
    unit: str = "time"
    months: int = 0

    @property
    def longest_gap(self) -> pd.Timedelta:
        """How far an observation may be ahead of the one before it: 30 days, or 1000 steps if they are longer."""
        return max(_LONGEST_GAP, _LONGEST_GAP_STEPS * self.step)

    @classmethod
    def of(cls, stamps: pd.DatetimeIndex, zone: str | None) -> "Timeline":
        """The timeline of sorted time stamps: the step is their most common difference."""
        if len(stamps) < 3:
            raise ValueError(
                f"the series has {len(stamps)} observed value(s), too few to find its time step. Give at least three."
            )
        step = pd.Timedelta(_step(stamps), unit=stamps.unit)
        local = stamps.tz_convert(zone or "UTC")
        if step >= pd.Timedelta(days=28):
            months = round(step / _MONTH)
            if abs(step / _MONTH - months) < 0.1 * months:
                unit = "month end" if local.is_month_end.all() else "month"
                return cls(stamps[0], months * _MONTH, zone, unit, months)
        if step == pd.Timedelta(days=1) and len(stamps) >= 10 and set(local.day_of_week) == {0, 1, 2, 3, 4}:
            return cls(stamps[0], step, zone, "business day")
        whole_days = zone is not None and not step % pd.Timedelta(days=1)
        return cls(stamps[0], step, zone, "day" if whole_days else "time")

    def places(self, stamps: pd.DatetimeIndex) -> Floats:
        """Steps since the origin, of time stamps in UTC."""
        if self.unit == "time":
            return np.asarray((stamps - self.origin) / self.step, dtype=np.float64)
        local, origin = self._local(stamps), self._local(pd.DatetimeIndex([self.origin]))
        if self.unit == "day":
            return np.asarray((local - origin[0]) / self.step, dtype=np.float64)
        if self.unit == "business day":
            first, days = (one.to_numpy().astype("datetime64[D]") for one in (origin, local))
            return np.asarray(np.busday_count(first[0], days), dtype=np.float64)
        months = 12 * (local.year - origin.year[0]) + local.month - origin.month[0]
        days = np.zeros(len(local)) if self.unit == "month end" else (local.day - origin.day[0]) / 31
        return np.asarray((months + days) / self.months, dtype=np.float64)

    def stamps(self, places: ArrayLike) -> pd.DatetimeIndex:
        """Time stamps of times that are given in steps since the origin, in the zone of the series."""
        places = np.asarray(places, dtype=np.float64)
        if self.unit == "time":
            unit = "us" if self.step.value % 1000 == 0 else "ns"  # nanoseconds count some three hundred years only
            counts = np.round(places * (self.step / pd.Timedelta(1, unit=unit))).astype(np.int64)
            index = pd.DatetimeIndex(self.origin.as_unit(unit) + counts.astype(f"timedelta64[{unit}]"))
            return index.tz_localize(None) if self.zone is None else index.tz_convert(self.zone)
        origin = self._local(pd.DatetimeIndex([self.origin]))[0].as_unit("us")
        if self.unit == "day":
            index = origin + np.round(places * (self.step / pd.Timedelta(seconds=1))).astype("timedelta64[s]")
            index = pd.DatetimeIndex(index)
        elif self.unit == "business day":
            days = np.busday_offset(origin.to_numpy().astype("datetime64[D]"), np.round(places).astype(np.int64))
            index = pd.DatetimeIndex(days.astype("datetime64[us]")) + (origin - origin.normalize())
        else:
            months = (12 * origin.year + origin.month - 1) + np.round(places * self.months).astype(np.int64)
            firsts = (months - 12 * 1970).astype("datetime64[M]")
            lengths = (firsts + 1).astype("datetime64[D]") - firsts.astype("datetime64[D]")
            last = lengths.astype(np.int64) - 1
            day = last if self.unit == "month end" else np.minimum(origin.day - 1, last)
            dates = firsts.astype("datetime64[D]") + day.astype("timedelta64[D]")
            index = pd.DatetimeIndex(dates.astype("datetime64[us]")) + (origin - origin.normalize())
        if self.zone is None:
            return index
        return index.tz_localize(self.zone, ambiguous=np.ones(len(index), bool), nonexistent="shift_forward")

    def steps(self, duration: Horizon) -> int:
        """A duration ("24h", a Timedelta, or a number of steps) in whole steps."""
        if isinstance(duration, str) and duration.strip().removeprefix("-").isdigit():
            duration = int(duration)
        if isinstance(duration, int | np.integer) and not isinstance(duration, bool):
            count: float = int(duration)
        elif self.unit not in ("time", "day"):
            raise ValueError(
                f"horizon must be a number of steps for a series of {self.unit}s, which differ in length; found "
                f"{duration!r}."
            )
        else:
            try:
                count = pd.Timedelta(duration) / self.step
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"horizon must be a number of steps or a duration such as 24h; found {duration!r}."
                ) from error
        if np.isnan(count):
            raise ValueError(f"horizon must be a number of steps or a duration such as 24h; found {duration!r}.")
        whole = round(count)
        if whole < 1 or abs(count - whole) > 1e-6:
            raise ValueError(
                f"horizon {duration!r} is {count:g} steps of {self.step}; give a whole number of steps, at least one, "
                f"such as {max(whole, 1)}."
            )
        return whole

    def to_dict(self) -> dict[str, Any]:
        """The timeline as text and numbers, for files."""
        return {
            "origin": self.origin.isoformat(),
            "step": self.step.as_unit("ns").value,
            "zone": self.zone,
            "unit": self.unit,
            "months": self.months,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Timeline":
        """The timeline that `to_dict` wrote."""
        step = pd.Timedelta(content["step"], unit="ns")
        return cls(pd.Timestamp(content["origin"]), step, content["zone"], content["unit"], content["months"])

    def _local(self, stamps: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Time stamps in UTC as times of the local clock, without a zone."""
        return (stamps if self.zone is None else stamps.tz_convert(self.zone)).tz_localize(None)


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
        return series
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {', '.join(DUPLICATES)}; found {duplicates!r}.")
    if isinstance(series, pd.DataFrame) and series.shape[1] == 1:
        series = series.iloc[:, 0]
    if not isinstance(series, pd.Series) or not isinstance(series.index, pd.DatetimeIndex):
        raise ValueError(
            f"the series must be a pandas Series with a DatetimeIndex; found {type(series).__name__}. Use "
            "pandas.Series(values, index=pandas.to_datetime(times))."
        )
    numbers = pd.to_numeric(series, errors="coerce").astype(float)
    text = series[numbers.isna() & series.notna()]
    if len(text):
        raise ValueError(
            f"the series has {len(text)} value(s) that are no numbers, the first {text.iloc[0]!r} at "
            f"{text.index[0]}. Correct them, or mark them as not observed (NaN)."
        )
    frame = pd.DataFrame({"value": numbers})
    if extra is not None:
        if not isinstance(extra, pd.DataFrame) or not extra.index.equals(series.index):
            raise ValueError("the extra columns must be a pandas DataFrame with the same index as the series.")
        frame = pd.concat([frame, extra.astype(float)], axis=1)
    frame.index = in_utc(series.index)
    notes = []
    missing = ~np.isfinite(frame["value"]) | frame.index.isna()
    if missing.any():
        notes.append(f"{int(missing.sum())} of {len(frame)} values are missing")
        frame = frame[~missing]
    if not len(frame):
        raise ValueError("the series has no observed value. Check the target column.")
    frame, note = _without_duplicates(frame, duplicates)
    notes += note
    if gaps and len(frame) > 2:
        notes += _gaps(frame.index)
    values = frame.to_numpy(dtype=np.float64)
    columns = [] if extra is None else [str(name) for name in extra.columns]
    return Observed(frame.index, values[:, 0].copy(), values[:, 1:].copy(), columns, zone_of(series.index), notes)


def in_utc(index: pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Time stamps in UTC; those without a zone are taken as UTC.

    Parameters
    ----------
    index : pandas DatetimeIndex

    Returns
    -------
    pandas DatetimeIndex

    Examples
    --------
    >>> str(in_utc(pd.DatetimeIndex(["2024-07-01 12:00"], tz="Europe/Stockholm"))[0])
    '2024-07-01 10:00:00+00:00'
    """
    return index.tz_localize("UTC") if index.tz is None else index.tz_convert("UTC")


def zone_of(index: pd.DatetimeIndex) -> str | None:
    """The time zone of time stamps: a name by which it can be found again, or else its offset from UTC.

    Parameters
    ----------
    index : pandas DatetimeIndex

    Returns
    -------
    str or None

    Examples
    --------
    >>> zone_of(pd.DatetimeIndex(["2024-07-01"], tz="Europe/Stockholm"))
    'Europe/Stockholm'
    """
    if index.tz is None:
        return None
    name = str(index.tz)
    try:
        pd.Timestamp(0, tz=name)
    except Exception:  # the zone has no name that pandas finds
        offset = index[-1].utcoffset()
        minutes = round(offset.total_seconds() / 60)
        return f"UTC{'+' if minutes >= 0 else '-'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    return name


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
    differences, step = np.diff(index.asi8), _step(index)
    holes = differences[differences > _GAP * step]
    if not len(holes):
        return []
    lost = int(np.round(holes / step - 1).sum())
    longest = pd.Timedelta(int(holes.max()), unit=index.unit)
    return [f"{len(holes)} gaps, {lost} steps in all, the longest {longest}"]


def _step(stamps: pd.DatetimeIndex) -> int:
    """The most common difference of sorted time stamps; the median difference where no difference is common."""
    differences = np.diff(stamps.asi8)
    values, counts = np.unique(differences, return_counts=True)
    if counts.max() >= _COMMON * len(differences):
        return int(values[counts.argmax()])
    second = int(pd.Timedelta(seconds=1).as_unit(stamps.unit).value)
    median = int(np.median(differences))
    return round(median / second) * second if median > 10 * second else max(median, 1)
