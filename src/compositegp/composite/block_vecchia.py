"""Conditioning sets: for each segment, the earlier points that it is most dependent on."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, IndexSets, Indices, current_device
from compositegp.composite.cells import Cells, boundaries_of, cells_around, half_squares
from compositegp.composite.device_conditioning import EarlierPointsThere
from compositegp.kernels import in_length_scales
from compositegp.validation import check_count, check_index_sets, check_kernel, check_points

CONDITIONING_SIZE = 256
"""Default number of points that a segment is conditioned on."""

# All of these were found by `benchmarks/scale.py profile`, on tables of 10⁵ and 10⁶ rows.
_POOL = 8  # candidates for each wanted point: the points nearest to the center of the segment
_MANY_POINTS = 20_000  # with more points than this, candidates are looked for in cells, not among all the points
_MANY_SEGMENTS = 128  # with fewer segments than this, building the cells costs more than it saves
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
    memory grow as n; on a device it looks at all the points.

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
    known = None if kernel is None else check_kernel(kernel)
    numbers = np.arange(len(parts)) if only is None else np.asarray(only)
    return EarlierPoints(points, parts, size).of(numbers, known)


class EarlierPoints:
    """Finds the nearest earlier points of segments, of as many or as few of them as are asked for.

    With many points the candidates are those of the cells around a segment: large branches of the tree that the
    segments are leaves of, the segments themselves where these are local, else cells that are made once.

    Parameters
    ----------
    X : array of shape (n, d)
    segments : sequence of int arrays
    size : int
        Points in a conditioning set, at most.
    """

    def __init__(self, X: Floats, segments: Sequence[Indices], size: int) -> None:
        self._X, self._segments, self._size = X, segments, size
        self._there: dict[str, EarlierPointsThere] = {}
        self._starts = boundaries_of(segments)

    def of(self, numbers: Indices, kernel: Kernel | None) -> list[Indices]:
        """Conditioning sets of some segments, ascending, by the length scales of a kernel."""

        def scaled(rows: Indices) -> Floats:
            return self._X[rows] if kernel is None else in_length_scales(kernel, self._X[rows])

        device = current_device()
        if device is not None and self._starts[-1] > _MANY_POINTS and self._size > 0:
            return self._on_device(device, numbers, kernel)
        by_cells = self._starts[-1] > _MANY_POINTS and len(self._segments) > _MANY_SEGMENTS and self._size > 0
        cells = self._cells.seen_by(scaled) if by_cells else None
        order, points = np.empty(0, dtype=np.intp), np.empty((0, self._X.shape[1]))
        if cells is None and len(numbers):
            order = np.concatenate([*self._segments[: int(max(numbers)) + 1], order])
            points = scaled(order)
        found = []
        for number in map(int, numbers):
            start, stop = self._starts[number], self._starts[number + 1]
            if start <= self._size:
                found.append(np.sort(np.concatenate([*self._segments[:number], np.empty(0, dtype=np.intp)])))
            elif self._size == 0 or start == stop:
                found.append(np.arange(0))
            elif cells is not None and start > _POOL**2 * self._size:
                own = scaled(self._segments[number])
                pool = cells.around(own.mean(axis=0), int(start), _POOL * self._size)
                found.append(np.sort(pool[self._chosen(scaled(pool), own)]))
            else:
                before = order[:start] if len(order) else np.concatenate(self._segments[:number])
                earlier = points[:start] if len(order) else scaled(before)
                own = points[start:stop] if len(order) else scaled(self._segments[number])
                found.append(np.sort(before[self._chosen(earlier, own)]))
        return found

    def _on_device(self, device: Any, numbers: Indices, kernel: Kernel | None) -> list[Indices]:
        if device.name not in self._there:
            self._there[device.name] = EarlierPointsThere(device, self._X, self._segments, self._starts)
        starts, stops = self._starts[numbers], self._starts[numbers + 1]
        far = (starts > self._size) & (stops > starts)
        found = iter(self._there[device.name].of(numbers[far], kernel, self._size, _POOL * self._size))
        return [
            next(found)
            if looked_for
            else np.sort(np.concatenate([*self._segments[: number if start <= self._size else 0], np.arange(0)]))
            for number, looked_for, start in zip(numbers, far, starts, strict=True)
        ]

    def _chosen(self, earlier: Floats, own: Floats) -> Indices:
        """Positions of those earlier points that are nearest to any point of a segment, of those near its center."""
        pool, wanted = np.arange(len(earlier)), _POOL * self._size
        if len(earlier) > wanted:
            pool = np.argpartition(half_squares(earlier - own.mean(axis=0)), wanted)[:wanted]
        near = earlier[pool]
        distances = np.concatenate(
            [cdist(near[row : row + _ROWS], own, "sqeuclidean").min(axis=1) for row in range(0, len(near), _ROWS)]
        )
        return pool[np.argpartition(distances, self._size)[: self._size]] if len(pool) > self._size else pool

    @cached_property
    def _cells(self) -> Cells:
        return cells_around(self._X, self._segments)
