"""Groups of points that are close together, compared with how far their observations reach."""

from collections.abc import Callable

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import partition

# Found by benchmarks/estimator.py on the satellite field and benchmarks/scale.py profile.
CLOSE = 0.5
"""Largest radius of a group, over the distance from its center to the last of its observations."""
_MANY, _CLOSER = 32, 0.25  # the same of a group of more points than this: they may be near the rim of a gap
_SMALLER = 2  # groups that are not close together are made this many times smaller, again and again


def close_groups(tests: Floats, group_size: int, reach: Callable[[Floats], Floats]) -> list[Indices]:
    """Groups of points that are close together, the largest first: smaller ones where large ones are not.

    Parameters
    ----------
    tests : array of shape (M, d)
        In length scales.
    group_size : int
        Points in a group, at most.
    reach : callable
        Maps centers (m, d) to the distance of the last of the observations that a group there has, shape (m,).

    Returns
    -------
    list of int arrays
        Every point is in one of them.

    Examples
    --------
    >>> near, far = np.array([[0.0], [0.1], [0.2]]), np.array([[9.0], [30.0]])
    >>> [len(group) for group in close_groups(np.concatenate([near, far]), 4, lambda centers: np.ones(len(centers)))]
    [3, 1, 1]
    """
    groups: list[Indices] = []
    rest = np.arange(len(tests))
    while group_size > 1 and len(rest):
        near, rest = _close(tests, rest, group_size, reach)
        groups += near
        group_size //= _SMALLER
    return sorted(groups, key=len, reverse=True) + list(rest[:, None])


def _close(
    tests: Floats, rows: Indices, group_size: int, reach: Callable[[Floats], Floats]
) -> tuple[list[Indices], Indices]:
    """Groups of some of the points that are close together, and the points of those that are not."""
    groups = [rows[group] for group in partition(tests[rows], group_size)]
    centers = np.stack([tests[group].mean(axis=0) for group in groups])
    radii = [
        np.sqrt(((tests[group] - center) ** 2).sum(axis=1).max())
        for group, center in zip(groups, centers, strict=True)
    ]
    close = np.array(radii) <= (_CLOSER if group_size > _MANY else CLOSE) * reach(centers)
    far = [group for group, near in zip(groups, close, strict=True) if not near]
    return [group for group, near in zip(groups, close, strict=True) if near], np.concatenate([rows[:0], *far])
