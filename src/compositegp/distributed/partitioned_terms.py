"""Terms of data in partitions: scores are computed where the data are, and added up in a tree."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import dask
import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations, Score, check_finite, score_terms, with_coefficient_prior
from compositegp.distributed.partitions import Part, Summary, add_up
from compositegp.learning import LocalSegments
from compositegp.means import MeanModel

_FAR_APART = 7919  # difference between the seeds of two neighboring partitions


@dataclass(frozen=True, eq=False)
class PartitionedTerms:
    """The segments of all partitions, each conditioned on the nearest earlier points of its own partition.

    Attributes
    ----------
    parts : list of delayed Part
    summaries : list of Summary
    mean : MeanModel
    conditioning_size : int
    """

    parts: list[Any]
    summaries: list[Summary]
    mean: MeanModel
    conditioning_size: int

    def __len__(self) -> int:
        return sum(len(summary.sizes) for summary in self.summaries)

    @property
    def mean_size(self) -> float:
        """Points in a segment, on average."""
        return sum(summary.n_points for summary in self.summaries) / len(self)

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""
        return self.conditioning_size > 0

    @property
    def conditioned(self) -> bool:
        """Whether segments are conditioned on each other."""
        return self.conditioning_size > 0

    def halved(self, numbers: Indices) -> None:
        """None: segments are made where the data are."""

    def places(self, numbers: Indices) -> dict[int, Indices]:
        """Numbers of segments within their partitions, by the number of the partition."""
        stops = np.cumsum([len(summary.sizes) for summary in self.summaries])
        chosen = np.sort(numbers)
        owners = np.searchsorted(stops, chosen, side="right")
        return {
            int(owner): chosen[owners == owner] - (stops[owner - 1] if owner else 0) for owner in np.unique(owners)
        }

    def read(self, numbers: Indices, kernel: Kernel) -> "PartitionedReading":
        """Some of the segments."""
        return PartitionedReading(self, self.places(numbers), kernel)


@dataclass(frozen=True, eq=False)
class PartitionedReading:
    """Some of the segments; the points they are conditioned on are nearest in the length scales of `scale`."""

    terms: PartitionedTerms
    places: dict[int, Indices]
    scale: Kernel

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return sum(len(numbers) for numbers in self.places.values())

    @property
    def cubes(self) -> float:
        """Σ n³ over the blocks, as if all were conditioned."""
        return self.n_blocks * (self.terms.mean_size + self.terms.conditioning_size) ** 3

    def score(self, kernel: Kernel, coefficients: Floats, *, probes: int, seed: int, n_jobs: int | None) -> Score:
        """Their score, by one task for each partition and a tree of sums."""
        mean, size = self.terms.mean, self.terms.conditioning_size
        task = dask.delayed(_score)
        model = (kernel, mean, coefficients, probes, seed)
        scores = [
            task(self.terms.parts[owner], numbers, size, self.scale, *model)
            for owner, numbers in self.places.items()
        ]
        (total,) = dask.compute(add_up(scores, _sum))
        return with_coefficient_prior(check_finite(total, kernel), mean, coefficients)


def _score(
    part: Part,
    numbers: Indices,
    conditioning_size: int,
    scale: Kernel,
    kernel: Kernel,
    mean: MeanModel,
    coefficients: Floats,
    probes: int,
    seed: int,
) -> Score:
    data = Observations.of(kernel, mean, part.X, part.y, None)
    composite = LocalSegments(data, part.segments, conditioning_size).take(numbers, scale)
    return score_terms(data, composite, coefficients, probes=probes, seed=seed + _FAR_APART * part.number)


def _sum(scores: list[Score]) -> Score:
    return reduce(Score.plus, scores)
