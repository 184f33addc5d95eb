"""compositegp stream: a forecast after every segment of new rows; no row is lost or counted twice."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from compositegp.cli.options import (
    DayFirst,
    Decimal,
    Encoding,
    FutureColumns,
    LearnFlag,
    MaxGap,
    OwnHorizon,
    SegmentRows,
    Separator,
    StreamedModel,
    TimePattern,
    UnusedJobs,
    UnusedJsonFlag,
)
from compositegp.cli.output import UsageError
from compositegp.cli.stream_input import StopSignals

EXAMPLES = (
    "compositegp stream nox.cgp new.csv --follow > forecasts.jsonl",
    "tail -f sensor.log | compositegp stream nox.cgp --segment 24",
)


def run(
    model: StreamedModel,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="CSV file with new rows; standard input by default.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Wait for more rows, also when another file takes its name, until a signal."),
    ] = False,
    segment: SegmentRows = None,
    horizon: OwnHorizon = None,
    learn: LearnFlag = False,
    max_gap: MaxGap = None,
    future: FutureColumns = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    dayfirst: DayFirst = None,
    time_format: TimePattern = None,
    as_json: UnusedJsonFlag = False,
    jobs: UnusedJobs = -1,
) -> None:
    """Forecast while new rows arrive.

    Each forecast is printed as a line of JSON, the first one before any row is read. Rows that the model has already
    are not counted again, so that a process that was killed can be started again with the same file.
    """
    # Signals are heard before the imports, which take a second or two: a pipe may hold rows already.
    with StopSignals() as signals:
        from compositegp.cli.stream_run import StreamOptions, run_stream

        if follow and file is None:
            raise UsageError("--follow is for a file; standard input is read until it ends.")
        options = StreamOptions(
            segment, horizon, learn, max_gap, future, separator, decimal, encoding, dayfirst, time_format
        )
        run_stream(model, file, follow=follow, options=options, signals=signals)
        if signals.received == signal.SIGINT:
            raise KeyboardInterrupt
