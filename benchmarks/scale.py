"""How time and memory grow: with cores, with N, and with the rows of a partitioned table.

python benchmarks/scale.py cores         # processes and threads, and whether their results are the same bits
python benchmarks/scale.py memory        # peak memory of fit and predict, X in a memory-mapped file
python benchmarks/scale.py partitions    # Dask: seconds and bytes moved, beside the model of docs/scale.md
python benchmarks/scale.py model         # the model alone, also for more workers: nothing is measured
python benchmarks/scale.py rates         # the rates of one core that the model needs, in half a minute
python benchmarks/scale.py profile       # where the time goes: satellite (if there), and a table of a million rows
"""

import argparse
import cProfile
import json
import pstats
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import data as real
import joblib
import numpy as np
from isolation import watch
from partition_model import COLUMNS, ROWS, TESTS, Work, model_seconds, print_model, print_rates
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from timing import best, header

from compositegp import Composite, CompositeGPRegressor, CompositeSum, Nearest, nearest, segment
from compositegp.composite import Observations, total_score

NO_COEFFICIENTS = np.zeros((0, 1))  # of a mean that is zero
SIZES = (100_000, 1_000_000, 10_000_000)
MOST_BY_COMPOSITE = 10_000_000  # rows


def table(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random waves in d columns, with noise: n rows."""
    frequencies, phases = np.random.default_rng(1).normal(size=(d, 100)) * 3, np.linspace(0, 6, 100)
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    waves = [np.cos(part @ frequencies + phases).sum(axis=1) / 10 for part in np.array_split(X, 1 + n // 10_000)]
    return X, np.concatenate(waves) + 0.3 * rng.normal(size=n)


def cores() -> None:
    X, y = table(32_768, 4)
    kernel = 1.0 * Matern(np.ones(4), nu=1.5) + WhiteKernel(0.1)
    data = Observations.checked(kernel, X, y, mean=None, noise_variance=None)
    composite = Composite.marginal(segment(X, 512))
    Z = table(1_000, 4, 2)[0]
    work = {
        "likelihood and gradient, 64 segments of 512": lambda n_jobs: (
            total_score(data, composite, NO_COEFFICIENTS, n_jobs=n_jobs).gradient
        ),
        "1,000 test points by the nearest 512": lambda n_jobs: (
            nearest(kernel, X, y, Z, n_neighbors=512, group_size=1, n_jobs=n_jobs).mean
        ),
    }
    print("\n| work | one core | 2 processes | 2 threads | same bits |\n|---|---|---|---|---|")
    for name, run in work.items():
        alone, seconds = run(1), [best(lambda run=run: run(1), 3)]
        same = True
        for backend in ("loky", "threading"):
            with joblib.parallel_config(backend=backend):
                same = same and np.array_equal(run(2), alone)
                seconds.append(best(lambda run=run: run(2), 3))
        cells = [f"{seconds[0]:.2f} s", *(f"{s:.2f} s, {seconds[0] / s:.2f} ×" for s in seconds[1:])]
        print(f"| {name} | " + " | ".join(cells) + f" | {'yes' if same else 'NO'} |", flush=True)


def memory() -> None:
    print(f"\nX (n × 8) and y in memory-mapped files; default estimator, one process, {TESTS:,} test points\n")
    print("| n | X | read to learn | fit s | processor s | predict s | peak | a row, beyond the peak with 1,000 |")
    print("|---|---|---|---|---|---|---|---|")
    base = None
    for n in (1_000, *SIZES):
        done, _ = watch([sys.executable, __file__, "memory", "--measure", str(n)], 3600)
        found = json.loads(done.stdout.splitlines()[-1])
        base = base or found["peak"]
        each = (found["peak"] - base) * 2**20 / n
        cells = [
            f"{n * 64 / 2**20:.0f} MB",
            f"{found['read']:,}",
            f"{found['fit']:.1f}",
            f"{found['processor']:.1f}",
            f"{found['predict']:.1f}",
            f"{found['peak']:.0f} MB",
        ]
        print(f"| {n:,} | " + " | ".join(cells) + f" | {each:.0f} bytes |", flush=True)


def measure_memory(n: int) -> None:
    import resource

    with tempfile.TemporaryDirectory() as folder:
        # Written by another process, so that its memory is not counted.
        code = (
            f"import scale, numpy as np; [np.save(f'{folder}/{{k}}', a) for k, a in zip('Xy', scale.table({n}, 8))]"
        )
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
        X, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy")
        model, began, started = CompositeGPRegressor(), time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        fitted, processor = time.perf_counter(), time.process_time()
        model.predict(table(TESTS, 8, 2)[0], return_std=True)
        done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    read = model.learning_result_.n_points
    print(
        json.dumps(
            {"fit": fitted - began, "processor": processor - started, "predict": done - fitted}
            | {"peak": peak, "read": read}
        )
    )


def partitions(sizes: tuple[int, ...]) -> None:
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from compositegp.distributed import DistributedGPRegressor

    rows, d, tests, workers = ROWS, COLUMNS, TESTS, 2
    kernel = ConstantKernel() * Matern(np.ones(d), nu=1.5) + WhiteKernel()
    told = f"segments of 512; {workers} worker processes; {tests:,} test points"
    print(f"\nParquet files of {rows:,} × {d} rows; {told}\n")
    print("| rows | what | seconds | by the model | MB moved between processes |\n|---|---|---|---|---|")
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        names = [f"x{column}" for column in range(d)]
        for number in range(max(sizes) // rows):
            X, y = table(rows, d, number)
            # Rows of a partition are near each other: a slab of the first column.
            X[:, 0] = (X[:, 0] + number) / (max(sizes) // rows)
            pd.DataFrame({**dict(zip(names, X.T, strict=True)), "y": y}).to_parquet(
                f"{folder}/{number:05d}.parquet"
            )

        def moved() -> float:
            sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
            return sum(sent.values()) / 2**20

        for n in sizes:
            frame = dd.read_parquet(sorted(str(path) for path in Path(folder).glob("*.parquet"))[: n // rows])
            Z = table(tests, d, 10**6)[0]
            Z[:, 0] *= n / max(sizes)
            options = {"segment_size": 512, "conditioning_size": 0, "prediction": Nearest(256)}
            model = DistributedGPRegressor(kernel, **options)
            steps = {
                "read": lambda frame=frame, options=options: (  # its partitions are dropped at once
                    DistributedGPRegressor(kernel, learning=None, **options).fit(frame, target="y")
                ),
                "read, learn": lambda model=model, frame=frame: model.fit(frame, target="y"),
                "predict by the nearest 256": lambda model=model, Z=Z: model.predict(Z, return_std=True),
                "predict by the composite": lambda model=model, Z=Z: model.set_params(
                    prediction=CompositeSum()
                ).predict(Z),
            }
            if n > MOST_BY_COMPOSITE:
                del steps["predict by the composite"]  # in proportion to the rows: ten minutes and more
            for what, step in steps.items():
                before, began = moved(), time.perf_counter()
                step()
                took = time.perf_counter() - began
                told = by_the_model(what, Work(n, n // rows, workers), getattr(model, "learning_result_", None))
                print(f"| {n:,} | {what} | {took:.1f} | {told:.1f} | {moved() - before:.1f} |", flush=True)
            result = model.learning_result_
            steps_taken = f"segments read: {result.n_segments} of {n // 512 + 1}; passes: {len(result.history)}"
            print(f"| {n:,} | ({steps_taken}) | | | |")
            del model, steps
            client.restart()


def by_the_model(what: str, work: Work, learned: Any) -> float:
    """Seconds of a step by the model, with as many passes over as many segments as learning took."""
    given = {} if learned is None else {"steps": len(learned.history), "segments": learned.n_segments}
    found = model_seconds(work, **given)
    return sum(found[part] for part in what.split(", "))


def profile() -> None:
    split = real.satellite()
    tasks = {}
    if split is not None:
        kernel = ConstantKernel() * Matern(np.ones(2), nu=0.5) + WhiteKernel()
        tasks["satellite"] = (CompositeGPRegressor(kernel, mean="linear"), split.X, split.y, split.X_test)
    tasks["table of 1,000,000 × 8"] = (CompositeGPRegressor(), *table(1_000_000, 8), table(TESTS, 8, 2)[0])
    for name, (model, X, y, Z) in tasks.items():
        for what, run in (
            ("fit", lambda m=model, X=X, y=y: m.fit(X, y)),
            ("predict", lambda m=model, Z=Z: m.predict(Z, True)),
        ):
            profiler, began = cProfile.Profile(), time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                profiler.runcall(run)
            total = time.perf_counter() - began
            print(f"\n{name}, {what}: {total:.1f} s on one core\n")
            shares(pstats.Stats(profiler), total)


def shares(stats: pstats.Stats, total: float) -> None:
    """The dozen functions that most of the time is spent in, themselves."""
    own = sorted(((row[2], name) for name, row in stats.stats.items()), reverse=True)[:12]
    for seconds, (file, _, function) in own:
        print(f"  {seconds / total:5.1%}  {seconds:6.1f} s  {Path(file).stem}.{function}"[:110])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cores", "memory", "partitions", "model", "rates", "profile"))
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000], help="of partitions"
    )
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure_memory(arguments.measure)
        return
    if arguments.what == "model":
        print_model()
        return
    print(header("dask", "distributed"))
    if arguments.what == "partitions":
        partitions(tuple(arguments.rows))
    elif arguments.what == "rates":
        print_rates(ConstantKernel() * Matern(np.ones(COLUMNS), nu=1.5) + WhiteKernel(0.1), table)
    else:
        {"cores": cores, "memory": memory, "profile": profile}[arguments.what]()


if __name__ == "__main__":
    main()
