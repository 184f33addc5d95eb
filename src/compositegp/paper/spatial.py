"""The paper's random field: a grid with a box held out."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from compositegp.analysis import Report, compare
from compositegp.backend import Floats
from compositegp.composite import Composite, segment
from compositegp.kernels import gram
from compositegp.paper.claims import Experiment, picture, table, write_csv, write_frame
from compositegp.paper.spatial_claims import field_claims, simulation_claim, size_claim
from compositegp.paper.spatial_pictures import draw_errors, draw_field, draw_predictions
from compositegp.posteriors import factorize
from compositegp.simulate import stationary_field

SIDE = 64
"""Points along each axis of the paper's grid."""
_NOISE = 1e-6  # the paper has no noise, so that its covariances are singular in double precision
SIGNAL = RBF(8 / np.sqrt(2))
KERNEL = SIGNAL + WhiteKernel(_NOISE)
_SETTING = (
    "A Gaussian random field on a {side} × {side} grid, α = 1, θ₁ = θ₂ = 8 (noise variance 1e-6), drawn by circulant "
    "embedding; a {box} × {box} box in the middle is held out ({count} points). "
    "CGP with K segments, FITC with {inducing} inducing points on a grid; "
    "data-averaged errors over {draws} realizations, and the closed form of `analysis`. The paper does not say how its "
    "segments are made: four ways are tried, and its pictures are drawn for square tiles."
)


class Method(NamedTuple):
    """A choice of terms."""

    name: str
    composite: Composite
    inducing: Any = None


