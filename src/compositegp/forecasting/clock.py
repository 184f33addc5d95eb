"""Local time of a series: the hour, the day of the week, holidays and the time of year at each step."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Booleans, Floats, Indices
from compositegp.forecasting.local_times import in_utc
from compositegp.forecasting.timeline import Timeline

_YEAR = 365.25  # days
YEARS_AHEAD = 2  # after the latest value, for which holidays are known


@dataclass(frozen=True, eq=False)
class Clock:
    """Local time at some steps.

    Attributes
    ----------
    places : array of shape (n,)
        Time in steps.
    day : array of shape (n,)
        Part of the local day that is over, from 0 to 1.
    weekday : array of shape (n,)
        0 for Monday to 6 for Sunday.
    is_holiday : array of shape (n,)
    year : array of shape (n,)
        Years since 2000: the fraction is the time of year.
    saving : array of shape (n,)
        Part of a day by which the clock is ahead of standard time: an hour in summer, in many zones.

    Examples
    --------
    >>> timeline = Timeline.of(pd.date_range("2024-01-01", periods=4, freq="6h", tz="UTC"), None)
    >>> clock = Clock.at(timeline, np.arange(4.0), np.array(["2024-01-01"], dtype="datetime64[D]"))
    >>> clock.day, clock.weekday, clock.is_holiday[0]
    (array([0.  , 0.25, 0.5 , 0.75]), array([0, 0, 0, 0]), np.True_)
    """

    places: Floats
    day: Floats
    weekday: Indices
    is_holiday: Booleans
    year: Floats
    saving: Floats

    @classmethod
    def at(cls, timeline: Timeline, places: Floats, holidays: Any) -> "Clock":
        """Local time at some places of a timeline, with holidays as local dates (datetime64[D])."""
        local = timeline.stamps(places)
        naive = local.tz_localize(None) if local.tz is not None else local
        days = naive.to_numpy().astype("datetime64[D]")
        day = (naive.to_numpy() - days) / np.timedelta64(1, "D")
        number = days.astype(np.int64)
        year = (number - 10957 + day) / _YEAR  # day 10957 after 1970 is the first of 2000
        return cls(places, day, (number + 3) % 7, np.isin(days, holidays), year, _saving(local))

    def take(self, rows: Booleans) -> "Clock":
        """The clock at some of the steps."""
        return Clock(*(getattr(self, one.name)[rows] for one in fields(self)))

    def in_standard_time(self) -> "Clock":
        """The same without daylight saving: hour and day of the week of a clock that is never changed."""
        day = np.round(self.day - self.saving, 12)  # so that midnight is not a little earlier
        weekday = (self.weekday + np.floor(day).astype(self.weekday.dtype)) % 7
        return replace(self, day=day % 1.0, weekday=weekday, saving=np.zeros_like(self.saving))


def _saving(local: pd.DatetimeIndex) -> Floats:
    """Part of a day by which local times (n,) are ahead of standard time: the lesser offset from UTC of their year."""
    if local.tz is None:
        return np.zeros(len(local))
    years, which = np.unique(local.year.to_numpy(), return_inverse=True)
    firsts = (years.astype(np.int64) - 1970).astype("datetime64[Y]").astype("datetime64[M]")
    winter, summer = (
        _offset(
            pd.DatetimeIndex((firsts + np.timedelta64(months, "M")).astype("datetime64[s]"), tz="UTC"), local.tz
        )
        for months in (0, 6)
    )
    return np.asarray(_offset(in_utc(local), local.tz) - np.minimum(winter, summer)[which])


def _offset(stamps: pd.DatetimeIndex, zone: Any) -> Floats:
    """Offset of a zone from UTC at some instants, in days."""
    local = stamps.tz_convert(zone).tz_localize(None)
    return np.asarray((local - stamps.tz_localize(None)) / pd.Timedelta(days=1))


def holidays_of(country: str, first: pd.Timestamp, last: pd.Timestamp) -> Any:
    """Public holidays of a country, or of a part of it, as an array of dates.

    Parameters
    ----------
    country : str
        Two letters, and those of a part after a dash: "SE", "AU-VIC".
    first, last : pandas Timestamp
        They are found from the year before the first to two years after the last.

    Returns
    -------
    array of datetime64[D]
    """
    try:
        import holidays  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ValueError(
            f"holidays={country!r} needs the package holidays: pip install holidays. Or give a list of dates."
        ) from error
    name, _, part = country.partition("-")
    try:
        found = holidays.country_holidays(
            name.upper(), subdiv=part.upper() or None, years=range(first.year - 1, last.year + 1 + YEARS_AHEAD)
        )
    except NotImplementedError as error:
        raise ValueError(
            f"holidays must be a country such as SE or AU-VIC, or a list of dates; found {country!r}: {error}"
        ) from error
    return dates_of(found)


def dates_of(dates: Iterable[Any]) -> Any:
    """Dates as a sorted array of datetime64[D]; the time of day is dropped.

    Examples
    --------
    >>> dates_of(["2024-12-26", "2024-12-25"])
    array(['2024-12-25', '2024-12-26'], dtype='datetime64[D]')
    """
    try:
        index = pd.DatetimeIndex([pd.Timestamp(date) for date in dates])
    except (ValueError, TypeError) as error:
        raise ValueError(f"holidays must be a country such as SE or AU-VIC, or a list of dates; {error}") from error
    index = index if index.tz is None else in_utc(index).tz_localize(None)
    return np.unique(index.to_numpy().astype("datetime64[D]"))
