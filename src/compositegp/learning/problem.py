"""One problem of learning: data, terms and options, and the best estimate so far."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from compositegp.backend import Floats
from compositegp.composite import Observations
from compositegp.learning.result import Estimate, Progress
from compositegp.learning.segment_reader import SegmentSource
from compositegp.learning.stopping import growth_needed


class Reporter:
    """Keeps the history, calls the callback, and draws the line.

    Parameters
    ----------
    callback : callable or None
        Called with every `Progress`.
    show : bool
        Draw a line on standard error, if that is a terminal.
    total : int
        Segments there are.
    """

    def __init__(
        self, callback: Callable[[Progress], None] | None, show: bool, total: int, stream: TextIO | None = None
    ) -> None:
        self.history: list[Progress] = []
        self._callback = callback
        self._stream = sys.stderr if stream is None else stream
        self._show = show and self._stream.isatty()
        self._total = total

    def tell(self, progress: Progress) -> None:
        """Tell where learning stands."""
        self.history.append(progress)
        if self._callback is not None:
            self._callback(progress)
        if self._show:
            done = progress.n_segments / self._total
            bar = "█" * round(20 * done)
            worst = np.max(progress.standard_errors, initial=0.0)
            self._stream.write(
                f"\r\x1b[K{bar:░<20s} {progress.n_segments}/{self._total} segments, log likelihood "
                f"{progress.log_likelihood:.4f} a point, largest standard error {worst:.3f}"
            )
            self._stream.flush()

    def close(self) -> None:
        """End the line."""
        if self._show and self.history:
            self._stream.write("\n")


@dataclass(eq=False)
class LearningProblem:
    """One problem of learning, and the best that was found so far.

    Attributes
    ----------
    data : Observations
        Its kernel is where to begin.
    terms : SegmentSource
    order : int array
        The order in which the blocks are read.
    coefficients : array of shape (q,)
        Mean coefficients to begin with.
    tolerance : float or None
    seed : int
    n_restarts : int
    n_jobs : int or None
    reporter : Reporter
    best : Estimate
    """

    data: Observations
    terms: SegmentSource
    order: Any
    coefficients: Floats
    tolerance: float | None
    seed: int
    n_restarts: int
    n_jobs: int | None
    reporter: Reporter
    best: Estimate

    def found(self, state: Estimate, *, best: bool = True) -> None:
        """Tell of a state, and keep it if it is the best so far."""
        if best:
            self.best = state
        self.reporter.tell(
            Progress(
                state.n_segments,
                state.n_points,
                state.log_likelihood / max(state.n_points, 1.0),
                state.theta,
                np.sqrt(np.diagonal(state.theta_covariance)),
            )
        )

    def growth_needed(self, standard_errors: Floats, theta: Floats, n_points: float) -> float:
        """How many times the points read so far it takes to know the parameters to the tolerance."""
        return growth_needed(standard_errors, theta, self.data.kernel.bounds, n_points, self.tolerance)
