"""What the learners are given, and what they find."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compositegp.arrays import Floats
from compositegp.composite import Observations
from compositegp.learning.progress import Progress, Reporter
from compositegp.learning.terms import Source

_ORDER_OF_MAGNITUDE = 1.0  # standard error of a log, beyond which it is not known
_PATIENCE = 2**16


@dataclass(frozen=True, eq=False)
class Found:
    """The state of learning: see `LearningResult` for the attributes."""

    theta: Floats
    theta_covariance: Floats
    coefficients: Floats
    coefficient_covariance: Floats
    log_likelihood: float
    n_points: float
    n_segments: int
    converged: bool
    n_left_out: int
    n_at_bound: Any
    warnings: list[str] = field(default_factory=list)
    jitter: float = 0.0


@dataclass(eq=False)
class Task:
    """One problem of learning, and the best that was found so far.

    Attributes
    ----------
    data : Observations
        Its kernel is where to begin.
    terms : Source
    order : int array
        The order in which the blocks are read.
    coefficients : array of shape (q,)
        Mean coefficients to begin with.
    tolerance : float or None
    seed : int
    n_restarts : int
    n_jobs : int or None
    reporter : Reporter
    best : Found
    """

    data: Observations
    terms: Source
    order: Any
    coefficients: Floats
    tolerance: float | None
    seed: int
    n_restarts: int
    n_jobs: int | None
    reporter: Reporter
    best: Found

    def found(self, state: Found, *, best: bool = True) -> None:
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
        """How many times the data are needed to know the parameters to the tolerance; at most 1 if they are.

        A parameter whose order of magnitude is still not known after `_PATIENCE` points, such as the length scale of a
        column that does not matter, is not waited for any longer; nor is one on its bound.
        """
        if self.tolerance is None:
            return np.inf
        bounds = self.data.kernel.bounds
        inside = (theta > bounds[:, 0] + 1e-6) & (theta < bounds[:, 1] - 1e-6) & np.isfinite(standard_errors)
        hopeless = standard_errors > _ORDER_OF_MAGNITUDE
        if (inside & hopeless).any() and n_points < _PATIENCE:
            return _PATIENCE / max(n_points, 1.0)
        return float((standard_errors[inside & ~hopeless] / self.tolerance).max(initial=0.0)) ** 2
