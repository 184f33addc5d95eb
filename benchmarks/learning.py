"""Learning: a pass against bare LAPACK, two processes against one, growth with N, and real tables.

    python benchmarks/learning.py                                         # some minutes on two idle cores
    python benchmarks/learning.py --only pass                             # one part: pass, processes, growth, tables
    python benchmarks/learning.py --write benchmarks/results/learning.md  # everything, into a file too

Some numbers have a goal. The last lines say which goals are missed, and by how much.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from data import uci
from scipy.linalg.lapack import dpotrf, dpotri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from timing import best, header

from compositegp import Composite, CompositeLikelihood, conditioning_sets, learn, segment
from compositegp.backend import blas_threads_for
from compositegp.composite import Observations, total_score

NO_COEFFICIENTS = np.zeros((0, 1))  # of a mean that is zero
MOST_OF_A_PASS = 2.0  # times potrf + potri that a likelihood with its gradient may take
LEAST_OF_PROCESSES = 1.6  # times as fast as one process that two should be
MOST_OF_GROWTH = 2.0  # times as long as the shortest that the longest of the times to learn may be


class Results:
    """What is printed, as lines, and which goals it meets."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.goals = 0
        self.missed: list[str] = []

    def say(self, line: str) -> None:
        """Print a line, and keep it."""
        print(line, flush=True)
        self.lines.append(line)

    def goal(self, sentence: str, ratio: float, *, most: float = np.inf, least: float = -np.inf) -> None:
        """Compare a ratio, in the digits that are printed, with its goal; the sentence has {} where it stands."""
        self.goals += 1
        if not least <= round(ratio, 2) <= most:
            bound = f"at most {most:g}" if np.isfinite(most) else f"at least {least:g}"
            self.missed.append(f"{sentence.format(f'{ratio:.2f} ×')}; the goal is {bound}")

    def verdict(self) -> None:
        """Say which goals are missed."""
        self.say(f"\nGoals: {self.goals - len(self.missed)} of {self.goals} are met.")
        for line in self.missed:
            self.say(f"  missed: {line}")


def a_pass_against_lapack(results):
    results.say("\nLog likelihood and gradient against potrf + potri of the same matrices (8 columns, one core)")
    for size in (256, 512, 1024):
        count = 16384 // size
        X, y, kernel = field(count * size, 8)
        composite = Composite.marginal(segment(X, size))
        data = Observations.checked(kernel, X, y, mean=None, noise_variance=None)
        matrices = [kernel(X[part]) for stack in composite.stacks for part in stack.indices]

        def bare(matrices=matrices):
            for K in matrices:
                dpotri(dpotrf(K.T, lower=0, clean=0)[0], lower=0, overwrite_c=1)

        with blas_threads_for(0):
            whole = best(lambda d=data, c=composite: total_score(d, c, NO_COEFFICIENTS, n_jobs=1))
            least = best(bare)
            informed = best(lambda d=data, c=composite: total_score(d, c, NO_COEFFICIENTS, probes=2, n_jobs=1))
        results.say(
            f"  N_k = {size:4d}: {whole / count * 1e3:7.2f} ms a segment, LAPACK {least / count * 1e3:7.2f} ms: "
            f"{whole / least:.2f} ×; with the Fisher information {informed / least:.2f} ×"
        )
        results.goal(f"a pass over segments of {size} takes {{}} LAPACK's time", whole / least, most=MOST_OF_A_PASS)


def processes(results):
    X, y, kernel = field(96 * 512, 8)
    composite = Composite.marginal(segment(X, 512))
    data = Observations.checked(kernel, X, y, mean=None, noise_variance=None)
    total_score(data, composite, NO_COEFFICIENTS, n_jobs=2)  # starts the processes
    one, two = (best(lambda n=n: total_score(data, composite, NO_COEFFICIENTS, n_jobs=n), 3) for n in (1, 2))
    results.say(f"\n96 segments of 512: one process {one:.2f} s, two {two:.2f} s: {one / two:.2f} × as fast")
    results.goal("two processes are {} as fast as one", one / two, least=LEAST_OF_PROCESSES)


