"""The terms that learning reads: a given composite, or made from segments with the present length scales."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, IndexSets, Indices
from compositegp.composite import (
    Composite,
    EarlierPoints,
    Observations,
    Score,
    TreeSegments,
    boundaries_of,
    in_spreads,
    partition,
    total_score,
)
from compositegp.validation import check_count, check_segments

_FEWEST_TO_HALVE = 32  # points in the smallest segment


class SegmentReading(Protocol):
    """Some of the blocks of a composite, which are read together."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""

    @property
    def cubes(self) -> float:
        """Σ n³ over the blocks, in proportion to which a factorization of their covariances takes time."""

    def score(self, kernel: Kernel, coefficients: Floats, *, probes: int, seed: int, n_jobs: int | None) -> Score:
        """Their score: see `total_score`."""


class SegmentSource(Protocol):
    """The blocks of a composite, in memory or in partitions, to read some at a time."""

    def __len__(self) -> int:
        """Number of blocks."""

    @property
    def mean_size(self) -> float:
        """Points in a block, on average."""

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""

    @property
    def conditioned(self) -> bool:
        """Whether segments are conditioned on each other."""

    def halved(self, numbers: Indices) -> "SegmentSource | None":
        """Segments of half the size, number k being those of 2 k and 2 k + 1; None where they cannot be made."""

    def read(self, numbers: Indices, kernel: Kernel) -> SegmentReading:
        """Some of the blocks."""


@dataclass(frozen=True, eq=False)
class LocalReading:
    """Blocks of data in memory."""

    data: Observations
    composite: Composite

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.composite.n_blocks

    @property
    def cubes(self) -> float:
        """Σ n³ over the blocks."""
        return float(sum(len(stack) * stack.indices.shape[1] ** 3 for stack in self.composite.stacks))

    def score(self, kernel: Kernel, coefficients: Floats, *, probes: int, seed: int, n_jobs: int | None) -> Score:
        """Their score, on one core or several."""
        data = self.data.with_kernel(kernel)
        return total_score(data, self.composite, coefficients, probes=probes, seed=seed, n_jobs=n_jobs)


class LocalSegments:
    """The blocks of a composite of data in memory.

    Parameters
    ----------
    data : Observations
    terms : Composite or sequence of int arrays
        A composite is read as it is. From segments a composite is made: each segment is conditioned on the
        `conditioning_size` nearest points of the segments before it in the list, in the length scales of the kernel.
    conditioning_size : int
    """

    def __init__(self, data: Observations, terms: Composite | Sequence[Indices], conditioning_size: int) -> None:
        self._data = data
        self._size = conditioning_size
        if isinstance(terms, Composite):
            self._composite: Composite | None = terms
            self.segments: Sequence[Indices] = [part for stack in terms.stacks for part in stack.indices]
        else:
            self.segments = terms
            made_when_read = conditioning_size or isinstance(terms, TreeSegments)
            self._composite = None if made_when_read else Composite.of_segments(list(terms))

    @classmethod
    def checked(cls, data: Observations, terms: Composite | IndexSets, conditioning_size: int) -> "LocalSegments":
        """Build from a user's arguments; a ValueError names a bad one."""
        size = check_count(conditioning_size, "conditioning_size", least=0)
        if isinstance(terms, Composite):
            if size:
                raise ValueError(
                    "conditioning_size is for segments; this composite says already what its terms are conditioned on."
                )
            if not sum(float(stack.row_weights.sum()) for stack in terms.stacks) > 0:
                raise ValueError(
                    "terms have a total weight that is not positive: there is no likelihood to maximize."
                )
            found = cls(data, terms, size)
        else:
            found = cls(data, check_segments(terms, "terms"), size)
        largest = max((int(part.max(initial=0)) for part in found.segments), default=-1)
        if largest >= len(data.X):
            raise ValueError(f"terms name point {largest}, but X has only {len(data.X)} point(s).")
        return found

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def mean_size(self) -> float:
        """Points in a segment, on average; of a conditional term, those that are not conditioned on."""
        if self._composite is not None:
            return float(
                np.mean([np.count_nonzero(row) for stack in self._composite.stacks for row in stack.row_weights])
            )
        return float(np.diff(boundaries_of(self.segments)).mean())

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""
        return self._composite is None and self._size > 0

    @cached_property
    def _earlier(self) -> EarlierPoints:
        return EarlierPoints(self._data.X, self.segments, self._size)

    @property
    def conditioned(self) -> bool:
        """Whether segments are conditioned on each other."""
        return self._size > 0 or (
            self._composite is not None and any(len(stack.stops) > 1 for stack in self._composite.stacks)
        )

    def halved(self, numbers: Indices) -> "LocalSegments | None":
        """Segments of half the size, number k being those of 2 k and 2 k + 1; None where that saves nothing.

        A pass over the same points takes a quarter of the time. Only halves of the segments in `numbers` need be local:
        the others serve to be conditioned on. Terms of a user's own stay as they are, and so does a single segment, one
        half of which would be conditioned on the other.
        """
        smallest = np.diff(boundaries_of(self.segments)).min()
        if not self.follow_length_scales or len(self.segments) == 1 or smallest < _FEWEST_TO_HALVE:
            return None
        if isinstance(self.segments, TreeSegments):
            return LocalSegments(self._data, self.segments.halved(), max(1, self._size // 2))
        halves = [half for part in self.segments for half in np.array_split(part, 2)]
        for number in map(int, numbers):
            part = self.segments[number]
            local = partition(in_spreads(self._data.X, part), -(-len(part) // 2))
            halves[2 * number : 2 * number + 2] = [part[half] for half in local]
        return LocalSegments(self._data, halves, max(1, self._size // 2))

    def read(self, numbers: Indices, kernel: Kernel) -> LocalReading:
        """Some of the blocks."""
        return LocalReading(self._data, self.take(numbers, kernel))

    def take(self, numbers: Indices, kernel: Kernel) -> Composite:
        """The composite of some of the blocks."""
        if self._composite is not None:
            return self._composite.take(numbers)
        chosen = np.sort(numbers)
        given = self._earlier.of(chosen, kernel) if self._size else [np.arange(0)] * len(chosen)
        return Composite.conditional_blocks([self.segments[number] for number in chosen], given, chosen)
