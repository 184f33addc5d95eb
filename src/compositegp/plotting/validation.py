"""Pictures of how good predictions are, and of how many neighbors they need."""

from itertools import cycle
from typing import Any

import numpy as np

from compositegp.estimators import ValidationReport
from compositegp.plotting import style
from compositegp.prediction import NeighborCurve

_LEVELS = np.linspace(0.02, 0.99, 50)
_SIZE = (11, 3.4)  # inches


def plot_validation(report: ValidationReport, unit: str = "length scales") -> Any:
    """Draw errors against the distance to the data, the PIT histogram, and the reliability at all levels.

    Parameters
    ----------
    report : ValidationReport
        From `CompositeGPRegressor.validate`.
    unit : str
        Of distances, in words: they are in length scales of the kernel, and may tell how long these are.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from compositegp import CompositeGPRegressor
    >>> X = np.linspace(0, 9, 60)[:, None]
    >>> figure = plot_validation(CompositeGPRegressor().fit(X, np.sin(X[:, 0])).validate())
    >>> len(figure.axes)
    3
    """
    figure, axes = style.interactive_figure(1, 3, size=_SIZE)
    _draw(report, axes, unit)
    return figure


def _draw(report: ValidationReport, axes: Any, unit: str) -> None:
    left, middle, right = axes
    table = report.table
    left.plot(table["distance"], table["RMSE"], "o-", color=style.BLUE, label="RMSE")
    left.plot(table["distance"], table["CRPS"], "s-", color=style.ORANGE, label="CRPS")
    claimed = [float(np.sqrt(np.mean(part.predicted.std**2))) for part in report.parts]
    left.plot(table["distance"], claimed, "--", color=style.GRAY, label="predicted RMSE")
    left.set(
        xlabel=style.literal(f"distance to the nearest data ({unit})"),
        ylabel="error (unit of the target)",
        title="Error against distance",
    )
    left.legend(frameon=False)
    middle.hist(report.pit, bins=20, range=(0, 1), density=True, color=style.BLUE, alpha=0.6)
    middle.axhline(1.0, color=style.GRAY, lw=1, label="calibrated")
    middle.set(xlabel="probability integral transform", ylabel="density", title="PIT: flat where calibrated")
    middle.legend(frameon=False, loc="upper center")
    right.plot([0, 1], [0, 1], color=style.GRAY, lw=1, label="calibrated")
    right.plot(_LEVELS, report.reliability(_LEVELS), color=style.BLUE, label="found")
    right.set(xlabel="level of the interval", ylabel="share inside", title="Reliability", xlim=(0, 1), ylim=(0, 1))
    right.legend(frameon=False)


def draw_validation(report: ValidationReport, unit: str = "length scales") -> bytes:
    r"""Draw the picture of `plot_validation` for a file.

    Parameters
    ----------
    report : ValidationReport
        From `CompositeGPRegressor.validate`.
    unit : str
        Of distances, as in `plot_validation`.

    Returns
    -------
    bytes
        Content of a PNG file.

    Examples
    --------
    >>> from compositegp import CompositeGPRegressor
    >>> X = np.linspace(0, 9, 60)[:, None]
    >>> draw_validation(CompositeGPRegressor(learning=None).fit(X, np.sin(X[:, 0])).validate())[:4]
    b'\x89PNG'
    """
    figure, axes = style.figure(1, 3, size=_SIZE)
    _draw(report, axes, unit)
    return style.png(figure, dpi=110)


def plot_neighbor_curve(curve: NeighborCurve) -> Any:
    """Draw the expected loss of log score against the number of neighbors.

    Parameters
    ----------
    curve : NeighborCurve
        ``model.neighbor_curve_``.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> curve = NeighborCurve(np.array([64, 128, 256]), np.array([0]), np.array([[0.02, 0.0004, 0.0]]))
    >>> len(plot_neighbor_curve(curve).axes)
    1
    """
    figure, axes = style.interactive_figure(size=(5, 3.4))
    colors = cycle((style.BLUE, style.ORANGE, style.GREEN, style.BLACK))
    for skip, loss, color in zip(curve.skipped, curve.loss, colors, strict=False):
        label = "near the data" if skip == 0 else f"without the {skip} nearest"
        axes.plot(curve.n_neighbors, np.maximum(loss, 1e-6), "o-", color=color, label=label)
    axes.axvline(curve.smallest(), color=style.GRAY, ls="--", lw=1, label="chosen")
    axes.set(xscale="log", yscale="log", xlabel="neighbors", ylabel="expected loss of log score (nats)")
    axes.set_xticks(curve.n_neighbors, [str(count) for count in curve.n_neighbors])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower left")
    return figure
