"""Conditioning sets: for each segment, the earlier points that it is most dependent on."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, IndexSets, Indices
from compositegp.composite.segmentation import partition
from compositegp.kernels import in_length_scales
from compositegp.validation import check_count, check_index_sets, check_kernel, check_points

CONDITIONING_SIZE = 256
"""Default number of points that a segment is conditioned on."""

# All of these were found by `benchmarks/scale.py profile`, on tables of 10⁵ and 10⁶ rows.
_POOL = 8  # candidates for each wanted point: the points nearest to the center of the segment
_MANY_POINTS = 20_000  # with more points than this, candidates are looked for in cells, not among all the points
_MANY_SEGMENTS = 128  # with fewer segments than this, building the cells costs more than it saves
_CELL = 256  # points in a cell, at most
_MARGIN = 12.0  # points looked at in the nearest cells, for each wanted point: a near cell may have far points
_ROWS = 2**14  # candidates whose distances to a segment are held at once


def conditioning_sets(
    X: ArrayLike,
    segments: IndexSets,
    conditioning_size: int = CONDITIONING_SIZE,
    *,
    kernel: Kernel | None = None,
    only: ArrayLike | None = None,
) -> list[Indices]:
    """Find the nearest earlier points of each segment.

    Earlier points are the points of the segments before it in the list, so the order of `segments` matters: for a time
    series with the newest segment first, the old is conditioned on the new. First the ``8 * conditioning_size`` earlier
    points nearest to the center of the segment are found. Of these, the points nearest to any point of the segment are
    taken. If there are many points, the first step looks only at the cells of a tree near the center, so that time and
    memory grow as n.

    Parameters
    ----------
    X : array of shape (n, d)
    segments : list of int arrays
    conditioning_size : int
        Points in a conditioning set; fewer if there are fewer earlier points. 0 gives empty sets.
    kernel : scikit-learn kernel, optional
        Distances are then measured in its length scales.
    only : int array, optional
        Numbers of the segments whose sets are wanted; all if left out.

    Returns
    -------
    list of int arrays
        One for each segment (in `only`), with ascending indices. The set of the first segment is empty.

    Examples
    --------
    >>> conditioning_sets(np.arange(6.0)[:, None], [[0, 1], [2, 3], [4, 5]], 1)
    [array([], dtype=int64), array([1]), array([3])]
    """
    points = check_points(X, "X")
    parts = check_index_sets(segments, "segments")
    size = check_count(conditioning_size, "conditioning_size", least=0)
    largest = max((int(part.max(initial=-1)) for part in parts), default=-1)
    if largest >= len(points):
        raise ValueError(f"segments name point {largest}, but X has only {len(points)} points.")
    if kernel is not None:
        points = in_length_scales(check_kernel(kernel), points)
    numbers = np.arange(len(parts)) if only is None else np.asarray(only)
    return nearest_earlier(points, parts, size, numbers)


def nearest_earlier(points: Floats, segments: list[Indices], size: int, numbers: Indices) -> list[Indices]:
    """Nearest earlier points of some segments, from values that have been checked: see `conditioning_sets`."""
    order = np.concatenate([*segments, np.empty(0, dtype=np.intp)])
    finder = _Finder(points[order], size, len(segments))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in segments])])
    return [np.sort(order[finder.find(starts[number], starts[number + 1])]) for number in numbers]


class _Finder:
    """Finds, for a run of points in an ordered set, the nearest points before it."""

    def __init__(self, points: Floats, size: int, n_segments: int) -> None:
        self._points = points - points.mean(axis=0) if len(points) else points
        self._half_squares = 0.5 * np.einsum("nd,nd->n", self._points, self._points)
        self._size = size
        worth_it = len(points) > _MANY_POINTS and n_segments > _MANY_SEGMENTS and size > 0
        self._cells = _Cells(self._points) if worth_it else None

    def find(self, start: int, stop: int) -> Indices:
        """Positions of the points before `start` that are nearest to the points from `start` to `stop`."""
        own = self._points[start:stop]
        if start <= self._size:
            return np.arange(start)
        if self._size == 0 or not len(own):
            return np.arange(0)
        pool = self._around(own.mean(axis=0), start)
        distances = np.concatenate(
            [
                cdist(self._points[pool[row : row + _ROWS]], own, "sqeuclidean").min(axis=1)
                for row in range(0, len(pool), _ROWS)
            ]
        )
        return pool[np.argpartition(distances, self._size)[: self._size]]

    def _around(self, center: Floats, start: int) -> Indices:
        """Positions, before `start`, of the points nearest to a center."""
        wanted = _POOL * self._size
        if start <= wanted:
            return np.arange(start)
        if self._cells is not None and start > _POOL * wanted:
            nearby = self._cells.around(center, start, wanted)
        else:
            nearby = np.arange(start)
        # Half the squared distance, minus a constant.
        from_center = self._half_squares[nearby] - self._points[nearby] @ center
        return nearby[np.argpartition(from_center, wanted)[:wanted]] if len(nearby) > wanted else nearby


class _Cells:
    """Points in small local cells, each with its bounding box; works for any number of columns."""

    def __init__(self, points: Floats) -> None:
        cells = partition(points, _CELL)
        self._count = len(points)
        self._members = np.concatenate(cells)
        self._stops = np.cumsum([len(cell) for cell in cells])
        self._starts = self._stops - [len(cell) for cell in cells]
        inside = points[self._members]
        self._low, self._high = (bound.reduceat(inside, self._starts) for bound in (np.minimum, np.maximum))

    def around(self, center: Floats, start: int, wanted: int) -> Indices:
        """At least `wanted` positions before `start`, from the cells nearest to a center."""
        outside = np.maximum(self._low - center, 0.0) + np.maximum(center - self._high, 0.0)
        middle = 0.5 * (self._low + self._high) - center
        # By the distance of the bounding box; cells that hold the center, by the distance of their middle.
        order = np.lexsort(((middle**2).sum(axis=1), (outside**2).sum(axis=1)))
        count = int(np.ceil(_MARGIN * wanted / _CELL * self._count / start)) + 1
        while True:
            near = order[:count]
            members = np.concatenate([self._members[self._starts[cell] : self._stops[cell]] for cell in near])
            earlier = members[members < start]
            if len(earlier) >= wanted or count >= len(order):
                return np.sort(earlier)
            count *= 2
