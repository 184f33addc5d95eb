"""Time stamps as numbers of steps."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from compositegp.backend import Booleans, Floats, Indices
from compositegp.forecasting.local_times import in_utc, in_zone

_COMMON = 0.3  # a time difference that is this part of all differences is the step of the series
_OFF_GRID = 0.01  # steps by which a time may differ from its step before it is noted
_MONTH = pd.Timedelta(days=365.25 / 12)
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

    @property
    def mean_step(self) -> pd.Timedelta:
        """Time that passes in a step on average: five business days are a week."""
        return 7 * self.step / 5 if self.unit == "business day" else self.step

    @classmethod
    def of(cls, stamps: pd.DatetimeIndex, zone: str | None) -> "Timeline":
        """The timeline of sorted time stamps: the step is their most common difference."""
        if len(stamps) < 3:
            raise ValueError(
                f"the series has {len(stamps)} observed value(s), too few to find its time step. Give at least three."
            )
        step = pd.Timedelta(usual_step(stamps), unit=stamps.unit)
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
            first = self.origin.tz_convert(None).to_datetime64().astype(f"datetime64[{unit}]")
            index = pd.DatetimeIndex(first + counts.astype(f"timedelta64[{unit}]")).tz_localize("UTC")
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
            lengths = (firsts + np.timedelta64(1, "M")).astype("datetime64[D]") - firsts.astype("datetime64[D]")
            last = lengths.astype(np.int64) - 1
            day = last if self.unit == "month end" else np.minimum(origin.day - 1, last)
            dates = firsts.astype("datetime64[D]") + day.astype("timedelta64[D]")
            index = pd.DatetimeIndex(dates.astype("datetime64[us]")) + (origin - origin.normalize())
        if self.zone is None:
            return index
        return index.tz_localize(self.zone, ambiguous=np.ones(len(index), bool), nonexistent="shift_forward")

    def instants(self, index: pd.DatetimeIndex, *, local: bool = False) -> pd.DatetimeIndex:
        """Time stamps in UTC.

        Parameters
        ----------
        index : pandas DatetimeIndex
            With a zone if the series has one, and else without.
        local : bool
            Time stamps without a zone may also be times of the clock of the series.
        """
        if index.tz is None and self.zone is not None and local:
            return in_utc(in_zone(index, self.zone, whole_days=self.unit != "time"))
        self.check_zone(index.tz is not None)
        return in_utc(index)

    def check_zone(self, is_there: bool) -> None:
        """Raise a ValueError if times with a zone meet a series without one, or the other way round."""
        if is_there and self.zone is None:
            raise ValueError(
                "the times have a time zone, and those of the series have none. Use tz_localize(None)."
            )
        if not is_there and self.zone is not None:
            raise ValueError(
                f"the times have no time zone, and those of the series are in {self.zone}. Give them theirs by "
                "tz_localize."
            )

    def are_off_grid(self, stamps: pd.DatetimeIndex) -> Booleans:
        """Which time stamps differ from the nearest step by more than a hundredth of one.

        Examples
        --------
        >>> stamps = pd.date_range("2024", periods=3, freq="h", tz="UTC")
        >>> Timeline.of(stamps, None).are_off_grid(stamps[:1] + pd.Timedelta("20min"))
        array([ True])
        """
        places = self.places(stamps)
        return np.asarray(np.abs(places - np.round(places)) > _OFF_GRID)

    def rows_at(self, places: Floats, stamps: pd.DatetimeIndex) -> Indices:
        """Rows of time stamps in UTC (n,) that are nearest to some steps, within half of one: shape (m,); −1 is none.

        Examples
        --------
        >>> stamps = pd.date_range("2024", periods=4, freq="h", tz="UTC")
        >>> Timeline.of(stamps, None).rows_at(np.array([2.0, 9.0]), stamps[::-1])
        array([ 1, -1])
        """
        if not len(stamps):
            return np.full(len(places), -1)
        steps = np.round(self.places(stamps))
        away = np.abs((stamps - in_utc(self.stamps(steps))) / self.mean_step)
        order = np.argsort(away, kind="stable")
        order = order[away[order] <= 0.5]
        found, first = np.unique(steps[order], return_index=True)
        at = np.searchsorted(found, np.round(places))
        there = at < len(found)
        there[there] = found[at[there]] == np.round(places)[there]
        rows = np.full(len(places), -1)
        rows[there] = order[first[at[there]]]
        return rows

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
        if whole < 1 and self.unit not in ("time", "day"):  # months differ in length
            raise ValueError(f"horizon must be a whole number of steps, at least one; found {duration!r}.")
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


def usual_step(stamps: pd.DatetimeIndex) -> int:
    """The most common difference of sorted time stamps; the median difference where no difference is common."""
    differences = np.diff(stamps.asi8)
    values, counts = np.unique(differences, return_counts=True)
    if counts.max() >= _COMMON * len(differences):
        return int(values[counts.argmax()])
    second = int(pd.Timedelta(seconds=1).as_unit(stamps.unit).value)
    median = int(np.median(differences))
    return round(median / second) * second if median > 10 * second else max(median, 1)
