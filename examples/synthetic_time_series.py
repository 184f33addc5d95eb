"""The time series of Liu et al. (2018), Section 6.1: GP, composite GP and FITC with known hyper-parameters.

    python examples/synthetic_time_series.py --out out/demo

prints a table and writes the picture.
"""

import argparse
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from compositegp import Composite, Linear, analysis, posterior, segment

mpl.use("Agg")
import matplotlib.pyplot as plt

PERIOD, N_OBSERVED, N_TEST = 128, 4096, 128
MEAN = Linear(coefficients=[1e-3], intercept=1.0)
# α₁ = θ₁ = α₂ = 1, θ₂ = 20: the paper's exp(−τ²/θ²) is an RBF with length scale θ/√2.
KERNEL = 1.0 * ExpSineSquared(1.0, PERIOD) + 1.0 * RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)


def simulate(seed):
    t = np.arange(N_OBSERVED + N_TEST, dtype=float)[:, None]
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(KERNEL(t, t) + 1e-9 * np.eye(len(t)))
    latent = MEAN(t) + root @ rng.standard_normal(len(t))
    return t, latent, latent + np.sqrt(0.1) * rng.standard_normal(len(t))


def run(seed):
    t, latent, y = simulate(seed)
    X, y, Z, z = t[:N_OBSERVED], y[:N_OBSERVED], t[N_OBSERVED:], latent[N_OBSERVED:]
    methods = {
        "GP": {"composite": Composite.full(N_OBSERVED)},
        "CGP, 4 segments": {"composite": Composite.marginal(segment(X, 1024, "sequential"))},
        "FITC, 128 inducing": {
            "composite": Composite.pointwise(N_OBSERVED),
            "inducing": np.linspace(0, N_OBSERVED - 1, 128)[:, None],
        },
    }
    print(f"{'':20s}{'RMSE':>8s}{'mean variance':>16s}{'95 % coverage':>16s}{'seconds':>10s}")
    beliefs = {}
    for name, choice in methods.items():
        start = time.perf_counter()
        belief = posterior(KERNEL, X, y, Z, mean=MEAN, **choice)
        seconds = time.perf_counter() - start
        error = belief.mean - z
        covered = np.mean(np.abs(error) < 1.96 * belief.standard_deviation)
        rmse = np.sqrt(np.mean(error**2))
        print(f"{name:20s}{rmse:8.3f}{belief.variance.mean():16.3f}{covered:16.2f}{seconds:10.2f}")
        beliefs[name] = belief
    return X, y, Z, z, beliefs


def draw(X, y, Z, z, beliefs, path):
    blue, orange = "#0072B2", "#D55E00"
    figure, axes = plt.subplots(2, len(beliefs), figsize=(12, 6.4), layout="constrained", sharey="row")
    largest = max(belief.covariance.max() for belief in beliefs.values())
    for (name, belief), top, bottom in zip(beliefs.items(), *axes, strict=True):
        t = Z[:, 0]
        top.plot(X[-192:, 0], y[-192:], ".", color="0.6", markersize=2, label="observed")
        band = 1.96 * belief.standard_deviation
        top.fill_between(t, belief.mean - band, belief.mean + band, color=blue, alpha=0.25, label="95 % band", lw=0)
        top.plot(t, belief.mean, color=blue, label="mean")
        top.plot(t, z, color=orange, lw=1, label="true latent value")
        top.set(title=name, xlabel="time step")
        image = bottom.imshow(belief.covariance, cmap="cividis", vmin=0, vmax=largest)
        bottom.set(xlabel="test point", ylabel="test point")
    axes[0, 0].set_ylabel("value")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.colorbar(image, ax=axes[1], label="posterior covariance")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for the picture")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = run(arguments.seed)
    picture = arguments.out / "synthetic_time_series.png"
    draw(*results, picture)
    X, _, Z, _, _ = results
    print("\nWhat the four segments cost, over all data that the model may bring:")
    print(analysis.compare(KERNEL, X, Z, Composite.marginal(segment(X, 1024, "sequential"))))
    print(
        "\nCGP claims less variance than the GP: its segments share the periodic pattern, and count it four times."
    )
    print(f"Picture: {picture.resolve()}")


if __name__ == "__main__":
    main()
