"""compositegp serve: a local page with the forecast, which follows new rows."""

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
from compositegp.cli.output import note, require_packages
from compositegp.cli.stream_input import StopSignals

EXAMPLES = (
    "compositegp serve nox.cgp --follow new.csv",
    "compositegp serve nox.cgp --follow new.csv --port 9000 --segment 1",
)


def run(
    model: StreamedModel,
    follow: Annotated[
        Path, typer.Option(metavar="FILE", help="CSV file with new rows, which grows; it may not exist yet.")
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at; this machine alone by default.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen at; 0 takes one that is free.")
    ] = 8000,
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
    """Show a forecast on a local page while new rows arrive.

    The page has the history, the forecast and its bands. /forecast.json has the same for programs, and /healthz says
    whether rows are being followed. Rows are taken in as by compositegp stream, with the same promises.
    """
    require_packages("fastapi", "uvicorn", extra="serve")
    with StopSignals() as signals:
        from compositegp.cli.live_page import LivePage
        from compositegp.cli.stream_run import StreamOptions, run_stream

        options = StreamOptions(
            segment, horizon, learn, max_gap, future, separator, decimal, encoding, dayfirst, time_format
        )
        with LivePage(host, port, title=model.stem) as page:
            note(f"the page is at {page.url}")
            run_stream(model, follow, follow=True, options=options, signals=signals, publish=page.publish)
        if signals.received == signal.SIGINT:
            raise KeyboardInterrupt
