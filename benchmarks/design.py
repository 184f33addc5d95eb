"""Does choose_segmentation rank plans as measurement does? On the paper's series and grid, and on real data.

python benchmarks/design.py [--out DIR]     # with DIR, the pictures too
"""

import argparse
import time
import warnings
from pathlib import Path

import data
import numpy as np
from scipy.stats import spearmanr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel
from timing import header

from compositegp import Composite, CompositeGPRegressor, Nearest, analysis, learn, plotting, posterior, segment
from compositegp.design import choose_segmentation

OPTIONS = {"sizes": (128, 512), "conditioning_sizes": (0, 256), "n_neighbors": (64, 256, 512)}


def measure(kernel, X, ys, Z, plan, exact):
    """Mean squared difference from the exact GP's means, and seconds to predict with error bars, not calibrated."""
    errors, seconds, parameters = [], [], plan.parameters
    if plan.prediction == "nearest":
        parameters = {"prediction": Nearest(plan.n_neighbors, calibration=None)}
    for y, best in zip(ys, exact, strict=True):
        began = time.perf_counter()
        model = CompositeGPRegressor(kernel, learning=None, **parameters).fit(X, y)
        mean, _ = model.predict(Z, return_std=True)
        seconds.append(time.perf_counter() - began)
        errors.append(np.mean((mean - best) ** 2))
    return np.mean(errors), min(seconds)


def rank(name, kernel, X, ys, Z):
    """Print the plans of one problem, and how their predicted and measured ranks agree."""
    began = time.perf_counter()
    design = choose_segmentation(kernel, X, Z, n_groups=4, n_points=6000, **OPTIONS)
    took = time.perf_counter() - began
    exact = [posterior(kernel, X, y, Z, Composite.full(len(X))).mean for y in ys]
    found = np.array([measure(kernel, X, ys, Z, c.plan, exact) for c in design.candidates])
    predicted = np.array([(c.mse - design.exact_mse, c.seconds) for c in design.candidates])
    errors, seconds = (spearmanr(predicted[:, i], found[:, i]).statistic for i in range(2))
    print(
        f"\n### {name}: {len(X):,} observations, {len(Z)} test points, {len(found)} plans, chosen in {took:.0f} s\n"
    )
    print("| plan | excess error, predicted | measured | seconds, predicted | measured |\n|---|---|---|---|---|")
    for candidate, (excess, cost), (measured, clocked) in zip(design.candidates, predicted, found, strict=True):
        mark = " **(chosen)**" if candidate is design.best else ""
        print(f"| {candidate.plan}{mark} | {excess:.3g} | {measured:.3g} | {cost:.3g} | {clocked:.3g} |")
    print(f"\nRank correlation of predicted with measured: errors {errors:.2f}, seconds {seconds:.2f}.", flush=True)
    return design


def series():
    t = np.arange(4224.0)[:, None]
    kernel = 1.0 * ExpSineSquared(1.0, 128.0) + 1.0 * RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
    return kernel, t[:4096], t[4096:]


def grid():
    points = np.stack(np.meshgrid(np.arange(64.0), np.arange(64.0), indexing="ij"), -1).reshape(-1, 2)
    box = ((points >= 24) & (points < 40)).all(axis=1)
    return RBF(8 / np.sqrt(2)) + WhiteKernel(1e-6), points[~box], points[box]


def simulated(kernel, X, count):
    root = np.linalg.cholesky(kernel(X))
    rng = np.random.default_rng(0)
    return [root @ rng.standard_normal(len(X)) for _ in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    print(header())
    designs = {}
    for name, (kernel, X, Z) in {"The paper's time series": series(), "The paper's grid": grid()}.items():
        designs[name] = rank(name, kernel, X, simulated(kernel, X, 3), Z), (kernel, X, Z)
    split = data.precipitation()
    if split is not None:
        prior = ConstantKernel() * Matern([1.0, 1.0], nu=0.5) + WhiteKernel()
        kernel = learn(prior, split.X, split.y, segment(split.X, 256), conditioning_size=256).kernel
        rank("US precipitation, April 1948", kernel, split.X, [split.y], split.X_test)
    if out is not None:
        draw(designs, out)


def draw(designs, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plotting.style.figure(2, 2, size=(11, 8))
    for column, (name, (design, (kernel, X, Z))) in enumerate(designs.items()):
        four = Composite.marginal(segment(X, -(-len(X) // 4), "sequential"))
        report = analysis.compare(kernel, X, Z, four)
        if Z.shape[1] == 1:
            plotting.plot_errors(report, Z, axes=axes[0, column])
        else:
            plotting.plot_confidence(report, axes=axes[0, column])
        axes[0, column].set_title(f"{name}: four sequential segments")
        plotting.plot_trade_off(design, axes=axes[1, column])
        axes[1, column].set_title(f"{name}: plans, and the one chosen")
    plotting.style.save(figure, out / "design.png", dpi=110)
    print(f"\n{out / 'design.png'}")


if __name__ == "__main__":
    main()