def growth(results):
    results.say("\nTime to learn to 3 % standard errors, 2 columns, segments of 256, against N")
    rng = np.random.default_rng(0)
    truth = 2.0 * Matern([0.02, 0.04], nu=1.5) + WhiteKernel(0.1)
    taken = []
    for n in (10_000, 100_000, 1_000_000):
        X = rng.uniform(0, np.sqrt(n / 10_000), size=(n, 2))
        start = time.perf_counter()
        segments = segment(X, 256)
        cutting = time.perf_counter() - start
        y = np.empty(n)
        for part in segments:  # segments are drawn independently, each an exact Gaussian process
            y[part] = np.linalg.cholesky(truth(X[part])) @ rng.standard_normal(len(part))
        start = time.perf_counter()
        result = learn(
            1.0 * Matern([1.0, 1.0], nu=1.5) + WhiteKernel(),
            X,
            y,
            segments,
            learning=CompositeLikelihood(tolerance=0.03),
            conditioning_size=0,
        )
        seconds = time.perf_counter() - start
        taken.append(seconds)
        worst = np.abs((result.theta - truth.theta) / result.theta_standard_errors).max()
        results.say(
            f"  N = {n:9,d}: {seconds:6.2f} s ({cutting:5.2f} s to segment), {result.n_points:7,d} points read, "
            f"largest standard error {result.theta_standard_errors.max():.3f}, off by at most {worst:.1f} of them"
        )
    results.goal("the longest time to learn is {} the shortest", max(taken) / min(taken), most=MOST_OF_GROWTH)


def tables(results):
    results.say("\nReal tables, Matérn 3/2 with a length scale per column, segments of 256, one process")
    for name in ("elevators", "pol"):
        split = uci(name)
        if split is None:
            continue
        X, y = split.X, split.y
        kernel = 1.0 * Matern(np.ones(X.shape[1]), nu=1.5) + WhiteKernel()
        segments = segment(X, 256)
        results.say(
            f"  {name}: {X.shape[0]:,d} × {X.shape[1]}; log likelihood a point of its own terms, and of each segment "
            "given its 256 nearest earlier points"
        )
        for label, options in (
            ("fisher_average", {"learning": "fisher_average"}),
            ("composite_likelihood, marginal", {"conditioning_size": 0}),
            ("composite_likelihood, given 256", {"conditioning_size": 256}),
        ):
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # irrelevant columns end on their bounds
                result = learn(kernel, X, y, segments, **options)
            seconds = time.perf_counter() - start
            given = conditioning_sets(X, segments, 256, kernel=result.kernel)
            data = Observations.checked(result.kernel, X, y, mean=None, noise_variance=None)
            common = total_score(data, Composite.conditional(segments, given), NO_COEFFICIENTS)
            results.say(
                f"    {label:32s} {result.log_likelihood / result.n_points:8.4f} "
                f"{common.log_likelihood / len(y):8.4f}   {seconds:6.1f} s, {result.n_points:6,d} points"
            )


def field(n, d):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(n, d)), rng.normal(size=n), 1.0 * Matern([1.0] * d, nu=1.5) + WhiteKernel(0.1)


PARTS = {"pass": a_pass_against_lapack, "processes": processes, "growth": growth, "tables": tables}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; all if left out. Repeatable")
    parser.add_argument("--write", type=Path, help="a file that gets all that is printed")
    arguments = parser.parse_args()
    if arguments.write and arguments.only:
        parser.error("--write is for a whole run: leave --only out, so that no page mixes two runs.")
    results = Results()
    results.say(header())
    for name in arguments.only or PARTS:
        PARTS[name](results)
    results.verdict()
    if arguments.write:
        command = f"python benchmarks/learning.py --write {arguments.write}"
        text = "\n".join(results.lines)
        arguments.write.write_text(f"# Learning\n\nPrinted by `{command}`.\n\n```text\n{text}\n```\n")


if __name__ == "__main__":
    main()
