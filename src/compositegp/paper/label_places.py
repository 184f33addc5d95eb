"""Labels of the points of a picture: each close to its own marker, and on no other marker or label."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from compositegp.backend import Floats

_DIRECTIONS = 24
_RADII = (9.0, 11.0, 14.0, 18.0, 23.0)  # from the marker to the middle of its label, in points
_MARKER = 4.5  # half of the side of a marker, in points
_LEADER = 13.0  # a label farther away than this gets a line to its marker, in points
# What a place costs, where one more point of distance costs 1.
_ON_LABEL, _ON_MARKER, _ON_LINE = 2000.0, 1000.0, 10.0


class Label(NamedTuple):
    """A label of a marker.

    Attributes
    ----------
    text : str
    place : (float, float)
        The marker, in the unit of the axes.
    colour : str
    """

    text: str
    place: tuple[float, float]
    colour: str


def offsets_of(markers: Floats, sizes: Floats, others: Floats, lines: Floats) -> Floats:
    """Where labels stand, relative to their markers.

    Labels are placed one after the other, those of the most crowded markers first.

    Parameters
    ----------
    markers : array of shape (n, 2)
        Of the labels, in points of the page.
    sizes : array of shape (n, 2)
        Width and height of the labels, in points.
    others : array of shape (m, 2)
        Further markers, which have no label.
    lines : array of shape (l, 2)
        Places on lines, close to each other, which labels avoid if they can.

    Returns
    -------
    array of shape (n, 2)

    Examples
    --------
    >>> markers, nothing = np.array([[0.0, 0.0], [6.0, 0.0]]), np.zeros((0, 2))
    >>> offsets = offsets_of(markers, np.full((2, 2), 6.0), nothing, nothing)
    >>> bool(np.abs(offsets[0] - offsets[1] - [6.0, 0.0]).max() >= 6)
    True
    """
    every = np.concatenate([markers, others])
    angles = np.pi / 2 - 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS  # upwards first
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    candidates = np.concatenate([radius * circle for radius in _RADII])
    distances = np.linalg.norm(markers[:, None] - every, axis=2)
    found = np.zeros_like(markers)
    placed: list[int] = []
    for i in np.argsort([np.sort(row)[1:4].sum() for row in distances]):
        middles, rest = markers[i] + candidates, np.delete(every, i, axis=0)
        away = np.linalg.norm(candidates, axis=1)
        costs = away + _ON_MARKER * _hits(middles, sizes[i] + 2 * _MARKER, every)
        costs += _ON_LINE * (_hits(middles, sizes[i], lines) > 0)
        costs += _ON_LABEL * _hits(middles, sizes[i] + sizes[placed], markers[placed] + found[placed])
        if len(rest):  # the nearest marker should be its own
            nearest = np.linalg.norm(middles[:, None] - rest, axis=2).min(axis=1)
            costs += 10 * np.maximum(away + 3 - nearest, 0)
        found[i] = candidates[int(np.argmin(costs))]
        placed.append(int(i))
    return found


def draw_labels(figure: Any, axis: Any, labels: list[Label], others: list[tuple[float, float]]) -> None:
    """Write labels beside their markers, once all else of the figure is drawn; `others` are markers without a label."""
    from matplotlib.patheffects import withStroke

    figure.draw_without_rendering()  # the places on the page are now those of the final layout
    to_points = 72 / figure.dpi
    markers = axis.transData.transform([label.place for label in labels]) * to_points
    further = axis.transData.transform(np.reshape(others, (-1, 2))) * to_points
    lines = [_along(axis.transData.transform(line.get_xydata()) * to_points) for line in axis.lines]
    sizes = np.array([(5.2 * len(label.text) + 1, 8.0) for label in labels])
    offsets = offsets_of(markers, sizes, further, np.concatenate(lines))
    for label, offset in zip(labels, offsets, strict=True):
        far = np.linalg.norm(offset) > _LEADER
        line = {"arrowstyle": "-", "color": label.colour, "lw": 0.6, "shrinkA": 3, "shrinkB": 2} if far else None
        written = axis.annotate(
            label.text,
            label.place,
            offset,
            textcoords="offset points",
            ha="center",
            va="center",
            color=label.colour,
            fontsize=8,
            arrowprops=line,
            path_effects=[withStroke(linewidth=2, foreground="white")],  # readable where a line passes
            zorder=4,
        )
        written.set_in_layout(False)


def _along(corners: Floats) -> Floats:
    """Places on a line with these corners, shape (l, 2)."""
    steps = np.linspace(0, 1, 100)[:, None]
    parts = [start + steps * (end - start) for start, end in itertools.pairwise(corners)]
    return np.concatenate([corners, *parts])


def _hits(middles: Floats, sizes: Floats, places: Floats) -> Floats:
    """How many places are within half a size of each middle, in both directions: shape (candidates,)."""
    return np.asarray((np.abs(places - middles[:, None]) < sizes / 2).all(axis=2).sum(axis=1), dtype=np.float64)
