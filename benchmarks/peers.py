"""compositegp beside its peers, in one unbroken run, one table: seconds, memory, accuracy and calibration.

    python benchmarks/peers.py --out benchmarks/results       # everything, nothing from an earlier run: an hour
    python benchmarks/peers.py --readme README.md --out benchmarks/results   # and its summary, between two marks there
    python benchmarks/peers.py --task satellite               # one task, printed
    python benchmarks/peers.py --only compositegp             # methods whose name begins so, printed

Peers: pip install 'compositegp[peers]'. Each method has a process of its own, which is ended with all that it started
when it passes the time limit. A method that has passed the time limit or the memory on a field is not tried on a larger
one.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import data
import known
import numpy as np
from competitors import PEERS, Task, missing, run, scores
from isolation import limit_memory, watch
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from timing import header

from compositegp.simulate import stationary_field

FIELDS = {f"field of {n:,}": n for n in (1_000, 8_000, 100_000, 1_000_000)}
TABLES = {"elevators": (1.5, None), "pol": (1.5, None), "satellite": (0.5, "linear")}  # smoothness, mean
SERIES = "series"
TASKS = [SERIES, *FIELDS, *TABLES]
EXACT_TO = 8_000  # observations, for exact Gaussian processes
HOPELESS = 1.5  # times the limit that a method would take, by its time on a smaller field, not to be tried
TESTS = 2_000
COLUMNS = {
    "fit": ".1f",
    "predict": ".1f",
    "memory": ".0f",
    "RMSE": ".4g",
    "log score": ".4g",
    "CRPS": ".4g",
    "coverage 50 %": ".3f",
    "coverage 95 %": ".3f",
}
INSTALL = "pip install 'compositegp[peers]'"
MARKS = "<!-- peers: begin -->", "<!-- peers: end -->"


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
    found = run(PEERS[method], task)
    total = time.perf_counter() - task.began
    return {**scores(found, split.y_test), "fit": task.fit_seconds, "predict": total - task.fit_seconds}


def attempt(name: str, method: str, limit: float, gigabytes: float) -> dict[str, float | str]:
    """The result of a method on a task, or why there is none."""
    if missing(method):
        return {"why": f"not installed: {INSTALL}"}
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
    lines = [
        f"### {name}\n",
        describe(name) + "\n",
        "| method | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    lines[2] = lines[2].replace("fit", "fit s").replace("predict", "predict s").replace("memory", "peak MB")
    lines[2] = lines[2].replace("log score", "NLPD")
    for method, result in found.items():
        if "why" in result:
            lines.append(f"| {method} | {result['why']} |" + " |" * (len(COLUMNS) - 1))
        else:
            cells = [format(result[column], spec) for column, spec in COLUMNS.items()]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" + better(found)


def better(found: dict) -> str:
    """Where a peer wins: a line for each number in which compositegp is not the best, in the digits of the table."""
    ours = next((result for method, result in found.items() if method.startswith("compositegp")), {"why": ""})
    peers = {
        method: result
        for method, result in found.items()
        if "why" not in result and not method.startswith("compositegp")
    }
    if "why" in ours or not peers:
        return ""
    lines = []
    for column in ("fit", "predict", "memory", "RMSE", "log score", "CRPS"):
        winner = min(peers, key=lambda method: np.nan_to_num(peers[method][column], nan=np.inf))
        spec = COLUMNS[column]
        if float(format(peers[winner][column], spec)) < float(format(ours[column], spec)):
            lines.append(f"- {column}: {winner} {peers[winner][column]:{spec}}, here {ours[column]:{spec}}")
    return "\nWhere a peer is better:\n\n" + "\n".join(lines) + "\n" if lines else ""


def summary(kept: dict) -> str:
    """All the tasks where everything is learned, a method to a line: seconds, RMSE, CRPS and coverage at 95 %."""
    names = [name for name in TASKS if name != SERIES and kept.get(name)]
    lines = ["| seconds, RMSE, CRPS, coverage | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method in PEERS:
        cells = []
        for name in names:
            found = kept[name].get(method, {"why": "—"})
            if "why" in found:
                cells.append("out of time" if found["why"].startswith("not done") else "—")
            else:
                took = found["fit"] + found["predict"]
                cells.append(
                    f"{took:.0f} s, {found['RMSE']:.4g}, {found['CRPS']:.4g}, {found['coverage 95 %']:.2f}"
                )
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def describe(name: str) -> str:
    if name == SERIES:
        return known.__doc__.strip().splitlines()[0]
    smoothness, mean = TABLES.get(name, (1.5, None))
    given = (
        f"Matérn {smoothness:g} with one length scale for each column and {'a ' + mean if mean else 'zero'} mean"
    )
    task = f"{field.__doc__} Learned, then {TESTS:,} predicted." if name in FIELDS else "Learned, then predicted."
    return f"{task} compositegp is given neither kernel nor mean, the other Gaussian processes {given}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, action="append", help="all if left out")
    parser.add_argument("--only", default="", help="methods whose name begins so")
    parser.add_argument("--limit", type=float, default=300, help="seconds that one method may take")
    parser.add_argument("--memory", type=float, default=20, help="GB that one process may take")
    parser.add_argument(
        "--out", type=Path, help="folder to write peers.md to: the whole run, all tasks and methods"
    )
    parser.add_argument("--readme", type=Path, help="file whose summary, between two marks, is replaced")
    parser.add_argument("--measure", nargs=2, metavar=("TASK", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure, arguments.memory)))
        return
    if arguments.out and (arguments.task or arguments.only):
        parser.error("--out is for a whole run: leave --task and --only out, so that no table mixes two runs.")
    kept: dict = {}
    heading = (
        f"{header('gpboost', 'gpytorch', 'torch')}. Each method in a process of its own, with all cores; memory is all "
        f"of it, workers included. Limit: {arguments.limit:.0f} s. One run, begun at {time.strftime('%H:%M')}."
    )
    print(heading, flush=True)
    for name in arguments.task or TASKS:
        found = kept.setdefault(name, {})
        if name in TABLES and load(name) is None:
            continue
        for method in known.METHODS if name == SERIES else PEERS:
            if method.startswith(arguments.only):
                why = reason_to_skip(name, method, kept, arguments.limit)
                found[method] = {"why": why} if why else attempt(name, method, arguments.limit, arguments.memory)
                print(f"{name}: {method}: {found[method]}", file=sys.stderr, flush=True)
        print("\n" + table(name, found), flush=True)
    if arguments.out:
        arguments.out.mkdir(exist_ok=True)
        tables = "\n".join(table(name, kept[name]) for name in TASKS if kept.get(name))
        title = f"# compositegp beside its peers\n\nPrinted by `make bench-peers`; the peers: `{INSTALL}`."
        (arguments.out / "peers.md").write_text(f"{title} {heading}\n\n{summary(kept)}\n{tables}")
    if arguments.readme:
        before, rest = arguments.readme.read_text().split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        arguments.readme.write_text(f"{before}{MARKS[0]}\n{heading}\n\n{summary(kept)}{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
