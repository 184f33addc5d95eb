"""Learning of hyper-parameters and mean coefficients from the terms of a composite."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, Indices, pseudo_invert_information, warn_caller
from compositegp.composite import CONDITIONING_SIZE, Composite, Observations
from compositegp.functionals import PointsLike, plain_kernel
from compositegp.kernels import DataScale, at_theta
from compositegp.learning.composite_likelihood import CompositeLikelihood
from compositegp.learning.custom_optimizer import CustomOptimizer
from compositegp.learning.fisher_average import FisherAverage
from compositegp.learning.log_likelihoods import log_likelihoods_of_pieces
from compositegp.learning.method import LearningMethod, check_method
from compositegp.learning.prior import LogScalePrior
from compositegp.learning.problem import LearningProblem, Reporter
from compositegp.learning.result import Estimate, LearningResult, Progress, messages_about
from compositegp.learning.segment_reader import LocalSegments, SegmentSource
from compositegp.learning.starting_values import data_scale, starting_kernel, starting_points
from compositegp.means import Basis, Estimated, as_given, as_mean, ordinary_least_squares
from compositegp.validation import check_kernel, check_points

METHODS: dict[str, type[LearningMethod]] = {
    "composite_likelihood": CompositeLikelihood,
    "fisher_average": FisherAverage,
}
SCALE_SEGMENTS = 32
"""Segments from which the scale of the data is found."""
_START_POINTS = 2048  # points by whose likelihood a start is chosen


def as_learning_method(learning: Any) -> LearningMethod:
    """A method of learning from a user's choice: a name, an object, or an optimizer as scikit-learn takes it."""
    if callable(learning) and not isinstance(learning, type | LearningMethod):
        return CustomOptimizer(learning)
    return check_method(learning, METHODS)


def learn(
    kernel: Kernel,
    X: PointsLike,
    y: ArrayLike,
    terms: Composite | list[Indices],
    *,
    learning: str | LearningMethod = "composite_likelihood",
    conditioning_size: int | None = None,
    mean: Any = None,
    noise_variance: ArrayLike | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
    warn: bool = True,
) -> LearningResult:
    """Learn hyper-parameters, and the coefficients of the mean, with their standard errors.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its bounds and fixed hyper-parameters are respected. It is left as it was.
    X : array of shape (n, d)
    y : array of shape (n,), or (n, t) for t outputs that share the kernel
    terms : Composite or list of int arrays
        What to learn from: a composite, or segments as `segment` makes them.
    learning : {"composite_likelihood", "fisher_average"} or object
        ``composite_likelihood`` maximizes Σ w ln p(y_S) by Fisher scoring. ``fisher_average`` is the paper's: maximum
        likelihood in each segment, averaged by Fisher information. Objects have the parameters:
        `CompositeLikelihood(tolerance=0.01)`, `FisherAverage(n_restarts=2)`.
    conditioning_size : int, optional
        With segments: condition each on this many of the nearest points of the segments before it; 256 if left out, and
        0 for ``fisher_average``. The nearest are found in the kernel's length scales, and found again as these become
        known. 0 is the paper's composite.
    mean : as in `posterior`, or a scikit-learn transformer that yields basis functions
        Unknown coefficients are learned by generalized least squares over the same terms.
    noise_variance : None, number or array of shape (n,)
        Noise variances of the points, in addition to the kernel's own.
    random_state : int, RandomState or None
        For the order of reading, restarts and probes.
    n_jobs : int, optional
        Processes to use, as in joblib. The result does not depend on it.
    verbose : bool
        Show a progress bar on a terminal.
    callback : callable, optional
        Called with a `Progress` after every step.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or warn and return the best estimate so far.
    warn : bool
        Warn of what a user should know before trusting the result. It is in `messages` of the result in any case.

    Returns
    -------
    LearningResult

    Examples
    --------
    >>> from compositegp import segment
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 60, 600)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=600)
    >>> result = learn(1.0 * RBF() + WhiteKernel(), X, y, segment(X, 100))
    >>> print(f"{np.sqrt(result.kernel.k2.noise_level):.2f}")
    0.10
    """
    method = as_learning_method(learning)
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be raise or return; found {on_interrupt!r}.")
    given = _fitted(mean, X)
    data = Observations.checked(check_kernel(kernel), X, y, mean=given, noise_variance=noise_variance)
    if not len(data.kernel.theta):
        raise ValueError(f"kernel {kernel} has no free hyper-parameter: there is nothing to learn.")
    if conditioning_size is None:
        conditioning_size = 0 if isinstance(terms, Composite) or not method.conditions else CONDITIONING_SIZE
    source = LocalSegments.checked(data, terms, conditioning_size)
    result = learn_from(
        data,
        source,
        method,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        callback=callback,
        on_interrupt=on_interrupt,
    )
    for message in result.messages if warn else ():
        warn_caller(message.text, message.category)
    return replace(result, kernel=plain_kernel(result.kernel))


