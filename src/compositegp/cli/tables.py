"""Tables from CSV files, compressed or not, and Parquet files; every error names the file, the column and the row."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.cli.output import CommandError, require_packages

_MOST_NAMES = 12  # column names that an error lists


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table with at least one row; the names of its columns are strings."""
    file = Path(path)
    if not file.exists():
        raise CommandError(f"{path} does not exist. Check the path.")
    if file.is_dir():
        raise CommandError(f"{path} is a folder. Give a CSV or Parquet file.")
    is_parquet = file.suffix in (".parquet", ".pq")
    if is_parquet:
        require_packages("pyarrow")
    try:
        table = pd.read_parquet(file) if is_parquet else pd.read_csv(file, index_col=False)
    except pd.errors.EmptyDataError as error:
        raise CommandError(f"{path} is empty.") from error
    except Exception as error:  # the readers raise many kinds for a file of another format
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CommandError(f"{path} cannot be read as CSV or Parquet: {reason}") from error
    # A filtered table keeps the row numbers of the table that it is from: drop them, but keep a named index.
    named = table.index.name is not None and table.index.name not in table.columns
    table = table.reset_index(drop=not named)
    if not len(table):
        raise CommandError(f"{path} has no rows.")
    table.columns = table.columns.map(str)
    return table


def column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column of a table."""
    if name not in table.columns:
        names = ", ".join(table.columns[:_MOST_NAMES]) + (", …" if len(table.columns) > _MOST_NAMES else "")
        raise CommandError(f"{path} has no column {name!r}; it has {names}.")
    return table[name]


def number_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column as floats; an empty cell is NaN."""
    values = column(table, name, path)
    if has_times(values):
        raise CommandError(f"column {name!r} of {path} has times where numbers should be.")
    converted = pd.to_numeric(values, errors="coerce")
    wrong = (converted.isna() & values.notna()).to_numpy()
    if wrong.any():
        first = int(np.argmax(wrong))
        raise CommandError(
            f"column {name!r} of {path} has text where numbers should be: {values.iloc[first]!r} in row {first + 1} "
            f"({int(wrong.sum())} such rows). Correct it, or leave the cell empty if the value was not observed."
        )
    return converted.astype(float)


def target_column(table: pd.DataFrame, name: str, path: str | Path) -> Floats:
    """One column as an array of finite floats; an empty cell is NaN: not observed."""
    values: Floats = number_column(table, name, path).to_numpy()
    _refuse(np.isinf(values), "infinite value(s)", name, path)
    return values


def complete_number_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column as finite floats; an empty cell is an error."""
    values = number_column(table, name, path)
    _refuse(values.isna(), "empty cell(s)", name, path)
    _refuse(~np.isfinite(values), "infinite value(s)", name, path)
    return values


def complete_text_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column as text (of object type); an empty cell is an error."""
    values = column(table, name, path).astype("string")
    _refuse(values.isna() | (values.str.strip() == "").fillna(False), "empty cell(s)", name, path)
    return values.astype(object)


def has_times(values: pd.Series) -> bool:
    """Whether a column holds time stamps (which only Parquet files know of)."""
    return bool(values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype))


def has_numbers(values: pd.Series) -> bool:
    """Whether a column holds numbers or truth values."""
    return bool(values.dtype.kind in "biuf")


def _refuse(wrong: Any, what: str, name: str, path: str | Path) -> None:
    """Raise an error for the rows that are wrong, if there are any."""
    rows = np.asarray(wrong, dtype=bool)
    if rows.any():
        raise CommandError(
            f"column {name!r} of {path} has {int(rows.sum())} {what}, the first in row {int(np.argmax(rows)) + 1}. "
            "Correct them, or do without the column."
        )
