"""Rows of compositegp stream: lines of CSV as a time, a value and further columns."""

import csv
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from compositegp.cli.output import CommandError, note
from compositegp.cli.stream_input import LONGEST_LINE, Line
from compositegp.cli.text_format import SEPARATORS, TextFormat, is_decimal_comma, trimmed
from compositegp.cli.time_columns import TimeFormat
from compositegp.forecasting import Timeline, in_utc, scale_in_words

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_NOT_OBSERVED = {"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"}  # as in files that forecast reads
_LARGEST = 1e150  # of a value; the square of a larger one is not finite


class Row(NamedTuple):
    """One row: its time, in UTC, its value and its further columns; NaN is not observed."""

    stamp: pd.Timestamp
    value: float
    extra: tuple[float, ...]


class RowParser:
    """Reads lines of CSV as the file that a model was made from has them.

    Parameters
    ----------
    time, target : str
        Names of the columns.
    extra : sequence of str
        Names of the further columns.
    text_format : TextFormat
        Its separator is what a row has, unless the first line shows another one.
    time_format : TimeFormat
    may_choose_separator : bool
        Whether the first line may show another separator.
    timeline : Timeline
        Of the series: times of rows have a time zone if it has one.
    local : bool
        Times without a time zone are times of the clock of the series.
    transform : None, "sqrt", "fourth_root" or "log"
        Scale of the model: values must be positive, or not negative.
    """

    def __init__(
        self,
        time: str,
        target: str,
        extra: Sequence[str],
        text_format: TextFormat,
        time_format: TimeFormat,
        *,
        may_choose_separator: bool = True,
        timeline: Timeline,
        local: bool = False,
        transform: str | None,
    ) -> None:
        self._names = [time, target, *extra]
        self._separator, self._decimal = text_format.separator or ",", text_format.decimal or "."
        self._may_choose_separator = may_choose_separator
        self._time_format, self._transform = time_format, transform
        self._timeline, self._local = timeline, local
        self._before: pd.Timestamp | None = None  # time of the row before in the same file
        self._positions = list(range(len(self._names)))  # of the columns, if no header says otherwise
        self._width = len(self._names)  # cells of a row, at most

    def parse(self, line: Line) -> Row | None:
        """Read a line.

        Returns
        -------
        Row or None
            None for a header and for an empty line.

        Raises
        ------
        ValueError
            With the reason why the line cannot be used.
        """
        if len(line.text) > LONGEST_LINE:
            raise ValueError(f"it is longer than {LONGEST_LINE} characters")
        if not line.is_whole:
            raise ValueError("its end is missing")
        cells = self._cells(line.text, self._separator)
        if not any(cells):
            return None
        if line.number == 1:
            self._before = None
            cells = self._begin(line.text, cells)
        if self._is_header(cells):
            self._positions = [cells.index(name) for name in self._names]
            self._width = len(trimmed(cells))
            return None
        if len(trimmed(cells)) > self._width:
            raise ValueError(
                f"it has {len(cells)} cells, and {self._width} are expected; give --separator or --decimal if "
                "its cells or decimals are written otherwise"
            )
        if len(cells) <= max(self._positions):
            hint = "; give --separator if its cells are separated otherwise" if len(cells) == 1 else ""
            raise ValueError(f"it has {len(cells)} cell(s), and {self._width} are expected{hint}")
        time_text, *numbers = (cells[position] for position in self._positions)
        stamp = self._time_format.read(time_text)
        stamp = self._before = self._instant(stamp, time_text)
        value, *extra = map(self._number, numbers)
        if self._transform == "log" and value <= 0:
            raise ValueError(f"{numbers[0]} is not positive, and the model is of the logarithm")
        if self._transform in ("sqrt", "fourth_root") and value < 0:
            raise ValueError(f"{numbers[0]} is negative, and the model is of the {scale_in_words(self._transform)}")
        return Row(stamp, value, tuple(extra))

    def _instant(self, stamp: pd.Timestamp, text: str) -> pd.Timestamp:
        """A time in UTC. One that its clock has twice is the second if the row before is between the two."""
        if stamp.tz is not None or not self._local or self._timeline.zone is None:
            if (stamp.tz is None) != (self._timeline.zone is None):
                have = "a time zone, and the model's series has none" if stamp.tz is not None else "no time zone"
                raise ValueError(f"{text!r} has {have}")
            return in_utc(pd.DatetimeIndex([stamp]))[0]
        first, second = self._timeline.instants(pd.DatetimeIndex([stamp, stamp]), local=True)
        is_second = self._before is not None and first <= self._before < second
        return second if is_second else first

    def _cells(self, text: str, separator: str) -> list[str]:
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=separator), [])]
        except csv.Error as error:
            raise ValueError(f"it is not CSV ({error})") from error

    def _is_header(self, cells: list[str]) -> bool:
        return set(self._names) <= set(cells)

    def _begin(self, text: str, cells: list[str]) -> list[str]:
        """The cells of the first line of a file, which shows how cells are separated, and is a header or a row.

        Words alone are a header of other columns, so that no row of the file has a known meaning. Anything else is a
        row, which may be malformed as any other.
        """
        if not self._is_header(cells) and not self._is_time(cells[0]) and self._may_choose_separator:
            for separator in SEPARATORS:
                others = self._cells(text, separator)
                if self._is_header(others) or (len(others) == self._width and self._is_time(others[0])):
                    if separator != self._separator:
                        note(f"cells are separated by {separator!r}")
                    self._separator, cells = separator, others
                    break
        are_words = len(trimmed(cells)) > 1 and all(cell[0].isalpha() or cell[0] in "_#" for cell in cells if cell)
        if are_words and not self._is_header(cells) and not any(map(self._is_time, cells)):
            names = " and ".join(map(repr, self._names))
            raise CommandError(
                f"the first row, {text[:60]}, has neither the columns {names} nor a time. Give the columns that the "
                "model was made from."
            )
        return cells

    def _is_time(self, text: str) -> bool:
        try:
            self._time_format.read(text)
        except ValueError:
            return False
        return True

    def _number(self, text: str) -> float:
        if text.lower() in _NOT_OBSERVED:
            return math.nan
        if _INFINITE.fullmatch(text):
            raise ValueError(f"{text!r} is not finite")
        plain = text.replace(",", ".") if self._decimal == "," and "." not in text else text
        if _NUMBER.fullmatch(plain) is None or (self._decimal == "," and "." in text):
            hint = "; give --decimal ',' if it has a decimal comma" if is_decimal_comma(text) else ""
            raise ValueError(f"{text[:60]!r} is not a number{hint}")
        value = float(plain)
        if abs(value) > _LARGEST:
            raise ValueError(f"{text[:60]} is too large to compute with")
        return value
