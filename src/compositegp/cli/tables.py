"""Tables from files: CSV, compressed or not, and Parquet."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositegp.cli.errors import CommandError

_OFFSET = re.compile(r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)$")


def read_table(path: str) -> pd.DataFrame:
    """A table, or a CommandError that says what is wrong with its file."""
    file = Path(path)
    if not file.exists():
        raise CommandError(f"{path} does not exist. Check the path.")
    if file.is_dir():
        raise CommandError(f"{path} is a folder. Give a CSV or Parquet file.")
    try:
        parquet = file.suffix in (".parquet", ".pq")
        table = pd.read_parquet(file) if parquet else pd.read_csv(file, index_col=False)
    except pd.errors.EmptyDataError as error:
        raise CommandError(f"{path} is empty.") from error
    except Exception as error:  # whatever a file of another kind makes its readers raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CommandError(f"{path} cannot be read as CSV or Parquet: {reason}") from error
    named = table.index.name is not None and table.index.name not in table.columns
    table = table.reset_index(drop=not named)  # a filtered table keeps the row numbers of another
    if not len(table):
        raise CommandError(f"{path} has no rows.")
    return table


def column(table: pd.DataFrame, name: str, path: str) -> pd.Series:
    """One column of a table."""
    if name not in table.columns:
        shown = ", ".join(map(str, table.columns[:12])) + (", …" if len(table.columns) > 12 else "")
        raise CommandError(f"{path} has no column {name!r}; it has {shown}.")
    return table[name]


def numbers(table: pd.DataFrame, name: str, path: str) -> pd.Series:
    """One column as numbers; empty cells are NaN."""
    values = column(table, name, path)
    converted = pd.to_numeric(values, errors="coerce")
    wrong = converted.isna() & values.notna()
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy()))
        raise CommandError(
            f"column {name!r} of {path} has text where numbers should be: {values.iloc[row]!r} in row {row + 1} "
            f"({int(wrong.sum())} in all). Correct it, or leave the cell empty if it was not observed."
        )
    return converted.astype(float)


def times(table: pd.DataFrame, name: str, path: str) -> pd.DatetimeIndex:
    """One column as time stamps: in UTC if they have a zone."""
    values = column(table, name, path)
    if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind == "M":
        return pd.DatetimeIndex(values)
    if values.dtype.kind in "iuf":
        raise CommandError(
            f"column {name!r} of {path} has numbers where times should be. Write times as 2024-01-31 14:00."
        )
    text = values.astype("string").str.strip()
    zoned = text.str.contains(_OFFSET).fillna(False).to_numpy(dtype=bool) & (text.str.len() > 10).fillna(False)
    if zoned.any() and not zoned[text.notna()].all():
        raise CommandError(
            f"column {name!r} of {path} mixes times with and without a time zone. Give all of them one, or none."
        )
    try:
        parsed = pd.to_datetime(text, utc=bool(zoned.any()), format="ISO8601")
    except (ValueError, TypeError):
        try:
            parsed = pd.to_datetime(text, utc=bool(zoned.any()))
        except (ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise CommandError(f"column {name!r} of {path} has what is no time: {reason}") from error
    if parsed.isna().all():
        raise CommandError(f"column {name!r} of {path} has no times.")
    return pd.DatetimeIndex(parsed)


def time_format(values: pd.Series) -> str:
    """How times are written: "ISO8601", or a format by which further ones can be read."""
    if values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        return "ISO8601"
    first = str(values.dropna().iloc[0]).strip()
    try:
        pd.to_datetime(first, format="ISO8601")
    except ValueError:
        return pd.tseries.api.guess_datetime_format(first) or "mixed"
    return "ISO8601"


def read_series(path: str, time: str, target: str, extra: list[str]) -> tuple[pd.Series, pd.DataFrame | None]:
    """A series with its time stamps, and further columns if any are named; rows without a time are dropped."""
    table = read_table(path)
    index = times(table, time, path)
    series = pd.Series(numbers(table, target, path).to_numpy(), index=index, name=target)
    series.attrs["format"] = time_format(table[time])
    known = ~index.isna()
    columns = None
    if extra:
        columns = pd.DataFrame({name: numbers(table, name, path).to_numpy() for name in extra}, index=index)[known]
    return series[known], columns


def split_columns(table: pd.DataFrame, target: str, path: str) -> tuple[pd.DataFrame, list[str]]:
    """The inputs of a table, and those of them that are categories."""
    inputs = table.drop(columns=[target], errors="ignore")
    if not len(inputs.columns):
        raise CommandError(f"{path} has no column beside {target!r} to predict from.")
    categories = [
        str(name) for name in inputs.columns if inputs[name].dtype.kind not in "biuf" and not _is_time(inputs[name])
    ]
    for name in inputs.columns:
        if _is_time(inputs[name]):
            raise CommandError(f"column {name!r} of {path} has times: use compositegp forecast, or leave it out.")
    return inputs, categories


def _is_time(values: Any) -> bool:
    return bool(values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype))
