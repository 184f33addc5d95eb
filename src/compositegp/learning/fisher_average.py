"""The learning of the paper: maximum likelihood in each segment, averaged by Fisher information."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from joblib import Parallel, delayed

from compositegp.backend import Floats, current_device
from compositegp.composite import Score, restrict, total_score
from compositegp.learning.fisher_scoring import Optimum, least_squares_step
from compositegp.learning.method import LearningMethod
from compositegp.learning.problem import LearningProblem
from compositegp.learning.result import Estimate, parameter_names
from compositegp.learning.segment_estimate import Average, estimate_block
from compositegp.learning.segment_reader import LocalSegments
from compositegp.learning.stopping import growth_needed
from compositegp.storage import storable

_BATCH = 16  # segments that are estimated together, in parallel
_FEWEST = 8  # segments to read before the standard errors are believed
_ROUNDS = 2  # rounds of θ given β, then β given θ, if the mean has coefficients
# Warn if segments lose more log likelihood than this, for each segment and parameter, at their average. Segments that
# agree lose ½ by chance.
_DISAGREEMENT = 1.0
_DOMINANT = 0.9  # warn if one segment has a larger part than this of the information about a parameter


@storable
class FisherAverage(LearningMethod):
    """The paper's learning: maximum likelihood in each segment, averaged by Fisher information.

    Parameters
    ----------
    tolerance : float or None
        Read segments, in random order, until the relative standard error of every hyper-parameter is below this; None
        reads all of them.
    n_restarts : int
        Further random starts in each segment.
    start : {"data", "kernel"}
        As in `CompositeLikelihood`.
    verbose : bool
        Show a progress bar on a terminal.

    Examples
    --------
    >>> FisherAverage(n_restarts=2)
    FisherAverage(n_restarts=2)
    """

    def __init__(
        self, tolerance: float | None = 0.03, n_restarts: int = 0, start: str = "data", verbose: bool = False
    ) -> None:
        self.tolerance = tolerance
        self.n_restarts = n_restarts
        self.start = start
        self.verbose = verbose

    def check(self) -> None:
        """Check the parameters; a ValueError names the one that is wrong."""
        super().check()
        if isinstance(self.n_restarts, bool) or not isinstance(self.n_restarts, Integral) or self.n_restarts < 0:
            raise ValueError(f"n_restarts must be a whole number of at least 0; found {self.n_restarts!r}.")

    @property
    def conditions(self) -> bool:
        """False: every segment is estimated alone."""
        return False

    def solve(self, problem: LearningProblem) -> None:
        """Learn: leave the best estimate in ``problem.best``."""
        if not isinstance(problem.terms, LocalSegments):
            raise ValueError(
                "FisherAverage learns from data in memory. Use CompositeLikelihood for data in partitions."
            )
        assert not isinstance(self.tolerance, str)
        terms, coefficients = problem.terms, problem.coefficients
        bounds = problem.data.kernel.bounds
        covariance = problem.best.coefficient_covariance
        for round_number in range(_ROUNDS if len(coefficients) else 1):
            average = Average.empty(len(problem.data.kernel.theta))
            for average in self._averages(problem, terms, coefficients):
                found = _estimate(problem, average, coefficients, covariance)
                problem.found(found, best=round_number == 0)  # a later round is better only when it is complete
                errors = np.sqrt(np.diagonal(found.theta_covariance))
                needed = growth_needed(errors, found.theta, bounds, average.n_points, self.tolerance)
                if average.n_segments >= _FEWEST and needed <= 1:
                    break
            if average.n_left_out == average.n_segments:
                raise ValueError(
                    f"No segment has a maximum likelihood estimate under kernel {problem.data.kernel}. Give the kernel "
                    "other starting values or bounds, or a WhiteKernel."
                )
            data = problem.data.with_kernel(problem.data.kernel.clone_with_theta(found.theta))
            used = terms.take(problem.order[: average.n_segments], data.kernel)
            score = total_score(data, used, coefficients, n_jobs=problem.n_jobs)
            coefficients, gain = least_squares_step(Optimum(found.theta, coefficients, score, True))
            covariance = score.normal.covariance
            problem.found(_finished(problem, average, coefficients, covariance, score, gain))

    def _averages(self, problem: LearningProblem, terms: LocalSegments, coefficients: Floats) -> Iterator[Average]:
        """Running average after each segment, in the order of the problem."""
        data, order = problem.data, problem.order
        average = Average.empty(len(data.kernel.theta))
        for start in range(0, len(order), _BATCH):
            composite = terms.take(order[start : start + _BATCH], data.kernel)
            blocks = [stack[number : number + 1] for stack in composite.stacks for number in range(len(stack))]
            found = Parallel(n_jobs=problem.n_jobs if current_device() is None else 1)(
                delayed(estimate_block)(*restrict(data, block), coefficients, self.n_restarts, problem.seed)
                for block in blocks
            )
            for estimate in found:
                average = average.add(estimate)
                yield average


def _finished(
    problem: LearningProblem, average: Average, coefficients: Floats, covariance: Floats, score: Score, gain: float
) -> Estimate:
    """The average with the likelihood at the average, and a warning if the segments disagree."""
    estimated = average.n_segments - average.n_left_out
    same_points = average.n_points / score.n_points  # the score is of all segments, also of those left out
    lost = (average.log_likelihood - same_points * score.log_likelihood) / max(estimated, 1)
    state = _estimate(
        problem, average._replace(log_likelihood=score.log_likelihood + gain), coefficients, covariance
    )
    if lost > _DISAGREEMENT * len(state.theta):
        state.warnings.append(
            f"The segments disagree about the hyper-parameters: at their average they lose {lost:.1f} log likelihood "
            f"each, where {len(state.theta) / 2} is to be expected. Use larger segments, or composite_likelihood."
        )
    return replace(state, jitter=score.jitter)


def _estimate(
    problem: LearningProblem, average: Average, coefficients: Floats, coefficient_covariance: Floats
) -> Estimate:
    estimate, kernel = average.estimate, problem.data.kernel
    return Estimate(
        average.theta_or(kernel.theta, kernel.bounds),
        estimate.precision,
        coefficients,
        coefficient_covariance,
        average.log_likelihood,
        average.n_points,
        average.n_segments,
        bool(estimate.known.all()),
        average.n_left_out,
        average.n_at_bound,
        _warnings(average, parameter_names(kernel)),
    )


def _warnings(average: Average, names: list[str]) -> list[str]:
    """Warnings that a user needs before trusting an average."""
    messages = []
    if average.n_left_out:
        messages.append(
            f"{average.n_left_out} of {average.n_segments} segments have no maximum likelihood estimate and were left "
            "out."
        )
    information = np.diagonal(average.estimate.precision)
    for name, total, largest, stuck in zip(
        names, information, average.estimate.largest, average.n_at_bound, strict=True
    ):
        if not total > 0:
            messages.append(
                f"No segment says anything about hyper-parameter {name} ({stuck} of {average.n_segments} estimates "
                "sit on a bound); it stays where it began."
            )
        elif average.n_segments > 1 and largest > _DOMINANT * total:
            messages.append(f"The estimate of hyper-parameter {name} is that of a single segment.")
        elif stuck > 0.5 * average.n_segments:
            messages.append(
                f"{stuck} of {average.n_segments} segments put hyper-parameter {name} on a bound; their estimates "
                "of it were left out. Use larger segments."
            )
    return messages
