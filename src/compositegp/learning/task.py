"""What the learners are given, and what they find."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compositegp.arrays import Floats
from compositegp.composite import Observations
from compositegp.learning.progress import Progress, Reporter
from compositegp.learning.terms import Terms

_ORDER_OF_MAGNITUDE = 1.0  # standard error of a log, beyond which it is not known


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


@dataclass(eq=False)
class Task:
    """One problem of learning, and the best that was found so far.

    Attributes
    ----------
    data : Observations
        Its kernel is where to begin.
    terms : Terms
    order : int array
        The order in which the blocks are read.
    coefficients : array of shape (q,)
        Mean coefficients to begin with.
    tolerance : float or None
    seed : int
    n_restarts : int
    n_jobs : int or None
    reporter : Reporter
    best : Found or None
    """

    data: Observations
    terms: Terms
    order: Any
    coefficients: Floats
    tolerance: float | None
    seed: int
    n_restarts: int
    n_jobs: int | None
    reporter: Reporter
    best: Found | None = None

    def found(self, state: Found) -> None:
        """Keep the state as the best so far, and tell."""
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

    def growth_needed(self, standard_errors: Floats) -> float:
        """How many times the data are needed to know the parameters to the tolerance; at most 1 if they are.

        A parameter whose order of magnitude is not known, such as the length scale of a column that does not matter,
        is not waited for.
        """
        if self.tolerance is None:
            return np.inf
        waited_for = standard_errors[standard_errors < _ORDER_OF_MAGNITUDE]
        return float((waited_for / self.tolerance).max(initial=0.0)) ** 2
