"""What stream and serve have in common: a saved model that takes in rows as they arrive."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from compositegp.cli.output import CommandError
from compositegp.cli.stream_input import StopSignals, read_lines

if TYPE_CHECKING:
    from compositegp.cli.stream_session import Publish


class StreamOptions(NamedTuple):
    """Options of the verbs that take in rows; the names are those on the command line."""

    segment: int | None = None
    horizon: str | None = None
    learn: bool = False
    max_gap: str | None = None
    future: Path | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    dayfirst: bool | None = None
    time_format: str | None = None


def run_stream(
    model: Path,
    file: Path | None,
    *,
    follow: bool,
    options: StreamOptions,
    signals: StopSignals,
    publish: "Publish | None" = None,
) -> None:
    """Take in rows until they end or a signal arrives, with a lock on the model and a checkpoint after each segment.

    Parameters
    ----------
    model : Path
    file : Path or None
        None is standard input.
    follow : bool
        Wait for more rows at the end of the file.
    options : StreamOptions
    signals : StopSignals
    publish : callable, optional
        Called with the model and its forecast (None where there is none) at the start and after each segment; by
        default the forecast is printed as a line of JSON.
    """
    from compositegp.cli.text_format import TextFormat
    from compositegp.cli.time_columns import TimeFormat

    text_format = TextFormat.of_options(options.separator, options.decimal, options.encoding)
    if not model.exists():
        raise CommandError(f"{model} does not exist. Make it with compositegp forecast --save.")
    if file is not None and file.is_dir():
        raise CommandError(f"{file} is a folder. Give a CSV file.")
    for path in (None if follow else file, options.future):
        if path is not None and not path.exists():
            raise CommandError(f"{path} does not exist. Check the path.")
    from compositegp.cli.resources import check_output_file
    from compositegp.cli.stream_opening import open_session
    from compositegp.storage import locked

    check_output_file(model, "MODEL", [file, options.future])
    with locked(model):
        opened = open_session(
            model,
            text_format,
            TimeFormat(options.time_format, options.dayfirst),
            segment_size=options.segment,
            horizon=options.horizon,
            learn=options.learn,
            max_gap=options.max_gap,
            future=options.future,
            publish=publish,
        )
        session = opened.session
        session.publish_forecast()  # the last run may have ended before it published this one
        for line in read_lines(file, follow, opened.encoding, signals):
            session.take(line, at_once=signals.received is not None)
        session.finish()
