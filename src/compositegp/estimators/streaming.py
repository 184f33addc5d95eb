"""Fits by one segment at a time: the recursions of the paper for the hyper-parameters and for the belief."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices, blas_threads_for, warn_caller
from compositegp.composite import Composite, Observations, factor_stacks, restrict
from compositegp.estimators.fitted_model import FittedModel
from compositegp.estimators.fitting import check_untransformed, choices_of, model_of
from compositegp.estimators.inputs import Training
from compositegp.functionals import Functionals, OnFunctionals, lift, matching_kernel, plain_points
from compositegp.learning import Average, FisherAverage, at_scale, default_kernel, estimate_block, single_kernel
from compositegp.means import ordinary_least_squares, plugged_in
from compositegp.posteriors import prior_of
from compositegp.prediction import CompositeSum

_TOGETHER = 32  # points that came one by one and are learned from together


def begin(estimator: Any, training: Training, watch: Floats | Functionals | None) -> FittedModel:
    """The model before the first segment."""
    choices = choices_of(estimator)
    target, kernel, mean = model_of(estimator, training)
    if np.ndim(target.scale) and len(training.X) == 1:
        warn_caller(
            "The first segment has one row, which does not say how much each output varies: all outputs have the same "
            "error bars until 100 rows are there. Begin with some rows.",
            UserWarning,
        )
    p, d = len(kernel.theta), training.X.shape[1]
    average = Average.empty(p) if choices.learning is not None and p else None
    X, y = np.empty((0, d)), np.empty((0, *training.y.shape[1:]))
    model = FittedModel(
        choices.prediction, choices.terms, target, kernel, mean, None, average, X, y, None, segments=[]
    )
    return model if watch is None else keep_watch(model, watch)


def keep_watch(model: FittedModel, Z: Floats | Functionals) -> FittedModel:
    """Keep the belief about some test points or functionals, and drop the data."""
    if not isinstance(model.prediction, CompositeSum):
        raise ValueError(
            "watch keeps a belief that every segment adds to, which is prediction=CompositeSum(watch=...); found "
            f"{model.prediction!r}."
        )
    kernel, (points,) = lift(model.kernel, watch=Z)
    model = replace(model, kernel=kernel)
    belief = prior_of(kernel, points, model.mean)
    if len(model.X):
        data = Observations.of(model.kernel, model.mean, model.X, model.y, model.noise_variance, model.weights)
        for part in model.own_segments:
            belief = belief.take_in(data.take(part))
    return replace(
        model,
        X=model.X[:0],
        y=model.y[:0],
        noise_variance=None,
        weights=None,
        segments=[],
        estimate=None,
        watched=belief,
    )


def absorb(estimator: Any, model: FittedModel, training: Training) -> FittedModel:
    """The model with one more segment; the old model is not changed."""
    X, y = training.X, model.target.forward(training.y)
    noise, weights = training.noise_variance, training.weights
    if y.shape[1:] != model.y.shape[1:]:
        raise ValueError(f"y has the shape {y.shape}, but the model has outputs of shape {model.y.shape[1:]}.")
    kernel, average, earlier = model.kernel, model.average, model.X
    if training.functionals is not None or isinstance(kernel, OnFunctionals):
        if training.functionals is not None:
            check_untransformed(model.target, training.functionals)
        kernel, (X, earlier) = lift(
            kernel,
            X=X if training.functionals is None else training.functionals,
            earlier=earlier if len(earlier) else X,
        )
        earlier = earlier[: len(model.X)]
    known = plugged_in(model.mean)
    if model.watched is not None:
        new = Observations.of(kernel, known, X, y, noise, weights)
        kernel, average = _learned(estimator, model, new, (training.X, y))
        belief = model.watched if kernel is model.kernel else model.watched.under(kernel)
        belief = belief.take_in(Observations.of(kernel, model.mean, X, y, noise, weights))
        return replace(model, kernel=kernel, average=average, watched=belief, result=None)
    n = len(earlier)
    segments, waiting = [*(model.own_segments if n else []), np.arange(n, n + len(X))], 0
    if estimator.learning is not None:
        segments, waiting = _together(segments, model.waiting)
    after = replace(
        model,
        estimate=None,
        X=np.concatenate([earlier, X]),
        y=np.concatenate([model.y, y]),
        noise_variance=_joined(model.noise_variance, noise, n, len(X), 0.0),
        weights=_joined(model.weights, weights, n, len(X), 1.0),
        segments=segments,
        waiting=waiting,
        result=None,
        tuning=None if model.prediction.outgrows(model.tuning, n + len(X)) else model.tuning,
    )
    assert after.segments is not None
    rows = after.segments[-1]
    some = [None if values is None else values[rows] for values in (after.noise_variance, after.weights)]
    taught = Observations.of(kernel, known, after.X[rows], after.y[rows], *some)
    kernel, average = _learned(estimator, model, taught, (plain_points(kernel, after.X), after.y))
    _check_factorizes(taught.with_kernel(kernel))
    return replace(after, kernel=kernel, average=average)


def _together(segments: list[Indices], waiting: int) -> tuple[list[Indices], int]:
    """Segments of which the last is joined with the points that came one by one before it, and how many now wait.

    One point has no maximum likelihood estimate: points that come one by one wait until there are enough of them, or
    until a larger segment comes, and are learned from together.
    """
    if len(segments[-1]) == 1 and waiting + 1 < _TOGETHER:
        return segments, waiting + 1
    return [*segments[: -waiting - 1], np.concatenate(segments[-waiting - 1 :])], 0


def _learned(
    estimator: Any, model: FittedModel, segment: Observations, seen: tuple[Floats, Floats]
) -> tuple[Kernel, Average | None]:
    """The kernel and the average after one more segment; `seen` are points and targets that a scale is taken from."""
    kernel, average = segment.kernel, model.average
    if average is None or estimator.learning is None:
        return kernel, average
    if not average.estimate.known.any():  # no estimate so far: begin at the scale of the data
        X, y = seen
        given = single_kernel(estimator.kernel)
        given = default_kernel(X.shape[1]) if given is None else given
        kernel = matching_kernel(at_scale(given, X, y - y.mean(axis=0)), kernel)
    if len(segment.X) > 1 or model.watched is not None:  # a point that came alone waits for others
        average = _averaged(estimator, average, segment.with_kernel(kernel))
    return kernel.clone_with_theta(average.theta_or(kernel.theta, kernel.bounds)), average


def _averaged(estimator: Any, average: Average, segment: Observations) -> Average:
    """The average with the maximum likelihood estimate of one more segment; warns if that determines too little."""
    coefficients = ordinary_least_squares(segment.basis, segment.residuals)
    found = None
    n = len(segment.X)
    if n > 1 and np.ptp(segment.residuals - segment.basis @ coefficients, axis=0).any():
        (stack,) = Composite.full(n).stacks
        stack = replace(stack, segment_numbers=np.array([average.n_segments]))
        seed = estimator.random_state if isinstance(estimator.random_state, int) else 0
        restarts = estimator.learning.n_restarts if isinstance(estimator.learning, FisherAverage) else 0
        found = estimate_block(*restrict(segment, stack), coefficients, restarts, seed)
    added = average.add(found)
    if found is None:
        warn_caller(
            f"A segment of {n} point(s) has no maximum likelihood estimate: hyper-parameters stay as they were.",
            ConvergenceWarning,
        )
    elif not added.estimate.known.all() and estimator.kernel is not None:
        warn_caller(
            f"After {added.n_segments} segment(s) some hyper-parameters are still where they began: every segment puts "
            "them on a bound. Give larger segments, or other bounds.",
            ConvergenceWarning,
        )
    return added


def _check_factorizes(segment: Observations) -> None:
    """Refuse a segment whose covariance cannot be factorized, before it becomes part of the model."""
    with blas_threads_for(len(segment.X)):
        list(factor_stacks(segment, Composite.full(len(segment.X))))


def _joined(before: Floats | None, after: Floats | None, n: int, m: int, value: float) -> Floats | None:
    """Values of n rows and of m more, where either may have none and count as `value`; None if both have none."""
    if before is None and after is None:
        return None
    return np.concatenate(
        [np.full(count, value) if one is None else one for one, count in ((before, n), (after, m))]
    )
