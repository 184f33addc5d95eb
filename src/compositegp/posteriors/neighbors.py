"""Which observations a prediction is made from: the nearest, and some of those that are farther away."""

from typing import NamedTuple

import numpy as np

from compositegp.backend import Indices

# Chosen by expected log scores of simulated fields, near the data and in gaps: benchmarks/neighbors.py.
_FAR_SHARE = 4  # one observation in this many is far away
_REACH = 8  # ranks among which these are, over the number of observations


class Neighbors(NamedTuple):
    """Observations by their rank in nearness: the nearest ones, and others that thin out with their rank.

    In a gap the nearest observations are all on one side. Some that are farther away say more than as many that lie
    next to those, above all where a field has a long range beside a short one.

    Attributes
    ----------
    near : int
        The nearest, all of them.
    far : int
        Further ones, as many in each octave of the rank, up to eight times as many ranks as there are observations.
    """

    near: int
    far: int = 0

    @classmethod
    def spread(cls, size: int) -> "Neighbors":
        """A number of observations, a quarter of which are far away."""
        far = size // _FAR_SHARE
        return cls(size - far, far)

    @property
    def size(self) -> int:
        """How many observations they are."""
        return self.near + self.far

    @property
    def reach(self) -> int:
        """How many of the nearest observations are looked at."""
        return _REACH * self.size if self.far else self.near

    def within(self, n: int) -> "Neighbors":
        """The same among n observations, all of which are taken where these are not more."""
        return self if self.size < n else Neighbors(n)

    def at_most(self, size: int) -> "Neighbors":
        """No more than `size` of them, of the same kind."""
        if self.size <= size:
            return self
        return Neighbors.spread(size) if self.far else Neighbors(size)

    def ranks(self, n: int) -> Indices:
        """Ranks among n observations, ascending; the nearest has rank 0.

        Examples
        --------
        >>> Neighbors(3, 4).ranks(100)
        array([ 0,  1,  2,  4,  8, 18, 38])
        >>> Neighbors(3, 4).ranks(8)
        array([0, 1, 2, 3, 4, 5, 7])
        """
        here = self.within(n)
        if not here.far:
            return np.arange(here.near)
        near, far, order = here.near, here.far, np.arange(here.far)
        end = min(here.reach, n)
        spaced = (max(near, 1) * (end / max(near, 1)) ** ((order + 0.5) / far)).astype(np.intp)
        ascending = np.maximum.accumulate(np.maximum(spaced, near) - order) + order
        return np.concatenate([np.arange(near), np.minimum(ascending, end - far + order)])
