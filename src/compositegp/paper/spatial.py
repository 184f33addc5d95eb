"""The paper's random field: a grid with a box held out."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from compositegp.analysis import Report, compare, predictor
from compositegp.backend import Floats
from compositegp.composite import Composite, Observations, segment
from compositegp.paper.claims import Claim, Experiment, table, write_csv
from compositegp.plotting import style
from compositegp.posteriors import factorize
from compositegp.simulate import stationary_field

SIDE = 64
"""Points along each axis of the paper's grid."""
_NOISE = 1e-6  # the paper has no noise, so that its covariances are singular in double precision
_SETTING = (
    "A Gaussian random field on a {side} × {side} grid, α = 1, θ₁ = θ₂ = 8 (noise variance 1e-6), drawn by circulant "
    "embedding; a {box} × {box} box in the middle is held out ({count} points; the paper says 512, which a grid of "
    "4,096 less 3,840 does not leave). CGP with K segments, FITC with {inducing} inducing points on a grid; "
    "data-averaged errors over {draws} realisations, and the closed form of `analysis`."
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
        Realisations of the field.
    seed : int
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    kernel = RBF(8 / np.sqrt(2)) + WhiteKernel(_NOISE)
    grid, held = held_out_box(side)
    X, Z, box = grid[~held], grid[held], int(np.sqrt(held.sum()))
    fields = stationary_field(RBF(8 / np.sqrt(2)), (side, side), n_draws=draws, random_state=seed).reshape(
        draws, -1
    )
    noise = np.sqrt(_NOISE) * np.random.default_rng(seed).standard_normal((draws, len(X)))
    ys, zs = fields[:, ~held] + noise, fields[:, held]
    methods = _methods(X, side)
    means, variances, seconds, reports = {}, {}, {}, {}
    for number, method in enumerate(methods):
        began = time.perf_counter()
        factored = factorize(kernel, X, ys[0], method.composite)
        belief = factored.posterior(Z, inducing=method.inducing)
        seconds[method.name] = time.perf_counter() - began
        variances[method.name] = belief.variance
        if method.name == "GP":  # its weights do not depend on the data
            data = Observations.checked(kernel, X, ys[0], mean=None, noise_variance=None)
            means["GP"] = ys @ predictor(data, Z, method.composite, None).coefficients.T
        else:
            others = [
                factorize(kernel, X, y, method.composite).posterior(Z, inducing=method.inducing).mean
                for y in ys[1:]
            ]
            means[method.name] = np.array([belief.mean, *others])
        reports[method.name] = compare(kernel, X, Z, method.composite, inducing=method.inducing)
        report(number + 1, len(methods))
    rows = []
    for method in methods[1:]:
        squares = ((means[method.name] - means["GP"]) ** 2).mean(axis=1)
        error = squares.std(ddof=1) / np.sqrt(draws)
        expected = reports[method.name].excess_mse.mean()
        rows.append(
            (method.name, squares.mean(), error, expected, variances[method.name].mean(), seconds[method.name])
        )
    columns = ("method", "excess error, measured", "±", "closed form", "variance claimed", "seconds")
    write_csv(out / "spatial.csv", columns, rows)
    experiment = Experiment(
        "spatial",
        "Synthetic spatial data",
        _SETTING.format(side=side, box=box, count=len(Z), inducing=len(methods[-1].inducing), draws=draws),
    )
    experiment.claims = _claims(rows, variances, seconds)
    shown = ["GP", "CGP, 4 tiles", "CGP, 16 tiles", methods[-1].name]
    _draw(out / "spatial.png", shown, {name: values[0] for name, values in means.items()}, variances, zs[0], box)
    _draw_errors(out / "spatial_errors.png", shown[1:], means, reports, box)
    experiment.pictures = [
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


def _methods(X: Floats, side: int) -> list[Method]:
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


def _claims(rows: list[Any], variances: dict[str, Floats], seconds: dict[str, float]) -> list[Claim]:
    measured = {name: value for name, value, *_ in rows}
    fitc = rows[-1][0]
    four, sixteen = "CGP, 4 sequential", "CGP, 16 sequential"
    off = max(abs(value - expected) / max(error, 1e-300) for _, value, error, expected, *_ in rows)
    ratio = {name: variances[name].mean() / variances["GP"].mean() for name in (four, sixteen, fitc)}
    names = ("tiles", "sequential", "random", "interleaved")
    schemes = ", ".join(f"{name} {measured[f'CGP, 16 {name}']:.1e}" for name in names)
    sixteens = [measured[f"CGP, 16 {name}"] for name in names]
    return [
        Claim(
            "the CGP's variances are slightly higher than the GP's",
            f"{ratio[four]:.2f} times with K = 4, {ratio[sixteen]:.2f} with 16",
            1.0 < ratio[four] < 1.5,
        ),
        Claim("the SGP's are significantly higher", f"{ratio[fitc]:.0f} times", ratio[fitc] > 5),
        Claim(
            "from 4 to 16 segments the additional error increases",
            f"{measured[four]:.1e} to {measured[sixteen]:.1e}",
            measured[four] < measured[sixteen],
        ),
        Claim(
            "and the computation time falls",
            f"{seconds[four]:.2f} s to {seconds[sixteen]:.2f} s; the GP takes {seconds['GP']:.2f} s",
            seconds[sixteen] < seconds[four] < seconds["GP"],
        ),
        Claim(
            "the SGP's additional error is notably higher",
            f"{measured[fitc]:.1e}",
            measured[fitc] > 10 * measured[sixteen],
        ),
        Claim(
            "Theorem 2: excess errors have a closed form",
            f"measured within {off:.1f} standard errors of it",
            off < 4,
        ),
        Claim(
            "(not in the paper) the choice of segments matters",
            f"K = 16: {schemes}",
            max(sixteens) > 2 * min(sixteens),
        ),
    ]


def _draw(
    path: Path, names: list[str], means: dict[str, Floats], variances: dict[str, Floats], truth: Floats, box: int
) -> None:
    figure, axes = style.figure(2, len(names) + 1, size=(14, 5.2))
    ends = float(truth.min()), float(truth.max())
    panels = [("truth", truth), *((name, means[name]) for name in names)]
    for (name, values), axis in zip(panels, axes[0], strict=True):
        image = axis.imshow(values.reshape(box, box), cmap="viridis", vmin=ends[0], vmax=ends[1])
        axis.set(title=name, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes[0], label="value, mean")
    axes[1, 0].axis("off")
    floor = min(values.min() for values in variances.values())
    for name, axis in zip(names, axes[1, 1:], strict=True):
        shown = np.log10(np.maximum(variances[name], floor)).reshape(box, box)
        image = axis.imshow(shown, cmap="cividis", vmin=np.log10(floor), vmax=0)
        axis.set(xticks=[], yticks=[])
    figure.colorbar(image, ax=axes[1], label="log₁₀ of the variance")
    style.save(figure, path)


def _draw_errors(
    path: Path, names: list[str], means: dict[str, Floats], reports: dict[str, Report], box: int
) -> None:
    figure, axes = style.figure(2, len(names), size=(10, 5.6))
    for name, column in zip(names, axes.T, strict=True):
        measured = ((means[name] - means["GP"]) ** 2).mean(axis=0)
        for values, axis in zip((measured, reports[name].excess_mse), column, strict=True):
            image = axis.imshow(
                np.log10(np.maximum(values, 1e-12)).reshape(box, box), cmap="cividis", vmin=-8, vmax=0
            )
            axis.set(xticks=[], yticks=[])
        column[0].set_title(name)
    axes[0, 0].set_ylabel("measured")
    axes[1, 0].set_ylabel("closed form")
    figure.colorbar(image, ax=axes, label="log₁₀ of the excess error")
    style.save(figure, path)
