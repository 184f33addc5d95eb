"""Figure 1 of Liu et al. (2018): estimates of segments, weighted by their Fisher information.

    python examples/fisher_weighted_learning.py --out out/learning

A series of N = 5,000 unit steps with covariance α² exp(−τ²/θ²), α = 1, θ = 2, is cut into segments of 50, 100 and 200.
The running estimates are drawn against the truth, and over many realisations their bias and spread are printed beside
the standard error that the method claims.
"""

import argparse
import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from compositegp import learn, segment

mpl.use("Agg")
import matplotlib.pyplot as plt

N = 5000
SIZES = (50, 100, 200)
TRUTH = np.array([1.0, 2.0])
NAMES = ("α", "θ")


def to_paper(log_theta):
    """(α, θ) from the kernel's log (α², ℓ), where θ = √2 ℓ."""
    return np.exp(np.asarray(log_theta) * [0.5, 1.0]) * [1.0, np.sqrt(2)]


def estimates(y, size):
    """Running estimates of log (α, θ) after each segment, and their standard errors: two arrays (segments, 2)."""
    X = np.arange(N, dtype=float)[:, None]
    kernel = ConstantKernel(1.0) * RBF(1.0)
    result = learn(
        kernel, X, y, segment(X, size, "sequential"), method="fisher_average", tolerance=None, start="kernel"
    )
    history = result.history[:-1]  # the last repeats the whole
    theta = np.log([to_paper(step.theta) for step in history])
    return theta, np.array([step.standard_errors for step in history]) * [0.5, 1.0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("out/learning"), help="folder for the picture and the table"
    )
    parser.add_argument("--realisations", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1, help="processes (-1: all cores)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    steps = np.arange(N, dtype=float)[:, None]
    root = np.linalg.cholesky(RBF(np.sqrt(2))(steps) + 1e-12 * np.eye(N))
    series = np.random.default_rng(0).standard_normal((arguments.realisations, N)) @ root.T
    figure, axes = plt.subplots(2, len(SIZES), figsize=(11, 5.4), layout="constrained", sharey="row")
    rows = []
    print(f"{arguments.realisations} realisations of {N} points; log scale, so errors are relative")
    print(f"{'N_k':>5s} {'':3s}{'bias':>9s} {'±':>8s}{'spread':>9s}{'claimed':>9s}{'spread / claimed':>18s}")
    for size, column in zip(SIZES, axes.T, strict=True):
        found = Parallel(n_jobs=arguments.jobs)(delayed(estimates)(y, size) for y in series)
        final = np.array([theta[-1] for theta, _ in found]) - np.log(TRUTH)
        claimed = np.array([errors[-1] for _, errors in found]).mean(axis=0)
        for i, name in enumerate(NAMES):
            spread = final[:, i].std(ddof=1)
            error = spread / np.sqrt(len(final))
            rows.append([size, name, final[:, i].mean(), error, spread, claimed[i], spread / claimed[i]])
            print("{:5d} {:3s}{:9.4f} {:8.4f}{:9.4f}{:9.4f}{:18.2f}".format(*rows[-1]))
            draw(column[i], found, i)
            column[i].set_title(f"$N_k$ = {size}" if i == 0 else "")
    for i, name in enumerate(NAMES):
        axes[i, 0].set_ylabel(f"estimate of {name}")
    for axis in axes[1]:
        axis.set_xlabel("segments read")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(arguments.out / "fisher_weighted_learning.png", dpi=110)
    with open(arguments.out / "fisher_weighted_learning.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["segment size", "parameter", "bias", "bias error", "spread", "claimed", "ratio"])
        writer.writerows(rows)
    print(f"\nPicture: {(arguments.out / 'fisher_weighted_learning.png').resolve()}")


def draw(axis, found, parameter):
    for theta, _ in found[1:21]:
        axis.plot(np.arange(1, len(theta) + 1), np.exp(theta[:, parameter]), color="0.75", lw=0.6)
    theta, errors = (values[:, parameter] for values in found[0])
    k = np.arange(1, len(theta) + 1)
    axis.fill_between(
        k, np.exp(theta - 2 * errors), np.exp(theta + 2 * errors), color="#0072B2", alpha=0.3, lw=0,
        label="±2 standard errors",
    )  # fmt: skip
    axis.plot(k, np.exp(theta), color="#0072B2", label="one realisation")
    axis.plot([], [], color="0.75", label="others")
    axis.axhline(TRUTH[parameter], color="#D55E00", ls="--", label="truth")
    spread = (0.2, 0.07)[parameter]
    axis.set_ylim(TRUTH[parameter] * (1 - spread), TRUTH[parameter] * (1 + spread))


if __name__ == "__main__":
    main()
