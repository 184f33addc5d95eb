"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from compositegp.cli.output import UsageError


def _print_version(wanted: bool) -> None:
    if wanted:
        from compositegp import __version__

        print(f"compositegp {__version__}")
        raise typer.Exit


def _checked_jobs(jobs: int | None) -> int | None:
    if jobs == 0:
        raise UsageError("--jobs must be a number of processes, or -1 for every core; found 0.")
    return jobs


VersionFlag = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", help="Processes to use; -1 uses every core.", callback=_checked_jobs)
]
JobsOrThreads = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Processes to use; -1 uses every core. Without it, threads on every core.",
        callback=_checked_jobs,
    ),
]
# Every verb takes --json and --jobs, also where they change nothing, so that a script can give them to all.
UnusedJsonFlag = Annotated[bool, typer.Option("--json", hidden=True)]
UnusedJobs = Annotated[int, typer.Option("--jobs", hidden=True)]
TimeColumn = Annotated[str, typer.Option("--time", metavar="COLUMN", help="Column with the times.")]
LogFlag = Annotated[
    bool, typer.Option("--log", help="Model the logarithm of the target: predictions are never negative.")
]
SavedModel = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Save the model to this file, which holds no code.")
]
_CSV, _TIMES = "How CSV files are written", "How times are written"
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="Between cells, such as ; or tab.",
        rich_help_panel=_CSV,
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal sign: . or ,", rich_help_panel=_CSV)
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="Such as latin-1.", rich_help_panel=_CSV)
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--dayfirst/--monthfirst", help="01/02/2024 is 1 February, or 2 January.", rich_help_panel=_TIMES),
]
TimePattern = Annotated[
    str | None,
    typer.Option(
        "--time-format", metavar="FORMAT", help="As in strptime: '%d.%m.%y %H:%M'.", rich_help_panel=_TIMES
    ),
]

# Of the verbs that take in rows as they arrive.
StreamedModel = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model that forecast --save wrote; it is updated after each segment."),
]
SegmentRows = Annotated[
    int | None,
    typer.Option(
        "--segment", min=1, metavar="N", help="Rows to take in at a time; as many as the horizon has by default."
    ),
]
LearnFlag = Annotated[
    bool,
    typer.Option("--learn", help="Let new rows also teach the kernel: a running average over each seven horizons."),
]
OwnHorizon = Annotated[
    str | None,
    typer.Option("--horizon", metavar="LENGTH", help="How far to forecast; the model's own horizon by default."),
]
MaxGap = Annotated[
    str | None,
    typer.Option(
        "--max-gap",
        metavar="LENGTH",
        help="Rows that are further ahead of the row before are held back; 30 days or 1000 steps by default.",
    ),
]
FutureColumns = Annotated[
    Path | None,
    typer.Option(
        "--future",
        metavar="FILE",
        help="File with times and the model's further columns; read before each forecast.",
    ),
]
