"""Learning of hyper-parameters and mean coefficients from the terms of a composite."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, Indices, pseudo_invert_information, warn_caller
from compositegp.composite import Composite, Observations, total_score
from compositegp.learning.composite_likelihood import learn_by_likelihood
from compositegp.learning.fisher_average import learn_by_average
from compositegp.learning.problem import LearningProblem, Reporter
from compositegp.learning.result import Estimate, LearningResult, Progress, messages_about
from compositegp.learning.segment_reader import LocalSegments, SegmentSource
from compositegp.learning.starting_values import DataScale, data_scale, starting_kernel, starting_points
from compositegp.means import Basis, Estimated, as_mean
from compositegp.validation import check_kernel, check_points

METHODS = {"composite_likelihood": learn_by_likelihood, "fisher_average": learn_by_average}
SCALE_SEGMENTS = 32
"""Segments that tell the scale of the data."""
_START_POINTS = 2048  # by whose likelihood a start is chosen


def learn(
    kernel: Kernel,
    X: Any,
    y: Any,
    terms: Any,
    *,
    method: str = "composite_likelihood",
    conditioning_size: int = 0,
    mean: Any = None,
    noise_variance: Any = None,
    tolerance: float | None = 0.03,
    start: str = "data",
    n_restarts: int = 0,
    random_state: Any = 0,
    n_jobs: int | None = None,
    callback: Callable[[Progress], None] | None = None,
    progress: bool = False,
    on_interrupt: str = "raise",
    warn: bool = True,
) -> LearningResult:
    """Learn hyper-parameters, and the coefficients of the mean, with their standard errors.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its bounds and fixed hyper-parameters are respected. It is left as it was.
    X : array of shape (n, d)
    y : array of shape (n,)
    terms : Composite or list of int arrays
        What to learn from: a composite, or segments as `segment` makes them.
    method : {"composite_likelihood", "fisher_average"}
        ``composite_likelihood`` maximises Σ w ln p(y_S) by Fisher scoring. ``fisher_average`` is the paper's: maximum
        likelihood in each segment, averaged by Fisher information.
    conditioning_size : int
        With segments: condition each on so many of the nearest points of segments before it. The nearest are found in
        the kernel's length scales, and found again as these become known.
    mean : as in `posterior`, or a scikit-learn transformer that yields basis functions
        Unknown coefficients are learned by generalised least squares over the same terms.
    noise_variance : None, number or array of shape (n,)
        Noise variances of the points, beside the kernel's own.
    tolerance : float or None
        Segments are read in random order until every hyper-parameter's standard error, on the log scale (so a relative
        error), is below this; None reads them all.
    start : {"data", "kernel"}
        Where to begin: hyper-parameters that were left at their default of one at the data's own scale, or all of them
        where the kernel has them.
    n_restarts : int
        For ``fisher_average``: further random starts in each segment.
    random_state : int, RandomState or None
        For the order of reading, restarts and probes.
    n_jobs : int, optional
        Processes to use, as in joblib. The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` whenever there is news.
    progress : bool
        Show a progress bar on a terminal.
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise KeyboardInterrupt, or warn and return the best so far.
    warn : bool
        Warn of what a user has to know before trusting the result, which is in its `messages` in any case.

    Returns
    -------
    LearningResult
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; found {method!r}.")
    if start not in ("data", "kernel"):
        raise ValueError(f"start must be data or kernel; found {start!r}.")
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be raise or return; found {on_interrupt!r}.")
    if isinstance(n_restarts, bool) or not isinstance(n_restarts, Integral) or n_restarts < 0:
        raise ValueError(f"n_restarts must be a whole number of at least 0; found {n_restarts!r}.")
    if tolerance is not None and not (isinstance(tolerance, Real) and tolerance > 0):
        raise ValueError(f"tolerance must be a positive number or None; found {tolerance!r}.")
    given_mean = _fitted(mean, X)
    data = Observations.checked(check_kernel(kernel), X, y, mean=given_mean, noise_variance=noise_variance)
    if not len(data.kernel.theta):
        raise ValueError(f"kernel {kernel} has no free hyper-parameter: there is nothing to learn.")
    blocks = LocalSegments(data, terms, conditioning_size)
    generator = check_random_state(random_state)
    order = generator.permutation(len(blocks))
    sample = [blocks.segments[number] for number in order[:SCALE_SEGMENTS]]
    task = task_of(
        data,
        sample,
        blocks,
        order,
        start=start,
        tolerance=tolerance,
        seed=int(generator.randint(2**31)),
        n_restarts=int(n_restarts),
        n_jobs=n_jobs,
        reporter=Reporter(callback, progress, len(blocks)),
    )
    result = run(task, method, given_mean, on_interrupt)
    for message in result.messages if warn else ():
        warn_caller(message.text, message.category)
    return result


def task_of(
    data: Observations, sample: list[Indices], terms: SegmentSource, order: Any, *, start: str, **options: Any
) -> LearningProblem:
    """The problem of learning from `terms`, to begin where a sample of segments of `data` says."""
    coefficients = _ordinary_least_squares(data)
    residuals = data.columns[:, -1] - data.columns[:, :-1] @ coefficients
    scale = data_scale(data.X, residuals, sample)
    if start == "data":
        data = data.with_kernel(_most_likely_start(data, scale, sample, coefficients))
    best = _nothing_found(data, coefficients, residuals)
    return LearningProblem(data=data, terms=terms, order=order, coefficients=coefficients, best=best, **options)


def run(task: LearningProblem, method: str, mean: Any, on_interrupt: str) -> LearningResult:
    """Learn, to the end or to where a user interrupts it."""
    try:
        METHODS[method](task)
        interrupted = False
    except KeyboardInterrupt:
        if on_interrupt == "raise":
            raise
        interrupted = True
    finally:
        task.reporter.close()
    return _result(task.best, task.data, mean, task.reporter, interrupted)


def _result(
    found: Estimate, data: Observations, mean: Any, reporter: Reporter, interrupted: bool
) -> LearningResult:
    kernel = data.kernel.clone_with_theta(found.theta)
    learned = mean
    if len(found.coefficients):
        assert data.mean.coefficients is not None
        functions = data.mean.coefficients.functions
        learned = Estimated(functions, found.coefficients, found.coefficient_covariance)
    return LearningResult(
        kernel,
        kernel.theta,
        found.theta_covariance,
        learned,
        found.coefficients,
        found.coefficient_covariance,
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
    """The starting kernel under which a few segments are most likely."""
    kernel = starting_kernel(data.kernel, scale)
    starts = [kernel.clone_with_theta(theta) for theta in starting_points(data.kernel, scale)]
    if len(starts) == 1:
        return starts[0]
    sizes = np.cumsum([len(part) for part in sample])
    few = Composite.marginal(sample[: max(1, int(np.searchsorted(sizes, _START_POINTS)))])

    def likelihood(start: Kernel) -> float:
        try:
            return total_score(data.with_kernel(start), few, coefficients).log_likelihood
        except LinAlgError:
            return -np.inf

    return max(starts, key=likelihood)


def _nothing_found(data: Observations, coefficients: Floats, residuals: Floats) -> Estimate:
    """The state before any segment is read: θ where it begins, β by ordinary least squares."""
    p, functions = len(data.kernel.theta), data.columns[:, :-1]
    covariance = residuals.var() * pseudo_invert_information(functions.T @ functions)
    unknown = np.diag(np.full(p, np.inf))
    return Estimate(
        data.kernel.theta, unknown, coefficients, covariance, 0.0, 0.0, 0, False, 0, np.zeros(p, dtype=int)
    )


def _fitted(mean: Any, X: Any) -> Any:
    """The mean that a user gives, a transformer being fitted to the points first."""
    if hasattr(mean, "fit") and hasattr(mean, "transform"):
        return Basis(clone(mean).fit(check_points(X, "X")))
    if isinstance(as_mean(mean).coefficients, Estimated):
        raise ValueError(
            "mean is an Estimated, whose coefficients are known already. Give its functions as a Basis."
        )
    return mean


def _ordinary_least_squares(data: Observations) -> Floats:
    functions = data.columns[:, :-1]
    if not functions.shape[1]:
        return np.zeros(0)
    sizes = np.sqrt((functions**2).mean(axis=0))
    sizes[sizes == 0] = 1.0
    return np.asarray(np.linalg.lstsq(functions / sizes, data.columns[:, -1], rcond=None)[0] / sizes)
