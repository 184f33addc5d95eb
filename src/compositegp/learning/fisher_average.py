"""The paper's learning: maximum likelihood in each segment, averaged by Fisher information."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from compositegp.backend import Floats, blas_threads_for, keep_freed_memory, pseudo_invert_information, use_device
from compositegp.composite import Observations, Score, Stack, restrict, score, total_score
from compositegp.learning.fisher_scoring import Optimum, least_squares_step
from compositegp.learning.problem import LearningProblem
from compositegp.learning.recursive_estimate import RecursiveEstimate
from compositegp.learning.result import Estimate, parameter_names
from compositegp.learning.segment_reader import LocalSegments
from compositegp.learning.stopping import on_bound

_BATCH = 16  # segments estimated before the standard errors are looked at again
_RESTART_SPREAD = 2.0  # standard deviation of random starts, in log θ


class BlockEstimate(NamedTuple):
    """Maximum likelihood in one segment.

    Attributes
    ----------
    theta : array of shape (p,)
    fisher : array of shape (p, p)
        At the estimate.
    at_bound : boolean array of shape (p,)
    log_likelihood : float
    n_points : float
    """

    theta: Floats
    fisher: Floats
    at_bound: Any
    log_likelihood: float
    n_points: float


class Average(NamedTuple):
    """Running average of the segments read so far.

    Attributes
    ----------
    estimate : RecursiveEstimate
    log_likelihood : float
        Sum of the segments' own maxima.
    n_points : float
    n_segments : int
    n_left_out : int
    n_at_bound : array of shape (p,)
    """

    estimate: RecursiveEstimate
    log_likelihood: float
    n_points: float
    n_segments: int
    n_left_out: int
    n_at_bound: Floats

    @classmethod
    def empty(cls, p: int) -> "Average":
        """Before any segment."""
        return cls(RecursiveEstimate.empty(p), 0.0, 0.0, 0, 0, np.zeros(p, dtype=int))

    @classmethod
    def known(cls, theta: Floats, covariance: Floats, n_segments: int, n_points: float) -> "Average":
        """An estimate with an error covariance, infinite where nothing is known, to be averaged with further ones."""
        finite = np.flatnonzero(np.isfinite(np.diagonal(covariance)))
        precision = np.zeros_like(covariance)
        precision[np.ix_(finite, finite)] = np.linalg.pinv(covariance[np.ix_(finite, finite)], hermitian=True)
        estimate = RecursiveEstimate(precision, precision @ theta, n_segments, np.diagonal(precision).copy())
        return cls(estimate, 0.0, n_points, n_segments, 0, np.zeros(len(theta), dtype=int))

    def theta_or(self, start: Floats, bounds: Floats) -> Floats:
        """θ̄ within bounds; where nothing is known, where it began."""
        theta = np.where(self.estimate.known, self.estimate.theta, start)
        return np.clip(theta, bounds[:, 0], bounds[:, 1])

    def add(self, found: BlockEstimate | None) -> "Average":
        """Add a segment's estimate; None is one that failed."""
        if found is None or not np.isfinite(found.fisher).all():
            return self._replace(n_segments=self.n_segments + 1, n_left_out=self.n_left_out + 1)
        # A parameter on its bound says only that the segment knows no better: it is not averaged.
        inside = np.where(found.at_bound, 0.0, 1.0)
        return Average(
            self.estimate.add(found.theta, found.fisher * np.outer(inside, inside)),
            self.log_likelihood + found.log_likelihood,
            self.n_points + found.n_points,
            self.n_segments + 1,
            self.n_left_out,
            self.n_at_bound + found.at_bound,
        )


def averages(
    observations: Observations,
    terms: LocalSegments,
    order: Any,
    coefficients: Floats,
    *,
    n_restarts: int,
    seed: int,
    n_jobs: int | None,
) -> Iterator[Average]:
    """Running average after each segment, segments being read in the given order."""
    average = Average.empty(len(observations.kernel.theta))
    for start in range(0, len(order), _BATCH):
        composite = terms.take(order[start : start + _BATCH], observations.kernel)
        blocks = [stack[number : number + 1] for stack in composite.stacks for number in range(len(stack))]
        found = Parallel(n_jobs=n_jobs)(
            delayed(estimate_block)(*restrict(observations, block), coefficients, n_restarts, seed)
            for block in blocks
        )
        for estimate in found:
            average = average.add(estimate)
            yield average


