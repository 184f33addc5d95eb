"""compositegp reproduce: the paper's experiments."""

import argparse
from collections.abc import Callable
from pathlib import Path

from compositegp.cli.output import Output, ProgressBar
from compositegp.paper import Experiment, hyperparameter_errors, markdown, nox, spatial, time_series
from compositegp.storage import write_atomically

EXPERIMENTS: dict[str, Callable[..., Experiment]] = {
    "timeseries": time_series.run,
    "spatial": spatial.run,
    "learning": hyperparameter_errors.run,
    "nox": nox.run,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("what", choices=(*EXPERIMENTS, "all"), help="the experiment")
    parser.add_argument("--days", type=int, default=364, help="days of the NOx study, evenly chosen")
    parser.add_argument("--data", type=Path, help="the Stockholm file, for nox")
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="folder for figures, tables and report"
    )


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Run experiments and write their report."""
    names = list(EXPERIMENTS) if arguments.what == "all" else [arguments.what]
    arguments.out.mkdir(parents=True, exist_ok=True)
    done = []
    for name in names:
        options = {"days": arguments.days, "path": arguments.data} if name == "nox" else {}
        done.append(EXPERIMENTS[name](arguments.out, report=ProgressBar(name), **options))
    text = markdown(done, f"compositegp reproduce {arguments.what} --out {arguments.out}")
    path = arguments.out / "reproduction.md"
    write_atomically(path, text.encode())
    for experiment in done:
        for claim in experiment.claims:
            verdict = "agrees" if claim.holds else "differs"
            output.say(f"{experiment.name}: {verdict}: {claim.text}: {claim.found}")
    output.say(f"\nreport: {path}")
    output.result("claims", [{"experiment": e.name, **vars(claim)} for e in done for claim in e.claims])
    output.result("report", str(path))
