"""Segmentations: partitions of the points into the small sets that are treated exactly."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, Indices, RandomState, current_device
from compositegp.composite.device_tree import order_by_tree
from compositegp.composite.tree_segments import Spreads, TreeSegments, widest_directions
from compositegp.functionals import Places
from compositegp.kernels import in_length_scales
from compositegp.validation import check_count, check_kernel, check_points

SCHEMES = ("sequential", "interleaved", "random", "tree")
SEGMENT_SIZE = 256
"""Default number of observations in a segment."""
_MANY_POINTS = 2**14  # with fewer points than this a tree takes less time than to send them to a device


def segment(
    X: ArrayLike,
    segment_size: int = SEGMENT_SIZE,
    scheme: str | ArrayLike = "tree",
    *,
    kernel: Kernel | None = None,
    random_state: RandomState = None,
) -> list[Indices]:
    """Partition points into segments.

    Parameters
    ----------
    X : array of shape (n, d)
        The points.
    segment_size : int
        Largest size of a segment. Segments are balanced: their sizes differ by one point at most.
    scheme : {"sequential", "interleaved", "random", "tree"} or array of n labels
        ``sequential`` cuts the points in the given order (time series). ``interleaved`` gives the points to the
        segments in turn. ``random`` shuffles the points first. ``tree`` halves the points again and again across their
        widest direction, so that segments are local in any number of dimensions. With labels (numbers or strings, one
        for each point) each label is a segment, and `segment_size` is not used.
    kernel : scikit-learn kernel, optional
        Widths are then measured in its length scales.
    random_state : int, RandomState or None
        For ``random``.

    Returns
    -------
    list of int arrays
        A partition of range(n); indices ascend within a segment.

    Examples
    --------
    >>> segment(np.arange(6.0)[:, None], 2, "sequential")
    [array([0, 1]), array([2, 3]), array([4, 5])]
    """
    points = check_points(X, "X")
    if not isinstance(scheme, str):
        return by_labels(scheme, len(points))
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)} or an array of labels; found {scheme!r}.")
    if kernel is not None:
        points = in_length_scales(check_kernel(kernel), points)
    return partition(points, check_count(segment_size, "segment_size"), scheme, random_state)


def partition(
    points: Floats, segment_size: int, scheme: str = "tree", random_state: RandomState = None
) -> list[Indices]:
    """Partition points that have been checked, in the unit in which nearness is measured: see `segment`."""
    n = len(points)
    n_segments = -(-n // segment_size)
    if scheme == "interleaved":
        return [np.arange(start, n, n_segments) for start in range(n_segments)]
    if scheme == "tree":
        return list(segments_of_tree(points, segment_size))
    order = np.arange(n)
    if scheme == "random":
        check_random_state(random_state).shuffle(order)
    return [np.sort(part) for part in np.array_split(order, n_segments)]


def in_spreads(X: Floats, rows: Indices | None = None) -> Floats:
    """Points in units in which every column has mean 0 and standard deviation 1: see `Spreads`.

    Parameters
    ----------
    X : array of shape (n, d)
        Whose columns have these means and deviations; of many points some are looked at.
    rows : int array of shape (m,), optional
        The points that are wanted.

    Returns
    -------
    array of shape (n, d) or (m, d)
        A column that does not vary is zero.

    Examples
    --------
    >>> in_spreads(np.array([[1.7e9, 3.0], [1.7e9 + 2, 3.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    return Spreads.of(X).scaled(X if rows is None else X[rows])


def group_by_place(kernel: Kernel, Z: Floats, group_size: int) -> list[Indices]:
    """Groups of test points that are near each other in the length scales of a kernel; a partition of range(M).

    Functionals at the same point are in the same group and count as one, so that parts add up within it.
    """
    places = Places.of(kernel, Z)
    if places.shared is None:
        return partition(in_length_scales(kernel, Z), group_size)
    count = len(places.first)
    leaders = np.concatenate([places.first, places.wide])
    return [
        np.concatenate([places.rows(group[group < count]), places.wide[group[group >= count] - count]])
        for group in partition(in_length_scales(kernel, Z[leaders]), group_size)
    ]


def segments_of_tree(points: Floats, segment_size: int, unit: Spreads | None = None) -> Sequence[Indices]:
    """Segments of the scheme ``tree``: on a device all of them, else each when it is asked for.

    Parameters
    ----------
    points : array of shape (n, d)
    segment_size : int
    unit : Spreads, optional
        In which nearness is measured, if the points are in another unit.
    """
    segments, device = TreeSegments.balanced(points, segment_size, unit), current_device()
    if device is None or len(points) < _MANY_POINTS:
        return segments
    points = points if unit is None else unit.scaled(points)
    starts, stops = segments.boundaries[:-1], segments.boundaries[1:]
    return np.split(order_by_tree(device, points, starts, stops, widest_directions), stops[:-1])


def by_labels(labels: ArrayLike, n: int) -> list[Indices]:
    """A segment for each label, one label for each of n points."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(
            f"scheme must be a name or one label for each of the {n} point(s) in X; "
            f"found {'an array of shape ' + str(array.shape) if array.ndim else repr(labels)}."
        )
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    return [np.sort(part) for part in np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])]
