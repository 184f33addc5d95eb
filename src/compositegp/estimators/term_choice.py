"""The terms of an estimator: how segments are made, and which points each is conditioned on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices, RandomState
from compositegp.composite import (
    SCHEMES,
    Composite,
    EarlierPoints,
    Observations,
    Spreads,
    by_labels,
    check_composite,
    in_spreads,
    partition,
    segments_of_tree,
)
from compositegp.functionals import plain_kernel, plain_points
from compositegp.kernels import in_length_scales
from compositegp.learning import LocalSegments
from compositegp.validation import check_count

CompositeMaker = Callable[[Floats, Kernel], Composite]
"""A user's own choice of terms: a function of points (n, d) and a kernel."""


@dataclass(frozen=True, eq=False)
class TermChoice:
    """How the terms of a composite are made from points.

    Attributes
    ----------
    segment_size : int
    segmentation : str or callable
        How segments are made, or a user's own choice of terms in the place of segments.
    conditioning_size : int
    random_state : int, RandomState or None
    """

    segment_size: int
    segmentation: str | CompositeMaker
    conditioning_size: int
    random_state: RandomState

    def check(self) -> None:
        """Check the values; a ValueError names the one that is wrong."""
        check_count(self.segment_size, "segment_size")
        check_count(self.conditioning_size, "conditioning_size", least=0)
        if not callable(self.segmentation) and self.segmentation not in SCHEMES:
            raise ValueError(
                f"segmentation must be one of {', '.join(SCHEMES)}, or a function of points (n, d) and a kernel that "
                f"returns a Composite; found {self.segmentation!r}. Labels of segments go to fit(X, y, groups=labels)."
            )

    def segments(self, X: Floats, kernel: Kernel | None, labels: ArrayLike | None = None) -> list[Indices]:
        """Segments of points; distances are in length scales, or in standard deviations while there is no kernel."""
        if labels is not None:
            return by_labels(labels, len(X))
        points = in_spreads(X) if kernel is None else in_length_scales(kernel, X)
        scheme = self.segmentation if isinstance(self.segmentation, str) else "tree"
        return partition(points, self.segment_size, scheme, self.random_state)

    def composite_of(self, X: Floats, kernel: Kernel, segments: list[Indices]) -> Composite:
        """The terms: a user's own, or segments, each conditioned on the nearest points of earlier segments."""
        if callable(self.segmentation):
            return self._own(X, kernel)
        if len(segments) == 1 or not self.conditioning_size:
            return Composite.of_segments(segments)
        numbers = np.arange(len(segments))
        given = EarlierPoints(X, segments, self.conditioning_size).of(numbers, kernel)
        return Composite.conditional_blocks(segments, given, numbers)

    def source(self, data: Observations, labels: ArrayLike | None, conditioned: bool) -> LocalSegments:
        """The terms that learning reads, made when they are read."""
        if callable(self.segmentation):
            return LocalSegments.checked(data, self._own(data.X, data.kernel), 0)
        X = plain_points(data.kernel, data.X)
        if labels is None and self.segmentation == "tree":
            segments = segments_of_tree(X, self.segment_size, Spreads.of(X))
        else:
            segments = self.segments(X, None, labels)
        return LocalSegments(data, segments, self.conditioning_size if conditioned else 0)

    def _own(self, X: Floats, kernel: Kernel) -> Composite:
        assert callable(self.segmentation)
        found = check_composite(self.segmentation(plain_points(kernel, X), plain_kernel(kernel)))
        if found.n_points > len(X):
            raise ValueError(
                f"segmentation names point {found.n_points - 1}, but there are only {len(X)} observation(s)."
            )
        return found

    def same_as(self, other: "TermChoice") -> bool:
        """Whether these make the same terms."""
        names = ("segment_size", "segmentation", "conditioning_size")
        return all(getattr(self, name) == getattr(other, name) for name in names)
