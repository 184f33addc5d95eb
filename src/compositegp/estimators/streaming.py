"""One segment at a time: the paper's recursions for the hyper-parameters and for the belief."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from compositegp.arrays import Floats
from compositegp.composite import Composite, Observations, factor_stacks
from compositegp.estimators.fitting import choices_of, default_kernel, standardizes
from compositegp.estimators.inputs import Training
from compositegp.estimators.scaling import Scaling
from compositegp.estimators.state import State
from compositegp.estimators.targets import as_target_transform
from compositegp.learning.averaging import Average, estimate_block
from compositegp.learning.passes import restrict
from compositegp.learning.starting import data_scale, starting_kernel
from compositegp.messages import warn_caller
from compositegp.posteriors import prior, update
from compositegp.posteriors.posterior import posterior
from compositegp.posteriors.recursion import rebase
from compositegp.threads import blas_threads_for
from compositegp.validation import check_points


def begin(estimator: Any, training: Training) -> State:
    """The state before the first segment, in the units of that segment."""
    transform = as_target_transform(estimator.target_transform, training.y)
    y = transform.forward(training.y)
    d = training.X.shape[1]
    scaling = Scaling.of(training.X, y) if standardizes(estimator) else Scaling.none(d)
    kernel = default_kernel(d) if estimator.kernel is None else clone(estimator.kernel)
    mean = scaling.mean(estimator.mean, training.X)
    X, y = scaling.points(training.X), scaling.targets(y)
    average = None
    if estimator.learning is not None and len(kernel.theta):
        average = Average.empty(len(kernel.theta))
        if len(y) > 1 and np.ptp(y) > 0:
            kernel = starting_kernel(kernel, data_scale(X, y - y.mean(), [np.arange(len(y))]))
    state = State(
        choices_of(estimator),
        transform,
        scaling,
        kernel,
        mean,
        None,
        average,
        np.empty((0, d)),
        np.empty(0),
        None,
        [],
    )
    return state if estimator.watch is None else watch(state, estimator.watch)


def watch(state: State, points: Any) -> State:
    """Keep the belief about some test points, and let the data go."""
    if state.choices.prediction != "composite":
        raise ValueError(
            f"watch keeps a belief that every segment adds to, which is prediction='composite'; found "
            f"prediction={state.choices.prediction!r}."
        )
    Z = state.scaling.points(check_points(points, "watch", state.X.shape[1]))
    if len(state.X):
        data = state.fitted
        belief = posterior(
            state.kernel, state.X, state.y, Z, data.composite, mean=state.mean, noise_variance=state.noise_variance
        )
    else:
        belief = prior(state.kernel, Z, mean=state.mean)
    empty = np.empty((0, state.X.shape[1]))
    return replace(state, X=empty, y=np.empty(0), noise_variance=None, segments=[], watched=belief)


def absorb(estimator: Any, state: State, training: Training) -> State:
    """The state with one more segment; nothing of the old one is changed."""
    y = state.scaling.targets(state.transform.forward(training.y))
    X, noise = state.scaling.points(training.X), state.scaling.variances(training.noise_variance)
    segment = Observations.checked(state.kernel, X, y, mean=state.mean, noise_variance=noise)
    kernel, average = state.kernel, state.average
    if average is not None:
        average = average.add(_estimate(estimator, segment, average))
        kernel = kernel.clone_with_theta(average.theta_or(kernel.theta, kernel.bounds))
    if state.watched is not None:
        belief = state.watched if kernel is state.kernel else rebase(state.watched, kernel)
        belief = update(belief, kernel, belief.whitened.latent.points, X, y, mean=state.mean, noise_variance=noise)  # type: ignore[union-attr]
        return replace(state, kernel=kernel, average=average, watched=belief, result=None)
    _check_factorises(segment.with_kernel(kernel))
    n = len(state.X)
    if state.noise_variance is not None or noise is not None:
        noise = np.concatenate([_filled(state.noise_variance, n), _filled(noise, len(X))])
    return replace(
        state,
        kernel=kernel,
        average=average,
        estimate=None,
        X=np.concatenate([state.X, X]),
        y=np.concatenate([state.y, y]),
        noise_variance=noise,
        segments=[*state.segments, np.arange(n, n + len(X))],
        result=None,
    )


def _estimate(estimator: Any, segment: Observations, average: Average) -> Any:
    """Maximum likelihood in one segment, and a warning where there is none."""
    functions, y = segment.columns[:, :-1], segment.columns[:, -1]
    coefficients: Floats = np.asarray(np.linalg.lstsq(functions, y, rcond=None)[0], dtype=np.float64)
    found = None
    if len(y) > 1 and np.ptp(y - functions @ coefficients) > 0:
        (stack,) = Composite.full(len(y)).stacks
        stack = replace(stack, numbers=np.array([average.n_segments]))
        found = estimate_block(*restrict(segment, stack), coefficients, estimator.n_restarts, _seed(estimator))
    if found is None:
        warn_caller(
            f"A segment of {len(y)} point(s) has no maximum likelihood estimate: hyper-parameters stay as they were.",
            ConvergenceWarning,
        )
    return found


def _seed(estimator: Any) -> int:
    return estimator.random_state if isinstance(estimator.random_state, int) else 0


def _check_factorises(segment: Observations) -> None:
    with blas_threads_for(len(segment.X)):
        list(factor_stacks(segment, Composite.full(len(segment.X))))


def _filled(noise: Floats | None, count: int) -> Floats:
    return np.zeros(count) if noise is None else noise
