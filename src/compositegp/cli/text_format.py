"""How CSV files are written: separator, decimal sign and encoding, given by options or found in the file."""

import codecs
import csv
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from compositegp.cli.output import CommandError, UsageError

SEPARATORS = (",", ";", "\t", "|")  # that are looked for in a file
_SAMPLE = 1 << 16  # characters of a file from which the separator is found
_BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class TextFormat:
    """How a CSV file is written.

    Attributes
    ----------
    separator : str, optional
        Between cells; found in the file if it is None.
    decimal : {".", ","}, optional
        Decimal sign; found in the file if it is None.
    encoding : str, optional
        UTF-8 if it is None, or UTF-16 where a file begins with its mark.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @classmethod
    def of_options(cls, separator: str | None, decimal: str | None, encoding: str | None) -> "TextFormat":
        """Check the options --separator, --decimal and --encoding."""
        separator = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise UsageError(f"--separator must be one character, or tab; found {separator!r}.")
        if decimal not in (None, ".", ","):
            raise UsageError(f"--decimal must be a point or a comma; found {decimal!r}.")
        if separator is not None and separator == decimal:
            raise UsageError(f"--separator and --decimal are both {separator!r}.")
        if encoding is not None:
            try:
                codecs.lookup(encoding)
            except LookupError as error:
                raise UsageError(
                    f"--encoding {encoding!r} is not known. Give one such as utf-8, latin-1 or utf-16."
                ) from error
        return cls(separator, decimal, encoding)


class Layout(NamedTuple):
    """What a look at a whole CSV file finds.

    Attributes
    ----------
    format : TextFormat
        With its separator and encoding.
    names : list of str
        Cells of the header.
    n_lines_before : int
        Blank lines before the header.
    n_rows : int
        Rows, with blank lines between them but not with those at the end.
    """

    format: TextFormat
    names: list[str]
    n_lines_before: int
    n_rows: int


def find_layout(path: Path, given: TextFormat) -> Layout:
    """Find how a CSV file is written, and make sure that no row has more cells than the header."""
    encoding = given.encoding or _encoding(path)
    with _opened(path, encoding) as file:
        sample = file.read(_SAMPLE)
        if "\x00" in sample.split("\n", 1)[0]:
            raise CommandError(
                f"{path} cannot be read as CSV: it is not text, or not UTF-8. Give --encoding, such as utf-16."
            )
        separator = given.separator or _separator(sample, path)
        file.seek(0)
        layout = _measure(file, separator, path)
    return layout._replace(format=replace(given, separator=separator, encoding=encoding))


def is_decimal_comma(text: str) -> bool:
    """Whether a cell is a number with a decimal comma, such as 1,5."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def _encoding(path: Path) -> str:
    with _opened(path, None) as file:
        start = file.read(2)
    return _BYTE_ORDER_MARKS.get(start, "utf-8-sig")


@contextmanager
def _opened(path: Path, encoding: str | None) -> Iterator[Any]:
    """Open a file, compressed or not, as text or, without an encoding, as bytes."""
    from pandas.io.common import get_handle

    limit = csv.field_size_limit(sys.maxsize)
    try:
        mode = "rb" if encoding is None else "r"
        with get_handle(
            path, mode, encoding=encoding, compression="infer", is_text=encoding is not None
        ) as handles:
            yield handles.handle
    except UnicodeError as error:
        raise CommandError(
            f"{path} cannot be read as CSV: it is not in {(encoding or '').removesuffix('-sig').upper()}. Give "
            "--encoding, such as latin-1 or utf-16."
        ) from error
    finally:
        csv.field_size_limit(limit)


def _separator(sample: str, path: Path) -> str:
    """The separator that explains a sample of a file: the header has two cells or more, and no row has more."""
    end = sample.rfind("\n") + 1 if len(sample) == _SAMPLE else len(sample)
    widths = {}
    for separator in SEPARATORS:
        rows = [
            trimmed(row) for row in csv.reader(io.StringIO(sample[: end or None], newline=""), delimiter=separator)
        ]
        widths[separator] = [len(row) for row in rows if row]
    fitting = [
        separator
        for separator, (header, *others) in ((s, w or [0]) for s, w in widths.items())
        if header > 1 and max(others, default=header) <= header and sum(n > 1 for n in others) >= len(others) / 2
    ]
    if len(fitting) > 1:
        names = " and by ".join(map(repr, fitting))
        raise CommandError(f"the cells of {path} can be separated by {names}. Give --separator.")
    if fitting:
        return fitting[0]
    return max(SEPARATORS, key=lambda separator: (widths[separator] or [0])[0])


def _measure(file: Any, separator: str, path: Path) -> Layout:
    """Read all rows; a row that does not have as many cells as the header is an error."""
    reader = csv.reader(file, delimiter=separator)
    names: list[str] = []
    n_before = n_rows = n_blank = n_read = 0
    for row in reader:
        cells = trimmed(row)
        if any("\x00" in cell for cell in row):  # pandas would end the cell there
            raise CommandError(
                f"line {reader.line_num} of {path} has a byte of zero, which no text has: the file is damaged."
            )
        if not names:
            names, n_before = cells, n_before if cells else reader.line_num
        elif not row or (len(row) == 1 and row[0].isspace()):
            n_blank += 1
        elif len(cells) > len(names):
            raise CommandError(
                f"line {reader.line_num} of {path} has {len(cells)} cells, and the header has {len(names)}. Put cells "
                f"that contain {separator!r} in quotes, or, where cells are separated or decimals are written "
                "otherwise, give --separator and --decimal."
            )
        elif len(row) < len(names):
            if reader.line_num > n_read + 1:
                raise CommandError(
                    f"{path} cannot be read as CSV: a quote that begins in line {n_read + 1} does not end."
                )
            raise CommandError(
                f"line {reader.line_num} of {path} has {len(row)} cell(s), and the header has {len(names)}: it is cut "
                f"off, or its last cells are empty. Write empty cells with their {separator!r}."
            )
        else:
            n_rows, n_blank = n_rows + n_blank + 1, 0
        n_read = reader.line_num
    return Layout(TextFormat(), names, n_before, n_rows)


def trimmed(row: list[str]) -> list[str]:
    """The cells of a row without the empty ones at its end."""
    end = len(row)
    while end and not row[end - 1].strip():
        end -= 1
    return row[:end]
