"""Data, model and terms of a fitted estimator, from which every prediction method starts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations
from compositegp.means import Basis, Estimated, MeanModel
from compositegp.posteriors import NearestPredictor, Neighborhood, Surrounded


class HeldOutPart(NamedTuple):
    """Training points predicted without themselves and their K nearest neighbors.

    Attributes
    ----------
    rows : int array of shape (m,)
    n_skipped : int
        K.
    distances : array of shape (m,)
        From each to the nearest observation that it was predicted from, in length scales.
    predicted : Surrounded
    noise : array of shape (m,)
        Noise variances of what was observed there.
    """

    rows: Indices
    n_skipped: int
    distances: Floats
    predicted: Surrounded
    noise: Floats

    def take(self, positions: Indices) -> "HeldOutPart":
        """Some of the training points, in the order given."""
        mean, variance, around = self.predicted
        found = Surrounded(
            mean[positions], variance[positions], Neighborhood(*(value[positions] for value in around))
        )
        rows, distances = self.rows[positions], self.distances[positions]
        return HeldOutPart(rows, self.n_skipped, distances, found, self.noise[positions])


@dataclass(frozen=True, eq=False)
class FittedTerms:
    """Data, model and terms of a fitted estimator.

    Attributes
    ----------
    data : Observations
        The data, with a mean that is known or whose coefficients are estimated.
    given_mean : MeanModel
        The mean as a user gave it: its coefficients may be unknown.
    make_segments : callable
        Makes the segments, when they are first needed.
    make_composite : callable
        Makes the composite from the segments, when it is first needed.
    """

    data: Observations
    given_mean: MeanModel
    make_segments: Callable[[], list[Indices]]
    make_composite: Callable[[list[Indices]], Composite]

    @cached_property
    def segments(self) -> list[Indices]:
        """A partition of the observations."""
        return self.make_segments()

    @cached_property
    def composite(self) -> Composite:
        """The terms: by default segments, each conditioned on the nearest points of earlier segments."""
        return self.make_composite(self.segments)

    @cached_property
    def search(self) -> NearestPredictor:
        """The data with the one search tree that tuning, validation and prediction share."""
        return NearestPredictor(self.data)

    def in_order_of_places(self) -> "FittedTerms":
        """The same observations, those of the first column's least value first: in whatever order they were given.

        What is learned from some of them, chosen by their numbers, is then of the same ones. `order_of_places` says
        which they are.
        """
        return replace(self, data=self.data.take(self.order_of_places))

    @cached_property
    def order_of_places(self) -> Indices:
        """Observations by their places, and those at the same place by their targets."""
        targets = self.data.targets.reshape(len(self.data.X), -1)
        return np.lexsort((*targets.T[::-1], *self.data.X.T[::-1]))

    @property
    def estimated_from_data(self) -> bool:
        """Whether the coefficients of the mean were estimated from these data."""
        return isinstance(self.given_mean.coefficients, Basis) and isinstance(
            self.data.mean.coefficients, Estimated
        )

    @property
    def undetermined(self) -> Observations:
        """The data under the mean as a user gave it, with coefficients that are still to be learned."""
        return self.data.with_mean(self.given_mean) if self.estimated_from_data else self.data

    def __getstate__(self) -> dict[str, Any]:
        """State without the segments, the composite and the search tree, which can be made again."""
        again = ("segments", "composite", "search", "order_of_places")
        return {name: value for name, value in vars(self).items() if name not in again}
