"""Time series from tables: times in one column, the target in another, and further columns."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.cli.output import CommandError, note
from compositegp.cli.tables import AS_FOUND, number_column, read_table, read_table_and_format, target_column
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import ANY_FORMAT, TimeFormat, time_column
from compositegp.forecasting import Timeline, in_utc


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
        columns.index = in_utc(time_column(table, time, path, time_format)[0])
        wanted = in_utc(timeline.stamps(places))
        missing = ~wanted.isin(columns.index)
        if missing.any():
            raise CommandError(f"{path} has no row for {wanted[missing][0]}, which is in the horizon.")
        columns = columns[~columns.index.duplicated()].loc[wanted]
    if len(columns) < steps:
        raise CommandError(f"{path} has {len(columns)} row(s), but the horizon has {steps} steps.")
    columns = columns.iloc[:steps]
    if columns.isna().any(axis=None):
        row = int(np.argmax(columns.isna().any(axis=1).to_numpy()))
        name = columns.columns[columns.iloc[row].isna().to_numpy()][0]
        raise CommandError(f"column {name!r} of {path} is empty at step {row + 1} of the horizon. Fill it in.")
    return columns
