"""A learning problem: data, terms and options, and the best estimate so far."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations
from compositegp.learning.prior import LogScalePrior
from compositegp.learning.result import Estimate, Progress
from compositegp.learning.segment_reader import SegmentSource
from compositegp.progress import ProgressBar


class Reporter:
    """Keeps the history of learning, calls the callback, and draws the progress bar.

    Parameters
    ----------
    callback : callable or None
        Called with every `Progress`.
    show : bool
        Draw a progress bar on a terminal.
    total : int
        Number of segments.
    """

    def __init__(self, callback: Callable[[Progress], None] | None, show: bool, total: int) -> None:
        self.history: list[Progress] = []
        self._callback = callback
        self._bar = ProgressBar("learning", show=show).__enter__()
        self._total = total

    def report(self, progress: Progress) -> None:
        """Report the present estimate."""
        self.history.append(progress)
        if self._callback is not None:
            self._callback(progress)
        worst = np.max(progress.standard_errors, initial=0.0)
        text = f"log likelihood {progress.log_likelihood:.4f} a point, largest standard error {worst:.3f}"
        self._bar(progress.n_segments, self._total, text)

    def close(self) -> None:
        """Close the progress bar."""
        self._bar.__exit__(None, None, None)


@dataclass(eq=False)
class LearningProblem:
    """A learning problem, and the best estimate that was found so far.

    Attributes
    ----------
    data : Observations
        Its kernel is where learning begins.
    terms : SegmentSource
    order : int array
        The order in which the blocks are read.
    coefficients : array of shape (q, t)
        Mean coefficients to begin with.
    seed : int
    n_jobs : int or None
    reporter : Reporter
    best : Estimate
    warm : bool
        Whether the kernel was already learned, roughly.
    prior : LogScalePrior or None
        Of log θ.
    """

    data: Observations
    terms: SegmentSource
    order: Indices
    coefficients: Floats
    seed: int
    n_jobs: int | None
    reporter: Reporter
    best: Estimate
    warm: bool = False
    prior: LogScalePrior | None = None

    def found(self, estimate: Estimate, *, best: bool = True) -> None:
        """Report an estimate, and keep it if it is the best so far."""
        if best:
            self.best = estimate
        self.reporter.report(
            Progress(
                estimate.n_segments,
                estimate.n_points,
                estimate.log_likelihood / max(estimate.n_points, 1.0),
                estimate.theta,
                np.sqrt(np.diagonal(estimate.theta_covariance)),
            )
        )
