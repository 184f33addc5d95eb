"""Segments that are local in any number of columns: leaves of a tree, each made when it is asked for."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from compositegp.backend import Floats, Indices, spread_rows

_MANY_COLUMNS = 64  # with more columns than this, cuts are made across single columns only
_SAMPLE = 4096  # points, at least, by which the widest direction of a larger set is found
_CLEARLY_WIDER = 1.5  # a cut across the principal direction needs this times the variance of the widest column
_EQUALLY_WIDE = 1e-9  # relative difference of spreads that is a rounding error
_SPREAD_SAMPLE = 2**17  # points, at most, by which the spread of columns is found


class Spreads(NamedTuple):
    """A unit of nearness without a kernel: every column has mean 0 and standard deviation 1.

    The mean is subtracted before the division. Where a column is far from zero, such as a Unix time, its digits would
    otherwise be lost, and columns that are equally wide would no longer be.

    Attributes
    ----------
    centers, widths : arrays of shape (d,)
    """

    centers: Floats
    widths: Floats

    @classmethod
    def of(cls, X: Floats) -> "Spreads":
        """Those of the columns of some points, of many of which some are looked at; 1 for a column that is constant."""
        some = X[spread_rows(len(X), _SPREAD_SAMPLE)]
        widths = some.std(axis=0)
        return cls(some.mean(axis=0), np.where(widths > 0, widths, 1.0))

    def scaled(self, points: Floats) -> Floats:
        """Points in this unit."""
        points = points - self.centers
        points /= self.widths
        return np.asarray(points)


class TreeSegments(Sequence[Indices]):
    """Segments of a tree that halves the points again and again across their widest direction.

    A branch is cut when one of its segments is first asked for, so that segments which are never read cost nothing but
    their share of the larger branches. Threads may ask at the same time. The points are kept in one order, in which a
    segment has the positions between two boundaries. The boundaries are known from the beginning; what is between two
    of them is known once they are cut.

    Parameters
    ----------
    X : array of shape (n, d)
    boundaries : int array of shape (segments + 1,)
        Positions at which segments begin, and n.
    unit : Spreads, optional
        In which nearness is measured, if `X` is in another unit.

    Examples
    --------
    >>> segments = TreeSegments.balanced(np.array([[5.0], [1.0], [4.0], [2.0]]), 2)
    >>> len(segments), segments[1]
    (2, array([0, 2]))
    """

    def __init__(self, X: Floats, boundaries: Indices, unit: Spreads | None = None) -> None:
        self.boundaries = boundaries
        self._X, self._unit = X, unit
        self._order = np.arange(len(X))
        self._cuts = set[int]()  # boundaries that are cut
        self._lock = threading.RLock()
        self._width = 1  # parts that one segment of the tree has

    @classmethod
    def balanced(cls, X: Floats, segment_size: int, unit: Spreads | None = None) -> "TreeSegments":
        """Segments whose sizes differ by one point at most."""
        n_segments = -(-len(X) // segment_size)
        each, more = divmod(len(X), max(1, n_segments))
        numbers = np.arange(n_segments + 1)
        return cls(X, numbers * each + np.minimum(numbers, more), unit)

    def __len__(self) -> int:
        return len(self.boundaries) - 1

    @overload
    def __getitem__(self, number: int) -> Indices: ...
    @overload
    def __getitem__(self, number: slice) -> list[Indices]: ...
    def __getitem__(self, number: int | slice) -> Indices | list[Indices]:
        """A segment, indices ascending; a list of them for a slice."""
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        position = range(len(self))[number]
        first, last = 0, len(self)
        with self._lock:
            while last - first > 1:
                middle = self._cut(first, last)
                first, last = (first, middle) if position < middle else (middle, last)
            return np.sort(self._order[self.boundaries[first] : self.boundaries[last]])

    def halved(self) -> "TreeSegments":
        """Segments of half the size, number k being those of 2 k and 2 k + 1, made from the same order."""
        sizes = np.diff(self.boundaries)
        inside = self.boundaries[:-1] + (sizes + 1) // 2
        boundaries = np.append(np.stack([self.boundaries[:-1], inside], axis=1).ravel(), self.boundaries[-1])
        found = TreeSegments.__new__(TreeSegments)
        vars(found).update(vars(self) | {"boundaries": boundaries, "_width": 2 * self._width})
        return found

    def cells(self, size: int) -> Indices:
        """Cut all branches of more than `size` points that have several segments; the boundaries of what is left."""
        found, branches = [0], [(0, len(self))]
        while branches:
            first, last = branches.pop()
            if last - first <= self._width or self.boundaries[last] - self.boundaries[first] <= size:
                found.append(int(self.boundaries[last]))
                continue
            with self._lock:
                middle = self._cut(first, last)
            branches += [(middle, last), (first, middle)]
        return np.array(found)

    def between(self, start: int, stop: int) -> Indices:
        """Points between two boundaries that are cut, in no order."""
        with self._lock:
            return self._order[start:stop].copy()

    def __getstate__(self) -> dict[str, Any]:
        """State without the lock."""
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, with a lock of its own."""
        vars(self).update(state, _lock=threading.RLock())

    def _cut(self, first: int, last: int) -> int:
        """Cut the branch of the segments first..last − 1, unless it is cut; the first segment of its second half."""
        width, whole = self._width, last - first > self._width
        middle = width * ((first // width + last // width) // 2) if whole else (first + last) // 2
        start, cut, stop = (int(self.boundaries[number]) for number in (first, middle, last))
        if cut not in self._cuts:
            branch = self._order[start:stop] if whole else np.sort(self._order[start:stop])
            position = self._along_widest_direction(branch)
            self._order[start:stop] = branch[np.argpartition(position, cut - start)]
            self._cuts.add(cut)
        return middle

    def _along_widest_direction(self, branch: Indices) -> Floats:
        """Coordinate of some of the points along their widest column, or along a direction that is clearly wider."""
        some = self._scaled(branch[:: max(1, len(branch) // _SAMPLE)])
        center = some.mean(axis=0)
        centered = some - center
        centered /= np.abs(centered).max() or 1.0  # so that no square overflows
        (direction,) = widest_directions((centered.T @ centered)[None])
        (columns,) = np.nonzero(direction)
        if len(columns) > 1:
            return np.asarray((self._scaled(branch) - center) @ direction)
        found = self._X[branch, columns[0]]
        if self._unit is None:
            return np.asarray(found)
        return np.asarray((found - self._unit.centers[columns[0]]) / self._unit.widths[columns[0]])

    def _scaled(self, rows: Indices) -> Floats:
        points = self._X[rows]
        return points if self._unit is None else self._unit.scaled(points)


def widest_directions(products: Floats) -> Floats:
    """Directions in which sets of points are widest: columns, or directions that are clearly wider.

    Parameters
    ----------
    products : array of shape (b, d, d)
        XᵀX of the centered points of each set.

    Returns
    -------
    array of shape (b, d)
    """
    spreads = np.einsum("bii->bi", products)
    # Of columns that are equally wide up to rounding the first, so that the unit of a column settles no tie.
    column = np.argmax(spreads >= (1 - _EQUALLY_WIDE) * spreads.max(axis=1, keepdims=True), axis=1)
    found = np.eye(products.shape[1])[column]
    if products.shape[1] <= _MANY_COLUMNS:
        variances, directions = np.linalg.eigh(products)
        wider = variances[:, -1] > _CLEARLY_WIDER * spreads[np.arange(len(column)), column]
        found[wider] = directions[wider, :, -1]
    return np.asarray(found)
