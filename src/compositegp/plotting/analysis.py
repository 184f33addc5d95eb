"""Pictures of the cost of an approximation."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from compositegp.analysis import Report
from compositegp.design import Design, Plan
from compositegp.plotting.style import BLUE, GRAY, GREEN, ORANGE, interactive_axes
from compositegp.validation import check_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_errors(report: Report, Z: ArrayLike, *, axes: "Axes | None" = None) -> "Axes":
    """Draw claimed and actual errors of a composite over the test points, and those of the exact Gaussian process.

    Parameters
    ----------
    report : Report
    Z : array of shape (M, 1) or (M, 2)
        The test points. One column is drawn as lines, two as a map of the excess error.
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from compositegp import Composite, analysis
    >>> from compositegp.plotting import style
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X, Z = np.arange(8.0)[:, None], np.array([[3.5], [6.5]])
    >>> report = analysis.compare(RBF() + WhiteKernel(0.1), X, Z, Composite.pointwise(8))
    >>> plot_errors(report, Z, axes=style.figure(size=(6, 4))[1]).get_ylabel()
    'mean squared error'
    """
    points = check_points(Z, "Z")
    if len(points) != len(report.excess_mse) or points.shape[1] > 2:
        raise ValueError(
            f"Z must be the {len(report.excess_mse)} test points of the report, in one or two columns; found shape "
            f"{points.shape}."
        )
    axes = interactive_axes(axes)
    if points.shape[1] == 1:
        order = np.argsort(points[:, 0])
        place = points[order, 0]
        axes.fill_between(place, report.exact_variance[order], color=GRAY, alpha=0.4, label="exact GP")
        axes.plot(place, report.actual_mse[order], color=ORANGE, label="composite, actual")
        axes.plot(place, report.claimed_variance[order], "--", color=BLUE, label="composite, claimed")
        axes.set(xlabel="test point", ylabel="mean squared error", ylim=(0, None))
        axes.legend(frameon=False)
    else:
        drawn = axes.scatter(points[:, 0], points[:, 1], c=report.excess_mse, cmap="viridis", s=12, marker="s")
        axes.figure.colorbar(drawn, ax=axes, label="excess mean squared error")
        axes.set(xlabel="column 0", ylabel="column 1", aspect="equal")
    return axes


def plot_confidence(report: Report, *, axes: "Axes | None" = None) -> "Axes":
    """Draw the claimed variance against the actual error, one dot for each test point.

    Below the line a composite is over-confident.

    Parameters
    ----------
    report : Report
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from compositegp import Composite, analysis
    >>> from compositegp.plotting import style
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X, Z = np.arange(8.0)[:, None], np.array([[3.5], [6.5]])
    >>> report = analysis.compare(RBF() + WhiteKernel(0.1), X, Z, Composite.pointwise(8))
    >>> plot_confidence(report, axes=style.figure(size=(6, 4))[1]).get_ylabel()
    'claimed variance'
    """
    axes = interactive_axes(axes)
    colors = {"over-confident": ORANGE, "faithful": GREEN, "under-confident": BLUE}
    for verdict, color in colors.items():
        chosen = report.confidence == verdict
        if chosen.any():
            label = f"{verdict} ({int(chosen.sum())})"
            axes.scatter(
                report.actual_mse[chosen],
                report.claimed_variance[chosen],
                s=14,
                color=color,
                label=label,
                alpha=0.7,
            )
    both = np.concatenate([report.actual_mse, report.claimed_variance])
    ends = max(both.min(), 1e-300) * 0.9, both.max() * 1.1
    axes.plot(ends, ends, color=GRAY, lw=1)
    axes.set(xscale="log", yscale="log", xlabel="actual mean squared error", ylabel="claimed variance")
    _label_minor_ticks(axes)
    axes.legend(frameon=False)
    return axes


def plot_trade_off(design: Design, *, axes: "Axes | None" = None) -> "Axes":
    """Draw the excess error of each plan against its seconds, and the Pareto frontier.

    Parameters
    ----------
    design : Design
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from compositegp.design import Candidate, Plan
    >>> from compositegp.plotting import style
    >>> cheap = Candidate(Plan("nearest", n_neighbors=8), 1.5, 0.5, 1.0, 1e6, 0.1)
    >>> good = Candidate(Plan("composite", "tree", 64), 1.1, 0.1, 0.9, 1e7, 0.5)
    >>> design = Design(good, [cheap, good], 1.0, False, 100)
    >>> plot_trade_off(design, axes=style.figure(size=(6, 4))[1]).get_xlabel()
    'seconds to predict, one core'
    """
    axes = interactive_axes(axes)
    least = min((c.excess for c in design.candidates if c.excess > 0), default=1e-6)
    kinds = [
        ("plain segments", "o", BLUE, [c for c in design.candidates if _is(c.plan, "composite", False)]),
        ("conditioned segments", "s", ORANGE, [c for c in design.candidates if _is(c.plan, "composite", True)]),
        ("nearest", "^", GREEN, [c for c in design.candidates if c.plan.prediction == "nearest"]),
    ]
    for label, marker, color, chosen in kinds:
        if chosen:
            places = [c.seconds for c in chosen], [max(c.excess, least) for c in chosen]
            axes.scatter(*places, marker=marker, color=color, s=22, label=label)
    frontier = design.frontier
    axes.plot([c.seconds for c in frontier], [max(c.excess, least) for c in frontier], color=GRAY, lw=1, zorder=0)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="seconds to predict, one core",
        ylabel="excess error, over the exact GP's",
    )
    axes.margins(x=0.08, y=0.18)  # room for the label of the best plan, below it
    _label_below(axes, str(design.best.plan), (design.best.seconds, max(design.best.excess, least)))
    _label_minor_ticks(axes)
    axes.legend(frameon=False)
    return axes


def _label_below(axes: "Axes", text: str, place: tuple[float, float]) -> None:
    """Write a text below a point, towards the middle of the axes: no better plan is below the best one."""
    across, _ = axes.transAxes.inverted().transform(axes.transData.transform(place))
    side = "right" if across > 0.5 else "left"
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}  # where the frontier passes
    axes.annotate(
        text, place, xytext=(0, -9), textcoords="offset points", ha=side, va="top", fontsize=9, bbox=behind
    )


def _label_minor_ticks(axes: "Axes") -> None:
    """Labels of few minor ticks of logarithmic axes, as decimal numbers, so that they do not touch."""
    from matplotlib.ticker import NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        digits = (2, 3, 5) if high / low < 15 else (2, 5) if high / low < 150 else ()
        axis.set_minor_formatter(partial(_minor_label, digits) if digits else NullFormatter())


def _minor_label(digits: tuple[int, ...], value: float, position: int) -> str:
    digit = round(value / 10 ** np.floor(np.log10(value) + 1e-9))
    return f"{value:g}" if digit in digits else ""


def _is(plan: Plan, prediction: str, conditioned: bool) -> bool:
    return plan.prediction == prediction and bool(plan.conditioning_size) is conditioned
