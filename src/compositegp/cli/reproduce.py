"""compositegp reproduce: the paper's experiments, their figures and their claims."""

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from compositegp.cli.options import Jobs, JsonFlag
from compositegp.cli.output import Output
from compositegp.progress import ProgressBar

if TYPE_CHECKING:
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
    as_json: JsonFlag = False,
    jobs: Jobs = -1,
) -> None:
    """Run the paper's experiments and compare its claims with what was found."""
    from joblib import cpu_count

    from compositegp.paper import VERDICT_COLUMNS, markdown, verdict_rows, write_csv
    from compositegp.storage import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    options: dict[str, dict[str, Any]] = {"nox": {"days": days, "path": data}, "learning": {"n_jobs": jobs}}
    done = []
    for name in EXPERIMENTS if experiment == "all" else [experiment]:
        began = time.perf_counter()
        with ProgressBar(name) as progress:
            done.append(EXPERIMENTS[name](out, report=progress, **options.get(name, {})))
        done[-1].seconds = time.perf_counter() - began
    path = out / "reproduction.md"
    write_atomically(path, markdown(done, f"compositegp reproduce {experiment} --out {out}", cpu_count()).encode())
    claims = [(each.name, claim) for each in done for claim in each.claims]
    write_csv(out / "verdicts.csv", VERDICT_COLUMNS, verdict_rows(done))
    with Output(as_json) as output:
        for name, claim in claims:
            output.line(f"{name}: {claim.verdict}: {claim.text}: {claim.found}")
        output.line(f"\nreport: {path}")
        output.result("claims", [{"experiment": name, **vars(claim)} for name, claim in claims])
        output.result("seconds", {each.name: each.seconds for each in done})
        output.result("report", str(path))
