"""Time series from tables: times in one column, the target in another, and further columns."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from compositegp.backend import Floats
from compositegp.cli.output import CommandError, note
from compositegp.cli.tables import (
    AS_FOUND,
    column,
    is_empty,
    number_column,
    read_table,
    read_table_and_format,
    target_column,
)
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import ANY_FORMAT, TimeFormat, time_column
from compositegp.forecasting import Timeline


class SeriesFile(NamedTuple):
    """A series read from a file.

    Attributes
    ----------
    values : pandas Series with a DatetimeIndex
        Rows without a time are dropped; an empty cell is NaN.
    extra : pandas DataFrame or None
        Further columns at the same times, if any were asked for.
    text_format : TextFormat
        How the file is written.
    time_format : TimeFormat
        How its times are written.
    """

    values: pd.Series
    extra: pd.DataFrame | None
    text_format: TextFormat
    time_format: TimeFormat


def read_series(
    path: str | Path,
    time: str,
    target: str,
    extra: list[str],
    text_format: TextFormat = AS_FOUND,
    time_format: TimeFormat = ANY_FORMAT,
) -> SeriesFile:
    """Read a series: columns `time` and `target`, and the columns `extra`."""
    table, text_format = read_table_and_format(path, text_format, text_columns=[time])
    times, time_format = time_column(table, time, path, time_format)
    known = ~times.isna()
    if not known.all():
        note(f"{int((~known).sum())} of {len(known)} rows of {path} have no time. They are left out.")
    values = pd.Series(target_column(table, target, path), index=times, name=target)[known]
    columns = {name: number_column(table, name, path).to_numpy() for name in extra}
    frame = pd.DataFrame(columns, index=times)[known] if extra else None
    return SeriesFile(values, frame, text_format, time_format)


class ManySeriesFile(NamedTuple):
    """Many series of one file.

    Attributes
    ----------
    table : pandas DataFrame
        Columns `series`, `time`, `target` and the further ones; rows without a name or a time are dropped.
    series, time, target : str
        Names of the columns.
    text_format : TextFormat
    time_format : TimeFormat
    """

    table: pd.DataFrame
    series: str
    time: str
    target: str
    text_format: TextFormat
    time_format: TimeFormat

    @property
    def extra(self) -> list[str]:
        """Names of the further columns."""
        return [name for name in self.table.columns if name not in (self.series, self.time, self.target)]


def read_many_series(
    path: str | Path,
    series: str,
    time: str,
    target: str,
    extra: list[str],
    text_format: TextFormat = AS_FOUND,
    time_format: TimeFormat = ANY_FORMAT,
) -> ManySeriesFile:
    """Read a long table: columns of names, times and values, and the columns `extra`."""
    if len({series, time, target, *extra}) < 3 + len(extra):
        raise CommandError("--series, --time, --target and --extra must be different columns.")
    table, text_format = read_table_and_format(path, text_format, text_columns=[series, time])
    found, time_format = _keyed(table, series, time, path, time_format)
    found[target] = target_column(table, target, path)
    for name in extra:
        found[name] = number_column(table, name, path).to_numpy()
    return ManySeriesFile(_with_keys(found, series, time, path), series, time, target, text_format, time_format)


def read_many_futures(path: str | Path, read: ManySeriesFile) -> pd.DataFrame:
    """Read the further columns of many series over their horizons, with names and times."""
    table = read_table(path, read.text_format, text_columns=[read.series, read.time])
    found, _ = _keyed(table, read.series, read.time, path, read.time_format)
    for name in read.extra:
        found[name] = number_column(table, name, path).to_numpy()
    return _with_keys(found, read.series, read.time, path)


def _keyed(
    table: pd.DataFrame, series: str, time: str, path: str | Path, time_format: TimeFormat
) -> tuple[pd.DataFrame, TimeFormat]:
    """Names of series as text, and their times."""
    times, time_format = time_column(table, time, path, time_format)
    names = column(table, series, path)
    text = names.astype("string").str.strip().astype(object).where(~is_empty(names), None)
    return pd.DataFrame({series: text, time: pd.Series(times, index=table.index)}), time_format


def _with_keys(table: pd.DataFrame, series: str, time: str, path: str | Path) -> pd.DataFrame:
    """The rows that have a name and a time; a note about the others."""
    for name, what in ((series, "name of a series"), (time, "time")):
        missing = table[name].isna()
        if missing.any():
            note(f"{int(missing.sum())} of {len(table)} rows of {path} have no {what}. They are left out.")
            table = table[~missing]
    if not len(table):
        raise CommandError(f"{path} has no row with a name in column {series!r} and a time in column {time!r}.")
    return table


def read_future_columns(
    path: str | Path,
    time: str,
    extra: list[str],
    places: Floats,
    timeline: Timeline,
    text_format: TextFormat = AS_FOUND,
    time_format: TimeFormat = ANY_FORMAT,
    *,
    by_time: bool = False,
    local: bool = False,
) -> pd.DataFrame:
    """Read the further columns over the horizon.

    Parameters
    ----------
    path : str or Path
    time : str
        Column of times. If the file has it, rows are found by their time; otherwise they are taken in their order.
    extra : list of str
    places : array of shape (M,)
        Times of the horizon, in steps.
    timeline : Timeline
        Of the series.
    text_format : TextFormat
    time_format : TimeFormat
    by_time : bool
        Without a column of times the file is refused.
    local : bool
        Times without an offset may be times of the clock of the series.

    Returns
    -------
    pandas DataFrame with one row for each step
    """
    steps = len(places)
    # Without times a row belongs to a step by its place: a blank line must not move the rows below it.
    table = read_table(path, text_format, text_columns=[time], keep_blank_lines=True)
    if by_time and time not in table.columns:
        raise CommandError(f"{path} has no column {time!r}, by which its rows are found.")
    columns = pd.DataFrame({name: number_column(table, name, path).to_numpy() for name in extra})
    if time in table.columns:
        times = time_column(table, time, path, time_format)[0]
        columns, known = columns[times.notna()], times[times.notna()]
        rows = timeline.rows_at(places, timeline.instants(known, local=local))
        if (rows < 0).any():
            missing = timeline.stamps(places[rows < 0][:1])[0]
            raise CommandError(f"{path} has no row for {missing}, which is in the horizon.")
        columns = columns.iloc[rows]
    if len(columns) < steps:
        raise CommandError(f"{path} has {len(columns)} row(s), but the horizon has {steps} steps.")
    columns = columns.iloc[:steps]
    for name, count in columns.isna().sum().items():
        if count:
            note(f"column {name!r} of {path} is empty at {count} of {steps} steps, where it counts as average.")
    return columns
