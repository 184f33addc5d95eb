"""The start of compositegp stream: the saved model, and how its rows are written."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compositegp.cli.output import CommandError, UsageError
from compositegp.cli.series_files import read_future_columns
from compositegp.cli.stream_rows import RowParser
from compositegp.cli.stream_session import Publish, StreamSession, print_forecast
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import TimeFormat
from compositegp.forecasting import CompositeGPForecaster, Timeline, in_utc
from compositegp.storage import Fields, damaged

_MOST_STEPS = 100_000  # of a horizon that a model file asks for
_TEXTS = ("time", "target", "separator", "decimal", "encoding", "time_pattern")  # that are stored with a model


class OpenedSession(NamedTuple):
    """A session, and the encoding of its lines."""

    session: StreamSession
    encoding: str | None


def open_session(
    path: Path,
    text_format: TextFormat,
    time_format: TimeFormat,
    *,
    segment_size: int | None = None,
    horizon: str | None = None,
    learn: bool = False,
    max_gap: str | None = None,
    future: Path | None = None,
    publish: Publish | None = None,
) -> OpenedSession:
    """Open a saved model for new rows.

    Parameters
    ----------
    path : Path
        Of the model.
    text_format, time_format
        How rows are written, as far as it is given; the rest is as in the file that the model was made from.
    segment_size, horizon, learn, max_gap, future
        As the options of the command.
    publish : callable, optional
        As in `StreamSession`.

    Returns
    -------
    OpenedSession
    """
    model, names = CompositeGPForecaster.load_with(path)
    stored = _Stored.of(names, path)
    length = horizon or stored.horizon
    try:
        steps = model.timeline_.steps(length)
    except ValueError as error:
        raise (damaged(path, error) if horizon is None else error) from error
    if horizon is None and steps > _MOST_STEPS:
        raise CommandError(f"{path} asks for forecasts of {steps} steps. If you want that, give --horizon.")
    columns = list(model.observations_.columns[1:])
    if columns and future is None:
        raise UsageError(
            f"{path} has the further column(s) {', '.join(map(repr, columns))}. Give --future: a file with times and "
            "those columns over the horizon."
        )
    if time_format.pattern is None:
        day_first = stored.times.day_first if time_format.day_first is None else time_format.day_first
        time_format = TimeFormat(stored.times.pattern, day_first)
    written = TextFormat(
        text_format.separator or stored.text.separator,
        text_format.decimal or stored.text.decimal,
        text_format.encoding or stored.text.encoding,
    )
    parser = RowParser(
        stored.time,
        stored.target,
        columns,
        written,
        time_format,
        may_choose_separator=text_format.separator is None,
        timeline=model.timeline_,
        local=model.timezone is not None,
        transform=model.target_transform_,
    )
    read_future: Callable[[], pd.DataFrame] | None = None
    if columns and future is not None:
        read_future = partial(_future_columns, model, future, stored.time, columns, steps, text_format, time_format)
    session = StreamSession(
        model,
        path,
        names,
        parser,
        segment_size=segment_size or steps,
        horizon=length,
        learn=learn,
        max_gap=longest_gap(max_gap, model.timeline_),
        read_future=read_future,
        publish=publish or print_forecast,
    )
    return OpenedSession(session, written.encoding)


class _Stored(NamedTuple):
    """What forecast --save stored with a model."""

    time: str
    target: str
    horizon: str | int
    text: TextFormat
    times: TimeFormat

    @classmethod
    def of(cls, names: dict[str, Any], path: Path) -> "_Stored":
        """Take and check the values."""
        try:
            values = Fields(names, (), names)
            texts = {name: None if values[name] is None else values.text(name) for name in _TEXTS}
            text = TextFormat.of_options(texts["separator"], texts["decimal"], texts["encoding"])
            day_first = None if values["day_first"] is None else values.truth("day_first")
            time, target = texts["time"] or "time", texts["target"] or "value"
            return cls(time, target, names.get("horizon", 1), text, TimeFormat(texts["time_pattern"], day_first))
        except (ValueError, UsageError) as error:
            raise damaged(path, error) from error


def longest_gap(text: str | None, timeline: Timeline) -> pd.Timedelta:
    """How far a row may be ahead of the row before it.

    Parameters
    ----------
    text : str or None
        A duration, or a number of steps; by default 30 days, or 1000 steps if they are longer.
    timeline : Timeline

    Returns
    -------
    pandas Timedelta

    Examples
    --------
    >>> days = Timeline(pd.Timestamp("2024", tz="UTC"), pd.Timedelta(days=1), None)
    >>> longest_gap("48h", days), longest_gap(None, days)
    (Timedelta('2 days 00:00:00'), Timedelta('1000 days 00:00:00'))
    """
    if text is None:
        return timeline.longest_gap
    try:
        gap = int(text) * timeline.step if text.strip().isdigit() else pd.Timedelta(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--max-gap must be a duration such as 30D, or a number of steps; found {text!r}."
        ) from error
    if not gap > pd.Timedelta(0):  # also where it is NaT
        raise UsageError(f"--max-gap must be longer than nothing; found {text!r}.")
    return gap


def _future_columns(
    model: CompositeGPForecaster,
    path: Path,
    time: str,
    columns: list[str],
    steps: int,
    text_format: TextFormat,
    time_format: TimeFormat,
) -> pd.DataFrame:
    """The further columns over the horizon after the latest observation, by their times."""
    timeline = model.timeline_
    places = timeline.places(in_utc(pd.DatetimeIndex([model.last_]))) + 1.0 + np.arange(steps)
    return read_future_columns(
        path,
        time,
        columns,
        places,
        timeline,
        text_format,
        time_format,
        by_time=True,
        local=model.timezone is not None,
    )
