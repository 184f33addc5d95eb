"""Learning by composite likelihood: Fisher scoring on more and more terms, until θ is known well enough."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real

import numpy as np
from numpy.linalg import LinAlgError
from scipy.special import ndtr, ndtri

from compositegp.backend import Floats, invert_information
from compositegp.composite import Score
from compositegp.kernels import at_theta
from compositegp.learning.fisher_scoring import Optimum, least_squares_step, maximize
from compositegp.learning.method import LearningMethod
from compositegp.learning.problem import LearningProblem, is_cheap
from compositegp.learning.result import Estimate
from compositegp.learning.segment_reader import SegmentReading
from compositegp.learning.stopping import growth_needed, predictive_growth, predictive_loss, sandwich_information
from compositegp.storage import storable
from compositegp.validation import check_count

# benchmarks/learning.py, on real tables, shows what a change of these costs and gains.
_FIRST_POINTS = 4096  # the first round reads at least this many points
_WARM_POINTS = 8192  # the same, where learning begins at values that were learned already
_FIRST_BLOCKS = 8  # the first round reads at least this many blocks
_GROWTH = 8.0  # a round reads at most this many times as much as the one before
_PROBES = 64  # random vectors, over all blocks, for the Fisher information of a step
LAST_PROBES = 256
"""Random vectors, over all blocks, for the standard errors that are reported."""
_ROUGH_GAIN = 0.05  # a round stops when a step promises less log likelihood than this for each parameter,
_ROUGH_SHARE = 0.5  # or less than this share of what the errors of θ are expected to cost, tr(H⁻¹ J) / 2,
_ROUGH_MOST = 2.5  # which counts as no more than `nats` a point, or than this in all
_LAST_GAIN = 0.01  # the last one, of a kernel that a user gives, when a step promises less than this in all
_CHEAP_GAIN = 1e-11  # the same, where steps are cheap
_RESTARTS = 4  # random starts of the first round
_FEW_POINTS = 500  # random starts are the default where the first round reads no more points than this
_DRAWS = 8  # random values for each random start, of which the most likely are taken
_RESTART_SPREAD = 2.0  # standard deviation of a random start, in log θ
_DIRECTIONS = 2  # least known directions of θ in which another maximum is looked for
_STEP_ASIDE = 2.0  # standard errors of such a step; no parameter moves further than this in log θ either
_KNOWN = 0.5  # a parameter whose log has a smaller standard error than this is known
_MOVED = 0.1  # conditioning sets are found again when a known parameter has moved further than this, in log θ
_PRIOR_SPREAD = 3.0  # standard deviation of log θ around the scale of the data, a priori
_REFRESHES = 2  # at most this many times, when no more terms are needed, conditioning sets are found again


@storable
class CompositeLikelihood(LearningMethod):
    """Maximize the composite likelihood Σ w ln p(y_S) by Fisher scoring, on as many terms as are needed.

    The likelihood of a random subset of the terms is maximized. The subset grows until more would hardly improve a
    prediction. Terms that depend on the length scales are made again in every round.

    Parameters
    ----------
    tolerance : "prediction", float or None
        When to stop reading segments, which are read in random order. ``prediction``: when the errors of the
        hyper-parameters cost a prediction less than `nats` of log score, tr(H⁻¹ J) / (2 n) with H the Fisher
        information and J the covariance of the gradient, and at least 8,192 observations were read. A number: when the
        relative standard error of every hyper-parameter is below it. None reads all of them.
    start : {"data", "kernel"}
        Where to begin. ``data``: at the most likely of several kernels: the given kernel at the scale of the data, the
        same with shorter length scales, in all of it or in one part of a sum, and the given kernel itself. Bounds that
        were left at the default of scikit-learn are taken relative to the scale of the data. ``kernel``: at the given
        kernel.
    n_restarts : int or "auto"
        The first round also begins at this many random points around the start, and the most likely optimum is
        followed. Few data have likelihoods with several maxima: ``auto`` is 4 where the first round reads at most 500
        points, else 0. Where there are restarts, it also begins two standard errors from the best optimum, along the
        directions in which θ is known least.
    verbose : bool
        Show a progress bar on a terminal.
    nats : float
        For ``tolerance="prediction"``.
    prior : "auto", float or None
        Standard deviation of log θ around the scale of the data, a priori (see `LogScalePrior`). ``auto``: 3 where
        several kernels are compared, which an estimator does by default, and no prior for a kernel that a user gives.
        None: no prior; the likelihood alone is maximized.

    Examples
    --------
    >>> CompositeLikelihood(tolerance=0.1)
    CompositeLikelihood(tolerance=0.1)
    """

    def __init__(
        self,
        tolerance: float | str | None = "prediction",
        start: str = "data",
        n_restarts: int | str = "auto",
        nats: float = 0.001,
        verbose: bool = False,
        prior: float | str | None = "auto",
    ) -> None:
        self.tolerance = tolerance
        self.start = start
        self.n_restarts = n_restarts
        self.nats = nats
        self.verbose = verbose
        self.prior = prior

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        if isinstance(self.nats, bool) or not isinstance(self.nats, Real) or not self.nats > 0:
            raise ValueError(f"nats must be a positive number, such as 0.001; found {self.nats!r}.")
        if self.n_restarts != "auto":
            check_count(self.n_restarts, "n_restarts", least=0)
        if self.prior not in ("auto", None):
            positive = isinstance(self.prior, Real) and not isinstance(self.prior, bool) and self.prior > 0
            if not positive:
                raise ValueError(f'prior must be a positive number, "auto" or None; found {self.prior!r}.')

    def prior_spread(self, *, compared: bool) -> float | None:
        """Standard deviation of log θ a priori; None for no prior."""
        if self.prior == "auto":
            return _PRIOR_SPREAD if compared else None
        return None if self.prior is None else float(self.prior)

    @property
    def stops_by_prediction(self) -> bool:
        """True."""
        return True

    def solve(self, problem: LearningProblem) -> None:
        """Learn: leave the best estimate in ``problem.best``."""
        theta, coefficients = problem.data.kernel.theta, problem.coefficients
        bounds = problem.data.kernel.bounds
        count = self._first_count(problem)
        restarts, refreshes = self._restarts(problem, count), 0
        excess: Floats | None = None
        while True:
            kernel = at_theta(problem.data.kernel, theta)
            reading = problem.terms.read(problem.order[:count], kernel)
            gain = _ROUGH_GAIN * len(theta) if restarts else partial(_rough_gain, bounds, self.nats)
            optimum = _maximize(problem, reading, count, theta, coefficients, gain, excess=excess)
            if restarts:
                optimum = _most_likely(problem, reading, count, optimum, restarts)
                restarts = 0
            errors = np.sqrt(np.diagonal(invert_information(optimum.score.fisher)))
            known = errors < _KNOWN
            moved = float(np.abs(optimum.theta - theta)[known].max(initial=0.0))
            theta, coefficients = optimum.theta, optimum.coefficients
            needed = self._growth_needed(optimum, errors, bounds)
            if count < len(problem.terms) and needed > 1:
                count = min(len(problem.terms), int(np.ceil(count * min(max(1.1 * needed, 1.5), _GROWTH))))
                excess = None
            elif problem.terms.follow_length_scales and refreshes < _REFRESHES and moved > _MOVED:
                refreshes += 1
                excess = optimum.excess  # the terms change little, and so does the curvature
            else:
                break
        if problem.warm and not is_cheap(reading):
            # What is left to gain is less than the expected loss by the errors of θ.
            score = optimum.score if problem.prior is None else problem.prior.removed(optimum.score, theta)
            final = optimum._replace(score=score)
        else:
            gain = _CHEAP_GAIN if is_cheap(reading) else _LAST_GAIN
            optimum = _maximize(problem, reading, count, theta, coefficients, gain, optimum)
            last = score_at(problem, reading, optimum.theta, optimum.coefficients, LAST_PROBES)
            final = optimum._replace(score=last)
        coefficients, _ = least_squares_step(final)
        found = estimate_at(final._replace(coefficients=coefficients), count)
        if not problem.terms.conditioned:
            found = replace(found, theta_information=sandwich_information(final.score))
        problem.found(found)

    def _growth_needed(self, optimum: Optimum, errors: Floats, bounds: Floats) -> float:
        """How many times as many points are needed; at most 1 if those read are enough."""
        score, theta = optimum.score, optimum.theta
        if isinstance(self.tolerance, str):
            return predictive_growth(score, theta, bounds, self.nats)
        return growth_needed(errors, theta, bounds, score.n_points, self.tolerance)

    def _restarts(self, problem: LearningProblem, count: int) -> int:
        if self.n_restarts != "auto":
            return int(self.n_restarts)
        return _RESTARTS if count * problem.terms.mean_size <= _FEW_POINTS else 0

    def _first_count(self, problem: LearningProblem) -> int:
        if self.tolerance is None:
            return len(problem.terms)
        warm = self.start == "kernel" or problem.warm
        enough = int(np.ceil((_WARM_POINTS if warm else _FIRST_POINTS) / problem.terms.mean_size))
        return min(len(problem.terms), max(_FIRST_BLOCKS, enough))


def _maximize(
    problem: LearningProblem,
    reading: SegmentReading,
    count: int,
    theta: Floats,
    coefficients: Floats,
    gain_tolerance: float | Callable[[Optimum], float],
    begin: Optimum | None = None,
    *,
    excess: Floats | None = None,
    quiet: bool = False,
) -> Optimum:
    def report(optimum: Optimum) -> None:
        if not quiet:
            problem.found(estimate_at(optimum, count))

    return maximize(
        lambda theta, coefficients: _posterior(problem, reading, theta, coefficients, _PROBES),
        theta,
        coefficients,
        problem.data.kernel.bounds,
        gain_tolerance=gain_tolerance,
        report=report,
        begin=begin,
        excess=excess,
    )


def _most_likely(
    problem: LearningProblem, reading: SegmentReading, count: int, first: Optimum, restarts: int
) -> Optimum:
    """The most likely of an optimum and of those that random starts, and then starts close to the best, lead to."""
    best = _best_of(problem, reading, count, first, _random_starts(problem, reading, restarts))
    best = _best_of(problem, reading, count, best, _starts_aside(best)) if restarts else best
    problem.found(estimate_at(best, count))
    return best


def _rough_gain(bounds: Floats, nats: float, now: Optimum) -> float:
    """Log likelihood that is not worth a further step: little beside what the errors of θ cost, or beside `nats`."""
    loss, _ = predictive_loss(now.score, now.theta, bounds)
    n = now.score.n_points
    return max(_ROUGH_GAIN * len(now.theta), _ROUGH_SHARE * min(loss * n, max(nats * n, _ROUGH_MOST)))


def _best_of(
    problem: LearningProblem, reading: SegmentReading, count: int, best: Optimum, starts: list[Floats]
) -> Optimum:
    for start in starts:
        try:
            gain = _ROUGH_GAIN * len(start)
            found = _maximize(problem, reading, count, start, problem.coefficients, gain, quiet=True)
        except LinAlgError:
            continue
        if found.score.log_likelihood > best.score.log_likelihood:
            best = found
    return best


def _starts_aside(found: Optimum) -> list[Floats]:
    """Values of log θ some standard errors away, in both senses of the directions in which θ is known least.

    Two maxima of nearly the same likelihood, such as a short and a long length scale with a period each, lie along such
    a direction.
    """
    variances, directions = np.linalg.eigh(invert_information(found.score.fisher))
    steps = _STEP_ASIDE * (np.sqrt(np.maximum(variances, 0.0)) * directions).T[::-1][:_DIRECTIONS]
    steps /= np.maximum(1.0, np.abs(steps).max(axis=1, initial=0.0, keepdims=True) / _STEP_ASIDE)
    return [found.theta + sign * step for step in steps for sign in (-1, 1)]


def _random_starts(problem: LearningProblem, reading: SegmentReading, count: int) -> list[Floats]:
    """Values of log θ around the start of learning: the most likely of several times as many that are drawn."""
    center, bounds = problem.data.kernel.theta, problem.data.kernel.bounds
    # Normal around the center, cut off at the bounds: starts on a bound would be the same again and again.
    lowest, highest = ndtr((bounds - center[:, None]) / _RESTART_SPREAD).T
    levels = np.random.default_rng(problem.seed).uniform(lowest, highest, size=(_DRAWS * count, len(center)))
    drawn = center + _RESTART_SPREAD * ndtri(levels)

    def likelihood(theta: Floats) -> float:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # of targets near the ends of double precision
                found = score_at(problem, reading, theta, problem.coefficients, 0)
        except LinAlgError:
            return -np.inf
        return found.log_likelihood if np.isfinite(found.gradient).all() else -np.inf

    return sorted(drawn, key=likelihood, reverse=True)[:count]


def _posterior(
    problem: LearningProblem, reading: SegmentReading, theta: Floats, coefficients: Floats, probes: int
) -> Score:
    found = score_at(problem, reading, theta, coefficients, probes)
    return found if problem.prior is None else problem.prior.applied(found, theta)


def score_at(
    problem: LearningProblem, reading: SegmentReading, theta: Floats, coefficients: Floats, probes: int
) -> Score:
    """Score of the terms at θ, without a prior."""
    return problem.score(reading, at_theta(problem.data.kernel, theta), coefficients, probes)


def estimate_at(optimum: Optimum, count: int) -> Estimate:
    """The estimate that an optimum over `count` segments is."""
    return Estimate(
        optimum.theta,
        optimum.score.fisher,
        optimum.coefficients,
        optimum.score.normal.covariance,
        optimum.score.log_likelihood,
        optimum.score.n_points,
        count,
        optimum.converged,
        0,
        np.zeros(len(optimum.theta), dtype=int),
        jitter=optimum.score.jitter,
    )
