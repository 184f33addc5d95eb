"""The pictures of the paper's random field."""

from pathlib import Path
from typing import Any

import numpy as np

from compositegp.analysis import Report
from compositegp.backend import Floats
from compositegp.plotting import style


def draw_field(path: Path, field: Floats, Z: Floats, inducing: Floats) -> None:
    """A realization, the box that is held out and the inducing points."""
    figure, axes = style.figure(size=(5.4, 4.4))
    drawn = axes.contourf(field.T, levels=20, cmap="viridis")
    corner, extent = Z.min(axis=0) - 0.5, np.ptp(Z, axis=0) + 1
    axes.plot(
        corner[0] + extent[0] * np.array([0, 1, 1, 0, 0]),
        corner[1] + extent[1] * np.array([0, 0, 1, 1, 0]),
        color="red",
        lw=2,
        label="held out",
    )
    axes.plot(*inducing.T, "o", color="blue", mec="white", ms=4, label="inducing points of FITC")
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
    figure.colorbar(drawn, ax=axes, label="value")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    style.save(figure, path)


def draw_predictions(
    path: Path, names: list[str], means: dict[str, Floats], variances: dict[str, Floats], truth: Floats, Z: Floats
) -> None:
    """Means and variances in the box."""
    figure, axes = style.figure(2, len(names) + 1, size=(14, 5.8), sharex=True, sharey=True)
    ends = float(truth.min()), float(truth.max())
    panels = [("truth", truth), *((name, means[name]) for name in names)]
    for (name, values), axis in zip(panels, axes[0], strict=True):
        image = _show_box(axis, values, Z, ends, "viridis")
        axis.set_title(f"{name}: mean" if name in names else name, fontsize=10)
    figure.colorbar(image, ax=axes[0], label="value, mean")
    axes[1, 0].axis("off")
    floor = min(values.min() for values in variances.values())
    for name, axis in zip(names, axes[1, 1:], strict=True):
        shown = np.log10(np.maximum(variances[name], floor))
        image = _show_box(axis, shown, Z, (float(np.log10(floor)), 0.0), "cividis")
        axis.set_title(f"{name}: variance", fontsize=10)
        axis.set_xlabel("$x_1$")
    figure.colorbar(image, ax=axes[1], label="log₁₀ of the variance")
    for axis in (axes[0, 0], axes[1, 1]):
        axis.set_ylabel("$x_2$")
        axis.tick_params(labelleft=True)
    axes[0, 0].set_xlabel("$x_1$")
    axes[0, 0].tick_params(labelbottom=True)
    style.save(figure, path)


def draw_errors(
    path: Path, names: list[str], means: dict[str, Floats], reports: dict[str, Report], Z: Floats
) -> None:
    """Excess errors in the box, as measured and in closed form."""
    figure, axes = style.figure(2, len(names), size=(10, 6.4), sharex=True, sharey=True)
    for name, column in zip(names, axes.T, strict=True):
        measured = ((means[name] - means["GP"]) ** 2).mean(axis=0)
        rows = (("measured", measured), ("closed form", reports[name].excess_mse))
        for (kind, values), axis in zip(rows, column, strict=True):
            image = _show_box(axis, np.log10(np.maximum(values, 1e-12)), Z, (-8.0, 0.0), "cividis")
            axis.set_title(f"{name}: {kind}")
        column[1].set_xlabel("$x_1$")
    for axis in axes[:, 0]:
        axis.set_ylabel("$x_2$")
    figure.colorbar(image, ax=axes, label="log₁₀ of the excess error")
    style.save(figure, path)


def _show_box(axis: Any, values: Floats, Z: Floats, ends: tuple[float, float], colours: str) -> Any:
    """Values at the points `Z` of the box, with x₁ to the right and x₂ upwards."""
    from matplotlib.ticker import MaxNLocator

    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(MaxNLocator(4, integer=True))
    (left, bottom), (right, top) = Z.min(axis=0) - 0.5, Z.max(axis=0) + 0.5
    box = int(np.sqrt(len(Z)))
    return axis.imshow(
        values.reshape(box, box).T,
        origin="lower",
        extent=(left, right, bottom, top),
        cmap=colours,
        vmin=ends[0],
        vmax=ends[1],
    )
