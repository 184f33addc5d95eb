"""Changes of CSV files, each with what it should lead to: the same answer, an error, or either of them."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Random = np.random.Generator


class Change(NamedTuple):
    """A change of the text of a CSV file whose first line is a header.

    Attributes
    ----------
    name : str
    apply : callable
        Of the text and a source of chance.
    may_be_answered : bool
        Whether the same answer as without the change is right too. Otherwise only an error is.
    encoding : str
    """

    name: str
    apply: Callable[[str, Random], str]
    may_be_answered: bool = True
    encoding: str = "utf-8"


def _lines(change: Callable[[list[str], Random], list[str]]) -> Callable[[str, Random], str]:
    def apply(text: str, rng: Random) -> str:
        return "\n".join(change(text.splitlines(), rng)) + "\n"

    return apply


def _cells(change: Callable[[str, int, int], str]) -> Callable[[str, Random], str]:
    """A change of each cell, given its row (0 is the header) and column."""

    def apply(text: str, rng: Random) -> str:
        rows = [line.split(",") for line in text.splitlines()]
        return (
            "\n".join(",".join(change(cell, i, j) for j, cell in enumerate(row)) for i, row in enumerate(rows))
            + "\n"
        )

    return apply


def _one_cell(value: str, column: int, *, in_first: float = 1.0) -> Callable[[str, Random], str]:
    """One cell of a column, in the first part of the rows, has another value."""

    def apply(text: str, rng: Random) -> str:
        rows = [line.split(",") for line in text.splitlines()]
        rows[int(rng.integers(1, int(in_first * len(rows))))][column] = value
        return "\n".join(map(",".join, rows)) + "\n"

    return apply


def _one_row(change: Callable[[str], str]) -> Callable[[str, Random], str]:
    def apply(text: str, rng: Random) -> str:
        lines = text.splitlines()
        place = int(rng.integers(1, len(lines)))
        lines[place] = change(lines[place])
        return "\n".join(lines) + "\n"

    return apply


def _decimal_commas(text: str) -> str:
    return re.sub(r"(\d)\.(\d)", r"\1,\2", text)


def _shuffled(lines: list[str], rng: Random) -> list[str]:
    return [lines[0], *(lines[1 + i] for i in rng.permutation(len(lines) - 1))]


def _with_column(values: Callable[[int], str]) -> Callable[[str, Random], str]:
    def apply(text: str, rng: Random) -> str:
        head, *rows = text.splitlines()
        return "\n".join([f"more,{head}", *(f"{values(i)},{row}" for i, row in enumerate(rows))]) + "\n"

    return apply


LAYOUT = [
    Change("as it is", lambda text, rng: text),
    Change("ends of lines of Windows", lambda text, rng: text.replace("\n", "\r\n")),
    Change("ends of lines of old Macs", lambda text, rng: text.replace("\n", "\r")),
    Change("byte order mark", lambda text, rng: "\ufeff" + text),
    Change("no end of the last line", lambda text, rng: text.rstrip("\n")),
    Change("blank lines at the end", lambda text, rng: text + "\n\n"),
    Change("a blank line inside", _lines(lambda lines, rng: [*lines[:7], "", *lines[7:]])),
    Change("quotes", _cells(lambda cell, i, j: f'"{cell}"')),
    Change("spaces", _cells(lambda cell, i, j: f" {cell} ")),
    Change("semicolons", lambda text, rng: text.replace(",", ";")),
    Change("tabulators", lambda text, rng: text.replace(",", "\t")),
    Change("bars", lambda text, rng: text.replace(",", "|")),
    Change("semicolons and decimal commas", lambda text, rng: _decimal_commas(text.replace(",", ";"))),
    Change("decimal commas between commas", lambda text, rng: _decimal_commas(text)),
    Change("decimal commas in quotes", _cells(lambda cell, i, j: f'"{_decimal_commas(cell)}"')),
    Change("an empty cell at every end", _cells(lambda cell, i, j: cell)),
    Change("commas at every end", _lines(lambda lines, rng: [f"{line}," for line in lines])),
    Change("a cell beyond the header", _one_row(lambda row: f"{row},7")),
    Change("cells beyond the header", _lines(lambda lines, rng: [lines[0], *(f"{line},7" for line in lines[1:])])),
    Change("a row that is cut off", _one_row(lambda row: row.rpartition(",")[0])),  # it has no target
    Change("UTF-16", lambda text, rng: text, encoding="utf-16"),
    Change("a byte of zero", _one_row(lambda row: row[:3] + "\0" + row[3:])),
    Change("an open quote", _one_row(lambda row: f'"{row}')),
    Change("a comment above", lambda text, rng: "# written by a sensor\n" + text),
    Change("header twice", _lines(lambda lines, rng: [lines[0], *lines])),
    Change("no header", lambda text, rng: text.partition("\n")[2], may_be_answered=False),
    Change("nothing but a header", lambda text, rng: text.partition("\n")[0] + "\n", may_be_answered=False),
    Change("nothing", lambda text, rng: "", may_be_answered=False),
    Change("rows in another order", _lines(_shuffled)),
]
"""Changes of the layout of any table."""


def of_numbers(column: int) -> list[Change]:
    """Changes of a column of numbers."""

    def number(change: Callable[[str], str]) -> Callable[[str, Random], str]:
        return _cells(lambda cell, i, j: change(cell) if i and j == column else cell)

    return [
        Change("numbers with exponents", number(lambda cell: f"{float(cell):.12e}")),
        Change("numbers with a sign", number(lambda cell: cell if cell.startswith("-") else f"+{cell}")),
        Change("numbers with zeros", number(lambda cell: cell if cell.startswith("-") else f"00{cell}")),
        Change("numbers with a unit", number(lambda cell: f"{cell} m")),
        Change("numbers with per cent", number(lambda cell: f"{cell}%")),
        Change("a dash", _one_cell("-", column), may_be_answered=False),
        Change("a per cent", _one_cell("12%", column), may_be_answered=False),
        Change("a word", _one_cell("high", column), may_be_answered=False),
        Change("a decimal comma", _one_cell('"3,5"', column), may_be_answered=False),
        Change("a hexadecimal number", _one_cell("0x1F", column), may_be_answered=False),
        Change("infinity", _one_cell("inf", column), may_be_answered=False),
        Change("a date", _one_cell("2024-01-01", column), may_be_answered=False),
    ]


COLUMNS = [
    Change("a column of dates", _with_column(lambda i: f"2024-01-{1 + i % 28:02d} {i // 28:02d}:00"), False),
    Change("a column of texts, all different", _with_column(lambda i: f"row {i} of the table")),
    Change("a column that is always the same", _with_column(lambda i: "1")),
    Change("a column that is empty", _with_column(lambda i: "")),
    Change(
        "a name twice",
        lambda text, rng: text.replace(text.split(",")[0], text.partition("\n")[0].split(",")[1], 1),
        False,
    ),
]
"""Changes that add columns to a table to learn from."""


def of_times(day_first: Callable[[str], str]) -> list[Change]:
    """Changes of a first column of times, given a change from ISO to day, month and year."""

    def times(change: Callable[[str], str]) -> Callable[[str, Random], str]:
        return _cells(lambda cell, i, j: change(cell) if i and j == 0 else cell)

    return [
        Change("times with a T", times(lambda cell: cell.replace(" ", "T"))),
        Change("times without seconds", times(lambda cell: cell[:16])),
        Change("day, month, year", times(day_first)),
        Change("times without a year", times(lambda cell: cell[5:]), may_be_answered=False),
        Change("times of day", times(lambda cell: cell[11:]), may_be_answered=False),
        Change("now", _one_cell("now", 0), may_be_answered=False),
        Change("today", _one_cell("today", 0), may_be_answered=False),
        Change("a word for a time", _one_cell("yesterday", 0), may_be_answered=False),
        Change("an empty time", _one_cell("", 0, in_first=0.5)),  # the row is left out, and a note says so
        Change("a day that does not exist", _one_cell("2024-02-31 00:00:00", 0), may_be_answered=False),
        Change("a zone in one row", _one_row(lambda row: row.replace(",", "+01:00,", 1)), may_be_answered=False),
        Change("a time twice", _lines(lambda lines, rng: [*lines, lines[-1]]), may_be_answered=False),
    ]
