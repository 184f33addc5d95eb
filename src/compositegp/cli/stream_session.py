"""A model that rows update, and the forecasts that follow from it."""

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compositegp.cli.output import CommandError, note, to_json
from compositegp.cli.stream_input import Line
from compositegp.cli.stream_rows import Row, RowParser
from compositegp.forecasting import CompositeGPForecaster, in_utc
from compositegp.storage import damaged

_LATEST = "latest"  # name under which a checkpoint keeps the time of the latest row, observed or not


Publish = Callable[[CompositeGPForecaster, pd.DataFrame | None], None]
"""What is done with a forecast, or with None where there is none."""


def print_forecast(model: CompositeGPForecaster, forecast: pd.DataFrame | None) -> None:
    """Print a forecast as a line of JSON."""
    print(json.dumps({"latest": to_json(model.last_), "forecast": to_json(forecast)}), flush=True)


class StreamSession:
    """A model that takes in rows, a segment at a time: after each it writes a checkpoint and publishes a forecast.

    Parameters
    ----------
    model : CompositeGPForecaster
    path : Path
        File of the model, which each checkpoint replaces.
    names : dict
        What was saved with the model, which each checkpoint keeps.
    parser : RowParser
    segment_size : int
        Rows to take in at a time.
    horizon : str or int
    learn : bool
        Whether rows also teach the kernel's hyper-parameters.
    max_gap : pandas Timedelta
        A row that is later than the row before it by more than this is held back.
    read_future : callable, optional
        Called without arguments, it returns the further columns over the horizon, if the model has any.
    publish : callable
        Called with the model and its forecast: None while the further columns over the horizon are not there.
    """

    def __init__(
        self,
        model: CompositeGPForecaster,
        path: Path,
        names: dict[str, Any],
        parser: RowParser,
        *,
        segment_size: int,
        horizon: Any,
        learn: bool = False,
        max_gap: pd.Timedelta,
        read_future: Callable[[], pd.DataFrame] | None = None,
        publish: "Publish",
    ) -> None:
        self._model, self._path, self._names, self._horizon = model, path, dict(names), horizon
        self._learn = learn
        self._parser, self._segment_size, self._max_gap = parser, segment_size, max_gap
        self._read_future, self._publish = read_future, publish
        self._columns = list(model.observations_.columns[1:])
        self._waiting: list[Row] = []
        self._latest = _latest_row(model, names, path)
        self._latest_step = self._step(in_utc(pd.DatetimeIndex([model.last_]))[0])  # that has a value
        self._n_taken = self._n_known = self._n_refused = self._n_off_grid = 0
        self._n_known_here = 0  # rows at the beginning of this file that the model has
        self._is_past_known = False
        self._first_reason = ""

    def take(self, line: Line, *, at_once: bool = False) -> None:
        """Take in a line, or print why it is skipped.

        Parameters
        ----------
        line : Line
        at_once : bool
            Wait with the update, whatever the size of a segment, until `finish`.
        """
        if line.number == 1:
            self._is_past_known, self._n_known_here = False, 0
        try:
            row = self._parser.parse(line)
            if row is not None:
                self._append(row)
        except ValueError as error:
            self._refuse(f"line {line.number}", str(error))
        if len(self._waiting) >= self._segment_size and not at_once:
            self._update()

    def finish(self) -> None:
        """Take in the rows that wait for their segment to be complete, and say how many rows there were."""
        if self._waiting:
            self._update()
        nothing_new = (
            f"; none is newer than {self._shown(self._latest)}" if self._n_known and not self._n_taken else ""
        )
        note(
            f"rows: {self._n_taken} taken in, {self._n_known} known already, {self._n_refused} refused{nothing_new}"
        )
        if self._n_off_grid:
            step = _in_words(self._model.timeline_.step)
            note(
                f"{self._n_off_grid} of the rows are between the time steps of the model, which has one every {step}: "
                "they are taken at the nearest step"
            )
        if self._n_refused and not self._n_taken and not self._n_known:
            raise CommandError(
                f"none of {self._n_refused} row(s) could be taken in. The first was refused: {self._first_reason}."
            )

    def publish_forecast(self) -> None:
        """Publish the forecast; there is none while the further columns over the horizon are not there."""
        found = None
        try:
            future = self._read_future() if self._read_future is not None else None
        except CommandError as error:
            print(f"no forecast after {self._model.last_}: {error}", file=sys.stderr)
        else:
            found = self._model.predict(self._horizon, X=future)
            found.index.name = "time"
        self._publish(self._model, found)

    def _append(self, row: Row) -> None:
        if row.stamp <= self._latest:
            if self._is_past_known or self._is_late(row):
                raise ValueError(f"{self._shown(row.stamp)} is not newer than {self._shown(self._latest)}")
            self._n_known += 1  # from before the checkpoint, or from the file before, read once more
            self._n_known_here += 1
            return
        gap = row.stamp - self._latest
        if gap > self._max_gap:
            raise ValueError(
                f"{self._shown(row.stamp)} is {_in_words(gap)} after the row before it. It is held back; rows are "
                f"taken in up to {_in_words(self._max_gap)} ahead (--max-gap)"
            )
        if not math.isnan(row.value):
            step = self._step(row.stamp)
            if step <= self._latest_step:
                raise ValueError(
                    f"{self._shown(row.stamp)} is in the time step of a row before it, and the model takes one value "
                    f"every {_in_words(self._model.timeline_.step)}"
                )
            self._latest_step = step
        if not self._is_past_known and self._n_known_here:
            note(f"the model has {self._n_known_here} of the rows already")
        self._is_past_known, self._latest = True, row.stamp
        self._n_off_grid += bool(self._model.timeline_.are_off_grid(pd.DatetimeIndex([row.stamp]))[0])
        self._waiting.append(row)

    def _is_late(self, row: Row) -> bool:
        """Whether a row has a value for a time at which the model has none, though it would still know of one."""
        return not math.isnan(row.value) and not self._model.knows(self._times([row]))[0]

    def _times(self, rows: Sequence[Row]) -> pd.DatetimeIndex:
        """Times of rows as the series has them: in its zone, or without one."""
        return pd.DatetimeIndex([row.stamp for row in rows]).tz_convert(self._model.timeline_.zone)

    def _step(self, stamp: pd.Timestamp) -> int:
        """Number of the step that a time is taken at."""
        return round(float(self._model.timeline_.places(pd.DatetimeIndex([stamp]))[0]))

    def _shown(self, stamp: pd.Timestamp) -> pd.Timestamp:
        """A time as the series has it."""
        return stamp.tz_convert(self._model.timeline_.zone)

    def _refuse(self, what: str, reason: str, count: int = 1) -> None:
        print(f"skipped {what}: {reason}", file=sys.stderr)
        self._n_refused += count
        self._first_reason = self._first_reason or reason

    def _update(self) -> None:
        """Update the model with the rows that wait, write a checkpoint, and publish the forecast."""
        rows, self._waiting = self._waiting, []
        index = self._times(rows)
        values = pd.Series([row.value for row in rows], index=index)
        extra = pd.DataFrame([row.extra for row in rows], index=index, columns=self._columns)
        is_observed = bool(values.notna().any())
        if is_observed:
            try:
                columns = extra if self._columns else None
                self._model.update(values, columns, late="skip", max_gap=pd.Timedelta.max, learn=self._learn)
            except ValueError as error:
                self._refuse(f"{len(rows)} row(s)", str(error), len(rows))
                return
        self._n_taken += len(rows)
        self._names[_LATEST] = rows[-1].stamp.isoformat()
        self._model.save(self._path, **self._names)
        if is_observed:
            self.publish_forecast()


def _latest_row(model: CompositeGPForecaster, names: dict[str, Any], path: Path) -> pd.Timestamp:
    """Time of the latest row that a model has, in UTC, whether it was observed or not."""
    last = in_utc(pd.DatetimeIndex([model.last_]))[0]
    kept = names.get(_LATEST)
    if kept is None:
        return last
    try:
        stamp = pd.to_datetime(str(kept), format="ISO8601", utc=True)
    except ValueError as error:
        raise damaged(path, error) from error
    return max(last, stamp)


def _in_words(length: pd.Timedelta) -> str:
    """A duration in days, if it has at least two of them, else as pandas writes it."""
    days = length / pd.Timedelta(days=1)
    return f"{days:.6g} days" if days >= 2 else str(length).removeprefix("0 days ")