def estimate_block(
    observations: Observations, stack: Stack, coefficients: Floats, n_restarts: int, seed: int
) -> BlockEstimate | None:
    """Maximum likelihood estimate of log θ from one block, by L-BFGS-B within the kernel's bounds; None if it fails."""
    kernel = observations.kernel
    bounds = kernel.bounds

    def at(theta: Floats) -> Observations:
        return observations.with_kernel(kernel.clone_with_theta(theta))

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            found = score(at(theta), stack, coefficients)
        except LinAlgError:
            return 1e25, np.zeros(len(theta))
        return -found.log_likelihood, -found.gradient

    keep_freed_memory()
    generator = np.random.default_rng([seed, int(stack.numbers[0])])
    starts = [kernel.theta]
    for _ in range(n_restarts):
        starts.append(kernel.theta + _RESTART_SPREAD * generator.standard_normal(len(kernel.theta)))
    with blas_threads_for(stack.indices.shape[1]):
        results = [
            minimize(objective, np.clip(start, *bounds.T), jac=True, method="L-BFGS-B", bounds=bounds)
            for start in starts
        ]
        best = min(results, key=lambda result: result.fun)
        if best.fun >= 1e25:
            return None
        try:
            exact = score(at(best.x), stack, coefficients, probes=-1)
        except LinAlgError:
            return None
    return BlockEstimate(best.x, exact.fisher, on_bound(best.x, bounds), exact.log_likelihood, exact.n_points)


_FEWEST = 8  # segments to read before the standard errors are believed
_ROUNDS = 2  # of θ given β, then β given θ, where the mean has coefficients
_DISAGREEMENT = 1.0  # log likelihood lost a segment and parameter; a half is what chance takes
_DOMINANT = 0.9  # share of one segment in what is known of a parameter, beyond which the average is its estimate


@use_device(None)
def learn_by_average(task: LearningProblem) -> None:
    """Average the segments' maximum likelihood estimates by Fisher information, until θ is known to the tolerance."""
    assert isinstance(task.terms, LocalSegments)
    coefficients = task.coefficients
    p, q = len(task.data.kernel.theta), len(coefficients)
    coefficient_covariance = task.best.coefficient_covariance
    for round_number in range(_ROUNDS if q else 1):
        average = Average.empty(p)
        for average in averages(
            task.data,
            task.terms,
            task.order,
            coefficients,
            n_restarts=task.n_restarts,
            seed=task.seed,
            n_jobs=task.n_jobs,
        ):
            state = _found(task, average, coefficients, coefficient_covariance)
            task.found(state, best=round_number == 0)  # a later round is better only when it is through
            errors = np.sqrt(np.diagonal(state.theta_covariance))
            if average.n_segments >= _FEWEST and task.growth_needed(errors, state.theta, average.n_points) <= 1:
                break
        if average.n_left_out == average.n_segments:
            raise ValueError(
                f"No segment has a maximum likelihood estimate under kernel {task.data.kernel}. Give the kernel other "
                "starting values or bounds, or a WhiteKernel."
            )
        data = task.data.with_kernel(task.data.kernel.clone_with_theta(state.theta))
        used = task.terms.take(task.order[: average.n_segments], data.kernel)
        score = total_score(data, used, coefficients, n_jobs=task.n_jobs)
        coefficients, gain = least_squares_step(Optimum(state.theta, coefficients, score, True))
        coefficient_covariance = pseudo_invert_information(score.normal[:q, :q])
        task.found(_finished(task, average, coefficients, coefficient_covariance, score, gain))


def _finished(
    task: LearningProblem, average: Average, coefficients: Floats, covariance: Floats, score: Score, gain: float
) -> Estimate:
    """The average, with the likelihood at it in the place of the segments' own maxima, and a word if they disagree."""
    estimated = average.n_segments - average.n_left_out
    lost = (average.log_likelihood - score.log_likelihood) / max(estimated, 1)
    state = _found(task, average._replace(log_likelihood=score.log_likelihood + gain), coefficients, covariance)
    if lost > _DISAGREEMENT * len(state.theta):
        state.warnings.append(
            f"The segments disagree about the hyper-parameters: at their average they lose {lost:.1f} log likelihood "
            f"each, where {len(state.theta) / 2} is to be expected. Use larger segments, or composite_likelihood."
        )
    return replace(state, jitter=score.jitter)


def _found(
    task: LearningProblem, average: Average, coefficients: Floats, coefficient_covariance: Floats
) -> Estimate:
    estimate, kernel = average.estimate, task.data.kernel
    return Estimate(
        average.theta_or(kernel.theta, kernel.bounds),
        estimate.covariance,
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
    """What a user has to know about an average before trusting it."""
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
