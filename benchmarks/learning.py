"""Learning: a pass against bare LAPACK, two processes against one, growth with N, and real tables.

python benchmarks/learning.py
"""

import time
import warnings

import numpy as np
from data import uci
from scipy.linalg.lapack import dpotrf, dpotri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from timing import best, header, no_options

from compositegp import Composite, CompositeLikelihood, conditioning_sets, learn, segment
from compositegp.backend import blas_threads_for
from compositegp.composite import Observations, total_score

NO_COEFFICIENTS = np.zeros((0, 1))  # of a mean that is zero


def a_pass_against_lapack():
    print("\nLog likelihood and gradient against potrf + potri of the same matrices (8 columns, one core)")
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
        print(
            f"  N_k = {size:4d}: {whole / count * 1e3:7.2f} ms a segment, LAPACK {least / count * 1e3:7.2f} ms: "
            f"{whole / least:.2f} ×; with the Fisher information {informed / least:.2f} ×"
        )


def processes():
    X, y, kernel = field(96 * 512, 8)
    composite = Composite.marginal(segment(X, 512))
    data = Observations.checked(kernel, X, y, mean=None, noise_variance=None)
    total_score(data, composite, NO_COEFFICIENTS, n_jobs=2)  # starts the processes
    one, two = (best(lambda n=n: total_score(data, composite, NO_COEFFICIENTS, n_jobs=n), 3) for n in (1, 2))
    print(f"\n96 segments of 512: one process {one:.2f} s, two {two:.2f} s: {one / two:.2f} × as fast")


def growth():
    print("\nTime to learn to 3 % standard errors, 2 columns, segments of 256, against N")
    rng = np.random.default_rng(0)
    truth = 2.0 * Matern([0.02, 0.04], nu=1.5) + WhiteKernel(0.1)
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
        worst = np.abs((result.theta - truth.theta) / result.theta_standard_errors).max()
        print(
            f"  N = {n:9,d}: {seconds:6.2f} s ({cutting:5.2f} s to segment), {result.n_points:7,d} points read, "
            f"largest standard error {result.theta_standard_errors.max():.3f}, off by at most {worst:.1f} of them"
        )


def tables():
    print("\nReal tables, Matérn 3/2 with a length scale per column, segments of 256, one process")
    for name in ("elevators", "pol"):
        split = uci(name)
        if split is None:
            continue
        X, y = split.X, split.y
        kernel = 1.0 * Matern(np.ones(X.shape[1]), nu=1.5) + WhiteKernel()
        segments = segment(X, 256)
        print(f"  {name}: {X.shape[0]:,d} × {X.shape[1]}; log likelihood a point of its own terms, and of each segment "
              "given its 256 nearest earlier points")  # fmt: skip
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
            print(
                f"    {label:32s} {result.log_likelihood / result.n_points:8.4f} "
                f"{common.log_likelihood / len(y):8.4f}   {seconds:6.1f} s, {result.n_points:6,d} points"
            )


def field(n, d):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(n, d)), rng.normal(size=n), 1.0 * Matern([1.0] * d, nu=1.5) + WhiteKernel(0.1)


def main() -> None:
    no_options(__doc__)
    print(header())
    a_pass_against_lapack()
    processes()
    growth()
    tables()


if __name__ == "__main__":
    main()
