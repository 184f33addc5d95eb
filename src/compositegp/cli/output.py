"""What commands print: tables for people, JSON for machines, notes and progress on standard error."""

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd


class Output:
    """Where results and notes go.

    Parameters
    ----------
    as_json : bool
        Results are gathered and printed as one JSON object at the end.
    """

    def __init__(self, as_json: bool) -> None:
        self._results: dict[str, Any] | None = {} if as_json else None

    def say(self, text: str = "") -> None:
        """Print a line for people."""
        if self._results is None:
            print(text)

    def result(self, name: str, value: Any) -> None:
        """Keep a result for machines."""
        if self._results is not None:
            self._results[name] = plain(value)

    def note(self, text: str) -> None:
        """Say something beside the results."""
        print(f"note: {text}", file=sys.stderr)

    def finish(self) -> None:
        """Print what was kept for machines."""
        if self._results is not None:
            print(json.dumps(self._results, indent=1))


class ProgressBar:
    """A line on a terminal that is written over, once the work has taken two seconds; nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what, self._began, self._shown = what, time.monotonic(), False

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        if sys.stderr.isatty() and (self._shown or time.monotonic() - self._began > 2):
            bar = "█" * round(20 * done / max(total, 1))
            sys.stderr.write(f"\r\x1b[K{bar:░<20s} {self._what} {done}/{total}" + ("\n" if done == total else ""))
            sys.stderr.flush()
            self._shown = True


def plain(value: Any) -> Any:
    """A value as JSON has it; NaN and infinity become null."""
    if isinstance(value, pd.DataFrame):
        table = value.reset_index() if value.index.name or not isinstance(value.index, pd.RangeIndex) else value
        return [{str(name): plain(item) for name, item in row.items()} for row in table.to_dict("records")]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
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
