"""Run the attack: ``python -m attack``."""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from attack.cases import Budget
from attack.figures import Figures, as_table

BEGIN, END = "<!-- figures of make attack -->", "<!-- end of the figures -->"
"""Marks in a Markdown file between which the figures are written."""
_GRACE = 300.0  # seconds after its time in which a part has to end: its last case, and what it has to prepare
_MEMORY = 6 * 2**30  # bytes that a part may use


class Part(NamedTuple):
    """A part of the attack.

    Attributes
    ----------
    run : callable
        Of a budget and the rows of the table.
    share : float
        Of the seconds of one core.
    quick : int
        Cases in a quick run.
    """

    run: Callable[[Budget, dict[str, Figures]], None]
    share: float
    quick: int


def parts() -> dict[str, Part]:
    """The parts by their names."""
    from attack import coverage, fits, invariance, kills, model_files, parallel, streams, tables

    return {
        "damaged": Part(model_files.damaged_files, 0.04, 40),
        "changed": Part(model_files.changed_files, 0.22, 100),
        "tables": Part(tables.tables, 0.22, 12),
        "rows": Part(tables.stream_rows, 0.06, 12),
        "fits": Part(fits.fits, 0.26, 15),
        "invariance": Part(invariance.invariance, 0.18, 6),
        "kills": Part(kills.kills, 0.26, 12),
        "streams": Part(streams.streams, 0.14, 1),
        "parallel": Part(parallel.parallel, 0.1, 1),
        "coverage": Part(coverage.coverage, 0.52, 1),
    }


def main() -> int:
    """Run what is asked for; the exit code is 1 if a figure that should be zero is not."""
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="time for all parts together, on two cores")
    parser.add_argument("--quick", action="store_true", help="a few cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", action="append", choices=list(parts()), help="only this part; may be repeated")
    parser.add_argument("--case", type=int, help="only this case of the part, to see a failure again")
    parser.add_argument("--jobs", type=int, default=2, help="parts to run at the same time")
    parser.add_argument("--out", type=Path, help="Markdown file for the figures, such as docs/trust.md")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # one part, figures as JSON
    options = parser.parse_args()
    chosen = {name: part for name, part in parts().items() if options.part is None or name in options.part}
    if options.alone:
        return _run_alone(chosen, options)
    began = time.monotonic()
    rows: dict[str, Figures] = {}
    # Longest first, so that the last one to end is a short one.
    order = sorted(chosen, key=lambda name: -chosen[name].share)
    total = sum(part.share for part in chosen.values())
    with ThreadPoolExecutor(options.jobs) as pool:
        seconds = {name: options.jobs * options.seconds * chosen[name].share / total for name in order}
        for found in pool.map(lambda name: _run_apart(name, seconds[name], options), order):
            rows |= found
    text = report(rows, options.seed, time.monotonic() - began)
    print(text)
    for figures in rows.values():
        for failure in figures.failures:
            print(failure)
    if options.out is not None:
        write_report(options.out, text)
    return 1 if any(figures.n_bad for figures in rows.values()) else 0


def report(rows: dict[str, Figures], seed: int, seconds: float) -> str:
    """All the figures in Markdown."""
    from attack.coverage import as_coverage_table

    tables = [as_table(rows)]
    covered = [
        figures.measures for name, figures in rows.items() if name.startswith("coverage") and figures.measures
    ]
    killed = [figures.measures for name, figures in rows.items() if name == "stream killed" and figures.measures]
    tables += [
        "Kills by where they were: "
        + ", ".join(f"{point} {int(count)}" for point, (count,) in points.items())
        + "."
        for points in killed
    ]
    tables += [as_coverage_table(measures) for measures in covered]
    return "\n\n".join([f"Seed {seed}, {seconds:.0f} seconds.", *tables])


def write_report(path: Path, text: str) -> None:
    """Write the figures to a file: between its marks, if it has them, else as all of it."""
    before, begin, rest = path.read_text().partition(BEGIN) if path.exists() else ("", "", "")
    _, end, after = rest.partition(END)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}" if begin and end else f"{text}\n")


def _run_alone(chosen: dict[str, Part], options: argparse.Namespace) -> int:
    """Run one part in this process, and print its figures as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    ((_, part),) = chosen.items()
    rows: dict[str, Figures] = {}
    most = part.quick if options.quick else None
    part.run(Budget(options.seed, options.seconds, most, options.case), rows)
    print(json.dumps({name: figures.to_json() for name, figures in rows.items()}))
    return 0


def _run_apart(name: str, seconds: float, options: argparse.Namespace) -> dict[str, Figures]:
    """Run a part in a process of its own: if it hangs or dies, that is a figure too."""
    arguments = ["--alone", "--part", name, "--seconds", f"{seconds:.0f}", "--seed", str(options.seed)]
    arguments += ["--quick"] if options.quick else []
    arguments += [] if options.case is None else ["--case", str(options.case)]
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    rows: dict[str, Figures] = {}
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "attack", *arguments],
            capture_output=True,
            text=True,
            env=os.environ | one_thread,
            timeout=seconds + _GRACE,
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        rows[name] = Figures()
        rows[name].add("hangs", f"--part {name}: the part did not end")
        return rows
    except (IndexError, ValueError):
        rows[name] = Figures()
        rows[name].add("tracebacks", f"--part {name}: ended with {done.returncode}\n{done.stderr[-2000:]}")
        return rows
    for row, values in found.items():
        rows[row] = Figures()
        rows[row].merge(values)
    print(f"{name}: done", file=sys.stderr)
    return rows


if __name__ == "__main__":
    sys.exit(main())
