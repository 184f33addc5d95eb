"""Learning by composite likelihood: Fisher scoring on as many terms as it takes to know θ well enough."""

import numpy as np

from compositegp.backend import Floats, invert_information, pseudo_invert_information
from compositegp.composite import Score
from compositegp.learning.fisher_scoring import Optimum, least_squares_step, maximise
from compositegp.learning.problem import LearningProblem
from compositegp.learning.result import Estimate
from compositegp.learning.segment_reader import SegmentReading

_FIRST_POINTS = 4096  # points of the first round, and
_FIRST_BLOCKS = 8  # blocks, at the least
_GROWTH = 8.0  # most that a round may grow by
_PROBES = 128  # of the Fisher information in a step, over all blocks, and
_LAST_PROBES = 1024  # in the standard errors that are reported
_MOST_PROBES = 64  # of one block
_ROUGH_GAIN = (
    0.05  # log likelihood a parameter, a tenth of what chance takes, that a round may leave to the next, and
)
_LAST_GAIN = 0.01  # in all, that the last may
_KNOWN = 0.5  # standard error of a log under which a change of it is one of the model
_REFRESHES = 2  # times that conditioning sets are found again when no more terms are needed


def learn_by_likelihood(task: LearningProblem) -> None:
    """Maximise the likelihood of a random subset of the terms; enlarge it until θ is known to the tolerance.

    With a subset fixed, the likelihood is a function like any other: steps are judged by its value. Terms that
    follow the length scales are made again in every round.
    """
    theta, coefficients = task.data.kernel.theta, task.coefficients
    count = _first_count(task)
    refreshes = 0
    while True:
        kernel = task.data.kernel.clone_with_theta(theta)
        reading = task.terms.read(task.order[:count], kernel)
        optimum = _maximise(task, reading, count, theta, coefficients, _ROUGH_GAIN * len(theta))
        errors = np.sqrt(np.diagonal(invert_information(optimum.score.fisher)))
        known = errors < _KNOWN
        moved = float(np.abs(optimum.theta - theta)[known].max(initial=0.0))
        theta, coefficients = optimum.theta, optimum.coefficients
        needed = task.growth_needed(errors, theta, optimum.score.n_points)
        if count < len(task.terms) and needed > 1:
            count = min(len(task.terms), int(np.ceil(count * min(max(1.1 * needed, 1.5), _GROWTH))))
        elif task.terms.follow_length_scales and refreshes < _REFRESHES and moved > 0.1:
            refreshes += 1
        else:
            break
    optimum = _maximise(task, reading, count, theta, coefficients, _LAST_GAIN, optimum)
    theta, coefficients = optimum.theta, optimum.coefficients
    last = _evaluate(task, reading, theta, coefficients, _LAST_PROBES)
    final = Optimum(theta, coefficients, last, optimum.converged)
    coefficients, _ = least_squares_step(final)
    task.found(_found(final._replace(coefficients=coefficients), count))


def _maximise(
    task: LearningProblem,
    reading: SegmentReading,
    count: int,
    theta: Floats,
    coefficients: Floats,
    gain_tolerance: float,
    begin: Optimum | None = None,
) -> Optimum:
    return maximise(
        lambda theta, coefficients: _evaluate(task, reading, theta, coefficients, _PROBES),
        theta,
        coefficients,
        task.data.kernel.bounds,
        gain_tolerance=gain_tolerance,
        report=lambda optimum: task.found(_found(optimum, count)),
        begin=begin,
    )


def _first_count(task: LearningProblem) -> int:
    if task.tolerance is None:
        return len(task.terms)
    return min(len(task.terms), max(_FIRST_BLOCKS, int(np.ceil(_FIRST_POINTS / task.terms.mean_size))))


def _evaluate(
    task: LearningProblem, reading: SegmentReading, theta: Floats, coefficients: Floats, probes: int
) -> Score:
    kernel = task.data.kernel.clone_with_theta(theta)
    each = int(np.clip(-(-probes // reading.n_blocks), 1, _MOST_PROBES))
    return reading.score(kernel, coefficients, probes=each, seed=task.seed, n_jobs=task.n_jobs)


def _found(optimum: Optimum, count: int) -> Estimate:
    q = len(optimum.coefficients)
    return Estimate(
        optimum.theta,
        invert_information(optimum.score.fisher),
        optimum.coefficients,
        pseudo_invert_information(optimum.score.normal[:q, :q]),
        optimum.score.log_likelihood,
        optimum.score.n_points,
        count,
        optimum.converged,
        0,
        np.zeros(len(optimum.theta), dtype=int),
        jitter=optimum.score.jitter,
    )
