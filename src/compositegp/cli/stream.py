"""compositegp stream: a forecast after every segment of new rows; no row is lost or counted twice."""

from pathlib import Path
from typing import Annotated

import typer

from compositegp.cli.options import UnusedJobs, UnusedJsonFlag
from compositegp.cli.output import CommandError, UsageError

EXAMPLES = (
    "compositegp stream nox.cgp new.csv --follow > forecasts.jsonl",
    "tail -f sensor.log | compositegp stream nox.cgp --segment 24",
)

_MOST_STEPS = 100_000  # of a horizon that a model file asks for


def run(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Model that forecast --save wrote; it is updated after each segment."),
    ],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="CSV file with new rows; standard input by default.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="At the end of the file wait for more rows, until a signal.")
    ] = False,
    segment: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Rows to take in at a time; as many as the horizon has by default."),
    ] = None,
    horizon: Annotated[
        str | None, typer.Option(metavar="LENGTH", help="How far to forecast; the model's own horizon by default.")
    ] = None,
    as_json: UnusedJsonFlag = False,
    jobs: UnusedJobs = -1,
) -> None:
    """Forecast while new rows arrive.

    Each forecast is printed as a line of JSON, the first one before any row is read. Rows that the model has already
    are not counted again, so that a process that was killed can be started again with the same file.
    """
    if not model.exists():
        raise CommandError(f"{model} does not exist. Make it with compositegp forecast --save.")
    if follow and file is None:
        raise UsageError("--follow is for a file; standard input is read until it ends.")
    if file is not None and not follow and not file.exists():
        raise CommandError(f"{file} does not exist. Check the path.")
    from compositegp.cli.stream_input import StopReading, StopSignals, read_lines
    from compositegp.cli.stream_session import StreamSession
    from compositegp.forecasting import CompositeGPForecaster
    from compositegp.storage import damaged

    forecaster, names = CompositeGPForecaster.load_with(model)
    length = horizon or names.get("horizon", 1)
    try:
        steps = forecaster.timeline_.steps(length)
    except ValueError as error:
        raise (damaged(model, error) if horizon is None else error) from error
    if horizon is None and steps > _MOST_STEPS:
        raise CommandError(f"{model} asks for forecasts of {steps} steps. If you want that, give --horizon.")
    session = StreamSession(forecaster, model, names, segment or steps, length)
    with StopSignals() as signals:
        session.print_forecast()  # the last run may have ended before it printed this one
        try:
            for number, line in enumerate(read_lines(file, follow, signals), start=1):
                session.take(number, line)
        except StopReading:
            pass
        session.finish()
