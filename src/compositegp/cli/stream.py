"""compositegp stream: a forecast after every segment of new rows, nothing lost and nothing counted twice."""

import argparse
import csv
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd

from compositegp.cli.errors import CommandError
from compositegp.cli.output import Output, plain
from compositegp.forecasting import CompositeGPForecaster, in_utc

_POLL = 0.2  # seconds between looks at a file that may grow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", type=Path, help="file of a model, by forecast --save; checkpoints go there")
    parser.add_argument("file", nargs="?", help="CSV file of new rows; standard input if left out")
    parser.add_argument("--follow", action="store_true", help="wait for more rows at the end of the file")
    parser.add_argument("--segment", type=int, help="rows to take in at a time; those of a horizon if left out")
    parser.add_argument("--horizon", help="how far to forecast; as the model was made for if left out")


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Read, update, checkpoint, forecast; until the end of the input or a signal."""
    if not arguments.model.exists():
        raise CommandError(f"{arguments.model} does not exist. Make it with compositegp forecast --save.")
    if arguments.follow and arguments.file is None:
        raise CommandError("--follow is for a file; standard input is read until it ends.")
    if arguments.file is not None and not arguments.follow and not Path(arguments.file).exists():
        raise CommandError(f"{arguments.file} does not exist. Check the path.")
    model, more = CompositeGPForecaster.load_with(arguments.model)
    horizon = arguments.horizon or more.get("horizon", 1)
    size = model._known.timeline.steps(horizon) if arguments.segment is None else arguments.segment
    if size < 1:
        raise CommandError(f"--segment must be at least 1; found {size}.")
    stream = _Stream(model, arguments.model, more, size, horizon)
    if arguments.file is None and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    with _Signals() as signals:
        stream.emit()  # what was known when it last ended may not have been told
        try:
            lines = _lines(arguments.file, arguments.follow, signals)
            for number, line in enumerate(lines, start=1):
                stream.take(number, line)
        except _Ended:
            pass
        stream.finish()


class _Ended(Exception):  # noqa: N818
    """A signal asked for the end."""


class _Signals:
    """SIGTERM and SIGINT end the reading of rows, never the writing of a checkpoint."""

    def __init__(self) -> None:
        self._reading, self._asked = False, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "_Signals":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._reading:
            raise _Ended

    def read(self, file: Any) -> str:
        """A line, or as much of one as there is."""
        if self._asked:
            raise _Ended
        self._reading = True
        try:
            return str(file.readline())
        finally:
            self._reading = False

    def wait(self) -> None:
        """Wait for a file to grow."""
        if self._asked:
            raise _Ended
        self._reading = True
        try:
            time.sleep(_POLL)
        finally:
            self._reading = False


def _lines(path: str | None, follow: bool, signals: _Signals) -> Iterator[str]:
    """Whole lines of the input."""
    while follow and path is not None and not Path(path).exists():
        signals.wait()
    begun = ""
    with sys.stdin if path is None else open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        while True:
            text = signals.read(file)
            begun += text
            if begun.endswith("\n"):
                yield begun
                begun = ""
            elif not text:
                if not follow:
                    if begun:
                        yield begun
                    return
                signals.wait()


class _Stream:
    """A model and the rows that are waiting to be taken in."""

    def __init__(
        self, model: CompositeGPForecaster, path: Path, more: dict[str, Any], size: int, horizon: Any
    ) -> None:
        self._model, self._path, self._more, self._size, self._horizon = model, path, more, size, horizon
        self._rows: list[tuple[pd.Timestamp, float]] = []
        self._last = _utc(model.last_)
        self._columns: tuple[int, int] | None = None
        self._known_already, self._new = 0, False

    def take(self, number: int, line: str) -> None:
        """Take in a row, or report why not."""
        try:
            cells = next(csv.reader([line.strip("\r\n").removeprefix("\ufeff")]), [])
        except csv.Error as error:
            self._skip(number, f"it is no CSV ({error})")
            return
        if not any(cell.strip() for cell in cells):
            return
        if self._columns is None:
            self._columns = self._header(cells)
            if self._columns is not None:
                return
            self._columns = (0, 1)
        try:
            stamp, value = self._parse(cells)
        except ValueError as error:
            self._skip(number, str(error))
            return
        if stamp <= self._last:
            if self._new:
                self._skip(number, f"{stamp} is not newer than {self._last}")
            else:
                self._known_already += 1  # rows of the time before the checkpoint, read again
            return
        if not self._new and self._known_already:
            print(f"note: {self._known_already} rows were taken in before", file=sys.stderr)
        self._new, self._last = True, stamp
        self._rows.append((stamp, value))
        if len(self._rows) >= self._size:
            self.absorb()

    def absorb(self) -> None:
        """Update the belief with the rows that wait, write a checkpoint, and forecast."""
        index = pd.DatetimeIndex([stamp for stamp, _ in self._rows])
        values = pd.Series([value for _, value in self._rows], index=index)
        if values.notna().any():
            try:
                self._model.update(values, late="skip")
            except ValueError as error:
                print(f"skipped {len(self._rows)} row(s): {error}", file=sys.stderr)
            else:
                self._model.save(self._path, **self._more)
                self.emit()
        self._rows = []

    def emit(self) -> None:
        """Print the forecast as a line of JSON."""
        forecast = self._model.predict(self._horizon)
        forecast.index.name = "time"
        print(json.dumps({"latest": plain(self._model.last_), "forecast": plain(forecast)}), flush=True)

    def finish(self) -> None:
        """Take in what is left."""
        if self._rows:
            self.absorb()

    def _header(self, cells: list[str]) -> tuple[int, int] | None:
        names = [cell.strip() for cell in cells]
        time_name, target = self._more.get("time"), self._more.get("target")
        if time_name in names and target in names:
            return names.index(time_name), names.index(target)
        try:
            self._time(names[0])
        except ValueError as error:
            if len(names) > 1 and names[1] and not _is_number(names[1]):
                raise CommandError(
                    f"the first row, {','.join(names)[:60]}, has neither the columns {time_name!r} and {target!r} nor "
                    "a time. Give the columns that the model was made from."
                ) from error
        return None

    def _parse(self, cells: list[str]) -> tuple[pd.Timestamp, float]:
        assert self._columns is not None
        if len(cells) <= max(self._columns):
            raise ValueError(f"it has {len(cells)} cell(s)")
        moment, text = (cells[column].strip() for column in self._columns)
        stamp = self._time(moment)
        if (stamp.tz is None) != (self._model._known.timeline.zone is None):
            raise ValueError(
                f"{moment!r} has {'no' if stamp.tz is None else 'a'} time zone, unlike the model's series"
            )
        try:
            value = float(text) if text else float("nan")
        except ValueError as error:
            raise ValueError(f"{text!r} is no number") from error
        if value in (float("inf"), float("-inf")):
            raise ValueError(f"{text!r} is not finite")
        if self._model.transform == "log" and value <= 0:
            raise ValueError(f"{text} is not positive, and the model is of the logarithm")
        return _utc(stamp), value

    def _time(self, moment: str) -> pd.Timestamp:
        """A time, as the series that the model was made from has it written."""
        if not moment:
            raise ValueError("it has no time")
        try:
            stamp = pd.to_datetime(moment, format=self._more.get("format", "ISO8601"))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{moment!r} is no time") from error
        if stamp is pd.NaT:
            raise ValueError("it has no time")
        return stamp

    def _skip(self, number: int, why: str) -> None:
        print(f"skipped line {number}: {why}", file=sys.stderr)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _utc(stamp: pd.Timestamp) -> pd.Timestamp:
    return in_utc(pd.DatetimeIndex([stamp]))[0]
