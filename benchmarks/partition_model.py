"""What partitions should cost, by counting: the model of docs/scale.md, and the rates of one core that it needs.

`python benchmarks/scale.py rates` measures the rates, and `python benchmarks/scale.py model` prints the seconds and the
megabytes that follow from those in `RATES`. `python benchmarks/scale.py partitions` prints the seconds beside those
that it measures.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp import Composite, factorize, nearest, segment
from compositegp.backend import blas_threads_for
from compositegp.composite import Observations, Spreads, segments_of_tree, total_score

SEGMENT, NEIGHBORS, GROUP, TESTS, COLUMNS = 512, 256, 128, 1_000, 4
ROWS = 100_000  # of a partition
SEGMENTS, STEPS = 18, 12  # that learning reads, and steps over them: `partitions` prints how many there were
NO_COEFFICIENTS = np.zeros((0, 1))  # of a mean that is zero


class Rates(NamedTuple):
    """Seconds of one core.

    Attributes
    ----------
    read : float
        For a row: from a Parquet file to arrays and the tree of segments, of which none is read.
    learn : float
        For a segment in a step: the score and the Fisher information by one probe.
    tree : float
        For a row: the search tree of its partition.
    point : float
        For a test point: its neighbors in one partition, and an exact GP on them.
    factor : float
        For a segment: the factor of its covariance.
    evidence : float
        For a segment and a group of test points: its evidence about them.
    """

    read: float
    learn: float
    tree: float
    point: float
    factor: float
    evidence: float


# As `python benchmarks/scale.py rates` printed them on an AMD EPYC whose two cores had other work too, 2026-11-18.
# Further runs differed by up to a third.
RATES = Rates(read=1.8e-7, learn=0.018, tree=3.1e-7, point=0.0019, factor=0.0061, evidence=0.0041)


class Work(NamedTuple):
    """Rows, partitions and workers."""

    rows: int
    partitions: int
    workers: int


LADDER = (
    Work(1_000_000, 10, 2),
    Work(10_000_000, 100, 2),
    Work(100_000_000, 1_000, 100),
)


def model_seconds(
    work: Work, *, steps: int = STEPS, segments: int = SEGMENTS, rates: Rates = RATES
) -> dict[str, float]:
    """Seconds of each step by the model; what Dask itself takes is not in it.

    A partition has one worker at a time, so that no more workers than partitions are at work. In a step of learning a
    segment has one worker.
    """
    n_segments, groups = work.rows / SEGMENT, -(-TESTS // GROUP)
    workers = min(work.workers, work.partitions)
    return {
        "read": rates.read * work.rows / workers,
        "learn": rates.learn * steps * max(1, segments / workers),
        "predict by the nearest 256": (rates.tree * work.rows + rates.point * TESTS) / workers,
        "predict by the composite": n_segments * (rates.factor + rates.evidence * groups) / workers,
    }


def megabytes(work: Work, *, steps: int = STEPS, coefficients: int = 0) -> dict[str, float]:
    """Megabytes that move between processes, at most: for neighbors, one partition that is near to all test points."""
    p, q, groups = COLUMNS + 2, coefficients, -(-TESTS // GROUP)
    numbers = {
        "read": 0,
        "learn": steps * work.partitions * (p**2 + p + (q + 1) ** 2),
        "predict by the nearest 256": TESTS * NEIGHBORS * (COLUMNS + 2),
        "predict by the composite": work.partitions * groups * (GROUP + q + 1) ** 2,
    }
    return {what: 8 * count / 2**20 for what, count in numbers.items()}


def print_model() -> None:
    """What follows from RATES, for several sizes."""
    given = ", ".join(f"{name} {value:g}" for name, value in RATES._asdict().items())
    print(
        f"Seconds of one core: {given}. Learning: {STEPS} passes over {SEGMENTS} segments. {TESTS:,} test points.\n"
    )
    print(
        "| rows | partitions | workers | what | seconds by the model | MB by the model |\n|---|---|---|---|---|---|"
    )
    for work in LADDER:
        moved = megabytes(work)
        for what, value in model_seconds(work).items():
            size = f"{work.rows:,} | {work.partitions:,} | {work.workers}"
            print(f"| {size} | {what} | {_short(value)} | {_short(moved[what])} |")


def _short(value: float) -> str:
    """A number with two digits, or with all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def print_rates(kernel: Kernel, table: Callable[..., tuple[np.ndarray, np.ndarray]]) -> None:
    """Measure the rates on one core, each by the fastest of some calls."""
    with blas_threads_for(0):
        found = measured(kernel, table)
    print("\n| rate | seconds | in the model |\n|---|---|---|")
    for name, value in found._asdict().items():
        print(f"| {name} | {value:.2g} | {getattr(RATES, name):g} |")


def measured(kernel: Kernel, table: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Rates:
    """Rates of one core of this machine; `table` draws rows."""
    import pandas as pd

    X, y = table(ROWS, COLUMNS)
    Z = table(TESTS, COLUMNS, 2)[0]
    few = X[: 16 * SEGMENT], y[: 16 * SEGMENT]
    composite = Composite.marginal(segment(few[0], SEGMENT))
    count = len(composite.terms)
    data = Observations.checked(kernel, *few, mean=None, noise_variance=None)
    factored = factorize(kernel, *few, composite)
    names = [f"x{column}" for column in range(COLUMNS)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.parquet"
        pd.DataFrame({**dict(zip(names, X.T, strict=True)), "y": y}).to_parquet(file)

        def read() -> object:
            points = np.ascontiguousarray(pd.read_parquet(file)[names].to_numpy())
            return segments_of_tree(points, SEGMENT, Spreads.of(points))

        reading = least(read)
    tree = least(lambda: KDTree(X, balanced_tree=False))
    alone = least(lambda: nearest(kernel, X, y, Z, n_neighbors=NEIGHBORS, group_size=1, n_jobs=1))
    return Rates(
        read=reading / ROWS,
        learn=least(lambda: total_score(data, composite, NO_COEFFICIENTS, probes=1, n_jobs=1)) / count,
        tree=tree / ROWS,
        point=(alone - tree) / TESTS,
        factor=least(lambda: factorize(kernel, *few, composite)) / count,
        evidence=least(lambda: factored.posterior(Z[:GROUP])) / count,
    )


def least(function: Callable[[], object], repeats: int = 5) -> float:
    """Processor seconds of the fastest of several calls: other programs on the machine hardly change them."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        found.append(time.process_time() - began)
    return min(found)
