"""Learning by a user's own optimizer: a function as scikit-learn's `GaussianProcessRegressor` takes it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from compositegp.backend import Floats
from compositegp.composite import Score
from compositegp.learning.composite_likelihood import LAST_PROBES, estimate_at, score_at
from compositegp.learning.fisher_scoring import Optimum
from compositegp.learning.method import LearningMethod
from compositegp.learning.problem import LearningProblem

Optimizer = Callable[..., tuple[Floats, float]]
"""A function of an objective, initial values and bounds that returns the best values and what they give."""


class CustomOptimizer(LearningMethod):
    """Maximize the composite likelihood of all the terms by a function of your own.

    Unknown coefficients of the mean are those of generalized least squares at every θ.

    Parameters
    ----------
    optimizer : callable
        Called as ``optimizer(objective, theta, bounds=bounds)`` with log θ of shape (p,) and bounds of shape (p, 2). It
        returns the best θ and the objective there. ``objective(theta)`` is minus the log likelihood and its gradient,
        ``objective(theta, eval_gradient=False)`` the number alone: as in scikit-learn.
    start : {"kernel", "data"}
        As in `CompositeLikelihood`.
    verbose : bool
        Show a progress bar on a terminal.

    Examples
    --------
    >>> from compositegp import CompositeGPRegressor
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> def ten_values(objective, theta, bounds):
    ...     values = theta + np.linspace(-1, 1, 10)[:, None]
    ...     found = [objective(value, eval_gradient=False) for value in values]
    ...     return values[np.argmin(found)], min(found)
    >>> model = CompositeGPRegressor(WhiteKernel(), learning=ten_values).fit([[0.0], [1.0]], [1.0, 2.0])
    >>> f"{model.kernel_.noise_level:.2f}"  # the mean square is 2.5
    '2.72'
    """

    tolerance = None

    def __init__(self, optimizer: Optimizer, start: str = "kernel", verbose: bool = False) -> None:
        self.optimizer = optimizer
        self.start = start
        self.verbose = verbose

    def solve(self, problem: LearningProblem) -> None:
        """Learn: leave the best estimate in ``problem.best``."""
        kernel, bounds = problem.data.kernel, problem.data.kernel.bounds
        reading = problem.terms.read(problem.order, kernel)
        coefficients = problem.coefficients

        def profile(theta: Floats) -> tuple[Score, Floats]:
            """Score at θ and the best coefficients, and those coefficients."""
            now, best = kernel.clone_with_theta(theta), coefficients
            if len(best):
                best = reading.score(
                    now, best, probes=0, seed=problem.seed, n_jobs=problem.n_jobs
                ).normal.coefficients
            return reading.score(now, best, probes=0, seed=problem.seed, n_jobs=problem.n_jobs), best

        def objective(theta: Floats, eval_gradient: bool = True) -> Any:
            try:
                score, _ = profile(np.asarray(theta, dtype=np.float64))
            except LinAlgError:
                return (np.inf, np.zeros(len(bounds))) if eval_gradient else np.inf
            return (-score.log_likelihood, -score.gradient) if eval_gradient else -score.log_likelihood

        found, _ = self.optimizer(objective, kernel.theta, bounds=bounds)
        theta = np.asarray(found, dtype=np.float64)
        if theta.shape != kernel.theta.shape or not np.isfinite(theta).all():
            raise ValueError(
                f"learning={self.optimizer!r} must return log hyper-parameters of shape {kernel.theta.shape} and the "
                f"objective there; found {found!r}."
            )
        theta = np.clip(theta, bounds[:, 0], bounds[:, 1])
        _, best = profile(theta)
        last = score_at(problem, reading, theta, best, LAST_PROBES)
        problem.found(estimate_at(Optimum(theta, best, last, True), len(problem.terms)))
