"""compositegp beside its peers, one run, one table: seconds, memory, accuracy and calibration.

    python benchmarks/peers.py                                # everything that is installed: about two hours
    python benchmarks/peers.py --task satellite               # one task
    python benchmarks/peers.py --only compositegp             # methods whose name begins so
    python benchmarks/peers.py --out benchmarks/results       # keep the numbers, write a table of all that are kept

Peers: pip install 'compositegp[peers]'. A method that has passed the time limit or the memory on a field is not tried
on a larger one.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import data
import known
import numpy as np
from competitors import PEERS, Task, missing, run, scores
from isolation import limit_memory, watch
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from timing import machine

from compositegp.simulate import stationary_field

FIELDS = {f"field of {n:,}": n for n in (1_000, 8_000, 100_000, 1_000_000)}
TABLES = {"elevators": (1.5, None), "pol": (1.5, None), "satellite": (0.5, "linear")}  # smoothness, mean
SERIES = "series"
TASKS = [SERIES, *FIELDS, *TABLES]
EXACT_TO = 8_000  # observations, for exact Gaussian processes
HOPELESS = 1.5  # times the limit that a method would take, by its time on a smaller field, not to be tried
TESTS = 2_000
COLUMNS = {"RMSE": ".4g", "CRPS": ".4g", "coverage 95 %": ".3f", "fit": ".1f", "predict": ".1f", "memory": ".0f"}


def field(n: int) -> data.Split:
    """Matérn 3/2 on the unit square, noise of a tenth of its variance, on a grid with random holes to predict."""
    side = int(np.ceil(np.sqrt(n + TESTS)))
    kernel = Matern(0.1, nu=1.5) + WhiteKernel(0.1)
    y = stationary_field(kernel, (side, side), spacing=1 / side, random_state=0)[0].ravel()
    X = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2) / side
    rows = np.random.default_rng(1).permutation(side**2)
    train, test = rows[TESTS : TESTS + n], rows[:TESTS]
    return data.Split(X[train], y[train], X[test], y[test])


def load(name: str) -> data.Split | None:
    if name in FIELDS:
        return field(FIELDS[name])
    return data.satellite() if name == "satellite" else data.uci(name)


def measure(name: str, method: str, gigabytes: float) -> dict[str, float]:
    """Run one method on one task in this process."""
    limit_memory(gigabytes)
    if name == SERIES:
        return known.measure(method)
    split = load(name)
    assert split is not None
    task = Task(split.X, split.y, split.X_test, *TABLES.get(name, (1.5, None)))
    mean, std = run(PEERS[method], task)
    total = time.perf_counter() - task.began
    return {**scores(mean, std, split.y_test), "fit": task.fit_seconds, "predict": total - task.fit_seconds}


def attempt(name: str, method: str, limit: float, gigabytes: float) -> dict[str, float | str]:
    """The result of a method on a task, or why there is none."""
    if missing(method):
        return {"why": "not installed: pip install 'compositegp[peers]'"}
    command = [sys.executable, __file__, "--measure", name, method, "--memory", str(gigabytes)]
    done, peak = watch(command, limit)
    if done is None:
        return {"why": f"not done after {limit:.0f} s", "memory": peak}
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"why": f"failed: {reason[:110]}", "memory": peak}
    return {**json.loads(done.stdout.splitlines()[-1]), "memory": peak}


def reason_to_skip(name: str, method: str, kept: dict, limit: float) -> str | None:
    if method.endswith("exact") and name != SERIES and FIELDS.get(name, np.inf) > EXACT_TO:
        return f"not tried: more than {EXACT_TO:,} observations"
    smaller = {
        n: kept[other][method]
        for other, n in FIELDS.items()
        if n < FIELDS.get(name, 0) and method in kept.get(other, {})
    }
    if not smaller:
        return None
    n = max(smaller)
    if "why" in smaller[n]:
        return f"not tried: {smaller[n]['why'].removeprefix('not tried: ')} with {n:,}"
    if smaller[n]["fit"] * FIELDS[name] / n > HOPELESS * limit:  # no method takes less than in proportion
        return f"not tried: {smaller[n]['fit']:.0f} s with {n:,}"
    return None


def table(name: str, found: dict) -> str:
    lines = [f"### {name}\n", describe(name) + "\n", "| method | " + " | ".join(COLUMNS) + " |", "|---" * 7 + "|"]
    lines[2] = lines[2].replace("fit", "fit s").replace("predict", "predict s").replace("memory", "peak MB")
    for method, result in found.items():
        if "why" in result:
            lines.append(f"| {method} | {result['why']} | | | | | |")
        else:
            cells = [format(result[column], spec) for column, spec in COLUMNS.items()]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def summary(kept: dict) -> str:
    """All the tasks where everything is learned, a method to a line: seconds, RMSE and coverage of 95 % intervals."""
    names = [name for name in TASKS if name != SERIES and kept.get(name)]
    lines = ["| seconds, RMSE, coverage | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method in PEERS:
        cells = []
        for name in names:
            found = kept[name].get(method, {"why": "—"})
            if "why" in found:
                cells.append("over 600 s" if found["why"].startswith("not done") else "—")
            else:
                took = found["fit"] + found["predict"]
                cells.append(f"{took:.0f} s, {found['RMSE']:.4g}, {found['coverage 95 %']:.2f}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def describe(name: str) -> str:
    if name == SERIES:
        return known.__doc__.strip().splitlines()[0]
    if name in FIELDS:
        return f"{field.__doc__} Learned, then {TESTS:,} predicted."
    smoothness, mean = TABLES[name]
    trend = mean or "zero"
    return f"Matérn {smoothness:g} with one length scale for each column, {trend} mean; learned, then predicted."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, action="append", help="all if left out")
    parser.add_argument("--only", default="", help="methods whose name begins so")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one method may take")
    parser.add_argument("--memory", type=float, default=20, help="GB that one process may take")
    parser.add_argument("--out", type=Path, help="folder to keep peers.json in, and to write peers.md to")
    parser.add_argument("--write", action="store_true", help="write the table from what is kept, and run nothing")
    parser.add_argument("--measure", nargs=2, metavar=("TASK", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure, arguments.memory)))
        return
    store = arguments.out / "peers.json" if arguments.out else None
    kept = json.loads(store.read_text()) if store and store.exists() else {}
    heading = (
        f"{machine()}. Each method in a process of its own, with all cores; memory is all of it, workers included."
    )
    print(heading, flush=True)
    for name in () if arguments.write else arguments.task or TASKS:
        found = kept.setdefault(name, {})
        if name in ("satellite", "elevators", "pol") and load(name) is None:
            continue
        for method in known.METHODS if name == SERIES else PEERS:
            if method.startswith(arguments.only):
                why = reason_to_skip(name, method, kept, arguments.limit)
                found[method] = {"why": why} if why else attempt(name, method, arguments.limit, arguments.memory)
                print(f"{name}: {method}: {found[method]}", file=sys.stderr, flush=True)
                if store:
                    store.parent.mkdir(exist_ok=True)
                    temporary = store.with_suffix(".part")
                    temporary.write_text(json.dumps(kept, indent=1) + "\n")
                    os.replace(temporary, store)
        print("\n" + table(name, found), flush=True)
    if arguments.out:
        tables = "\n".join(table(name, kept[name]) for name in TASKS if kept.get(name))
        (arguments.out / "peers.md").write_text(
            f"# compositegp beside its peers\n\nPrinted by `make bench-peers`. {heading}\n\n{summary(kept)}\n{tables}"
        )


if __name__ == "__main__":
    main()
