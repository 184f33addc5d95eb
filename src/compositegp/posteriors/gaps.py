"""Gaps like those that are to be predicted, laid over the observations.

Models are learned by predicting observations from others. A point in the middle of a wide gap is a harder task than an
observation among others, and a kernel that is best for the one need not be best for the other. So, where it is known
which points will be predicted, an observation is predicted without those around it that would be hidden if it lay where
such a point lies.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from compositegp.backend import Booleans, Indices
from compositegp.composite import Composite
from compositegp.posteriors.local_kriging import NearestPredictor
from compositegp.posteriors.neighbors import Neighbors

_MORE = 4  # times as many of the nearest are looked at, where a gap hides too many
_MOST = 128  # nearest observations that are looked at, at most, for each one that is wanted
_HELD = 2**22  # nearest observations held at once
_PREDICTED, _GIVEN = 32, 224  # observations of a term in a gap, and around it
_FEWEST = 8  # terms, at least


class Gaps(Protocol):
    """Which observations a gap hides: each observation has a gap of its own around it."""

    def hides(self, rows: Indices, near: Indices) -> Booleans:
        """Which of the observations near to some the gaps around these hide.

        Parameters
        ----------
        rows : int array of shape (m,)
            Observations, each inside a gap.
        near : int array of shape (m, k)
            Observations near to each of them.

        Returns
        -------
        boolean array of shape (m, k)
        """


def around_in_gaps(
    search: NearestPredictor, gaps: Gaps, rows: Indices, neighbors: Neighbors, n_jobs: int | None
) -> tuple[Indices, Indices, Any]:
    """Observations around some of the observations, each without those that its gap hides.

    Parameters
    ----------
    search : NearestPredictor
    gaps : Gaps
    rows : int array of shape (m,)
    neighbors : Neighbors
        Observations around each.
    n_jobs : int or None

    Returns
    -------
    kept : int array of shape (m′,)
        Which of the rows have as many in reach that are not hidden, ascending.
    skipped : int array of shape (m′,)
        How many of the nearest observations are hidden before the first that is not.
    sets : int array of shape (m′, size), the farthest first
    """
    ranks = neighbors.ranks(len(search.data.X) - 1)
    sets, skipped = np.empty((len(rows), len(ranks)), dtype=np.intp), np.full(len(rows), -1)
    for row, near, hidden in _looked_around(search, gaps, rows, int(ranks[-1]) + 1, n_jobs):
        sets[row] = near[~hidden][ranks[::-1]]
        skipped[row] = np.argmin(hidden)
    kept = np.flatnonzero(skipped >= 0)
    return kept, skipped[kept], sets[kept]


def gap_terms(
    search: NearestPredictor, gaps: Gaps, count: int, n_jobs: int | None, random_state: int
) -> Composite | None:
    """Terms to learn from: some observations that a gap hides, given those around it.

    The likelihood of neighbors given each other says little about a range that is wider than a neighborhood, and what
    it says need not be what predicts best over a gap. Here a block has 32 observations: one, and others that its gap
    hides. They are given the 224 observations nearest to that one that are not hidden.

    Parameters
    ----------
    search : NearestPredictor
    gaps : Gaps
    count : int
        Blocks, at most.
    n_jobs : int or None
    random_state : int

    Returns
    -------
    Composite or None
        None where fewer than 8 gaps have as many observations around them.
    """
    rng = np.random.default_rng(random_state)
    rows = rng.permutation(len(search.data.X))[:count]
    segments, given = [], []
    for row, near, hidden in _looked_around(search, gaps, rows, _GIVEN, n_jobs):
        others = near[hidden]
        chosen = np.random.default_rng([random_state, int(row)]).permutation(len(others))[: _PREDICTED - 1]
        segments.append(np.append(rows[row], others[chosen]))
        given.append(near[~hidden])
    if len(segments) < _FEWEST:
        return None
    return Composite.conditional_blocks(segments, given, np.arange(len(segments)))


def _looked_around(
    search: NearestPredictor, gaps: Gaps, rows: Indices, size: int, n_jobs: int | None
) -> Iterator[tuple[int, Indices, Booleans]]:
    """For each row that has `size` observations in reach that are not hidden: the nearest up to the last of these.

    Yields
    ------
    (position in `rows`, nearest observations, which of them are hidden)
    """
    n = len(search.data.X)
    waiting, count = np.arange(len(rows)), 2 * size
    while len(waiting):
        count = min(count, n - 1)
        unfinished = []
        for part in np.array_split(waiting, -(-len(waiting) * count // _HELD)):
            near = search.around(rows[part], 0, Neighbors(count), n_jobs)[:, ::-1]
            hidden = gaps.hides(rows[part], near)
            left = np.cumsum(~hidden, axis=1)
            enough = left[:, -1] >= size
            stops = np.argmax(left >= size, axis=1) + 1
            for number in np.flatnonzero(enough):
                own = slice(0, int(stops[number]))
                yield int(part[number]), near[number, own], hidden[number, own]
            unfinished.append(part[~enough])
        waiting = np.concatenate(unfinished)
        if count >= min(n - 1, _MOST * size):
            return
        count *= _MORE
