"""The paper's synthetic time series: a linear mean, a period of 128 steps and a smooth part."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel
from sklearn.metrics import root_mean_squared_error

from compositegp.analysis import Report, compare
from compositegp.backend import Floats
from compositegp.composite import Composite, conditioning_sets, segment
from compositegp.means import Linear
from compositegp.paper.claims import Claim, Experiment, table, write_csv
from compositegp.plotting import style
from compositegp.posteriors import Belief, posterior

PERIOD, N_TEST = 128, 128
MEAN = Linear(coefficients=[1e-3], intercept=1.0)
# α₁ = θ₁ = α₂ = 1, θ₂ = 20: the paper's exp(−τ²/θ²) is an RBF with length scale θ/√2.
KERNEL = 1.0 * ExpSineSquared(1.0, PERIOD) + 1.0 * RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
_SETTING = (
    "Linear mean, periodic (T = 128) plus squared-exponential covariance, noise variance 0.1, all known; {n} "
    "observations, the next 128 are predicted. CGP with four sequential segments, FITC with 128 inducing points placed "
    "uniformly."
)


def run(
    out: Path, *, n: int = 4096, seed: int = 0, report: Callable[[int, int], None] = lambda a, b: None
) -> Experiment:
    """Reproduce the figure and its claims.

    Parameters
    ----------
    out : Path
        Folder for figures and tables.
    n : int
        Observations.
    seed : int
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    X, y, Z, z = _simulate(n, seed)
    segments = segment(X, n // 4, "sequential")[::-1]  # newest first, so that older ones are given newer ones
    methods: dict[str, tuple[Composite, Any]] = {
        "GP": (Composite.full(n), None),
        "CGP, 4 segments": (Composite.marginal(segments), None),
        "FITC, 128 inducing": (Composite.pointwise(n), np.linspace(0, n - 1, 128)[:, None]),
        "conditional, given 256": (Composite.conditional(segments, conditioning_sets(X, segments, 256)), None),
    }
    beliefs, seconds, reports = {}, {}, {}
    for number, (name, (composite, inducing)) in enumerate(methods.items()):
        began = time.perf_counter()
        beliefs[name] = posterior(KERNEL, X, y, Z, composite, mean=MEAN, inducing=inducing)
        seconds[name] = time.perf_counter() - began
        reports[name] = compare(KERNEL, X, Z, composite, inducing=inducing)
        report(number + 1, len(methods) + 1)
    runtimes = _runtimes(X, y, Z)
    report(len(methods) + 1, len(methods) + 1)
    rows = [
        (
            name,
            float(root_mean_squared_error(z, beliefs[name].mean)),
            beliefs[name].variance.mean(),
            reports[name].actual_mse.mean(),
            seconds[name],
        )
        for name in methods
    ]
    columns = ("method", "RMSE here", "variance claimed", "mean squared error under the model", "seconds")
    write_csv(out / "timeseries.csv", columns, rows)
    write_csv(out / "timeseries_runtime.csv", ("segments", "points", "seconds"), runtimes)
    _draw(out / "timeseries.png", X, y, Z, z, beliefs, reports["CGP, 4 segments"])
    _draw_runtimes(out / "timeseries_runtime.png", runtimes)
    experiment = Experiment("timeseries", "Synthetic time series", _SETTING.format(n=f"{n:,}"))
    experiment.claims = _claims(seconds, reports, runtimes)
    experiment.pictures = [
        ("timeseries.png", "posteriors and their covariances; last, the CGP's mean with its honest band"),
        ("timeseries_runtime.png", "seconds against the number of segments"),
    ]
    experiment.tables = [table(columns, rows)]
    return experiment


def _claims(
    seconds: dict[str, float], reports: dict[str, Report], runtimes: list[tuple[int, int, float]]
) -> list[Claim]:
    gp, cgp, fitc = seconds["GP"], seconds["CGP, 4 segments"], seconds["FITC, 128 inducing"]
    claimed, exact = reports["CGP, 4 segments"].claimed_variance, reports["GP"].claimed_variance
    counts = np.log([count for count, _, _ in runtimes])
    slope = float(np.polyfit(counts, np.log([took for _, _, took in runtimes]), 1)[0])
    redundant = float((reports["CGP, 4 segments"].redundancy == "redundant").mean())
    return [
        Claim("CGP is very fast compared to the GP", f"{cgp:.2f} s against {gp:.2f} s", cgp < gp),
        Claim(
            "and to the SGP",
            f"{cgp:.2f} s against {fitc:.2f} s",
            cgp < fitc,
            "" if cgp < fitc else "FITC is computed here on all points at once, not one by one",
        ),
        Claim("CGP takes less than a second for 5,000 points", f"{cgp:.2f} s for 4,096", cgp < 1),
        Claim("its runtime grows linearly with K", f"as K to the power {slope:.2f}", 0.7 < slope < 1.3),
        Claim(
            "CGP underestimates the predictive variance",
            f"claims {claimed.mean():.3f}, the GP {exact.mean():.3f}; its actual error is "
            f"{reports['CGP, 4 segments'].actual_mse.mean():.3f}",
            bool((claimed < exact).all()),
        ),
        Claim(
            "which is consistent with redundant segments",
            f"redundant at {redundant:.0%} of the points",
            redundant > 0.5,
        ),
    ]


def _simulate(n: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    t = np.arange(n + N_TEST, dtype=np.float64)[:, None]
    rng = np.random.default_rng(seed)
    latent = MEAN(t) + np.linalg.cholesky(KERNEL(t, t) + 1e-9 * np.eye(len(t))) @ rng.standard_normal(len(t))
    y = latent + np.sqrt(0.1) * rng.standard_normal(len(t))
    return t[:n], y[:n], t[n:], latent[n:]


def _runtimes(X: Floats, y: Floats, Z: Floats) -> list[tuple[int, int, float]]:
    """Seconds of CGP with segments of equal length, and more and more of them."""
    size, found = max(len(X) // 16, 32), []
    for count in (1, 2, 4, 8, 16):
        n = min(count * size, len(X))
        composite = Composite.marginal(segment(X[:n], size, "sequential"))
        took = []
        for _ in range(3):
            began = time.perf_counter()
            posterior(KERNEL, X[:n], y[:n], Z, composite, mean=MEAN)
            took.append(time.perf_counter() - began)
        found.append((count, n, min(took)))
    return found


def _draw(path: Path, X: Floats, y: Floats, Z: Floats, z: Floats, beliefs: dict[str, Belief], cost: Report) -> None:
    figure, axes = style.figure(2, 5, size=(16, 6), sharey="row")
    largest = max(belief.covariance.max() for belief in beliefs.values())
    honest = beliefs["CGP, 4 segments"].mean, np.sqrt(cost.actual_mse)
    panels: list[tuple[str, Floats, Floats, Floats | None]] = [
        (name, belief.mean, belief.standard_deviation, belief.covariance) for name, belief in beliefs.items()
    ]
    panels.append(("CGP, honest variance", *honest, None))
    for (name, mean, std, covariance), top, bottom in zip(panels, *axes, strict=True):
        top.plot(X[-192:, 0], y[-192:], ".", color="0.6", markersize=2, label="observed")
        top.fill_between(
            Z[:, 0], mean - 1.96 * std, mean + 1.96 * std, color=style.BLUE, alpha=0.25, lw=0, label="95 % band"
        )
        top.plot(Z[:, 0], mean, color=style.BLUE, label="mean")
        top.plot(Z[:, 0], z, color=style.ORANGE, lw=1, label="true latent value")
        top.set(title=name, xlabel="time step")
        if covariance is None:
            bottom.axis("off")
        else:
            image = bottom.imshow(covariance, cmap="cividis", vmin=0, vmax=largest)
            bottom.set(xlabel="test point")
    axes[0, 0].set_ylabel("value")
    axes[1, 0].set_ylabel("test point")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.colorbar(image, ax=axes[1], label="posterior covariance")
    style.save(figure, path)


def _draw_runtimes(path: Path, runtimes: list[tuple[int, int, float]]) -> None:
    figure, axes = style.figure(size=(5, 3.2))
    axes.loglog([count for count, _, _ in runtimes], [took for _, _, took in runtimes], "o-", color=style.BLUE)
    axes.set(xlabel="segments K, of equal length", ylabel="seconds")
    style.save(figure, path)
