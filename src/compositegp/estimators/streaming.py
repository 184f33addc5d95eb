"""One segment at a time: the paper's recursions for the hyper-parameters and for the belief."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from compositegp.backend import Floats, blas_threads_for, warn_caller
from compositegp.composite import Composite, Observations, factor_stacks, restrict
from compositegp.estimators.fitted_model import State
from compositegp.estimators.fitting import at_scale, choices_of, default_kernel, model_of
from compositegp.estimators.inputs import Training
from compositegp.learning import Average, estimate_block
from compositegp.means import as_mean, plugged_in
from compositegp.posteriors import Belief, prior, rebase, update


def begin(estimator: Any, training: Training, watch: Floats | None) -> State:
    """The state before the first segment."""
    model = model_of(estimator, training)
    p, d = len(model.kernel.theta), training.X.shape[1]
    average = Average.empty(p) if estimator.learning is not None and p else None
    nothing = np.empty((0, d)), np.empty(0), None
    state = State(
        choices_of(estimator), model.transform, model.offset, model.kernel, model.mean, None, average, *nothing, []
    )
    return state if watch is None else keep_watch(state, watch)


def keep_watch(state: State, Z: Floats) -> State:
    """Keep the belief about some test points, and let the data go."""
    if state.choices.prediction != "composite":
        raise ValueError(
            f"watch keeps a belief that every segment adds to, which is prediction='composite'; found "
            f"prediction={state.choices.prediction!r}."
        )
    belief = prior(state.kernel, Z, mean=state.mean)
    noise = state.noise_variance
    for part in state.segments:
        own = None if noise is None else noise[part]
        belief = update(belief, state.kernel, Z, state.X[part], state.y[part], mean=state.mean, noise_variance=own)
    empty = np.empty((0, state.X.shape[1]))
    return replace(state, X=empty, y=np.empty(0), noise_variance=None, segments=[], estimate=None, watched=belief)


def absorb(estimator: Any, state: State, training: Training) -> State:
    """The state with one more segment; nothing of the old one is changed."""
    X, noise = training.X, training.noise_variance
    y = state.transform.forward(training.y) - state.offset
    kernel, average = state.kernel, state.average
    if average is not None:
        if not average.estimate.known.any():  # nothing so far: this segment's own scale is where to begin
            given = default_kernel(X.shape[1]) if estimator.kernel is None else estimator.kernel
            kernel = at_scale(given, X, y - y.mean())
        average = _average(estimator, average, _observe(state, kernel, X, y, noise))
        kernel = kernel.clone_with_theta(average.theta_or(kernel.theta, kernel.bounds))
    if state.watched is not None:
        belief = _update(state, state.watched, kernel, training._replace(y=y))
        return replace(state, kernel=kernel, average=average, watched=belief, result=None)
    _check_factorises(_observe(state, kernel, X, y, noise))
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


def _observe(state: State, kernel: Any, X: Floats, y: Floats, noise: Floats | None) -> Observations:
    return Observations.checked(kernel, X, y, mean=plugged_in(as_mean(state.mean)), noise_variance=noise)


def _update(state: State, belief: Belief, kernel: Any, training: Training) -> Belief:
    assert belief.whitened is not None
    Z = belief.whitened.latent.points
    if kernel is not state.kernel:
        belief = rebase(belief, kernel)
    noise = training.noise_variance
    return update(belief, kernel, Z, training.X, training.y, mean=state.mean, noise_variance=noise)


def _average(estimator: Any, average: Average, segment: Observations) -> Average:
    """The average with a segment's own maximum likelihood estimate, and a warning where that tells too little."""
    functions, y = segment.columns[:, :-1], segment.columns[:, -1]
    coefficients: Floats = np.asarray(np.linalg.lstsq(functions, y, rcond=None)[0], dtype=np.float64)
    found = None
    if len(y) > 1 and np.ptp(y - functions @ coefficients) > 0:
        (stack,) = Composite.full(len(y)).stacks
        stack = replace(stack, numbers=np.array([average.n_segments]))
        seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
        found = estimate_block(*restrict(segment, stack), coefficients, estimator.n_restarts, seed)
    added = average.add(found)
    if found is None:
        warn_caller(
            f"A segment of {len(y)} point(s) has no maximum likelihood estimate: hyper-parameters stay as they were.",
            ConvergenceWarning,
        )
    elif not added.estimate.known.all() and estimator.kernel is not None:
        warn_caller(
            f"After {added.n_segments} segment(s) some hyper-parameters are still where they began: every segment puts "
            "them on a bound. Give larger segments, or other bounds.",
            ConvergenceWarning,
        )
    return added


def _check_factorises(segment: Observations) -> None:
    with blas_threads_for(len(segment.X)):
        list(factor_stacks(segment, Composite.full(len(segment.X))))


def _filled(noise: Floats | None, count: int) -> Floats:
    return np.zeros(count) if noise is None else noise
