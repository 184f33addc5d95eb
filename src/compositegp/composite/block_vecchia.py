"""Conditioning sets: for each segment, the earlier points that it is most dependent on."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, IndexSets, Indices, current_device
from compositegp.composite.device_conditioning import EarlierPointsThere
from compositegp.composite.segmentation import in_spreads, partition
from compositegp.kernels import in_length_scales
from compositegp.validation import check_count, check_index_sets, check_kernel, check_points

CONDITIONING_SIZE = 256
"""Default number of points that a segment is conditioned on."""

# All of these were found by `benchmarks/scale.py profile`, on tables of 10⁵ and 10⁶ rows.
_POOL = 8  # candidates for each wanted point: the points nearest to the center of the segment
_MANY_POINTS = 20_000  # with more points than this, candidates are looked for in cells, not among all the points
_MANY_SEGMENTS = 128  # with fewer segments than this, building the cells costs more than it saves
_CELL = 256  # points in a cell, at most
_MARGIN = 16.0  # points looked at in the nearest cells, for each wanted point: a near cell may have far points
_SEEN = 32  # points of a cell that stand for it
_LOCAL = 0.5  # variance inside segments, over that of all the points, under which segments are local
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

    With many points the candidates are those of the cells around a segment: the segments themselves where these are
    local, else cells that are made once. So neither memory nor time depends on the points that are not asked for.

    Parameters
    ----------
    X : array of shape (n, d)
    segments : list of int arrays
    size : int
        Points in a conditioning set, at most.
    """

    def __init__(self, X: Floats, segments: list[Indices], size: int) -> None:
        self._X, self._segments, self._size = X, segments, size
        self._there: dict[str, EarlierPointsThere] = {}
        self._starts = np.concatenate([[0], np.cumsum([len(part) for part in segments])]).astype(np.intp)

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
                pool = cells.around(own.mean(axis=0), number, int(start), _POOL * self._size)
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
            pool = np.argpartition(_half_squares(earlier - own.mean(axis=0)), wanted)[:wanted]
        near = earlier[pool]
        distances = np.concatenate(
            [cdist(near[row : row + _ROWS], own, "sqeuclidean").min(axis=1) for row in range(0, len(near), _ROWS)]
        )
        return pool[np.argpartition(distances, self._size)[: self._size]] if len(pool) > self._size else pool

    @cached_property
    def _cells(self) -> "_Cells":
        own = _Cells(self._segments, None)
        if own.are_local(self._X):
            return own
        order = np.concatenate(self._segments)
        cells = partition(in_spreads(self._X, order), _CELL)
        rank = np.empty(len(self._X), dtype=np.intp)
        rank[order] = np.arange(len(order))
        return _Cells([order[cell] for cell in cells], rank)


class _Cells:
    """Sets of points that are near each other, each known by the bounding box of a few of its points.

    Parameters
    ----------
    members : list of int arrays
    rank : int array or None
        The position of each point in the order of the segments; None where the cells are the segments.
    """

    def __init__(self, members: list[Indices], rank: Indices | None) -> None:
        self._members, self._rank = members, rank
        steps = np.linspace(0, 1, _SEEN, endpoint=False)
        self._seen = np.stack([cell[(steps * len(cell)).astype(np.intp)] for cell in members])
        self._low, self._high = np.empty((0, 0)), np.empty((0, 0))

    def are_local(self, X: Floats) -> bool:
        """Whether points of a cell are nearer to each other than to points of other cells."""
        seen = X[self._seen]
        inside, whole = seen.var(axis=1).mean(axis=0), seen.reshape(-1, X.shape[1]).var(axis=0)
        varies = whole > 0
        return bool(np.mean(inside[varies] / whole[varies]) < _LOCAL) if varies.any() else True

    def seen_by(self, scaled: Callable[[Indices], Floats]) -> "_Cells":
        """The same cells with bounding boxes in the length scales of a kernel."""
        points = scaled(self._seen.ravel()).reshape(*self._seen.shape, -1)
        self._low, self._high = points.min(axis=1), points.max(axis=1)
        return self

    def around(self, center: Floats, number: int, start: int, wanted: int) -> Indices:
        """At least `wanted` points of the segments before one, from the cells nearest to its center."""
        n_cells = number if self._rank is None else len(self._members)
        low, high = self._low[:n_cells], self._high[:n_cells]
        outside = np.maximum(low - center, 0.0) + np.maximum(center - high, 0.0)
        # By the distance of the bounding box; cells that hold the center, by the distance of their middle.
        order = np.lexsort((_half_squares(0.5 * (low + high) - center), _half_squares(outside)))
        mean_size = sum(len(self._members[cell]) for cell in order[:64]) / min(64, n_cells)
        share = 1.0 if self._rank is None else start / len(self._rank)
        count = int(np.ceil(_MARGIN * wanted / (mean_size * share))) + 1
        while True:
            found = np.concatenate([self._members[cell] for cell in order[:count]])
            if self._rank is not None:
                found = found[self._rank[found] < start]
            if len(found) >= wanted or count >= n_cells:
                return found
            count *= 2


def _half_squares(differences: Floats) -> Floats:
    return np.asarray(0.5 * np.einsum("...d,...d->...", differences, differences))
