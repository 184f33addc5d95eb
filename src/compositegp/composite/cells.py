"""Cells: sets of points that are near each other, in which earlier points of a segment are looked for."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite.segmentation import in_spreads, partition
from compositegp.composite.tree_segments import TreeSegments

# All of these were found by `benchmarks/scale.py profile`, on tables of 10⁵ and 10⁶ rows.
_CELL = 256  # points in a cell that is made for segments which are not local, at most
_BRANCH = 4096  # points in a branch that is a cell, at most
_MARGIN = 16.0  # points looked at in the nearest cells, for each wanted point: a near cell may have far points
_SEEN = 32  # points of a cell that stand for it
_LOCAL = 0.5  # variance inside segments, over that of all the points, under which segments are local


class _Members(Protocol):
    """The points of cells."""

    def representatives(self) -> Indices:
        """Some points of each cell, shape (cells, s)."""

    def count(self, start: int) -> int:
        """Number of cells that may have some of the first `start` points in the order of the segments."""

    def mean_size(self, cells: Indices, start: int) -> float:
        """Of the first `start` points, those in a cell of these, on average and roughly."""

    def earlier(self, cells: Indices, start: int) -> Indices:
        """Of the first `start` points, those in these cells."""


class Cells:
    """Cells, each known by the bounding box of a few of its points.

    Parameters
    ----------
    members : _Members
    """

    def __init__(self, members: _Members) -> None:
        self._members, self._seen = members, members.representatives()
        self._low, self._high = np.empty((0, 0)), np.empty((0, 0))

    def are_local(self, X: Floats) -> bool:
        """Whether points of a cell are nearer to each other than to points of other cells."""
        seen = X[self._seen]
        inside, whole = seen.var(axis=1).mean(axis=0), seen.reshape(-1, X.shape[1]).var(axis=0)
        varies = whole > 0
        return bool(np.mean(inside[varies] / whole[varies]) < _LOCAL) if varies.any() else True

    def seen_by(self, scaled: Callable[[Indices], Floats]) -> "Cells":
        """The same cells with bounding boxes in the length scales of a kernel."""
        points = scaled(self._seen.ravel()).reshape(*self._seen.shape, -1)
        self._low, self._high = points.min(axis=1), points.max(axis=1)
        return self

    def around(self, center: Floats, start: int, wanted: int) -> Indices:
        """At least `wanted` of the first `start` points in the order of segments, from the cells nearest to a center.

        There are fewer where `start` is less.
        """
        n_cells = self._members.count(start)
        low, high = self._low[:n_cells], self._high[:n_cells]
        outside = np.maximum(low - center, 0.0) + np.maximum(center - high, 0.0)
        # By the distance of the bounding box; cells that hold the center, by the distance of their middle.
        order = np.lexsort((half_squares(0.5 * (low + high) - center), half_squares(outside)))
        count = int(np.ceil(_MARGIN * wanted / self._members.mean_size(order[:64], start))) + 1
        while True:
            found = self._members.earlier(order[:count], start)
            if len(found) >= wanted or count >= n_cells:
                return found
            count *= 2


def cells_around(X: Floats, segments: Sequence[Indices]) -> Cells:
    """Cells for segments: branches of their tree, themselves where they are local, else cells made for them.

    Parameters
    ----------
    X : array of shape (n, d)
    segments : sequence of int arrays
    """
    if isinstance(segments, TreeSegments):
        return Cells(_Branches(segments))
    own = Cells(_Segments(segments))
    return own if own.are_local(X) else Cells(_Others(X, np.concatenate(list(segments))))


def boundaries_of(segments: Sequence[Indices]) -> Indices:
    """Where segments begin in the order of their points, and where the last of them ends; none of them is made."""
    if isinstance(segments, TreeSegments):
        return segments.boundaries
    return np.concatenate([[0], np.cumsum([len(part) for part in segments])]).astype(np.intp)


class _Branches:
    """Branches of a tree of segments, which are in the order of the segments too."""

    def __init__(self, tree: TreeSegments) -> None:
        self._tree, self._bounds = tree, tree.cells(_BRANCH)

    def representatives(self) -> Indices:
        pairs = zip(self._bounds[:-1], self._bounds[1:], strict=True)
        return np.stack([_evenly(self._tree.between(start, stop)) for start, stop in pairs])

    def count(self, start: int) -> int:
        return int(np.searchsorted(self._bounds[:-1], start))

    def mean_size(self, cells: Indices, start: int) -> float:
        return float(np.diff(self._bounds)[cells].mean())

    def earlier(self, cells: Indices, start: int) -> Indices:
        bounds = self._bounds
        return np.concatenate([self._tree.between(bounds[cell], min(bounds[cell + 1], start)) for cell in cells])


class _Segments:
    """The segments themselves."""

    def __init__(self, segments: Sequence[Indices]) -> None:
        self._segments, self._starts = segments, boundaries_of(segments)

    def representatives(self) -> Indices:
        return np.stack([_evenly(part) for part in self._segments])

    def count(self, start: int) -> int:
        return int(np.searchsorted(self._starts[:-1], start))

    def mean_size(self, cells: Indices, start: int) -> float:
        return float(np.diff(self._starts)[cells].mean())

    def earlier(self, cells: Indices, start: int) -> Indices:
        return np.concatenate([self._segments[int(cell)] for cell in cells])


class _Others:
    """Cells across segments that are not local: points of many segments are in each."""

    def __init__(self, X: Floats, order: Indices) -> None:
        self._cells = [order[cell] for cell in partition(in_spreads(X, order), _CELL)]
        self._rank = np.empty(len(X), dtype=np.intp)
        self._rank[order] = np.arange(len(order))

    def representatives(self) -> Indices:
        return np.stack([_evenly(cell) for cell in self._cells])

    def count(self, start: int) -> int:
        return len(self._cells)

    def mean_size(self, cells: Indices, start: int) -> float:
        return float(np.mean([len(self._cells[cell]) for cell in cells])) * start / len(self._rank)

    def earlier(self, cells: Indices, start: int) -> Indices:
        found = np.concatenate([self._cells[cell] for cell in cells])
        return np.asarray(found[self._rank[found] < start])


def _evenly(points: Indices) -> Indices:
    """`_SEEN` of some points, at even distances; fewer points are taken several times."""
    return np.asarray(points[(np.linspace(0, 1, _SEEN, endpoint=False) * len(points)).astype(np.intp)])


def half_squares(differences: Floats) -> Floats:
    """Half the squared lengths of differences (..., d)."""
    return np.asarray(0.5 * np.einsum("...d,...d->...", differences, differences))
