"""Tables from CSV files, compressed or not, and Parquet files; every error names the file, the column and the row."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.cli.output import CommandError, note, require_packages
from compositegp.cli.text_format import Layout, TextFormat, find_layout, is_decimal_comma

AS_FOUND = TextFormat()  # everything about the text of a file is found in it
_LARGEST = 1e150  # of an input; the square of a larger one is not finite
_MOST_CHARACTERS = 60  # of a cell that an error shows
_MOST_NAMES = 12  # column names that an error lists


def read_table(
    path: str | Path,
    text_format: TextFormat = AS_FOUND,
    *,
    text_columns: Sequence[str] = (),
    keep_blank_lines: bool = False,
    check_shape: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Read a table with at least one row; the names of its columns are strings.

    Parameters
    ----------
    path : str or Path
    text_format : TextFormat
        How a CSV file is written, as far as it is known.
    text_columns : sequence of str
        Columns of a CSV file that stay text.
    keep_blank_lines : bool
        A blank line is a row of empty cells; it always is in a file of one column.
    check_shape : callable, optional
        Called with the number of rows and of columns of a CSV file before its cells are read.
    """
    return read_table_and_format(
        path,
        text_format,
        text_columns=text_columns,
        keep_blank_lines=keep_blank_lines,
        check_shape=check_shape,
    )[0]


def read_table_and_format(
    path: str | Path,
    text_format: TextFormat = AS_FOUND,
    *,
    text_columns: Sequence[str] = (),
    keep_blank_lines: bool = False,
    check_shape: Callable[[int, int], None] | None = None,
) -> tuple[pd.DataFrame, TextFormat]:
    """Read a table as `read_table` does, and tell how its file is written."""
    file = Path(path)
    if not file.exists():
        raise CommandError(f"{path} does not exist. Check the path.")
    if file.is_dir():
        raise CommandError(f"{path} is a folder. Give a CSV or Parquet file.")
    is_parquet = file.suffix in (".parquet", ".pq")
    if is_parquet:
        require_packages("pyarrow")
    try:
        if is_parquet:
            table = pd.read_parquet(file)
        else:
            layout = find_layout(file, text_format)
            if check_shape is not None:
                check_shape(layout.n_rows, len(layout.names))
            table, text_format = _read_csv(file, layout, text_format, text_columns, keep_blank_lines)
    except (CommandError, MemoryError):
        raise
    except Exception as error:  # the readers raise many kinds for a file of another format
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        unclosed = re.search(r"EOF inside string starting at row (\d+)", reason)
        if unclosed is not None:
            reason = f"a quote that begins near row {unclosed[1]} does not end."
        kind = "Parquet" if is_parquet else "CSV"
        raise CommandError(f"{path} cannot be read as {kind}: {reason}") from error
    # A filtered table keeps the row numbers of the table that it is from: drop them, but keep a named index.
    named = table.index.name is not None and table.index.name not in table.columns
    table = table.reset_index(drop=not named)
    if not len(table):
        raise CommandError(f"{path} has no rows: only names of columns. Give a file with data.")
    table.columns = table.columns.map(str)
    return table, text_format


def _read_csv(
    path: Path, layout: Layout, given: TextFormat, text_columns: Sequence[str], keep_blank_lines: bool
) -> tuple[pd.DataFrame, TextFormat]:
    if not layout.names:
        raise CommandError(f"{path} is empty. Give a file with a line of column names and rows below it.")
    keep_blank_lines = keep_blank_lines or len(layout.names) == 1
    table = pd.read_csv(
        path,
        sep=layout.format.separator,
        decimal=given.decimal or ".",
        encoding=layout.format.encoding,
        index_col=False,
        usecols=range(len(layout.names)),
        dtype={name: str for name in text_columns if name in layout.names},
        skiprows=layout.n_lines_before,
        skip_blank_lines=not keep_blank_lines,
        nrows=layout.n_rows if keep_blank_lines else None,
        low_memory=False,
    )
    if given.decimal is not None:
        return table, layout.format
    decimal = _replace_decimal_commas(table, [*text_columns], path)
    return table, replace(layout.format, decimal=decimal)


def _replace_decimal_commas(table: pd.DataFrame, text_columns: Sequence[str], path: Path) -> str:
    """Make numbers of the columns that have decimal commas; return the decimal sign of the table."""
    found: dict[str, pd.Series] = {}
    for name in table.columns:
        if name not in text_columns and not has_numbers(table[name]):
            cells = table[name].dropna().astype(str)
            commas = cells[cells.str.contains(",", regex=False)]
            numbers = pd.to_numeric(cells.str.replace(",", ".", regex=False), errors="coerce").notna()
            if len(commas) and commas.map(is_decimal_comma).any() and numbers.mean() > 0.5:
                found[name] = commas
    if not found:
        return "."
    first = next(iter(found))
    points = [name for name in table.columns if _has_points(table[name], name in found)]
    if points or all(cells.map(_may_be_thousands).all() for cells in found.values()):
        other = f" and column {points[0]!r} decimal points" if points else ""
        other = " beside decimal points" if points[:1] == [first] else other
        raise CommandError(
            f"column {first!r} of {path} has commas in its numbers, such as {found[first].iloc[0]!r}{other}. Give "
            "--decimal ',' if they are decimal commas; otherwise remove them."
        )
    for name in found:
        numbers = table[name].astype(str).where(table[name].notna()).str.replace(",", ".", regex=False)
        converted = pd.to_numeric(numbers, errors="coerce")
        # A cell that is no number stays as it is, and is named where numbers are needed.
        table[name] = converted if not (converted.isna() & table[name].notna()).any() else numbers
    note(f"the numbers of {path} have decimal commas")
    return ","


