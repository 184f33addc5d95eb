"""The terms that learning reads: given as they are, or made from segments as the length scales become known."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations, Score, conditioning_sets, total_score
from compositegp.validation import check_segments


class SegmentReading(Protocol):
    """Some of the blocks of a composite, read together."""

    @property
    def n_blocks(self) -> int:
        """How many."""

    def score(self, kernel: Kernel, coefficients: Floats, *, probes: int, seed: int, n_jobs: int | None) -> Score:
        """Their score: see `total_score`."""


class SegmentSource(Protocol):
    """Blocks of a composite, wherever their data are, some of which are read at a time."""

    def __len__(self) -> int:
        """Number of blocks."""

    @property
    def mean_size(self) -> float:
        """Points in a block, on average."""

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""

    def read(self, numbers: Any, kernel: Kernel) -> SegmentReading:
        """Some of the blocks."""


@dataclass(frozen=True, eq=False)
class LocalReading:
    """Blocks of data at hand."""

    data: Observations
    composite: Composite

    @property
    def n_blocks(self) -> int:
        """How many."""
        return self.composite.n_blocks

    def score(self, kernel: Kernel, coefficients: Floats, *, probes: int, seed: int, n_jobs: int | None) -> Score:
        """Their score, on one core or several."""
        data = self.data.with_kernel(kernel)
        return total_score(data, self.composite, coefficients, probes=probes, seed=seed, n_jobs=n_jobs)


class LocalSegments:
    """Blocks of a composite of data at hand.

    Parameters
    ----------
    data : Observations
    terms : Composite or list of int arrays
        A composite is read as it is. Segments are made into a composite: each given the `conditioning_size` points
        of the segments before it in the list that are nearest, in the kernel's length scales.
    conditioning_size : int
    """

    def __init__(self, data: Observations, terms: Any, conditioning_size: int) -> None:
        whole = isinstance(conditioning_size, int | np.integer) and not isinstance(conditioning_size, bool)
        if not whole or conditioning_size < 0:
            raise ValueError(
                f"conditioning_size must be a whole number of at least 0; found {conditioning_size!r}."
            )
        if isinstance(terms, Composite):
            if conditioning_size:
                raise ValueError(
                    "conditioning_size is for segments; this composite says already what its terms are conditioned on."
                )
            self._composite: Composite | None = terms
            self.segments: list[Indices] = [part for stack in terms.stacks for part in stack.indices]
        else:
            self.segments = check_segments(terms, "terms")
            self._composite = None if conditioning_size else Composite.marginal(self.segments)
        largest = max((int(part.max(initial=0)) for part in self.segments), default=-1)
        if largest >= len(data.X):
            raise ValueError(f"terms name point {largest}, but X has only {len(data.X)} point(s).")
        if isinstance(terms, Composite) and not sum(float(stack.row_weights.sum()) for stack in terms.stacks) > 0:
            raise ValueError("terms have no positive weight on the whole: there is no likelihood to maximise.")
        self._data = data
        self._size = int(conditioning_size)

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def mean_size(self) -> float:
        """Points in a segment, on average."""
        return float(np.mean([len(part) for part in self.segments]))

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""
        return self._composite is None

    def read(self, numbers: Any, kernel: Kernel) -> LocalReading:
        """Some of the blocks."""
        return LocalReading(self._data, self.take(numbers, kernel))

    def take(self, numbers: Any, kernel: Kernel) -> Composite:
        """The composite of some of the blocks."""
        if self._composite is not None:
            return self._composite.take(numbers)
        chosen = np.sort(np.asarray(numbers))
        given = conditioning_sets(self._data.X, self.segments, self._size, kernel=kernel, only=chosen)
        return Composite.conditional_blocks([self.segments[number] for number in chosen], given, chosen)
