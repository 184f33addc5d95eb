"""Rows that arrive, the model that they update, and the forecasts that follow from it."""

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compositegp.cli.output import CommandError, note, to_json
from compositegp.forecasting import CompositeGPForecaster, in_utc


class Row(NamedTuple):
    """One observation: its time, in UTC, and its value; NaN is not observed."""

    stamp: pd.Timestamp
    value: float


class RowParser:
    """Reads lines of CSV as the file that a model was made from has them.

    Parameters
    ----------
    model : CompositeGPForecaster
    names : dict
        What was saved with the model: its columns ``time`` and ``target``, and the ``format`` of its times.
    """

    def __init__(self, model: CompositeGPForecaster, names: dict[str, Any]) -> None:
        self._has_zone = model.last_.tz is not None
        self._is_log = model.target_transform == "log"
        self._time_name, self._target = names.get("time"), names.get("target")
        self._format = names.get("format", "ISO8601")
        self._positions: tuple[int, int] | None = None  # of the two columns; not known before the first line

    def parse(self, line: str) -> Row | None:
        """Read a line.

        Returns
        -------
        Row or None
            None for the header and for an empty line.

        Raises
        ------
        ValueError
            With the reason why the line cannot be used.
        """
        try:
            cells = next(csv.reader([line.strip("\r\n").removeprefix("\ufeff")]), [])
        except csv.Error as error:
            raise ValueError(f"it is not CSV ({error})") from error
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            return None
        if self._positions is None:
            self._positions = self._header_positions(cells)
            if self._positions is not None:
                return None
            self._positions = (0, 1)
        if len(cells) <= max(self._positions):
            raise ValueError(f"it has {len(cells)} cell(s)")
        time_text, value_text = (cells[position] for position in self._positions)
        stamp = self._stamp(time_text)
        if (stamp.tz is not None) != self._has_zone:
            have = "a time zone, and the model's series has none" if stamp.tz is not None else "no time zone"
            raise ValueError(f"{time_text!r} has {have}")
        return Row(_utc(stamp), self._value(value_text))

    def _header_positions(self, cells: list[str]) -> tuple[int, int] | None:
        """Positions of the columns, if the first line is a header; None if it is a row."""
        if self._time_name in cells and self._target in cells:
            return cells.index(self._time_name), cells.index(self._target)
        try:
            self._stamp(cells[0])
        except ValueError as error:
            if len(cells) > 1 and cells[1] and not _is_number(cells[1]):
                raise CommandError(
                    f"the first row, {','.join(cells)[:60]}, has neither the columns {self._time_name!r} and "
                    f"{self._target!r} nor a time. Give the columns that the model was made from."
                ) from error
        return None

    def _stamp(self, text: str) -> pd.Timestamp:
        if not text:
            raise ValueError("it has no time")
        try:
            stamp = pd.to_datetime(text, format=self._format)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{text!r} is not a time") from error
        if stamp is pd.NaT:
            raise ValueError("it has no time")
        return stamp

    def _value(self, text: str) -> float:
        if text and not _is_number(text):
            raise ValueError(f"{text!r} is not a number")
        value = float(text) if text else math.nan
        if math.isinf(value):
            raise ValueError(f"{text!r} is not finite")
        if self._is_log and value <= 0:
            raise ValueError(f"{text} is not positive, and the model is of the logarithm")
        return value


class StreamSession:
    """A model that takes in rows, a segment at a time: after each it writes a checkpoint and prints a forecast.

    Parameters
    ----------
    model : CompositeGPForecaster
    path : Path
        File of the model, which each checkpoint replaces.
    names : dict
        What was saved with the model, which each checkpoint keeps.
    segment_size : int
        Rows to take in at a time.
    horizon : str or int
    """

    def __init__(
        self, model: CompositeGPForecaster, path: Path, names: dict[str, Any], segment_size: int, horizon: Any
    ) -> None:
        self._model, self._path, self._names, self._horizon = model, path, names, horizon
        self._segment_size = segment_size
        self._parser = RowParser(model, names)
        self._waiting: list[Row] = []
        self._latest = _utc(model.last_)
        self._n_known, self._has_new_rows = 0, False

    def take(self, number: int, line: str) -> None:
        """Take in line `number`, or print why it is skipped."""
        try:
            row = self._parser.parse(line)
        except ValueError as error:
            _print_skipped(number, str(error))
            return
        if row is None:
            return
        if row.stamp > self._latest:
            self._append(row)
        elif self._has_new_rows:
            _print_skipped(number, f"{row.stamp} is not newer than {self._latest}")
        else:
            self._n_known += 1  # from before the checkpoint, read once more

    def finish(self) -> None:
        """Take in the rows that wait for their segment to be complete."""
        if self._waiting:
            self._update()

    def print_forecast(self) -> None:
        """Print the forecast as a line of JSON."""
        forecast = self._model.predict(self._horizon)
        forecast.index.name = "time"
        print(json.dumps({"latest": to_json(self._model.last_), "forecast": to_json(forecast)}), flush=True)

    def _append(self, row: Row) -> None:
        if not self._has_new_rows and self._n_known:
            note(f"the model has {self._n_known} of the rows already")
        self._has_new_rows, self._latest = True, row.stamp
        self._waiting.append(row)
        if len(self._waiting) >= self._segment_size:
            self._update()

    def _update(self) -> None:
        """Update the model with the rows that wait, write a checkpoint, and print the forecast."""
        rows, self._waiting = self._waiting, []
        values = pd.Series([row.value for row in rows], index=pd.DatetimeIndex([row.stamp for row in rows]))
        if not values.notna().any():
            return
        try:
            self._model.update(values, late="skip")
        except ValueError as error:
            print(f"skipped {len(rows)} row(s): {error}", file=sys.stderr)
            return
        self._model.save(self._path, **self._names)
        self.print_forecast()


def _print_skipped(number: int, reason: str) -> None:
    print(f"skipped line {number}: {reason}", file=sys.stderr)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _utc(stamp: pd.Timestamp) -> pd.Timestamp:
    return in_utc(pd.DatetimeIndex([stamp]))[0]
