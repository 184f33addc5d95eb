"""Time zones: local times as instants, and the name of the zone of time stamps."""

import numpy as np
import pandas as pd

from compositegp.backend import Booleans


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


def in_zone(index: pd.DatetimeIndex, zone: str, *, whole_days: bool | None = None) -> pd.DatetimeIndex:
    """Time stamps in a zone; those without a zone are times of its clock.

    Where the clock goes back, a time occurs twice: the first time stamp of that name is the first instant, and any
    further one is the second. A time that the clock skips is an error, since it shows that the times are of another
    clock; a series of whole days has the next instant there.

    Parameters
    ----------
    index : pandas DatetimeIndex of shape (n,)
    zone : str
    whole_days : bool, optional
        Whether the time stamps are of a series of whole days; by default they are if all have the same time of day.

    Returns
    -------
    pandas DatetimeIndex of shape (n,)

    Examples
    --------
    >>> times = pd.DatetimeIndex(["2024-10-27 02:00", "2024-10-27 02:00", "2024-10-27 03:00"])
    >>> [str(time)[11:] for time in in_zone(times, "Europe/Stockholm")]
    ['02:00:00+02:00', '02:00:00+01:00', '03:00:00+01:00']
    """
    check_zone(zone)
    if index.tz is not None:
        return index.tz_convert(zone)
    is_first = ~index.duplicated()
    found = index.tz_localize(zone, ambiguous=is_first, nonexistent="NaT")
    skipped = found.isna() & index.notna()
    if not skipped.any():
        return found
    known = index[index.notna()]
    if whole_days is None:
        whole_days = not np.ptp((known - known.normalize()).asi8)
    if not whole_days:
        raise ValueError(
            f"the clock of {zone} skips {index[skipped][0]}, and the series has a value then: its times are of another "
            "clock. Give them an offset from UTC, or the zone that they are of."
        )
    return index.tz_localize(zone, ambiguous=is_first, nonexistent="shift_forward")


def once_of_twice(index: pd.DatetimeIndex, zone: str) -> Booleans:
    """Which times without a zone occur twice on the clock of a zone, but once among them: a boolean array (n,).

    Examples
    --------
    >>> once_of_twice(pd.DatetimeIndex(["2024-10-27 02:00", "2024-10-27 03:00"]), "Europe/Stockholm")
    array([ True, False])
    """
    instants = [
        index.tz_localize(zone, ambiguous=np.full(len(index), which), nonexistent="shift_forward")
        for which in (True, False)
    ]
    return np.asarray((instants[0] != instants[1]) & index.notna() & ~index.duplicated(keep=False))


def check_zone(zone: str) -> None:
    """Raise a ValueError if there is no zone of a name."""
    try:
        pd.Timestamp(0, tz=zone)
    except Exception as error:  # the kind of error depends on the library of time zones
        raise ValueError(
            f"timezone must be the name of a zone, such as Europe/Stockholm; found {zone!r}."
        ) from error


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
