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
from compositegp.composite import fisher_information
from compositegp.kernels import gram
from compositegp.paper.claims import Experiment, picture, table, write_csv, write_frame
from compositegp.paper.learning_claims import (
    NAMES,
    average_claims,
    recursion_claim,
    robustness_claim,
    segment_claims,
)
from compositegp.paper.misspecification import estimate_by_segments, estimates_table, joint_models
from compositegp.plotting import style
from compositegp.simulate import stationary_field

SIZES = (50, 100, 200)
TRUTH = np.array([1.0, 2.0])  # α, θ
_KERNEL = ConstantKernel(1.0) * RBF(np.sqrt(2))  # has log (α², ℓ), where θ = √2 ℓ
_SCALE, _SHIFT = np.array([0.5, 1.0]), np.array([0.0, 0.5 * np.log(2)])  # from there to log (α, θ)
# A covariance of unit steps without noise is singular in double precision if its length scale is above 2.6. A search
# that tries one may end there, away from the maximum.
_START = ConstantKernel(1.0) * RBF(1.0, (0.1, 2.4))
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
_SEGMENT_COLUMNS = ("N_k", "segments", "error of α̂_k", "error of θ̂_k", "error of Ĵ_k")
_SETTING = (
    "A series of N = {n:,} unit steps with covariance α² exp(−τ²/θ²), α = 1, θ = 2, in segments of 50, 100 and 200: "
    "maximum likelihood in each, averaged by Fisher information; {draws} realizations, and {few} for the misspecified "
    "model. The search begins at α = 1, θ = 1.4 and keeps θ below 3.4, where the covariance is not yet singular in "
    "double precision. Errors are relative (of the logarithm)."
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
    segment_rows: list[tuple[Any, ...]] = []
    tables, parts, finals, differences = [], [], {}, {}
    for number, (size, column) in enumerate(zip(SIZES, axes.T, strict=True)):
        tasks = [delayed(_estimates)(y, size) for y in series]
        *found, at_once = Parallel(n_jobs=n_jobs)([*tasks, delayed(average_at_once)(series[0], size)])
        tables += [_running(size, draw, each) for draw, each in enumerate(found)]
        parts += [_of_segments(size, draw, each) for draw, each in enumerate(found)]
        segment_rows.append(_segment_row(size, found))
        finals[size] = final = np.array([each.theta[-1] for each in found]) - np.log(TRUTH)
        differences[size] = float(np.abs(at_once - found[0].theta[-1]).max())
        claimed = np.array([each.errors[-1] for each in found]).mean(axis=0)
        seconds = float(np.median([each.seconds for each in found]))
        for i, name in enumerate(NAMES):
            bias, spread = float(final[:, i].mean()), float(final[:, i].std(ddof=1))
            error = float(np.sqrt(np.mean(final[:, i] ** 2)))
            rows.append((size, name, error, bias, spread, float(claimed[i]), spread / float(claimed[i]), seconds))
            _draw(column[i], found, i)
        column[0].set_title(f"$N_k$ = {size}")
        column[1].set_xlabel("segments read")
        report(number + 1, len(SIZES) + 2)
    for axis, name in zip(axes[:, 0], NAMES, strict=True):
        axis.set_ylabel(f"estimate of {name}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    style.save(figure, picture(out, "learning.png"))
    write_csv(out / "learning.csv", _COLUMNS, rows)
    write_csv(out / "learning_segments.csv", _SEGMENT_COLUMNS, segment_rows)
    write_frame(out / "learning_estimates.csv", pd.concat(tables))
    write_frame(out / "learning_segment_estimates.csv", pd.concat(parts))
    few = max(draws // 4, 2)
    experiment = Experiment("learning", "Section 4.1: learning", _SETTING.format(n=n, draws=draws, few=few))
    experiment.claims = [
        recursion_claim(differences),
        *segment_claims(segment_rows),
        *average_claims(rows, finals, _one_full_step(n)),
    ]
    report(len(SIZES) + 1, len(SIZES) + 2)
    right, wrong = (
        each.scaled(_SCALE) for each in joint_models(_START, _KERNEL, draws=few, seed=seed, n_jobs=n_jobs)
    )
    write_frame(out / "learning_misspecified.csv", estimates_table({"right": right, "wrong": wrong}, NAMES, TRUTH))
    experiment.claims.append(robustness_claim(right, wrong))
    report(len(SIZES) + 2, len(SIZES) + 2)
    caption = "running estimates against the truth, for one series with ± 2 standard errors"
    experiment.pictures = [("learning.png", caption)]
    experiment.tables = [table(_COLUMNS, rows), table(_SEGMENT_COLUMNS, segment_rows)]
    return experiment


class Estimates(NamedTuple):
    """Running estimates of log (α, θ) after each segment.

    Attributes
    ----------
    theta, errors : array of shape (segments, 2)
        Estimates, and their standard errors.
    information : array of shape (segments, 2, 2)
        Λ, the sum of the segments' Fisher information.
    seconds : float
    """

    theta: Floats
    errors: Floats
    information: Floats
    seconds: float

    def of_segments(self) -> tuple[Floats, Floats]:
        """Each segment's own estimate θ̂_k, shape (segments, 2), and information Ĵ_k, shape (segments, 2, 2).

        These are the steps of the recursion Λ_k = Λ_{k−1} + Ĵ_k, s_k = s_{k−1} + Ĵ_k θ̂_k.
        """
        shift = np.einsum("kij,kj->ki", self.information, self.theta)
        J = np.diff(self.information, axis=0, prepend=np.zeros((1, 2, 2)))
        return np.linalg.solve(J, np.diff(shift, axis=0, prepend=np.zeros((1, 2)))[..., None])[..., 0], J


def average_at_once(y: Floats, size: int) -> Floats:
    """The paper's average (Σ Ĵ_k)⁻¹ Σ Ĵ_k θ̂_k of log (α, θ), shape (2,): every segment is a series by itself."""
    alone = [_estimates(y[first : first + size], size, first) for first in range(0, len(y), size)]
    total = np.sum([each.information[-1] for each in alone], axis=0)
    weighted = np.sum([each.information[-1] @ each.theta[-1] for each in alone], axis=0)
    return np.asarray(np.linalg.solve(total, weighted))


def _segment_row(size: int, found: list[Estimates]) -> tuple[Any, ...]:
    """Errors of the segments' own estimates and informations, root mean squares over all segments and series."""
    theta, J = (np.concatenate(each) for each in zip(*(one.of_segments() for one in found), strict=True))
    errors = np.sqrt(np.mean((theta - np.log(TRUTH)) ** 2, axis=0))
    true = fisher_information(_KERNEL, np.arange(size, dtype=np.float64)[:, None]) / np.outer(_SCALE, _SCALE)
    root = np.linalg.cholesky(true)
    whitened = np.linalg.solve(root, np.linalg.solve(root, J).transpose(0, 2, 1))
    error = np.sqrt(np.mean(np.sum((whitened - np.eye(2)) ** 2, axis=(1, 2))) / 2)
    return size, len(theta), *map(float, errors), float(error)


def _one_full_step(n: int) -> float:
    """Seconds of what one step of full GP learning needs at least: a factorization and an inverse of all of Σ."""
    X = np.arange(n, dtype=np.float64)[:, None]
    covariance = gram(RBF(np.sqrt(2)) + WhiteKernel(1e-3), X)
    began = time.perf_counter()
    factor, _ = lapack.dpotrf(covariance, lower=1)
    lapack.dpotri(factor, lower=1)
    return time.perf_counter() - began


def _running(size: int, draw: int, found: Estimates) -> pd.DataFrame:
    columns: dict[str, Any] = {"N_k": size, "series": draw, "segments read": np.arange(1, len(found.theta) + 1)}
    for i, name in enumerate(NAMES):
        columns |= {name: np.exp(found.theta[:, i]), f"relative standard error of {name}": found.errors[:, i]}
    return pd.DataFrame(columns)


def _of_segments(size: int, draw: int, found: Estimates) -> pd.DataFrame:
    theta, J = found.of_segments()
    columns: dict[str, Any] = {"N_k": size, "series": draw, "segment": np.arange(1, len(theta) + 1)}
    columns |= {name: np.exp(theta[:, i]) for i, name in enumerate(NAMES)}
    for i, j in ((0, 0), (0, 1), (1, 1)):
        columns[f"information {NAMES[i]}{NAMES[j]}"] = J[:, i, j]
    return pd.DataFrame(columns)


def _estimates(y: Floats, size: int, first: int = 0) -> Estimates:
    began = time.perf_counter()
    result = estimate_by_segments(_START, y, size, first)
    seconds = time.perf_counter() - began
    history = result.history[:-1]  # the last repeats the whole
    return Estimates(
        np.array([step.theta * _SCALE + _SHIFT for step in history]),
        np.array([step.standard_errors * _SCALE for step in history]),
        np.array([step.information for step in history]) / np.outer(_SCALE, _SCALE),
        seconds,
    )


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
