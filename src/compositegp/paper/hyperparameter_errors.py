"""The paper's learning figure: estimates of segments, weighted by their Fisher information."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from compositegp.backend import Floats
from compositegp.composite import segment
from compositegp.kernels import gram
from compositegp.learning import FisherAverage, learn
from compositegp.paper.claims import Claim, Experiment, picture, table, write_csv, write_frame
from compositegp.plotting import style
from compositegp.simulate import stationary_field

SIZES = (50, 100, 200)
TRUTH = np.array([1.0, 2.0])  # α, θ
NAMES = ("α", "θ")
_SHOWN = ((0.8, 1.2), (0.95, 1.06))  # ends of the axes, over the truth
_COLUMNS = (
    "N_k",
    "parameter",
    "root mean squared error",
    "bias",
    "spread",
    "claimed standard error",
    "spread / claimed",
    "seconds a series",
)
_SETTING = (
    "A series of N = {n:,} unit steps with covariance α² exp(−τ²/θ²), α = 1, θ = 2, in segments of 50, 100 and 200: "
    "maximum likelihood in each, averaged by Fisher information; {draws} realizations. Errors are relative (of the "
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
    figure, axes = style.figure(2, len(SIZES), size=(11, 5.4), sharey="row")
    rows: list[tuple[Any, ...]] = []
    tables = []
    for number, (size, column) in enumerate(zip(SIZES, axes.T, strict=True)):
        found = Parallel(n_jobs=n_jobs)(delayed(_estimates)(y, size) for y in series)
        tables += [_running(size, draw, *each) for draw, each in enumerate(found)]
        final = np.array([each.theta[-1] for each in found]) - np.log(TRUTH)
        claimed = np.array([each.errors[-1] for each in found]).mean(axis=0)
        seconds = float(np.median([each.seconds for each in found]))
        for i, name in enumerate(NAMES):
            bias, spread = float(final[:, i].mean()), float(final[:, i].std(ddof=1))
            error = float(np.sqrt(np.mean(final[:, i] ** 2)))
            rows.append((size, name, error, bias, spread, float(claimed[i]), spread / float(claimed[i]), seconds))
            _draw(column[i], found, i)
        column[0].set_title(f"$N_k$ = {size}")
        column[1].set_xlabel("segments read")
        report(number + 1, len(SIZES) + 1)
    for axis, name in zip(axes[:, 0], NAMES, strict=True):
        axis.set_ylabel(f"estimate of {name}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    style.save(figure, picture(out, "learning.png"))
    write_csv(out / "learning.csv", _COLUMNS, rows)
    write_frame(out / "learning_estimates.csv", pd.concat(tables))
    experiment = Experiment("learning", "Section 4.1: learning", _SETTING.format(n=n, draws=draws))
    experiment.claims = _claims(rows, _one_full_step(n))
    report(len(SIZES) + 1, len(SIZES) + 1)
    caption = "running estimates against the truth, for one series with ± 2 standard errors"
    experiment.pictures = [("learning.png", caption)]
    experiment.tables = [table(_COLUMNS, rows)]
    return experiment


class Estimates(NamedTuple):
    """Running estimates of log (α, θ) after each segment, and their standard errors: two arrays (segments, 2)."""

    theta: Floats
    errors: Floats
    seconds: float


def _claims(rows: list[tuple[Any, ...]], full: float) -> list[Claim]:
    """Verdicts about rows (N_k, parameter, error, bias, spread, claimed, ratio, seconds)."""
    of = {name: [row for row in rows if row[1] == name] for name in NAMES}
    errors = {name: [row[2] for row in found] for name, found in of.items()}
    biases = {name: [abs(row[3]) for row in found] for name, found in of.items()}
    seconds = [row[-1] for row in of[NAMES[0]]]
    falls = all(np.diff(found).max() < 0 for found in biases.values())
    smaller = all(np.diff(found).max() < 0 for found in errors.values())
    last, ratios = rows[-2:], [row[6] for row in rows[-2:]]
    sizes = ", ".join(map(str, SIZES))
    return [
        Claim(
            "the estimates become more accurate as N_k becomes larger",
            "the bias of both parameters falls from each N_k to the next",
            f"N_k = {sizes}: " + "; ".join(f"{name} {_percents(found)}" for name, found in biases.items()),
            falls,
        ),
        Claim(
            "and with them the weighted average",
            "the root mean squared error of both parameters falls from each N_k to the next",
            f"N_k = {sizes}: " + "; ".join(f"{name} {_percents(found)}" for name, found in errors.items()),
            smaller,
            "the spread over series is larger than the bias, and does not depend on N_k",
        ),
        Claim(
            "there is a trade-off between accuracy and computational cost",
            "the seconds grow from each N_k to the next",
            f"N_k = {sizes}: " + ", ".join(f"{took:.2f} s" for took in seconds),
            bool(np.diff(seconds).min() > 0),
            "many small segments cost more than few large ones here",
            timed=True,
        ),
        Claim(
            "with N_k = 200 the accuracy is satisfying",
            "errors of both parameters are below 2 % (root mean square)",
            ", ".join(f"{row[1]} {row[2]:.1%}" for row in last),
            all(row[2] < 0.02 for row in last),
        ),
        Claim(
            "at a cost that is low compared to full GP learning",
            "all of it takes less time than one step of that: a factorization and an inverse of the whole covariance",
            f"{seconds[-1]:.2f} s against {full:.2f} s",
            seconds[-1] < full,
            timed=True,
        ),
        Claim(
            "the inverse of the Fisher information is the error covariance",
            "the spread over series is 0.8 to 1.25 times the standard error from Λ⁻¹, at N_k = 200",
            ", ".join(f"{row[1]} {ratio:.2f}" for row, ratio in zip(last, ratios, strict=True)),
            all(0.8 < ratio < 1.25 for ratio in ratios),
        ),
    ]


def _percents(values: list[float]) -> str:
    return ", ".join(f"{value:.2%}" for value in values)


def _one_full_step(n: int) -> float:
    """Seconds of what one step of full GP learning needs at least: a factorization and an inverse of all of Σ."""
    X = np.arange(n, dtype=np.float64)[:, None]
    covariance = gram(RBF(np.sqrt(2)) + WhiteKernel(1e-3), X)
    began = time.perf_counter()
    factor, _ = lapack.dpotrf(covariance, lower=1)
    lapack.dpotri(factor, lower=1)
    return time.perf_counter() - began


def _running(size: int, draw: int, theta: Floats, errors: Floats, seconds: float) -> pd.DataFrame:
    columns: dict[str, Any] = {"N_k": size, "series": draw, "segments read": np.arange(1, len(theta) + 1)}
    for i, name in enumerate(NAMES):
        columns |= {name: np.exp(theta[:, i]), f"relative standard error of {name}": errors[:, i]}
    return pd.DataFrame(columns)


def _estimates(y: Floats, size: int) -> Estimates:
    X = np.arange(len(y), dtype=np.float64)[:, None]
    kernel = ConstantKernel(1.0) * RBF(1.0)
    began = time.perf_counter()
    result = learn(
        kernel,
        X,
        y,
        segment(X, size, "sequential"),
        learning=FisherAverage(tolerance=None, start="kernel"),
        warn=False,
    )
    seconds = time.perf_counter() - began
    history = result.history[:-1]  # the last repeats the whole
    # The kernel has log (α², ℓ), where θ = √2 ℓ.
    theta = np.array([step.theta * [0.5, 1.0] + [0.0, 0.5 * np.log(2)] for step in history])
    return Estimates(theta, np.array([step.standard_errors * [0.5, 1.0] for step in history]), seconds)


def _draw(axis: Any, found: list[Estimates], parameter: int) -> None:
    for number, each in enumerate(found[1:10]):
        places, path = np.arange(1, len(each.theta) + 1), np.exp(each.theta[:, parameter])
        axis.plot(places, path, color=style.GRAY, lw=0.6, alpha=0.7, label=None if number else "other series")
    theta, errors = found[0].theta[:, parameter], found[0].errors[:, parameter]
    places = np.arange(1, len(theta) + 1)
    band = np.exp(theta - 2 * errors), np.exp(theta + 2 * errors)
    axis.fill_between(places, *band, color=style.BLUE, alpha=0.25, lw=0, label="± 2 standard errors")
    axis.plot(places, np.exp(theta), color=style.BLUE, lw=1.5, label="one series")
    axis.axhline(TRUTH[parameter], color=style.ORANGE, lw=1.2, label="truth")
    axis.set_ylim(TRUTH[parameter] * np.array(_SHOWN[parameter]))
