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


def _checked_jobs(jobs: int) -> int:
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
