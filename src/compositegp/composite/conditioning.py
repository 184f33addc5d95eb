"""Conditioning sets: for each segment, the earlier points that it is most dependent on."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, Indices
from compositegp.kernels import in_length_scales
from compositegp.validation import check_index_sets, check_kernel, check_points

_POOL = 8  # candidates kept for each point wanted, by distance to the centre of the segment
_ROWS = 2**14  # candidates whose distances to a segment are held at once


def conditioning_sets(
    X: Any, segments: Any, size: int, *, kernel: Kernel | None = None, only: Any = None
) -> list[Indices]:
    """Find the nearest earlier points of each segment.

    Earlier points are those of the segments before it in the list, so the order of `segments` matters:
    in time, newest first conditions the old on the new. Of the ``8 * size`` earlier points nearest to the
    centre of the segment, those nearest to any one of its points are taken. Time grows as n² / segment
    size, memory as n.

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
    ordered = points[order]
    ordered -= ordered.mean(axis=0)
    half_squares = 0.5 * np.einsum("nd,nd->n", ordered, ordered)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    sets = []
    for number in range(len(parts)) if only is None else only:
        start, stop = starts[number], starts[number + 1]
        earlier = _nearest(ordered[:start], half_squares[:start], ordered[start:stop], size)
        sets.append(np.sort(order[earlier]))
    return sets


def _nearest(points: Floats, half_squares: Floats, segment: Floats, size: int) -> Indices:
    """Indices of the `size` points nearest to a segment."""
    candidates = np.arange(len(points))
    if len(points) <= size:
        return candidates
    if size == 0 or not len(segment):
        return candidates[:0]
    if len(points) > _POOL * size:
        from_centre = half_squares - points @ segment.mean(axis=0)  # half the squared distance, less a constant
        candidates = np.argpartition(from_centre, _POOL * size)[: _POOL * size]
    distances = np.concatenate(
        [
            cdist(points[candidates[row : row + _ROWS]], segment, "sqeuclidean").min(axis=1)
            for row in range(0, len(candidates), _ROWS)
        ]
    )
    return candidates[np.argpartition(distances, size)[:size]]