def learn_from(
    data: Observations,
    source: LocalSegments,
    method: LearningMethod,
    *,
    random_state: Any,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[Progress], None] | None = None,
    on_interrupt: str = "raise",
) -> LearningResult:
    """Learn from data in memory that have been checked: see `learn`."""
    generator = check_random_state(random_state)
    order = generator.permutation(len(source))
    sample = [source.segments[number] for number in order[:SCALE_SEGMENTS]]
    problem = problem_of(
        data,
        sample,
        source,
        order,
        start=method.start,
        prior_spread=method.prior_spread(compared=False),
        seed=int(generator.randint(2**31)),
        n_jobs=n_jobs,
        reporter=Reporter(callback, verbose, len(source)),
    )
    return solve(problem, method, on_interrupt)


def problem_of(
    data: Observations,
    sample: list[Indices],
    terms: SegmentSource,
    order: Any,
    *,
    start: str,
    prior_spread: float | None = None,
    **options: Any,
) -> LearningProblem:
    """The problem of learning from `terms`; it begins where a sample of segments of `data` suggests."""
    coefficients = ordinary_least_squares(data.basis, data.residuals)
    residuals = data.residuals - data.basis @ coefficients
    scale = data_scale(data.X, residuals, sample)
    if start == "data":
        data = data.with_kernel(_most_likely_start(data, scale, sample, coefficients))
    best = _nothing_found(data, coefficients, residuals)
    problem = LearningProblem(data=data, terms=terms, order=order, coefficients=coefficients, best=best, **options)
    if prior_spread is not None:
        problem.prior = LogScalePrior(starting_kernel(data.kernel, scale).theta, prior_spread)
    return problem


def solve(problem: LearningProblem, method: LearningMethod, on_interrupt: str = "raise") -> LearningResult:
    """Learn, to the end or until a user interrupts it."""
    try:
        method.solve(problem)
        interrupted = False
    except KeyboardInterrupt:
        if on_interrupt == "raise":
            raise
        interrupted = True
    finally:
        problem.reporter.close()
    return _result(problem.best, problem.data, problem.reporter, interrupted)


def _result(found: Estimate, data: Observations, reporter: Reporter, interrupted: bool) -> LearningResult:
    kernel = data.kernel.clone_with_theta(found.theta)
    coefficients = found.coefficients.reshape(-1, *data.outputs)
    learned: Any = data.mean
    given = Estimated(data.mean.functions, coefficients, found.coefficient_covariance)
    if len(coefficients):
        assert data.mean.coefficients is not None
        learned = Estimated(data.mean.coefficients.functions, coefficients, found.coefficient_covariance)
        given = as_given(learned)
    return LearningResult(
        kernel,
        kernel.theta,
        found.theta_information,
        found.theta_covariance,
        learned,
        np.asarray(given.coefficients),
        np.asarray(given.covariance),
        found.log_likelihood,
        round(found.n_points),
        found.n_segments,
        found.n_left_out,
        found.n_at_bound,
        found.converged and not interrupted,
        reporter.history,
        messages_about(found, kernel, interrupted),
    )


def _most_likely_start(data: Observations, scale: DataScale, sample: list[Indices], coefficients: Floats) -> Kernel:
    """The kernel at that of the starting points under which a few segments are most likely."""
    kernel = starting_kernel(data.kernel, scale)  # its bounds are those of the data's scale
    starts = [at_theta(kernel, theta) for theta in starting_points(data.kernel, scale)]
    sizes = np.cumsum([len(part) for part in sample])
    few = Composite.of_segments(sample[: max(1, int(np.searchsorted(sizes, _START_POINTS)))])

    def likelihood(start: Kernel) -> float:
        try:
            found = float(log_likelihoods_of_pieces(data.with_kernel(start), few, coefficients).sum())
        except LinAlgError:
            return -np.inf
        return found if np.isfinite(found) else -np.inf

    return max(starts, key=likelihood)


def _nothing_found(data: Observations, coefficients: Floats, residuals: Floats) -> Estimate:
    """The estimate before any segment is read: θ where it begins, β by ordinary least squares."""
    p, functions = len(data.kernel.theta), data.basis
    covariance = residuals.var(axis=0).mean() * pseudo_invert_information(functions.T @ functions)
    none = np.zeros(p, dtype=int)
    return Estimate(data.kernel.theta, np.zeros((p, p)), coefficients, covariance, 0.0, 0.0, 0, False, 0, none)


def _fitted(mean: Any, X: Any) -> Any:
    """The mean that a user gives, a transformer being fitted to the points first."""
    if hasattr(mean, "fit") and hasattr(mean, "transform"):
        return Basis(clone(mean).fit(check_points(X, "X")))
    if isinstance(as_mean(mean).coefficients, Estimated):
        raise ValueError(
            "mean is an Estimated, whose coefficients are known already. Give its functions as a Basis."
        )
    return mean
