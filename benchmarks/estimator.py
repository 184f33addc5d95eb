"""The estimator beside its peers on real data: accuracy, calibration, seconds and memory, each in a process of its own.

    python benchmarks/estimator.py                      # everything that is installed
    python benchmarks/estimator.py --data satellite     # one data set
    python benchmarks/estimator.py --only compositegp   # methods whose name begins so

Peers: pip install 'compositegp[peers]'.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import data
from competitors import COMPETITORS, REQUIRES, Task, run
from scores import scores
from timing import machine

COLUMNS = ("RMSE", "MAE", "NLPD", "CRPS", "interval", "coverage")
DATA = {"elevators": (1.5, None), "pol": (1.5, None), "satellite": (0.5, "linear")}  # smoothness, mean


def load(name: str) -> data.Split | None:
    return data.satellite() if name == "satellite" else data.uci(name)


def measure(name: str, method: str) -> dict[str, float]:
    """Run one method on one data set in this process."""
    split = load(name)
    assert split is not None
    task = Task(split.X, split.y, split.X_test, *DATA[name])
    mean, std = run(method, task)
    total = time.perf_counter() - task.began
    return {**scores(mean, std, split.y_test), "fit": task.fit_seconds, "predict": total - task.fit_seconds}


def watch(command: list[str], limit: float) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    """Run a command; return it when it is done, or None past the limit, and the peak memory of it and its children."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began, peak = time.perf_counter(), 0.0
    while process.poll() is None:
        peak = max(peak, family_memory(process.pid))
        if time.perf_counter() - began > limit:
            process.kill()
            process.communicate()
            return None, peak
        time.sleep(0.2)
    out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err), peak


def family_memory(ancestor: int) -> float:
    """Memory in MB, each shared page counted once, of a process and all that it started; 0 where /proc is not there."""
    parents, total = {}, 0.0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
    family, growing = {ancestor}, True
    while growing:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        growing = bool(more)
    for pid in family:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024
    return total


def table(name: str, only: str, limit: float) -> None:
    split = load(name)
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
        needed = REQUIRES.get(method)
        if needed and importlib.util.find_spec(needed) is None:
            print(f"| {method} | not installed: pip install 'compositegp[peers]' |")
            continue
        done, peak = watch([sys.executable, __file__, "--measure", name, method], limit)
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
    parser.add_argument("--measure", nargs=2, metavar=("DATA", "METHOD"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        return
    print(f"{machine()}. Each method in a process of its own; peak memory is all of it, workers included.")
    for name in arguments.data or DATA:
        table(name, arguments.only, arguments.limit)


if __name__ == "__main__":
    main()