def run(
    out: Path,
    *,
    side: int = SIDE,
    draws: int = 100,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda a, b: None,
) -> Experiment:
    """Reproduce the figures and their claims.

    Parameters
    ----------
    out : Path
        Folder for figures and tables.
    side : int
        Points along each axis of the grid.
    draws : int
        Realizations of the field.
    seed : int
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    kernel = KERNEL
    grid, held = held_out_box(side)
    X, Z, box = grid[~held], grid[held], int(np.sqrt(held.sum()))
    began = time.perf_counter()
    fields = stationary_field(SIGNAL, (side, side), n_draws=draws, random_state=seed).reshape(draws, -1)
    drawn_in = time.perf_counter() - began
    noise = np.sqrt(_NOISE) * np.random.default_rng(seed).standard_normal((draws, len(X)))
    ys, zs = fields[:, ~held] + noise, fields[:, held]
    methods = methods_for(X, side)
    means, variances, seconds, reports = {}, {}, {}, {}
    for number, method in enumerate(methods):
        seconds[method.name] = min(_seconds(kernel, X, ys[0], Z, method) for _ in range(3))
        # All realizations in one call: they share their factorizations.
        belief = factorize(kernel, X, ys.T, method.composite).posterior(Z, inducing=method.inducing)
        means[method.name], variances[method.name] = belief.mean.T, belief.variance
        reports[method.name] = compare(kernel, X, Z, method.composite, inducing=method.inducing)
        report(number + 1, len(methods))
    rows = []
    for method in methods:
        squares = ((means[method.name] - means["GP"]) ** 2).mean(axis=1)
        error = squares.std(ddof=1) / np.sqrt(draws)
        expected = reports[method.name].excess_mse.mean()
        rows.append(
            (method.name, squares.mean(), error, expected, variances[method.name].mean(), seconds[method.name])
        )
    columns = ("method", "excess error, measured", "±", "closed form", "variance claimed", "seconds")
    write_csv(out / "spatial.csv", columns, rows)
    _write_predictions(out, Z, zs, means, variances, reports)
    experiment = Experiment(
        "spatial",
        "Section 6.2: synthetic spatial data",
        _SETTING.format(side=side, box=box, count=len(Z), inducing=len(methods[-1].inducing), draws=draws),
    )
    experiment.claims = [
        size_claim(len(X), len(Z), side),
        simulation_claim(drawn_in, draws, _cholesky_seconds(grid)),
        *field_claims(rows),
    ]
    shown = ["GP", "CGP, 4 tiles", "CGP, 16 tiles", methods[-1].name]
    draw_field(picture(out, "spatial_field.png"), fields[0].reshape(side, side), Z, methods[-1].inducing)
    first = {name: values[0] for name, values in means.items()}
    draw_predictions(picture(out, "spatial.png"), shown, first, variances, zs[0], Z)
    draw_errors(picture(out, "spatial_errors.png"), shown[1:], means, reports, Z)
    experiment.pictures = [
        ("spatial_field.png", "a realization: the points in the red box are held out, dots are inducing points"),
        ("spatial.png", "means and variances in the box"),
        ("spatial_errors.png", "data-averaged excess error: measured above, closed form below"),
    ]
    experiment.tables = [table(columns, rows)]
    return experiment


def held_out_box(side: int = SIDE) -> tuple[Floats, Any]:
    """A square grid, and a box in the middle of it that is held out.

    Parameters
    ----------
    side : int
        Points along each axis.

    Returns
    -------
    array of shape (side², 2)
    boolean array of shape (side²,)
        Which points are in the box.

    Examples
    --------
    >>> grid, held = held_out_box(8)
    >>> len(grid), grid[held].tolist()
    (64, [[3.0, 3.0], [3.0, 4.0], [4.0, 3.0], [4.0, 4.0]])
    """
    box = side // 4
    grid = np.stack(np.meshgrid(*[np.arange(side, dtype=float)] * 2, indexing="ij"), -1).reshape(-1, 2)
    return grid, ((grid >= 1.5 * box) & (grid < 2.5 * box)).all(axis=1)


def methods_for(X: Floats, side: int) -> list[Method]:
    """The methods that are compared, for observations `X` of a grid: the GP first, FITC last."""
    n = len(X)
    per_axis = max(side // 8, 2)
    ticks = (np.arange(per_axis) + 0.5) * side / per_axis - 0.5
    inducing = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)
    found = [Method("GP", Composite.full(n))]
    for count in (4, 16):
        half = int(np.sqrt(count))
        tile = (X // (side / half)) @ [half, 1]
        found.append(Method(f"CGP, {count} tiles", Composite.marginal(segment(X, n, tile))))
        for scheme in ("sequential", "interleaved", "random"):
            parts = segment(X, -(-n // count), scheme, random_state=0)
            found.append(Method(f"CGP, {count} {scheme}", Composite.marginal(parts)))
    return [*found, Method(f"FITC, {len(inducing)} inducing", Composite.pointwise(n), inducing)]


def _cholesky_seconds(grid: Floats) -> float:
    """Seconds of the Cholesky factor of a grid's covariance, which a draw without circulant embedding needs."""
    covariance = gram(KERNEL, grid)
    began = time.perf_counter()
    lapack.dpotrf(covariance, lower=1)
    return time.perf_counter() - began


def _seconds(kernel: Any, X: Floats, y: Floats, Z: Floats, method: Method) -> float:
    """Seconds of one prediction."""
    began = time.perf_counter()
    factorize(kernel, X, y, method.composite).posterior(Z, inducing=method.inducing)
    return time.perf_counter() - began


def _write_predictions(
    out: Path,
    Z: Floats,
    zs: Floats,
    means: dict[str, Floats],
    variances: dict[str, Floats],
    reports: dict[str, Report],
) -> None:
    """What the pictures show for each point of the box, and the means of every realization."""
    tables, every = [], []
    places = {"x1": Z[:, 0], "x2": Z[:, 1]}
    for name, found in means.items():
        measured = ((found - means["GP"]) ** 2).mean(axis=0)
        columns = {"variance": variances[name], "excess, measured": measured, "closed": reports[name].excess_mse}
        tables.append(pd.DataFrame({"method": name} | places | columns))
        draws, points = found.shape
        every.append(
            pd.DataFrame(
                {
                    "method": name,
                    "realization": np.repeat(np.arange(draws), points),
                    "x1": np.tile(Z[:, 0], draws),
                    "x2": np.tile(Z[:, 1], draws),
                    "truth": zs.ravel(),
                    "mean": found.ravel(),
                }
            )
        )
    write_frame(out / "spatial_points.csv", pd.concat(tables).rename(columns={"closed": "excess, closed form"}))
    write_frame(out / "spatial_predictions.csv", pd.concat(every))
