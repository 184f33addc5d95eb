"""Prediction: the composite GP against the exact one, its growth in K, and its overhead.

    python benchmarks/prediction.py

Every comparison is a ratio of times taken in the same run.
"""

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, WhiteKernel
from timing import best, header, no_options

from compositegp import Composite, posterior, prior, segment
from compositegp.backend import blas_threads_for, keep_freed_memory
from compositegp.kernels import gram


def against_the_exact_gp():
    kernel = ExpSineSquared(1.0, 128) + RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
    t = np.arange(4224.0)[:, None]
    X, Z, y = t[:4096], t[4096:], np.random.default_rng(0).normal(size=4096)
    segments = segment(X, 1024, "sequential")

    def scikit_learn():
        GaussianProcessRegressor(kernel, optimizer=None).fit(X, y).predict(Z, return_cov=True)

    def recursion():
        belief = prior(kernel, Z)
        for part in segments:
            belief = belief.update(X[part], y[part])

    times = {
        "CGP, 4 segments of 1,024": best(lambda: posterior(kernel, X, y, Z, Composite.marginal(segments))),
        "the same by recursion": best(recursion),
        "exact GP, this package": best(lambda: posterior(kernel, X, y, Z, Composite.full(4096)), 3),
        "exact GP, scikit-learn": best(scikit_learn, 3),
    }
    print("\nThe paper's series, 4,096 observed, 128 to predict, joint covariance")
    for name, seconds in times.items():
        print(
            f"  {name:28s}{seconds:8.3f} s {times['exact GP, scikit-learn'] / seconds:8.1f} × scikit-learn's speed"
        )


def growth_in_segments():
    kernel = Matern(0.5, nu=1.5) + WhiteKernel(0.1)
    rng = np.random.default_rng(0)
    counts = np.array([4, 8, 16, 32, 64])
    X, Z = rng.uniform(size=(counts[-1] * 512, 2)), rng.uniform(size=(128, 2))
    y = rng.normal(size=len(X))
    seconds = []
    for K in counts:
        n = K * 512
        composite = Composite.marginal(segment(X[:n], 512, "sequential"))
        seconds.append(best(lambda n=n, c=composite: posterior(kernel, X[:n], y[:n], Z, c), 7))
    exponent = np.polyfit(np.log(counts), np.log(seconds), 1)[0]
    print("\nSeconds against the number K of segments of 512 points, 128 test points")
    print("  " + "  ".join(f"K = {K}: {s:.3f}" for K, s in zip(counts, seconds, strict=True)))
    print(f"  fitted exponent {exponent:.2f} (linear: 1)")


def overhead():
    """The whole posterior against nothing but its kernel evaluations and its LAPACK and BLAS calls."""
    kernel = 1.0 * Matern([0.5] * 4, nu=1.5) + WhiteKernel(0.1)
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(size=(32 * 512, 4)), rng.uniform(size=(128, 4))
    y = rng.normal(size=len(X))
    segments = segment(X, 512, "sequential")
    composite = Composite.marginal(segments)

    def bare():
        with blas_threads_for(512):
            root = dpotrf(gram(kernel, Z, Z).T, lower=0)[0]
            for part in segments:
                factor = dpotrf(gram(kernel, X[part]).T, lower=0, clean=0, overwrite_a=1)[0]
                V = gram(kernel, X[part], Z)
                dtrsm(1.0, factor, V.T, side=1, overwrite_b=1)
                dtrsm(1.0, root, V.T, side=0, trans_a=1, overwrite_b=1)
                inner = dpotrf(np.eye(128) - V.T @ V, lower=0)[0]
                inverse = dtrsm(1.0, inner, np.eye(128), side=1)
                inverse @ inverse.T

    keep_freed_memory()
    bare()
    whole, least = best(lambda: posterior(kernel, X, y, Z, composite)), best(bare)
    print("\nOverhead at segments of 512 points (32 of them, 4 columns, 128 test points)")
    print(f"  whole {whole:.3f} s, kernel evaluation, LAPACK and BLAS alone {least:.3f} s: "
          f"{max(0.0, 1 - least / whole):.1%} is outside them")  # fmt: skip


def fitc():
    kernel = RBF(1.0) + WhiteKernel(0.1)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(100_000, 2))
    y, U, Z = rng.normal(size=len(X)), X[:128].copy(), X[:500].copy()
    seconds = best(lambda: posterior(kernel, X, y, Z, Composite.pointwise(len(X)), inducing=U), 3)
    print(f"\nFITC, 100,000 observed, 128 inducing points, 500 test points: {seconds:.2f} s")


def main() -> None:
    no_options(__doc__)
    print(header())
    against_the_exact_gp()
    growth_in_segments()
    overhead()
    fitc()


if __name__ == "__main__":
    main()
