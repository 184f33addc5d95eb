"""What the verbs print: tables for people, JSON for programs, notes on standard error; and the errors they raise."""

import importlib.util
import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 30  # a longer table is printed with its middle left out


class CommandError(Exception):
    """The data or the numerics do not allow what was asked for; the message is one sentence for the user."""


class UsageError(typer.BadParameter):
    """The options contradict each other or have impossible values; the message is one sentence for the user."""

    def format_message(self) -> str:
        """The sentence alone."""
        return self.message


def require_packages(*names: str, extra: str = "cli") -> None:
    """Raise an error that says how to install the first of these packages, parts of an extra, that is not there."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise CommandError(f"{name} is not installed: pip install 'compositegp[{extra}]'")


def note(text: str) -> None:
    """Print a remark on standard error."""
    print(f"note: {text}", file=sys.stderr)


class Output:
    """Results of a verb, printed as tables while it runs or as one JSON object when it is done.

    Parameters
    ----------
    as_json : bool
        Print nothing for people, and one JSON object at the end of the ``with`` block.

    Examples
    --------
    >>> with Output(as_json=True) as output:
    ...     output.line("only people see this")
    ...     output.result("rmse", 0.25)
    {
     "rmse": 0.25
    }
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._results: dict[str, Any] = {}

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._as_json:
            print(json.dumps(self._results, indent=1))

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if not self._as_json:
            print(text)

    def result(self, name: str, value: Any) -> None:
        """Keep a result for programs."""
        if self._as_json:
            self._results[name] = to_json(value)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
        """Print a table for people.

        Parameters
        ----------
        columns : sequence of str
            Headings. The first column is aligned to the left, the others to the right if they hold numbers.
        rows : iterable of sequences
            Cells; numbers get four digits, and a missing one is an empty cell.
        title : str, optional
        """
        if not self._as_json:
            print(_rendered(columns, [list(row) for row in rows], title), end="")

    def frame(self, frame: "pd.DataFrame", first: str, *, title: str | None = None) -> None:
        """Print a data frame for people, with its index as the first column; the middle of a long one is left out."""
        rows = [[str(label), *values] for label, values in zip(frame.index, frame.to_numpy().tolist(), strict=True)]
        if len(rows) > _MOST_ROWS:
            rows = [*rows[: _MOST_ROWS // 2], ["…"] * len(rows[0]), *rows[-_MOST_ROWS // 2 :]]
        self.table([first, *map(str, frame.columns)], rows, title=title)


def format_number(value: Any) -> str:
    """Four digits of a number; a missing value is empty, and text stays as it is."""
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else f"{value:.4g}"


def _rendered(columns: Sequence[str], rows: list[list[Any]], title: str | None) -> str:
    """A table as text, as wide as its cells need, in the colors that standard output can show."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False, pad_edge=False)
    for position, heading in enumerate(columns):
        has_numbers = position > 0 and any(isinstance(row[position], float | int) for row in rows)
        table.add_column(Text(heading), justify="right" if has_numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(format_number(cell)) for cell in row))
    console = Console(file=sys.stdout, highlight=False)
    console.width = max(console.width, Console(width=10_000).measure(table).maximum)
    # Text that print writes, and not the console: it would end the process where a pipe is closed.
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def to_json(value: Any) -> Any:
    """Convert a result to values that JSON has; NaN and infinity become null."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        table = value.reset_index() if value.index.name or not isinstance(value.index, pd.RangeIndex) else value
        return [{str(name): to_json(cell) for name, cell in row.items()} for row in table.to_dict("records")]
    if isinstance(value, dict):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json(item) for item in value]
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return str(value)
