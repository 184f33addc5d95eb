"""Seconds of the default estimator on two cores: one command, on an idle machine.

    python benchmarks/speed.py                             # everything
    python benchmarks/speed.py --task satellite "1,000 × 3"

Each task runs in its own process with two threads. Wall and processor seconds are given for fit and predict (with error
bars), then the scores, the time of the choice of a kernel and of calibration as parts of the fit, and for the tasks
marked so the ratio of a fit without a kernel to one with the kernel that it chose.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise

import data as real
import numpy as np
from scale import table
from timing import header

CORES = 2
TASKS = ("1,000 × 3", "table of 36,000 × 8", "satellite", "table of 1,000,000 × 8")
TESTS = {"1,000 × 3": 1_000, "table of 36,000 × 8": 4_000, "table of 1,000,000 × 8": 0}
RATIOS = ("1,000 × 3", "table of 36,000 × 8", "satellite")  # whose fit is repeated with the kernel that was chosen
LEAST_REPEATED = 5.0  # a task that takes less is run twice, and the second counts


def load(task: str) -> real.Split | None:
    """Training and test data of a task; None where they are not found."""
    if task == "satellite":
        return real.satellite()
    if task == "1,000 × 3":
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 10, size=(2_000, 3))
        y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=2_000)
        return real.Split(X[:1_000], y[:1_000], X[1_000:], y[1_000:])
    n = int(task.split()[2].replace(",", ""))
    return real.Split(*table(n, 8), *table(max(TESTS[task], 1), 8, 2))


def measure(task: str) -> dict[str, float | str]:
    """One task in this process."""
    from compositegp import CompositeGPRegressor
    from compositegp.prediction import nearest

    split = load(task)
    if split is None:
        return {}
    spent = {"calibration": 0.0}

    def timed(function):
        def run(*arguments, **options):
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent["calibration"] += time.perf_counter() - began

        return run

    nearest.learn_errors = timed(nearest.learn_errors)
    nearest.ExactPredictor.tune = timed(nearest.ExactPredictor.tune)  # with few data
    X_test, y_test = split.X_test[: TESTS.get(task)], split.y_test[: TESTS.get(task)]
    for _ in range(2):
        spent["calibration"] = 0.0
        marks = [(time.perf_counter(), time.process_time())]
        model = CompositeGPRegressor().fit(split.X, split.y)
        marks.append((time.perf_counter(), time.process_time()))
        found = model.predict_distribution(X_test) if len(X_test) else None
        marks.append((time.perf_counter(), time.process_time()))
        if marks[2][0] - marks[0][0] > LEAST_REPEATED:
            break
    fit, predict = (tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(marks))
    compared = model.kernel_comparison_
    result: dict[str, float | str] = {
        "fit": fit[0],
        "predict": predict[0],
        "processor": fit[1] + predict[1],
        "comparison": 0.0 if compared is None else compared.seconds,
        "calibration": spent["calibration"],
        "kernel": "" if compared is None else compared.best.name,
    }
    if found is not None:
        result["rmse"] = float(np.sqrt(np.mean((found.mean - y_test) ** 2)))
        result["nlpd"] = float(found.log_score(y_test).mean())
    if task in RATIOS and compared is not None:
        again = CompositeGPRegressor(compared.best.kernel, mean="constant")
        began = time.perf_counter()
        again.fit(split.X, split.y)
        result["ratio"] = fit[0] / (time.perf_counter() - began)
    return result


def environment() -> dict[str, str]:
    """Two cores, and as many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(CORES))}


def child(*arguments: str, **environ: str) -> str:
    """What a process on two cores prints."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(), **environ},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    ).stdout


def imports() -> float:
    """Seconds of the import beyond scikit-learn's own: the least of three runs, of compiled code."""
    first = "import time; import sklearn.base, sklearn.gaussian_process, sklearn.utils.validation, scipy.stats\n"
    ours = "t = time.perf_counter(); from compositegp import CompositeGPRegressor; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as folder:
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        return min(float(child("-c", first + ours, **compiled)) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=TASKS)
    parser.add_argument("--measure", choices=TASKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(arguments.measure)))
        return
    print(f"{header()}; {CORES} threads\n")
    print(f"import beyond scikit-learn's own: {imports():.2f} s\n")
    heads = (
        "fit s",
        "predict s",
        "total s",
        "processor s",
        "RMSE",
        "NLPD",
        "kernels s",
        "calibration s",
    )
    print("| task | " + " | ".join(heads) + " | fit over that of the chosen kernel | chosen |")
    print("|---" * (len(heads) + 3) + "|")
    for task in arguments.task:
        lines = child(__file__, "--measure", task).strip().splitlines()
        found = json.loads(lines[-1])
        if not found:
            print(f"| {task} | {lines[0].strip()} |")
            continue
        total = found["fit"] + found["predict"]
        numbers = [found["fit"], found["predict"], total, found["processor"]]
        scores = [f"{found[name]:.4f}" if name in found else "" for name in ("rmse", "nlpd")]
        ends = [f"{found['comparison']:.2f}", f"{found['calibration']:.2f}"]
        ratio = f"{found['ratio']:.2f}" if "ratio" in found else ""
        cells = [task, *(f"{number:.2f}" for number in numbers), *scores, *ends, ratio, found["kernel"]]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
