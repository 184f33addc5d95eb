"""The paper's synthetic time series: a linear mean, a period of 128 steps and a smooth part."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel
from sklearn.metrics import root_mean_squared_error

from compositegp.analysis import Report, compare
from compositegp.backend import Floats
from compositegp.composite import Composite, conditioning_sets, segment
from compositegp.means import Linear
from compositegp.paper.claims import Experiment, picture, table, write_csv, write_frame
from compositegp.paper.time_series_claims import recursion_claim, runtime_claims, variance_claims
from compositegp.plotting import style
from compositegp.posteriors import Belief, posterior, prior

PERIOD, N_TEST = 128, 128
MEAN = Linear(coefficients=[1e-3], intercept=1.0)
# α₁ = θ₁ = α₂ = 1, θ₂ = 20: the paper's exp(−τ²/θ²) is an RBF with length scale θ/√2.
KERNEL = 1.0 * ExpSineSquared(1.0, PERIOD) + 1.0 * RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
_LONG_SERIES = 5000
_SETTING = (
    "Linear mean, periodic (T = 128) plus squared-exponential covariance, noise variance 0.1, all known; {n} "
    "observations, the next 128 are predicted. CGP with four sequential segments, FITC with 128 inducing points placed "
    "uniformly. Seconds are the least of three predictions."
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
        seconds[name], beliefs[name] = _timed(X, y, Z, composite, inducing)
        reports[name] = compare(KERNEL, X, Z, composite, inducing=inducing)
        report(number + 1, len(methods) + 1)
    runtimes = _runtimes(Z, largest=n // 64)
    many = np.arange(_LONG_SERIES, dtype=np.float64)[:, None]
    parts = Composite.marginal(segment(many, n // 4, "sequential"))
    long_series, _ = _timed(many, np.zeros(_LONG_SERIES), Z, parts, None)
    report(len(methods) + 1, len(methods) + 1)
    rows = [
        (
            name,
            float(root_mean_squared_error(z, beliefs[name].mean)),
            beliefs[name].variance.mean(),
            reports[name].actual_mse.mean(),
            float((np.abs(z - beliefs[name].mean) < 1.96 * beliefs[name].standard_deviation).mean()),
            seconds[name],
        )
        for name in methods
    ]
    columns = (
        "method",
        "RMSE here",
        "variance claimed",
        "mean squared error under the model",
        "coverage of 95 % here",
        "seconds",
    )
    write_csv(out / "timeseries.csv", columns, rows)
    write_csv(out / "timeseries_runtime.csv", ("segments", "points", "seconds"), runtimes)
    _write_predictions(out, Z, z, beliefs, reports)
    _draw(picture(out, "timeseries.png"), X, y, Z, z, beliefs, reports["CGP, 4 segments"])
    _draw_runtimes(picture(out, "timeseries_runtime.png"), runtimes)
    experiment = Experiment("timeseries", "Section 6.1: synthetic time series", _SETTING.format(n=f"{n:,}"))
    experiment.claims = [
        *runtime_claims(seconds, runtimes, (_LONG_SERIES, long_series), n // 4),
        *variance_claims(reports["CGP, 4 segments"], reports["GP"].claimed_variance),
        recursion_claim(_recursion_error(X, y, Z, segments, beliefs["CGP, 4 segments"])),
    ]
    experiment.pictures = [
        ("timeseries.png", "posteriors and their covariances; last, the CGP's mean with its honest band"),
        ("timeseries_runtime.png", "seconds against the number of segments"),
    ]
    experiment.tables = [table(columns, rows), table(("segments K", "points", "seconds"), runtimes)]
    return experiment


def _recursion_error(X: Floats, y: Floats, Z: Floats, segments: list[Any], at_once: Belief) -> float:
    """Largest difference in mean or covariance of the belief that is updated by one segment after the other."""
    belief = prior(KERNEL, Z, mean=MEAN)
    for part in segments:
        belief = belief.update(X[part], y[part])
    return max(
        float(np.abs(belief.mean - at_once.mean).max()),
        float(np.abs(belief.covariance - at_once.covariance).max()),
    )


def _simulate(n: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    t = np.arange(n + N_TEST, dtype=np.float64)[:, None]
    rng = np.random.default_rng(seed)
    latent = MEAN(t) + np.linalg.cholesky(KERNEL(t, t) + 1e-9 * np.eye(len(t))) @ rng.standard_normal(len(t))
    y = latent + np.sqrt(0.1) * rng.standard_normal(len(t))
    return t[:n], y[:n], t[n:], latent[n:]


def _timed(
    X: Floats, y: Floats, Z: Floats, composite: Composite, inducing: Any, repeats: int = 3
) -> tuple[float, Belief]:
    """The least seconds of some predictions, and the belief."""
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        belief = posterior(KERNEL, X, y, Z, composite, mean=MEAN, inducing=inducing)
        took.append(time.perf_counter() - began)
    return min(took), belief


def _runtimes(Z: Floats, largest: int, size: int = 256) -> list[tuple[int, int, float]]:
    """Seconds of CGP with 1 to `largest` segments of equal size; short ones are measured more often."""
    found = []
    for count in 2 ** np.arange(int(np.log2(largest)) + 1):
        X = np.arange(count * size, dtype=np.float64)[:, None]
        composite = Composite.marginal(segment(X, size, "sequential"))
        took, _ = _timed(X, np.zeros(len(X)), Z, composite, None, repeats=3 + 2 * largest // int(count))
        found.append((int(count), len(X), took))
    return found


def _write_predictions(
    out: Path, Z: Floats, z: Floats, beliefs: dict[str, Belief], reports: dict[str, Report]
) -> None:
    tables, covariances = [], []
    for name, belief in beliefs.items():
        columns = {"method": name, "time": Z[:, 0], "truth": z, "mean": belief.mean, "variance": belief.variance}
        tables.append(pd.DataFrame(columns | {"actual error": reports[name].actual_mse}))
        matrix = pd.DataFrame(belief.covariance, columns=[f"{place:g}" for place in Z[:, 0]])
        covariances.append(pd.concat([tables[-1][["method", "time"]], matrix], axis=1))
    write_frame(out / "timeseries_predictions.csv", pd.concat(tables))
    write_frame(out / "timeseries_covariances.csv", pd.concat(covariances))


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
    counts, took = [count for count, _, _ in runtimes], [seconds for *_, seconds in runtimes]
    axes.loglog(counts, took, "o-", color=style.BLUE, label="CGP, segments of 256")
    axes.loglog(counts, np.array(counts) * took[-1] / counts[-1], "--", color=style.GRAY, label="proportional to K")
    axes.set(xlabel="segments K", ylabel="seconds")
    axes.legend(frameon=False)
    style.save(figure, path)
