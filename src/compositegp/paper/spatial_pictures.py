"""The pictures of the paper's random field."""

from pathlib import Path

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
    path: Path, names: list[str], means: dict[str, Floats], variances: dict[str, Floats], truth: Floats, box: int
) -> None:
    """Means and variances in the box."""
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


def draw_errors(
    path: Path, names: list[str], means: dict[str, Floats], reports: dict[str, Report], box: int
) -> None:
    """Excess errors in the box, as measured and in closed form."""
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
