"""Pictures of what an approximation costs; they need matplotlib (``pip install 'compositegp[plot]'``)."""

from typing import Any

import numpy as np

from compositegp.analysis import Design, Report
from compositegp.validation import check_points

# Colour-blind safe (Okabe and Ito).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#888888"


def plot_errors(report: Report, Z: Any, *, axes: Any = None) -> Any:
    """Draw the excess error over the test points, with the exact Gaussian process's own beneath it.

    Parameters
    ----------
    report : Report
    Z : array of shape (M, 1) or (M, 2)
        The test points: one column is drawn as a line, two as a map of the excess.
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    points = check_points(Z, "Z")
    if len(points) != len(report.excess_mse) or points.shape[1] > 2:
        raise ValueError(
            f"Z must be the {len(report.excess_mse)} test points of the report, in one or two columns; found shape "
            f"{points.shape}."
        )
    axes = _axes(axes)
    if points.shape[1] == 1:
        order = np.argsort(points[:, 0])
        place = points[order, 0]
        axes.fill_between(place, report.exact_variance[order], color=GREY, alpha=0.4, label="exact GP")
        axes.plot(place, report.actual_mse[order], color=ORANGE, label="composite, actual")
        axes.plot(place, report.claimed_variance[order], "--", color=BLUE, label="composite, claimed")
        axes.set(xlabel="test point", ylabel="mean squared error", ylim=(0, None))
        axes.legend(frameon=False)
    else:
        drawn = axes.scatter(*points.T, c=report.excess_mse, cmap="viridis", s=12, marker="s")
        axes.figure.colorbar(drawn, ax=axes, label="excess mean squared error")
        axes.set(xlabel="column 0", ylabel="column 1", aspect="equal")
    return axes


def plot_confidence(report: Report, *, axes: Any = None) -> Any:
    """Draw the variance that is claimed against the actual error, one dot for each test point.

    Below the line a composite is over-confident.

    Parameters
    ----------
    report : Report
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    axes = _axes(axes)
    colours = {"over-confident": ORANGE, "faithful": GREEN, "under-confident": BLUE}
    for verdict, colour in colours.items():
        chosen = report.confidence == verdict
        if chosen.any():
            label = f"{verdict} ({int(chosen.sum())})"
            axes.scatter(
                report.actual_mse[chosen],
                report.claimed_variance[chosen],
                s=14,
                color=colour,
                label=label,
                alpha=0.7,
            )
    both = np.concatenate([report.actual_mse, report.claimed_variance])
    ends = max(both.min(), 1e-300) * 0.9, both.max() * 1.1
    axes.plot(ends, ends, color=GREY, lw=1)
    axes.set(xscale="log", yscale="log", xlabel="actual mean squared error", ylabel="claimed variance")
    axes.legend(frameon=False)
    return axes


def plot_trade_off(design: Design, *, axes: Any = None) -> Any:
    """Draw the excess error of each plan against its seconds, with the line of those that none is better than.

    Parameters
    ----------
    design : Design
    axes : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    axes = _axes(axes)
    least = min((c.excess for c in design.candidates if c.excess > 0), default=1e-6)
    kinds = [
        ("plain segments", "o", BLUE, [c for c in design.candidates if _is(c.plan, "composite", False)]),
        ("conditioned segments", "s", ORANGE, [c for c in design.candidates if _is(c.plan, "composite", True)]),
        ("nearest", "^", GREEN, [c for c in design.candidates if c.plan.prediction == "nearest"]),
    ]
    for label, marker, colour, chosen in kinds:
        if chosen:
            places = [c.seconds for c in chosen], [max(c.excess, least) for c in chosen]
            axes.scatter(*places, marker=marker, color=colour, s=22, label=label)
    frontier = design.frontier
    axes.plot([c.seconds for c in frontier], [max(c.excess, least) for c in frontier], color=GREY, lw=1, zorder=0)
    axes.annotate(
        str(design.best.plan),
        (design.best.seconds, max(design.best.excess, least)),
        xytext=(-6, -12),
        textcoords="offset points",
        ha="right",
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="seconds to predict, one core",
        ylabel="excess error, over the exact GP's",
    )
    axes.legend(frameon=False)
    return axes


def _is(plan: Any, prediction: str, conditioned: bool) -> bool:
    return plan.prediction == prediction and bool(plan.conditioning_size) is conditioned


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'compositegp[plot]'.") from error
    return pyplot.subplots(figsize=(6, 4), layout="constrained")[1]
