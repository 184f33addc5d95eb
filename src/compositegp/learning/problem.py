"""A learning problem: data, terms and options, and the best estimate so far."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations, Score
from compositegp.learning.prior import LogScalePrior
from compositegp.learning.result import Estimate, Progress
from compositegp.learning.segment_reader import SegmentReading, SegmentSource
from compositegp.progress import ProgressBar

_CHEAP = 2.5e7  # Σ n³ over blocks of n points up to which a likelihood is maximized to its end: 292 points together
_EXACT = 5e7  # p Σ n³, for p parameters, up to which the Fisher information is exact
_MOST_PROBES = 64  # random vectors in one block, at most


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


def is_cheap(reading: SegmentReading) -> bool:
    """Whether blocks are so few and small that a maximization of their likelihood need not be cut short.

    Where data are few, kernels may be nearly as likely as each other, and predictions under them differ: which of them
    is taken must not depend on where a maximization stopped.
    """
    return reading.cubes <= _CHEAP


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

    def score(self, reading: SegmentReading, kernel: Kernel, coefficients: Floats, probes: int) -> Score:
        """Log likelihood, gradient and Fisher information of blocks; the information is exact where that is cheap.

        Parameters
        ----------
        reading : SegmentReading
        kernel : scikit-learn kernel
        coefficients : array of shape (q, t)
        probes : int
            Random vectors, over all the blocks, for a Fisher information that is not exact. 0 leaves it out.

        Returns
        -------
        Score
        """
        if probes and len(kernel.theta) * reading.cubes <= _EXACT:
            each = -1
        else:
            each = min(-(-probes // reading.n_blocks), _MOST_PROBES)
        return reading.score(kernel, coefficients, probes=each, seed=self.seed, n_jobs=self.n_jobs)

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
                estimate.theta_information,
            )
        )
