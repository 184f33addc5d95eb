"""Learning by the paper's average of segment estimates."""

from dataclasses import replace

import numpy as np

from compositegp.arrays import Floats
from compositegp.composite import Score
from compositegp.devices import use_device
from compositegp.learning.averaging import Average, averages
from compositegp.learning.information import pseudo_invert_information
from compositegp.learning.messages import parameter_names
from compositegp.learning.passes import total_score
from compositegp.learning.scoring import Optimum, least_squares_step
from compositegp.learning.task import Found, Task
from compositegp.learning.terms import Terms

_FEWEST = 8  # segments to read before the standard errors are believed
_ROUNDS = 2  # of θ given β, then β given θ, where the mean has coefficients
_DISAGREEMENT = 1.0  # log likelihood lost a segment and parameter; a half is what chance takes
_DOMINANT = 0.9  # share of one segment in what is known of a parameter, beyond which the average is its estimate


@use_device(None)
def learn_by_average(task: Task) -> None:
    """Average the segments' maximum likelihood estimates by Fisher information, until θ is known to the tolerance."""
    assert isinstance(task.terms, Terms)
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
    task: Task, average: Average, coefficients: Floats, covariance: Floats, score: Score, gain: float
) -> Found:
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


def _found(task: Task, average: Average, coefficients: Floats, coefficient_covariance: Floats) -> Found:
    estimate, kernel = average.estimate, task.data.kernel
    return Found(
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
    for name, total, largest, on_bound in zip(
        names, information, average.estimate.largest, average.n_at_bound, strict=True
    ):
        if not total > 0:
            messages.append(
                f"No segment says anything about hyper-parameter {name} ({on_bound} of {average.n_segments} estimates "
                "sit on a bound); it stays where it began."
            )
        elif average.n_segments > 1 and largest > _DOMINANT * total:
            messages.append(f"The estimate of hyper-parameter {name} is that of a single segment.")
        elif on_bound > 0.5 * average.n_segments:
            messages.append(
                f"{on_bound} of {average.n_segments} segments put hyper-parameter {name} on a bound; their estimates "
                "of it were left out. Use larger segments."
            )
    return messages
