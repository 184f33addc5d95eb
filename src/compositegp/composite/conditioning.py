"""Conditioning sets: for each segment, the earlier points that it is most dependent on."""

from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, Indices
from compositegp.kernels import in_length_scales
from compositegp.validation import check_index_sets, check_kernel, check_points

_POOL = 8  # candidates kept for each point wanted, by distance to the centre of the segment
_MANY_POINTS = 20_000  # beyond which a k-d tree finds candidates faster than a look at all points, if there are
_FEW_COLUMNS = 4
_ROWS = 2**14  # candidates whose distances to a segment are held at once


def conditioning_sets(
    X: Any, segments: Any, size: int, *, kernel: Kernel | None = None, only: Any = None
) -> list[Indices]:
    """Find the nearest earlier points of each segment.

    Earlier points are those of the segments before it in the list, so the order of `segments` matters:
    in time, newest first conditions the old on the new. Of the ``8 * size`` earlier points nearest to the
    centre of the segment, those nearest to any one of its points are taken. In up to four columns a k-d tree
    finds them; in more, a look at all earlier points for each segment, so that time grows as n² / segment size.
    Memory grows as n.

    Parameters
    ----------
    X : array of shape (n, d)
    segments : list of int arrays
    size : int
        Points in a conditioning set; fewer where there are not as many earlier ones. 0 gives empty sets.
    kernel : scikit-learn kernel, optional
        Distances are then measured in its length scales.
    only : int array, optional
        Numbers of the segments to find the sets of; all if left out.

    Returns
    -------
    list of int arrays
        One for each segment (in `only`), the indices ascending; that of the first segment is empty.
    """
    points = check_points(X, "X")
    parts = check_index_sets(segments, "segments")
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise ValueError(f"size must be a whole number of at least 0; found {size!r}.")
    order = np.concatenate([*parts, np.empty(0, dtype=np.intp)])
    if len(order) and order.max() >= len(points):
        raise ValueError(f"segments name point {order.max()}, but X has only {len(points)} points.")
    if kernel is not None:
        points = in_length_scales(check_kernel(kernel), points)
    finder = _Finder(points[order], size)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    sets = []
    for number in range(len(parts)) if only is None else only:
        sets.append(np.sort(order[finder.find(starts[number], starts[number + 1])]))
    return sets


class _Finder:
    """Finds, for a run of points in an ordered set, the nearest points before it."""

    def __init__(self, points: Floats, size: int) -> None:
        self._points = points - points.mean(axis=0) if len(points) else points
        self._half_squares = 0.5 * np.einsum("nd,nd->n", self._points, self._points)
        self._size = size
        indexable = len(points) > _MANY_POINTS and points.shape[1] <= _FEW_COLUMNS
        self._tree = KDTree(self._points) if indexable and size else None

    def find(self, start: int, stop: int) -> Indices:
        """Positions of the points before `start` that are nearest to the points from `start` to `stop`."""
        segment = self._points[start:stop]
        if start <= self._size:
            return np.arange(start)
        if self._size == 0 or not len(segment):
            return np.arange(0)
        pool = self._around(segment.mean(axis=0), start)
        distances = np.concatenate(
            [
                cdist(self._points[pool[row : row + _ROWS]], segment, "sqeuclidean").min(axis=1)
                for row in range(0, len(pool), _ROWS)
            ]
        )
        return pool[np.argpartition(distances, self._size)[: self._size]]

    def _around(self, centre: Floats, start: int) -> Indices:
        """Positions before `start` of the candidates: the points nearest to a centre."""
        wanted = _POOL * self._size
        if start <= wanted:
            return np.arange(start)
        if self._tree is not None and start > len(self._points) // 8:
            count = 2 * wanted * len(self._points) // start
            _, near = self._tree.query(centre, k=min(count, len(self._points)))
            earlier = near[near < start]
            if len(earlier) >= wanted:  # nearest first
                return np.asarray(earlier[:wanted])
        # Half the squared distance, less a constant.
        from_centre = self._half_squares[:start] - self._points[:start] @ centre
        return np.argpartition(from_centre, wanted)[:wanted]
