"""The paper's learning figure: estimates of segments, weighted by their Fisher information."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from compositegp.backend import Floats
from compositegp.composite import segment
from compositegp.learning import FisherAverage, learn
from compositegp.paper.claims import Claim, Experiment, table, write_csv
from compositegp.plotting import style
from compositegp.simulate import stationary_field

SIZES = (50, 100, 200)
TRUTH = np.array([1.0, 2.0])  # α, θ
NAMES = ("α", "θ")
_SETTING = (
    "A series of N = {n:,} unit steps with covariance α² exp(−τ²/θ²), α = 1, θ = 2, in segments of 50, 100 and 200: "
    "maximum likelihood in each, averaged by Fisher information; {draws} realisations. Errors are relative (of the "
    "logarithm)."
)


def run(
    out: Path,
    *,
    n: int = 5000,
    draws: int = 40,
    seed: int = 0,
    n_jobs: int | None = -1,
    report: Callable[[int, int], None] = lambda a, b: None,
) -> Experiment:
    """Reproduce the figure and its claims.

    Parameters
    ----------
    out : Path
        Folder for figures and tables.
    n : int
        Length of a series.
    draws : int
        Series.
    seed : int
    n_jobs : int, optional
        Number of processes, as in joblib.
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    series = stationary_field(RBF(np.sqrt(2)), n, n_draws=draws, random_state=seed)
    figure, axes = style.figure(2, len(SIZES), size=(11, 5), sharey="row")
    rows: list[tuple[Any, ...]] = []
    for number, (size, column) in enumerate(zip(SIZES, axes.T, strict=True)):
        found = Parallel(n_jobs=n_jobs)(delayed(_estimates)(y, size) for y in series)
        final = np.array([theta[-1] for theta, _ in found]) - np.log(TRUTH)
        claimed = np.array([errors[-1] for _, errors in found]).mean(axis=0)
        for i, name in enumerate(NAMES):
            spread = float(final[:, i].std(ddof=1))
            rows.append(
                (size, name, float(final[:, i].mean()), spread, float(claimed[i]), spread / float(claimed[i]))
            )
            _draw(column[i], found, i)
        column[0].set_title(f"$N_k$ = {size}")
        column[1].set_xlabel("segments read")
        report(number + 1, len(SIZES))
    for axis, name in zip(axes[:, 0], NAMES, strict=True):
        axis.set_ylabel(f"estimate of {name}")
    style.save(figure, out / "learning.png")
    columns = ("N_k", "parameter", "bias", "spread", "claimed standard error", "spread / claimed")
    write_csv(out / "learning.csv", columns, rows)
    experiment = Experiment("learning", "Learning", _SETTING.format(n=n, draws=draws))
    biases = {size: max(abs(bias) for s, _, bias, *_ in rows if s == size) for size in SIZES}
    experiment.claims = [
        Claim(
            "accuracy improves as N_k becomes larger",
            ", ".join(f"N_k = {size}: largest bias {biases[size]:.1%}" for size in SIZES),
            biases[SIZES[-1]] < biases[SIZES[0]],
        ),
        Claim(
            "with N_k = 200 the weighted average is satisfying",
            f"bias {biases[200]:.1%} of the parameters",
            biases[200] < 0.05,
        ),
        Claim(
            "(not in the paper) Λ⁻¹ is the error covariance",
            "spread over claimed at N_k = 200: " + ", ".join(f"{row[-1]:.2f}" for row in rows[-2:]),
            all(0.7 < row[-1] < 1.4 for row in rows[-2:]),
        ),
    ]
    experiment.pictures = [("learning.png", "running estimates of ten series against the truth")]
    experiment.tables = [table(columns, rows)]
    return experiment


def _estimates(y: Floats, size: int) -> tuple[Floats, Floats]:
    """Running estimates of log (α, θ) after each segment, and their standard errors: two arrays (segments, 2)."""
    X = np.arange(len(y), dtype=np.float64)[:, None]
    kernel = ConstantKernel(1.0) * RBF(1.0)
    result = learn(
        kernel,
        X,
        y,
        segment(X, size, "sequential"),
        learning=FisherAverage(tolerance=None, start="kernel"),
        warn=False,
    )
    history = result.history[:-1]  # the last repeats the whole
    # The kernel has log (α², ℓ), where θ = √2 ℓ.
    theta = np.array([step.theta * [0.5, 1.0] + [0.0, 0.5 * np.log(2)] for step in history])
    return theta, np.array([step.standard_errors * [0.5, 1.0] for step in history])


def _draw(axis: Any, found: list[tuple[Floats, Floats]], parameter: int) -> None:
    for theta, _ in found[:10]:
        axis.plot(np.arange(1, len(theta) + 1), np.exp(theta[:, parameter]), color=style.BLUE, lw=0.8, alpha=0.6)
    axis.axhline(TRUTH[parameter], color=style.ORANGE, lw=1.2)
