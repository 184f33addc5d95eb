"""The estimator beside its peers on real data: accuracy, calibration, seconds and memory, each in a process of its own.

    python benchmarks/estimator.py                      # everything that is installed
    python benchmarks/estimator.py --data satellite     # one data set
    python benchmarks/estimator.py --only compositegp   # methods whose name begins so
    python benchmarks/estimator.py --rows 1000 --only compositegp   # of 1,000 observations: whether all of them run

Peers: pip install 'compositegp[peers]'.
"""

import argparse
import json
import sys
import time

import data
import numpy as np
from competitors import COMPETITORS, INTERVAL_SCORE, Task, missing, run, scores
from isolation import watch
from timing import header

COLUMNS = ("RMSE", "MAE", "CRPS", "log score", "coverage 95 %", INTERVAL_SCORE)
DATA = {"elevators": (1.5, None), "pol": (1.5, None), "satellite": (0.5, "linear")}  # smoothness, mean


def load(name: str, rows: int | None = None) -> data.Split | None:
    """A data set, or as many observations of it, chosen at random."""
    split = data.satellite() if name == "satellite" else data.uci(name)
    if split is None or rows is None:
        return split
    rng = np.random.default_rng(0)
    train, test = (rng.permutation(len(y))[:rows] for y in (split.y, split.y_test))
    return data.Split(split.X[train], split.y[train], split.X_test[test], split.y_test[test])


def measure(name: str, method: str, rows: int | None = None) -> dict[str, float]:
    """Run one method on one data set in this process."""
    split = load(name, rows)
    assert split is not None
    task = Task(split.X, split.y, split.X_test, *DATA[name])
    found = run(COMPETITORS[method], task)
    total = time.perf_counter() - task.began
    return {**scores(found, split.y_test), "fit": task.fit_seconds, "predict": total - task.fit_seconds}


def table(name: str, only: str, limit: float, rows: int | None) -> None:
    split = load(name, rows)
    if split is None:
        return
    n, d = split.X.shape
    smoothness, mean = DATA[name]
    print(f"\n### {name}: {n:,} × {d} observations, {len(split.y_test):,} test points\n")
    print(f"Matérn {smoothness:g} with one length scale for each column, {mean or 'zero'} mean.\n")
    print("| method | " + " | ".join(COLUMNS) + " | fit s | predict s | peak MB |")
    print("|---" * (len(COLUMNS) + 4) + "|")
    for method in COMPETITORS:
        if not method.startswith(only):
            continue
        if missing(method):
            print(f"| {method} | not installed: pip install 'compositegp[peers]' |")
            continue
        given = [] if rows is None else ["--rows", str(rows)]
        done, peak = watch([sys.executable, __file__, "--measure", name, method, *given], limit)
        if done is None:
            print(f"| {method} | not done after {limit:.0f} s |", flush=True)
            continue
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            print(f"| {method} | failed: {reason[:100]} |", flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        cells = [f"{found[column]:.3f}" for column in COLUMNS]
        cells += [f"{found['fit']:.1f}", f"{found['predict']:.1f}", f"{peak:.0f}"]
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=DATA, action="append", help="data set; all if left out")
    parser.add_argument("--only", default="", help="methods whose name begins so")
    parser.add_argument("--limit", type=float, default=1200, help="seconds that one method may take")
    parser.add_argument("--rows", type=int, help="observations, and test points, that are taken; all if left out")
    parser.add_argument("--measure", nargs=2, metavar=("DATA", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure, arguments.rows)))
        return
    told = header("gpboost", "gpytorch", "torch")
    print(f"{told}. Each method in a process of its own; peak memory is all of it, workers included.")
    for name in arguments.data or DATA:
        table(name, arguments.only, arguments.limit, arguments.rows)


if __name__ == "__main__":
    main()
