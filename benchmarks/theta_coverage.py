"""Coverage and log score of predictions from few observations: the learned θ alone, and the mixture over θ.

Data are drawn from a Gaussian process whose length scales are random (0.15 to 1.5 of the unit cube's diagonal), with
noise that has a share of the variance; a share of 1 is pure noise. The model has the same kind of kernel and learns a
length scale for each column, a variance, noise and a constant mean. Errors are not calibrated. One line is one kernel,
number of columns, number of observations and share of noise, averaged over data sets.

    python benchmarks/theta_coverage.py --sets 200
    python benchmarks/theta_coverage.py --sets 20 --columns 5 --sizes 50
    python benchmarks/theta_coverage.py --sets 20 --wide       # 120 rows of 50 columns, three of which matter
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from timing import header

from compositegp import CompositeGPRegressor, Nearest

LEVELS = (0.5, 0.8, 0.95, 0.99)
KERNELS = {"RBF": np.inf, "Matern 3/2": 1.5, "Matern 1/2": 0.5}
TESTS = 60


class Case(NamedTuple):
    """Observations and test points.

    Attributes
    ----------
    X, y : arrays of shape (n, d) and (n,)
    Z, outcomes : arrays of shape (m, d) and (m,)
    """

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    outcomes: np.ndarray


def radial(nu: float, length_scale: Any) -> Any:
    return RBF(length_scale) if np.isinf(nu) else Matern(length_scale, nu=nu)


def draw(nu: float, d: int, n: int, noise: float, seed: int) -> Case:
    generator = np.random.default_rng([seed, d, n, round(1000 * noise), round(10 * min(nu, 9))])
    points = generator.uniform(size=(n + TESTS, d))
    length_scales = np.sqrt(d) * np.exp(generator.uniform(np.log(0.15), np.log(1.5), size=d))
    y = np.sqrt(noise) * generator.normal(size=n + TESTS)
    if noise < 1:
        K = (1 - noise) * radial(nu, length_scales)(points) + 1e-10 * np.eye(n + TESTS)
        y = y + np.linalg.cholesky(K) @ generator.normal(size=n + TESTS)
    return Case(points[:n], y[:n], points[n:], y[n:])


def draw_wide(noise: float, seed: int, n: int = 120, d: int = 50) -> Case:
    generator = np.random.default_rng([seed, n, d])
    points = generator.normal(size=(n + TESTS, d))
    signal = np.sin(points[:, 0]) + 0.5 * points[:, 1] * points[:, 2] + points[:, :3] @ generator.normal(size=3) / 2
    y = np.sqrt(1 - noise) * signal / signal.std() + np.sqrt(noise) * generator.normal(size=n + TESTS)
    return Case(points[:n], y[:n], points[n:], y[n:])


def scores(case: Case, kernel: Any) -> np.ndarray:
    """Coverages and log score, then RMSE, of the learned θ alone and of the mixture: shape (2, 6)."""
    model = CompositeGPRegressor(
        kernel, mean="constant", prediction=Nearest(calibration=None, theta_uncertainty=False)
    )
    model.fit(case.X, case.y)
    found = []
    for mixed in (False, True):
        model.set_params(prediction=Nearest(calibration=None, theta_uncertainty=mixed))
        prediction = model.predict_distribution(case.Z)
        rmse = np.sqrt(np.mean((prediction.mean - case.outcomes) ** 2))
        score = prediction.log_score(case.outcomes).mean()
        found.append([*prediction.coverage(case.outcomes, LEVELS), score, rmse])
    return np.array(found)


def cells(options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Names of cells, each with a function from a seed to the scores of one data set."""
    if options.wide:
        for noise in (0.1, 0.5, 1.0):
            kernel = ConstantKernel() * Matern(np.ones(50), nu=1.5) + WhiteKernel()
            yield (
                f"wide        50  120  {noise:4.2f}",
                lambda seed, a=noise, k=kernel: scores(draw_wide(a, seed), k),
            )
        return
    for n in options.sizes:
        for d in options.columns:
            for noise in options.noise:
                for name, nu in KERNELS.items():
                    kernel = ConstantKernel() * radial(nu, np.ones(d) if d > 1 else 1.0) + WhiteKernel()
                    yield (
                        f"{name:10s} {d:3d} {n:4d}  {noise:4.2f}",
                        lambda seed, a=(nu, d, n, noise), k=kernel: scores(draw(*a, seed), k),
                    )


def show(label: str, found: np.ndarray) -> None:
    plain, mixed = found
    shown = "  ".join(" ".join(f"{100 * value:5.1f}" for value in row[:4]) for row in (plain, mixed))
    print(f"{label}  {shown}  {plain[4]:7.3f} {mixed[4]:7.3f}  {plain[5]:6.3f} {mixed[5]:6.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="data sets for each line")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.1, 0.5, 1.0])
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="data sets at the same time, on a core each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few points tell little of the hyper-parameters
    started, everything = time.perf_counter(), []
    print(header() + "\n")
    print(f"{'':22s} noise  {'coverage, learned θ':23s}  {'coverage, mixture':23s}  log score        RMSE")
    levels = " ".join(f"{100 * level:5.0f}" for level in LEVELS)
    print(f"kernel       d    n  share  {levels}  {levels}  learned mixture  learned mixture")
    for label, score in cells(options):
        sets = Parallel(n_jobs=options.jobs)(delayed(score)(seed) for seed in range(options.sets))
        everything.append(np.mean(sets, axis=0))
        show(label, everything[-1])
    show(f"{'all':24s}", np.mean(everything, axis=0))
    print(f"{options.sets} data sets a line, {time.perf_counter() - started:.0f} s with {options.jobs} process(es)")


if __name__ == "__main__":
    main()
