"""Time series from tables: times in one column, the target in another, and further columns."""

import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from compositegp.cli.output import CommandError, note
from compositegp.cli.tables import column, has_times, number_column, read_table
from compositegp.forecasting import Timeline, in_utc

_ENDS_WITH_OFFSET = re.compile(r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)$")


class SeriesFile(NamedTuple):
    """A series read from a file.

    Attributes
    ----------
    values : pandas Series with a DatetimeIndex
        Rows without a time are dropped; an empty cell is NaN.
    extra : pandas DataFrame or None
        Further columns at the same times, if any were asked for.
    time_format : str
        How times are written in the file: "ISO8601", or a format that pandas can read.
    """

    values: pd.Series
    extra: pd.DataFrame | None
    time_format: str


def read_series(path: str | Path, time: str, target: str, extra: list[str]) -> SeriesFile:
    """Read a series: columns `time` and `target`, and the columns `extra`."""
    table = read_table(path)
    times = time_column(table, time, path)
    known = ~times.isna()
    values = pd.Series(number_column(table, target, path).to_numpy(), index=times, name=target)[known]
    columns = {name: number_column(table, name, path).to_numpy() for name in extra}
    frame = pd.DataFrame(columns, index=times)[known] if extra else None
    return SeriesFile(values, frame, _time_format(table[time]))


def read_future_columns(
    path: str | Path, time: str, extra: list[str], timeline: Timeline, last: pd.Timestamp, steps: int
) -> pd.DataFrame:
    """Read the further columns over the horizon.

    Parameters
    ----------
    path : str or Path
    time : str
        Column of times. If the file has it, rows are found by their time; otherwise they are taken in their order.
    extra : list of str
    timeline : Timeline
        Of the series.
    last : pandas Timestamp
        Time of the latest observation.
    steps : int
        Steps of the horizon.

    Returns
    -------
    pandas DataFrame with one row for each step
    """
    table = read_table(path)
    columns = pd.DataFrame({name: number_column(table, name, path).to_numpy() for name in extra})
    if time in table.columns:
        columns.index = in_utc(time_column(table, time, path))
        places = timeline.places(pd.DatetimeIndex([last])) + 1.0 + np.arange(steps)
        wanted = in_utc(timeline.stamps(places))
        missing = ~wanted.isin(columns.index)
        if missing.any():
            raise CommandError(f"{path} has no row for {wanted[missing][0]}, which is in the horizon.")
        columns = columns[~columns.index.duplicated()].loc[wanted]
    if len(columns) < steps:
        raise CommandError(f"{path} has {len(columns)} row(s), but the horizon has {steps} steps.")
    columns = columns.iloc[:steps]
    if columns.isna().any(axis=None):
        raise CommandError(f"{path} has empty cells in the horizon. Fill them in.")
    return columns


def time_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.DatetimeIndex:
    """One column as time stamps: in UTC if they have a time zone; an empty cell is NaT."""
    values = column(table, name, path)
    if has_times(values):
        return pd.DatetimeIndex(values)
    if values.dtype.kind in "iuf":
        raise CommandError(
            f"column {name!r} of {path} has numbers where times should be. Write times as 2024-01-31 14:00."
        )
    text = values.astype("string").str.strip()
    has_zone = (text.str.contains(_ENDS_WITH_OFFSET) & (text.str.len() > 10)).fillna(False).to_numpy(dtype=bool)
    if has_zone.any() and not has_zone[text.notna()].all():
        raise CommandError(
            f"column {name!r} of {path} mixes times with and without a time zone. Give all of them one, or none."
        )
    times = _parsed_times(text, bool(has_zone.any()), name, path)
    if times.isna().all():
        raise CommandError(f"column {name!r} of {path} has no times.")
    return times


def _parsed_times(text: pd.Series, utc: bool, name: str, path: str | Path) -> pd.DatetimeIndex:
    """Times in ISO 8601 or, failing that, in a format that pandas guesses."""
    try:
        return pd.DatetimeIndex(pd.to_datetime(text, utc=utc, format="ISO8601"))
    except (ValueError, TypeError):
        pass
    with warnings.catch_warnings(record=True) as guesses:  # pandas warns where it guesses a format for each time
        warnings.simplefilter("always")
        try:
            times = pd.DatetimeIndex(pd.to_datetime(text, utc=utc))
        except (ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise CommandError(f"column {name!r} of {path} has values that are not times: {reason}") from error
    if guesses:
        note(
            f"the times in column {name!r} of {path} have no common format; each was read on its own. Write times as "
            "2024-01-31 14:00 to be sure."
        )
    return times


def _time_format(values: pd.Series) -> str:
    """How times are written: "ISO8601", or a format by which later ones can be read."""
    if has_times(values):
        return "ISO8601"
    first = str(values.dropna().iloc[0]).strip()
    try:
        pd.to_datetime(first, format="ISO8601")
    except ValueError:
        return pd.tseries.api.guess_datetime_format(first) or "mixed"
    return "ISO8601"
