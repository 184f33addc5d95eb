"""The pictures of docs/functionals.md: one for each kind of functional, each with the truth.

    python benchmarks/functionals_figures.py

The data are simulated. The pictures are written to docs/figures, and what they show is printed.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel
from timing import header, no_options

from compositegp import CompositeGPRegressor
from compositegp import functionals as F
from compositegp.plotting.style import BLACK, BLUE, GRAY, GREEN, ORANGE, figure
from compositegp.simulate import stationary_field

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
DOTS_PER_INCH = 110


def band(axes, x, found, color, label):
    """A mean with a band of two standard deviations."""
    axes.plot(x, found.mean, color=color, label=label)
    ends = found.mean - 2 * found.std, found.mean + 2 * found.std
    axes.fill_between(x, *ends, color=color, alpha=0.25, lw=0, label="± 2 standard errors")


def share_inside(found, truth):
    """Share of true values within two standard deviations."""
    return float((np.abs(found.mean - truth) <= 2 * found.std).mean())


def derivative() -> None:
    """A curve and its slope, from 120 noisy values with a gap."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(160, 1))
    X = X[(X[:, 0] < 5) | (X[:, 0] > 6.5)]
    truth, slope = (lambda x: np.sin(x) + 0.3 * np.sin(3 * x)), (lambda x: np.cos(x) + 0.9 * np.cos(3 * x))
    y = truth(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    model = CompositeGPRegressor(1.0 * RBF(1.0) + WhiteKernel(0.01)).fit(X, y)
    Z = np.linspace(0, 10, 300)[:, None]
    drawn, axes = figure(2, 1, size=(7, 4.6), sharex=True)
    values = model.predict_distribution(Z, latent=True)
    slopes = model.predict_distribution(F.derivative(Z, 0), latent=True)
    band(axes[0], Z[:, 0], values, BLUE, "mean of f")
    axes[0].plot(X[:, 0], y, ".", color=GRAY, ms=4, label="data")
    band(axes[1], Z[:, 0], slopes, ORANGE, "mean of df/dx")
    for place, function in zip(axes, (truth, slope), strict=True):
        place.plot(Z[:, 0], function(Z[:, 0]), color=BLACK, lw=0.8, ls="--", label="truth")
        place.legend(frameon=False, ncols=4, loc="lower left", fontsize=8)
    axes[0].set(ylabel="f", ylim=(-1.8, 1.3))
    axes[1].set(xlabel="x", ylabel="df/dx", ylim=(-3.2, None))
    drawn.savefig(FOLDER / "functional_derivative.png", dpi=DOTS_PER_INCH)
    print(f"derivative: {share_inside(slopes, slope(Z[:, 0])):.2f} of the true slopes are inside the band")


def average() -> None:
    """Averages of a field over blocks, against what the field is there, and two kinds of error bars."""
    side, size = 60, 10
    kernel = ConstantKernel(1.0) * Matern(6.0, nu=1.5)
    values = stationary_field(kernel, (side, side), random_state=3)[0]
    axis = np.arange(float(side))
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(0)
    seen = rng.permutation(side * side)[:250]
    y = values.ravel()[seen] + 0.1 * rng.normal(size=len(seen))
    model = CompositeGPRegressor(kernel + WhiteKernel(0.01), learning=None).fit(grid[seen], y)
    blocks = grid.reshape(side // size, size, side // size, size, 2).swapaxes(1, 2).reshape(-1, size * size, 2)
    truth = (
        values.reshape(side // size, size, side // size, size).swapaxes(1, 2).reshape(len(blocks), -1).mean(axis=1)
    )
    found = model.predict_distribution(F.average(blocks), latent=True)
    alone = model.predict_distribution(blocks.reshape(-1, 2), latent=True).std.reshape(len(blocks), -1)
    wrong = np.sqrt((alone**2).sum(axis=1)) / size**2
    drawn, axes = figure(1, 2, size=(9, 3.8), width_ratios=[1, 1.5])
    shown = axes[0].imshow(values.T, origin="lower", cmap="cividis")
    axes[0].plot(*grid[seen].T, ".", color="white", ms=2)
    for line in range(size, side, size):
        axes[0].axhline(line - 0.5, color="white", lw=0.6)
        axes[0].axvline(line - 0.5, color="white", lw=0.6)
    axes[0].set_title("field; observations (dots), blocks (lines)", fontsize=10)
    axes[0].set(xlabel="x", ylabel="y")
    drawn.colorbar(shown, ax=axes[0], shrink=0.8, label="f")
    order, place = np.argsort(truth), np.arange(len(blocks))
    axes[1].errorbar(
        place,
        found.mean[order],
        2 * found.std[order],
        fmt="o",
        color=BLUE,
        ms=3,
        label="F.average, ± 2 standard errors",
    )
    axes[1].errorbar(
        place + 0.3,
        found.mean[order],
        2 * wrong[order],
        fmt="none",
        color=ORANGE,
        label="± 2, as if points were independent",
    )
    axes[1].plot(place, truth[order], "_", color=BLACK, ms=8, label="truth")
    axes[1].set(xlabel="block, by its true average", ylabel="average of f over the block")
    axes[1].legend(frameon=False)
    drawn.savefig(FOLDER / "functional_average.png", dpi=DOTS_PER_INCH)
    inside = float((np.abs(found.mean - truth) <= 2 * wrong).mean())
    print(f"average: {share_inside(found, truth):.2f} of the true averages are inside; {inside:.2f} if independent")


def combine() -> None:
    """The difference from a baseline: how much higher than at x = 2."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, size=(40, 1))
    truth = lambda x: np.log1p(x) + 0.3 * np.sin(2 * x)  # noqa: E731
    y = 3 + truth(X[:, 0]) + 0.15 * rng.normal(size=len(X))
    model = CompositeGPRegressor(1.0 * RBF(2.0) + WhiteKernel(0.02), mean="constant").fit(X, y)
    Z = np.linspace(0, 10, 200)[:, None]
    points = np.concatenate([Z, [[2.0]]])
    contrast = np.concatenate([np.eye(200), -np.ones((200, 1))], axis=1)
    found = model.predict_distribution(F.combine(points, contrast), latent=True)
    drawn, axes = figure(size=(7, 3))
    band(axes, Z[:, 0], found, GREEN, "mean")
    axes.plot(Z[:, 0], truth(Z[:, 0]) - truth(2.0), color=BLACK, lw=0.8, ls="--", label="truth")
    axes.axhline(0, color=GRAY, lw=0.6)
    axes.legend(frameon=False)
    axes.set(xlabel="x", ylabel="f(x) − f(2)")
    drawn.savefig(FOLDER / "functional_combine.png", dpi=DOTS_PER_INCH)
    print(f"combine: {share_inside(found, truth(Z[:, 0]) - truth(2.0)):.2f} of the true differences are inside")


def part() -> None:
    """A series of a slow part, a season and a mean: what each contributes."""
    rng = np.random.default_rng(2)
    t = np.arange(0, 20, 0.05)
    slow, season = np.sin(t / 3), 0.6 * np.sin(2 * np.pi * t) * (1 + 0.3 * np.sin(t / 2))
    y = 5 + slow + season + 0.3 * rng.normal(size=len(t))
    kernel = 1.0 * RBF(3.0) + 0.4 * ExpSineSquared(1.0, 1.0) * RBF(6.0) + WhiteKernel(0.1)
    model = CompositeGPRegressor(kernel, mean="constant", learning=None).fit(t[:, None], y)
    drawn, axes = figure(4, 1, size=(7, 6.6), sharex=True)
    Z = np.linspace(0, 22, 400)[:, None]
    names = {"k1__k1": ("slow part", BLUE), "k1__k2": ("season", ORANGE), "mean": ("mean", GREEN)}
    found = model.predict_distribution(Z, latent=True)
    band(axes[0], Z[:, 0], found, BLACK, "prediction")
    axes[0].plot(t, y, ".", color=GRAY, ms=2, label="data")
    axes[0].set_ylabel("y")
    total = np.zeros(len(Z))
    for place, (name, (label, color)) in zip(axes[1:], names.items(), strict=True):
        own = model.predict_distribution(F.part(Z, name), latent=True)
        band(place, Z[:, 0], own, color, "predicted part")
        place.set_ylabel(label)
        total += own.mean
    for place, true in zip(axes[1:3], (slow, season), strict=True):
        place.plot(t, true, color=BLACK, lw=0.8, ls="--", label="truth")
    for place in axes:
        low, high = place.get_ylim()
        place.set_ylim(low - 0.3 * (high - low), high)  # room for the legend
        place.legend(frameon=False, loc="lower left", ncols=3, fontsize=8)
    axes[-1].set_xlabel("t")
    drawn.savefig(FOLDER / "functional_part.png", dpi=DOTS_PER_INCH)
    print(f"part: the parts sum to the prediction within {np.abs(total - found.mean).max():.1e}")


def observed() -> None:
    """A curve from averages over intervals, and from slopes: functionals as data."""
    rng = np.random.default_rng(4)
    truth = lambda x: np.sin(x) + 0.2 * x  # noqa: E731
    edges = np.linspace(0, 10, 9)
    boxes = [F.box(low, high) for low, high in pairwise(edges)]
    averages = F.average([points for points, _ in boxes], [weights for _, weights in boxes])
    means = np.array([weights @ truth(points[:, 0]) for points, weights in boxes]) + 0.02 * rng.normal(size=8)
    at = np.array([[1.0], [4.0], [7.0]])
    slopes = np.cos(at[:, 0]) + 0.2
    kernel, Z = 1.0 * RBF(1.5), np.linspace(0, 10, 300)[:, None]
    drawn, axes = figure(1, 2, size=(9, 3.4), sharey=True)
    for place, data, y, title in (
        (axes[0], averages, means, "from averages"),
        (axes[1], F.join([averages, F.derivative(at, 0)]), np.r_[means, slopes], "from averages and three slopes"),
    ):
        model = CompositeGPRegressor(kernel, learning=None, mean="constant").fit(data, y, noise_variance=4e-4)
        found = model.predict_distribution(Z, latent=True)
        band(place, Z[:, 0], found, BLUE, "mean of f")
        place.plot(Z[:, 0], truth(Z[:, 0]), color=BLACK, lw=0.8, ls="--", label="truth")
        place.hlines(means, edges[:-1], edges[1:], color=ORANGE, label="observed averages")
        place.set_title(title, fontsize=10)
        place.set_xlabel("x")
        print(
            f"{title}: {share_inside(found, truth(Z[:, 0])):.2f} of f is inside, mean width {found.std.mean():.3f}"
        )
    for number, (x, slope) in enumerate(zip(at[:, 0], slopes, strict=True)):
        ends = truth(x) + slope * np.array([-0.5, 0.5])
        axes[1].plot([x - 0.5, x + 0.5], ends, color=GREEN, lw=2, label=None if number else "observed slopes")
    axes[0].set_ylabel("f")
    for place in axes:
        place.legend(frameon=False, fontsize=8)
    drawn.savefig(FOLDER / "functional_observed.png", dpi=DOTS_PER_INCH)


def main() -> None:
    """Draw all of them."""
    no_options(__doc__)
    print(header("matplotlib"))
    derivative()
    average()
    combine()
    part()
    observed()


if __name__ == "__main__":
    main()
