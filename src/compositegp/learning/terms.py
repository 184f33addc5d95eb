"""The terms that learning reads: given as they are, or made from segments as the length scales become known."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, Indices
from compositegp.composite import Composite, conditioning_sets
from compositegp.validation import check_segments


class Terms:
    """Blocks of a composite, some of which are read at a time.

    Parameters
    ----------
    X : array of shape (n, d)
    terms : Composite or list of int arrays
        A composite is read as it is. Segments are made into a composite: each given the `conditioning_size` points
        of the segments before it in the list that are nearest, in the kernel's length scales.
    conditioning_size : int
    """

    def __init__(self, X: Floats, terms: Any, conditioning_size: int) -> None:
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
        if largest >= len(X):
            raise ValueError(f"terms name point {largest}, but X has only {len(X)} point(s).")
        if isinstance(terms, Composite) and not sum(float(stack.row_weights.sum()) for stack in terms.stacks) > 0:
            raise ValueError("terms have no positive weight on the whole: there is no likelihood to maximise.")
        self._X = X
        self._size = int(conditioning_size)

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def follow_length_scales(self) -> bool:
        """Whether the terms depend on the kernel."""
        return self._composite is None

    def take(self, numbers: Any, kernel: Kernel) -> Composite:
        """The composite of some of the blocks."""
        if self._composite is not None:
            return self._composite.take(numbers)
        chosen = np.sort(np.asarray(numbers))
        given = conditioning_sets(self._X, self.segments, self._size, kernel=kernel, only=chosen)
        return Composite.conditional_blocks([self.segments[number] for number in chosen], given, chosen)
