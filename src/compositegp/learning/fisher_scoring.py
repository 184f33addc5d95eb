"""Fisher scoring: maximize a composite likelihood by its gradient and Fisher information."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import lsq_linear

from compositegp.backend import Floats
from compositegp.composite import Score

_LONGEST_STEP = 2.0  # longest step of a parameter, in log θ
_LONGEST_PART = 0.25  # the same, over the range of its bounds: narrow ones mean that maxima are close together
_SHORTEST_STEP = 1e-6  # shortest step, in log θ: the gain of a shorter one is a rounding error
_LEAST_DAMPING = 1e-6  # smallest damping, in units of the diagonal of the Fisher information
_SMALL_PROMISE = 0.1  # if no step is possible, a gain below this (a few tenths of a standard error) is good enough
_MOST_STEPS = 60  # tried, at most
_SECANT_STEP = 1.0  # a step up to this long, in log θ, tells how far the curvature is from the Fisher information
_LEAST_CURVATURE = 0.2  # least curvature along a step, over that of the model; a smaller one is raised (Powell)
_MOST_LESS = 0.95  # part of the Fisher information of a parameter by which its curvature may be smaller
IDLE_STEPS = 3
"""Steps in a row that each gain less than the tolerance, which end a maximization."""


class Optimum(NamedTuple):
    """The state of a maximization.

    Attributes
    ----------
    theta : array of shape (p,)
    coefficients : array of shape (q, t)
    score : Score
        The score at these values.
    converged : bool
    excess : array of shape (p, p), optional
        Of the curvature over the Fisher information, as far as the steps to here have shown it.
    """

    theta: Floats
    coefficients: Floats
    score: Score
    converged: bool
    excess: Floats | None = None


def maximize(
    evaluate: Callable[[Floats, Floats], Score],
    theta: Floats,
    coefficients: Floats,
    bounds: Floats,
    *,
    gain_tolerance: float | Callable[[Optimum], float] = 0.01,
    idle_steps: int = IDLE_STEPS,
    report: Callable[[Optimum], None] = lambda _: None,
    begin: Optimum | None = None,
    excess: Floats | None = None,
) -> Optimum:
    """Maximize a log likelihood over log θ within bounds, and over β, by Fisher scoring in a trust region.

    The information about θ and β is block diagonal; the scoring step of β is generalized least squares. Where data are
    not as the model says, the curvature of the likelihood is not its Fisher information, and steps would overshoot.
    What short steps show of the difference is kept, by the formula of BFGS, and added to the information of later ones.

    Parameters
    ----------
    evaluate : callable
        Score at (θ, β); may raise LinAlgError, which counts as a failed step.
    theta, coefficients : arrays of shape (p,) and (q, t)
        Where to begin.
    bounds : array of shape (p, 2)
    gain_tolerance : float or callable
        Stop when a step promises no more log likelihood than this, or when some steps in a row have gained less. A
        hundredth is a seventh of a standard error. A callable says it of the present `Optimum`.
    idle_steps : int
        How many steps in a row.
    report : callable
        Called with every accepted `Optimum`.
    begin : Optimum, optional
        The score at (θ, β), if it is already known.
    excess : array of shape (p, p), optional
        Of the curvature over the Fisher information, as an earlier maximization of nearly the same has found it.

    Returns
    -------
    Optimum

    Examples
    --------
    The noise level of white noise, whose maximum likelihood estimate is the mean square:

    >>> from compositegp.composite import Composite, Observations, total_score
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> def evaluate(theta, coefficients):
    ...     kernel = WhiteKernel().clone_with_theta(theta)
    ...     data = Observations.checked(kernel, [[0.0], [1.0]], [1.0, 3.0], mean=None, noise_variance=None)
    ...     return total_score(data, Composite.full(2), coefficients, probes=-1)
    >>> found = maximize(evaluate, np.zeros(1), np.zeros((0, 1)), WhiteKernel().bounds, gain_tolerance=1e-9)
    >>> np.exp(found.theta).round(3), found.converged
    (array([5.]), True)
    """
    theta = np.clip(theta, bounds[:, 0], bounds[:, 1])
    now = begin or Optimum(theta, coefficients, evaluate(theta, coefficients), False)
    report(now)
    damping, radius, idle, n_steps = 1e-3, _LONGEST_STEP, 0, 0
    excess = np.zeros_like(now.score.fisher) if excess is None else excess
    while True:
        next_coefficients, coefficient_gain = least_squares_step(now)
        if (np.diagonal(excess) < -_MOST_LESS * np.diagonal(now.score.fisher)).any():
            excess = np.zeros_like(excess)  # of another place: here there would be no curvature left
        curvature = now.score.fisher + excess
        promise = _step(now, curvature, bounds, _LEAST_DAMPING, _LONGEST_STEP)[1] + coefficient_gain
        tolerance = gain_tolerance(now) if callable(gain_tolerance) else gain_tolerance
        ends = radius < _SHORTEST_STEP or n_steps == _MOST_STEPS or idle == idle_steps
        if promise < tolerance or ends:
            enough = max(tolerance, _SMALL_PROMISE)
            return now._replace(converged=promise < enough or idle == idle_steps, excess=excess)
        n_steps += 1
        step, gain = _step(now, curvature, bounds, damping, radius)
        trial = np.clip(now.theta + step, bounds[:, 0], bounds[:, 1])
        try:
            found = evaluate(trial, next_coefficients)
            kept = (found.log_likelihood - now.score.log_likelihood) / (gain + coefficient_gain)
            excess = _excess(excess, now, Optimum(trial, next_coefficients, found, False), accepted=kept > 0)
        except LinAlgError:
            kept = -1.0
        if kept > 0:
            idle = idle + 1 if found.log_likelihood - now.score.log_likelihood < tolerance else 0
            now = Optimum(trial, next_coefficients, found, False)
            report(now)
        # Trust the quadratic model as far as it kept its promise.
        if kept > 0.5:
            damping, radius = max(damping / 4, _LEAST_DAMPING), min(2 * radius, _LONGEST_STEP)
        elif kept < 0.2:
            damping, radius = 4 * max(damping, 0.05), radius / (2 if kept > 0 else 4)


def _excess(excess: Floats, now: Optimum, other: Optimum, *, accepted: bool) -> Floats:
    """What is to be added to the Fisher information, so that it explains how the gradient changed over a short step.

    It is that of the point where the search goes on: the other one if the step was accepted.
    """
    step = other.theta - now.theta
    size = float(np.abs(step).max(initial=0.0))
    if size > _SECANT_STEP:
        return np.zeros_like(excess) if accepted else excess
    fisher = (other if accepted else now).score.fisher
    model = fisher + excess
    along = model @ step
    expected = float(step @ along)
    change = now.score.gradient - other.score.gradient
    if size < _SHORTEST_STEP or not expected > 0:
        return np.zeros_like(excess)
    found = float(step @ change)
    if found < _LEAST_CURVATURE * expected:
        share = (1 - _LEAST_CURVATURE) * expected / (expected - found)
        change = share * change + (1 - share) * along
        found = float(step @ change)
    return excess + np.outer(change, change) / found - np.outer(along, along) / expected


def promised_gain(now: Optimum, bounds: Floats) -> float:
    """Log likelihood that a step promises by the gradient and the Fisher information, within the longest step."""
    return _step(now, now.score.fisher, bounds, _LEAST_DAMPING, _LONGEST_STEP)[1] + least_squares_step(now)[1]


def least_squares_step(now: Optimum) -> tuple[Floats, float]:
    """Coefficients by generalized least squares at the present θ, and the log likelihood that they promise."""
    normal = now.score.normal
    if not len(now.coefficients):
        return now.coefficients, 0.0
    coefficients = normal.coefficients
    change = coefficients - now.coefficients
    return coefficients, 0.5 * float((change * (normal.information @ change)).sum())


def _step(now: Optimum, curvature: Floats, bounds: Floats, damping: float, radius: float) -> tuple[Floats, float]:
    """Step in θ, and the gain in log likelihood that the quadratic model promises.

    The step is the maximum of the model in a box: within the bounds, and no parameter further than the radius, or than
    a part of the range of its bounds. A parameter that the data hardly determine, such as the length scale of an
    irrelevant column, does not hold back the others.
    """
    gradient = now.score.gradient
    longest = np.minimum(radius, _LONGEST_PART * (bounds[:, 1] - bounds[:, 0]))
    lower = np.maximum(bounds[:, 0] - now.theta, -longest)
    upper = np.minimum(bounds[:, 1] - now.theta, longest)
    free = np.flatnonzero(upper - lower > _SHORTEST_STEP / 2)
    step = np.zeros(len(gradient))
    if not len(free):
        return step, 0.0
    diagonal = np.diagonal(curvature)[free]
    least = 1e-10 * diagonal.max() + np.finfo(np.float64).tiny
    # gᵀ s − ½ sᵀ J s is least squares in a root of J. Each parameter is scaled to unit information.
    units = 1 / np.sqrt(np.maximum(diagonal, least))
    scaled = units[:, None] * curvature[np.ix_(free, free)] * units
    values, vectors = np.linalg.eigh(scaled)
    sizes = np.sqrt(np.maximum(values, 0.0) + damping + 1e-10)
    root, target = sizes[:, None] * vectors.T, vectors.T @ (units * gradient[free]) / sizes
    found = lsq_linear(root, target, bounds=(lower[free] / units, upper[free] / units), method="bvls", tol=1e-10)
    step[free] = np.clip(units * found.x, lower[free], upper[free])
    return step, float(gradient @ step - 0.5 * step @ curvature @ step)
