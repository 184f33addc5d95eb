"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer


def _print_version(wanted: bool) -> None:
    if wanted:
        from compositegp import __version__

        print(f"compositegp {__version__}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", help="Processes to use; -1 uses every core.")]
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
