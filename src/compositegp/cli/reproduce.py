"""compositegp reproduce: the paper's experiments, their figures and their claims."""

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from compositegp.cli.options import Jobs, JsonFlag
from compositegp.cli.output import CommandError, Output, UsageError
from compositegp.progress import ProgressBar

if TYPE_CHECKING:
    import pandas as pd

    from compositegp.paper import Experiment

EXAMPLES = ("compositegp reproduce all --out reproduction/", "compositegp reproduce timeseries")


def _experiment(module: str) -> Callable[..., "Experiment"]:
    """The experiment of a module of `compositegp.paper`, which is imported when it runs."""

    def run_experiment(out: Path, **options: Any) -> "Experiment":
        experiment: Experiment = importlib.import_module(f"compositegp.paper.{module}").run(out, **options)
        return experiment

    return run_experiment


EXPERIMENTS: dict[str, Callable[..., "Experiment"]] = {
    "learning": _experiment("hyperparameter_errors"),
    "analysis": _experiment("section_5"),
    "timeseries": _experiment("time_series"),
    "spatial": _experiment("spatial"),
    "nox": _experiment("nox"),
}


def run(
    experiment: Annotated[
        Literal["learning", "analysis", "timeseries", "spatial", "nox", "all"],
        typer.Argument(metavar="EXPERIMENT", help="learning, analysis, timeseries, spatial, nox or all."),
    ],
    days: Annotated[int, typer.Option(min=1, metavar="N", help="Days of the NOx study, spread evenly.")] = 364,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="The Stockholm file, for nox.")] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for figures, tables and the report.")] = Path(
        "reproduction"
    ),
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The verdicts.csv of an earlier run: fail if a verdict changed."),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="With --against: name the changes, and do not fail.")
    ] = False,
    as_json: JsonFlag = False,
    jobs: Jobs = -1,
) -> None:
    """Run the paper's experiments and compare its claims with what was found.

    With --against, every claim is named whose verdict is not that of an earlier run, and the command fails. Verdicts
    about seconds depend on the machine: these are named alone.
    """
    from joblib import cpu_count

    from compositegp.paper import VERDICT_COLUMNS, changed_verdicts, markdown, verdict_rows, write_csv
    from compositegp.storage import write_atomically

    if accept and against is None:
        raise UsageError("--accept needs --against.")
    earlier = None if against is None else _verdicts_of(against, VERDICT_COLUMNS)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None  # Windows has none
    out.mkdir(parents=True, exist_ok=True)
    options: dict[str, dict[str, Any]] = {"nox": {"days": days, "path": data}, "learning": {"n_jobs": jobs}}
    done = []
    for name in EXPERIMENTS if experiment == "all" else [experiment]:
        began = time.perf_counter()
        with ProgressBar(name) as progress:
            done.append(EXPERIMENTS[name](out, report=progress, **options.get(name, {})))
        done[-1].seconds = time.perf_counter() - began
    path = out / "reproduction.md"
    command = f"compositegp reproduce {experiment} --out {out}"
    write_atomically(path, markdown(done, command, cpu_count(), load).encode())
    claims = [(each.name, claim) for each in done for claim in each.claims]
    changes = [] if earlier is None else changed_verdicts(earlier, done)
    write_csv(out / "verdicts.csv", VERDICT_COLUMNS, verdict_rows(done))
    with Output(as_json) as output:
        for name, claim in claims:
            output.line(f"{name}: {claim.verdict}: {claim.full_text}: {claim.found}")
        for change in changes:
            output.line(f"changed{' (seconds)' if change.by_the_clock else ''}: {change}")
        output.line(f"\nreport: {path}")
        output.result("claims", [{"experiment": name, **vars(claim)} for name, claim in claims])
        output.result("changes", [change._asdict() for change in changes])
        output.result("seconds", {each.name: each.seconds for each in done})
        output.result("report", str(path))
    refused = [change for change in changes if not change.by_the_clock]
    if refused and not accept:
        raise CommandError(
            f"{len(refused)} verdict(s) are not those of {against}: {'; '.join(map(str, refused))}. If they are right, "
            f"run it again with --accept, or take {out / 'verdicts.csv'}."
        )


def _verdicts_of(path: Path, columns: tuple[str, ...]) -> "pd.DataFrame":
    """The verdicts of an earlier run."""
    import pandas as pd

    table = pd.read_csv(path)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise CommandError(f"{path} is no table of verdicts: it lacks {', '.join(missing)}.")
    return table