def _has_points(cells: pd.Series, is_text: bool) -> bool:
    """Whether some numbers of a column have decimal points: of a column of texts, or one of numbers."""
    return bool(cells.astype(str).str.fullmatch(r"\s*[+-]?\d*\.\d+\s*").any()) if is_text else _has_fractions(cells)


def _may_be_thousands(cell: str) -> bool:
    """Whether a number may have commas between its thousands, such as 1,234."""
    return re.fullmatch(r"\s*[+-]?\d{1,3}(,\d{3})+\s*", cell) is not None


def _has_fractions(values: pd.Series) -> bool:
    """Whether a column has numbers that are not whole."""
    return values.dtype.kind == "f" and bool((values.dropna() % 1 != 0).any())


def column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column of a table."""
    if name not in table.columns:
        names = ", ".join(table.columns[:_MOST_NAMES]) + (", …" if len(table.columns) > _MOST_NAMES else "")
        hint = " Its first line must have the names of the columns." if any(map(_is_data, table.columns)) else ""
        raise CommandError(f"{path} has no column {name!r}; it has {names}.{hint}")
    return table[name]


def number_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column as floats; an empty cell is NaN."""
    values = column(table, name, path)
    if has_times(values):
        raise CommandError(f"column {name!r} of {path} has times where numbers should be.")
    converted = pd.to_numeric(values, errors="coerce")
    wrong = (converted.isna() & ~is_empty(values)).to_numpy()
    if wrong.any():
        remedy = "Correct it, or leave the cell empty if the value was not observed."
        raise _text_among_numbers(values, wrong, name, path, remedy)
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
    _refuse(values.abs() > _LARGEST, "value(s) that are too large to compute with", name, path)
    return values


def complete_text_column(table: pd.DataFrame, name: str, path: str | Path) -> pd.Series:
    """One column as text (of object type); an empty cell is an error."""
    values = column(table, name, path).astype("string")
    _refuse(is_empty(values), "empty cell(s)", name, path)
    return values.astype(object)


def has_times(values: pd.Series) -> bool:
    """Whether a column holds time stamps (which only Parquet files know of)."""
    return bool(values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype))


def has_numbers(values: pd.Series) -> bool:
    """Whether a column holds numbers or truth values."""
    return bool(values.dtype.kind in "biuf")


def is_empty(values: pd.Series) -> pd.Series:
    """Which cells of a column are empty or have nothing but spaces."""
    if has_numbers(values) or has_times(values):
        return values.isna()
    return values.isna() | (values.astype("string").str.strip() == "").fillna(False).astype(bool)


def are_all_numbers(values: pd.Series) -> bool:
    """Whether every cell of a column of text or objects, such as decimals of a Parquet file, is a number or empty."""
    cells = values[~is_empty(values)]
    return bool(len(cells)) and not has_times(values) and bool(pd.to_numeric(cells, errors="coerce").notna().all())


def refuse_text_among_numbers(values: pd.Series, name: str, path: str | Path) -> None:
    """Raise an error for a column of text in which most cells are numbers: it names the first that is not."""
    there = ~is_empty(values)
    wrong = (pd.to_numeric(values, errors="coerce").isna() & there).to_numpy()
    if 0 < wrong.sum() < there.sum() / 2:
        remedy = "Correct it or, if the column has categories, write all of them as text, such as c1 for 1."
        raise _text_among_numbers(values, wrong, name, path, remedy)


def _text_among_numbers(values: pd.Series, wrong: Any, name: str, path: str | Path, remedy: str) -> CommandError:
    first = int(np.argmax(wrong))
    cell = str(values.iloc[first])
    hint = " If it has a decimal comma, give --decimal ','." if is_decimal_comma(cell) else ""
    return CommandError(
        f"column {name!r} of {path} has text where numbers should be: {cell[:_MOST_CHARACTERS]!r} in row {first + 1} "
        f"({int(wrong.sum())} such row(s)). {remedy}{hint}"
    )


def _is_data(name: str) -> bool:
    """Whether the name of a column is rather a number or a date."""
    return re.match(r"[+-]?\d+[-.:/\d]", name) is not None


def _refuse(wrong: Any, what: str, name: str, path: str | Path) -> None:
    """Raise an error for the rows that are wrong, if there are any."""
    rows = np.asarray(wrong, dtype=bool)
    if rows.any():
        raise CommandError(
            f"column {name!r} of {path} has {int(rows.sum())} {what}, the first in row {int(np.argmax(rows)) + 1}. "
            "Correct them, or do without the column."
        )
