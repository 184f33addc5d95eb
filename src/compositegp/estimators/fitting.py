"""Fit: the target's scale, the hyper-parameters and the mean's coefficients."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, warn_caller
from compositegp.composite import Observations
from compositegp.estimators.fitted_model import FittedModel, TargetScale
from compositegp.estimators.inputs import Training
from compositegp.estimators.kernel_selection import by_held_out_errors
from compositegp.estimators.term_choice import TermChoice
from compositegp.functionals import Functionals, OnFunctionals, lift, matching_kernel, matching_mean
from compositegp.learning import (
    Average,
    KernelComparison,
    LearningMethod,
    LearningResult,
    LocalSegments,
    as_learning_method,
    at_scale,
    candidates_of,
    choose_kernel,
    default_kernel,
    is_automatic,
    learn_from,
    single_kernel,
)
from compositegp.means import Basis, Estimated, MeanModel, as_mean, in_units_of, plugged_in
from compositegp.posteriors import NearestPredictor, gap_terms
from compositegp.prediction import PredictionMethod, as_prediction_method
from compositegp.predictive import IdentityTarget, as_target_transform

_GAP_TERMS = 512  # gaps that are learned from, at most
_SHARE_OF_COEFFICIENTS = 0.2  # of the observations, above which error bars are too small by a tenth and more


class Model(NamedTuple):
    """A model before anything is learned.

    Attributes
    ----------
    target : TargetScale
    kernel : scikit-learn kernel
    mean : MeanModel
    """

    target: TargetScale
    kernel: Kernel
    mean: MeanModel


class Choices(NamedTuple):
    """An estimator's parameters, parsed and checked.

    Attributes
    ----------
    prediction : PredictionMethod
    terms : TermChoice
    learning : LearningMethod or None
    """

    prediction: PredictionMethod
    terms: TermChoice
    learning: LearningMethod | None


def choices_of(estimator: Any) -> Choices:
    """The parameters of an estimator that say how it learns and predicts, checked."""
    terms = TermChoice(
        estimator.segment_size,
        estimator.segmentation,
        estimator.conditioning_size,
        estimator.random_state,
    )
    terms.check()
    learning = None if estimator.learning is None else as_learning_method(estimator.learning)
    return Choices(as_prediction_method(estimator.prediction), terms, learning)


def with_methods(estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters to set, with an object in the place of a short form of which a parameter is set too."""
    found = dict(params)
    for name, make in (("prediction", as_prediction_method), ("learning", as_learning_method)):
        value = params.get(name, getattr(estimator, name))
        if isinstance(value, str) and any(key.startswith(f"{name}__") for key in params):
            found[name] = clone(make(value))
    return found


def model_of(estimator: Any, training: Training) -> Model:
    """The model that an estimator's parameters describe, for its first data.

    Of several kernels it has the first. Without a kernel it has the default one, at the data's own scale, around a
    constant that is to be estimated; several outputs are then scaled to the same variance.
    """
    transform = as_target_transform(estimator.target_transform, training.y)
    mean = estimator.mean
    if np.ndim(mean) == 1 and np.size(mean) != np.size(training.y[:1]):
        raise ValueError(
            f"The number of targets seen in `y` is {np.size(training.y[:1])}, but mean has {np.size(mean)} number(s). "
            "Give one for each output."
        )
    if hasattr(mean, "fit") and hasattr(mean, "transform"):
        mean = Basis(clone(mean).fit(training.X))
    y, given = transform.forward(training.y), single_kernel(estimator.kernel)
    offset: Any = 0.0
    scale: Any = 1.0
    if training.functionals is None and (estimator.normalize_y or (given is None and mean is None)):
        offset = y.mean(axis=0)  # functionals need not contain a constant: their mean is estimated
    if estimator.normalize_y or (given is None and y.ndim == 2):
        spreads = y.std(axis=0)
        scale = np.where(spreads > 0, spreads, 1.0)
    if given is None:
        residuals = (y - y.mean(axis=0)) / scale
        mean = _default_mean(offset, residuals) if mean is None else mean
        kernel = at_scale(default_kernel(training.X.shape[1]), training.X, residuals)
    else:
        kernel = clone(given)
    return Model(TargetScale(transform, offset, scale), kernel, in_units_of(as_mean(mean), training.X))


def _default_mean(offset: Any, residuals: Floats) -> Any:
    """A constant around that of the data, as uncertain as an observation.

    Where a function varies slowly and much, the data say next to nothing about its mean: with a flat prior the constant
    could be anywhere, and with it a prediction far from the data.
    """
    variance = float(residuals.var(axis=0).mean())
    if not np.any(offset) or not variance:  # of functionals, whose constant is unknown
        return "constant"
    return Basis("constant", np.zeros((1, *residuals.shape[1:])), [[variance]])


def fit_model(estimator: Any, training: Training) -> FittedModel:
    """What an estimator's fit makes of training data."""
    choices = choices_of(estimator)
    target, kernel, mean = model_of(estimator, training)
    X, y = training.X, target.forward(training.y)
    if training.functionals is not None:
        check_untransformed(target, training.functionals)
        kernel, (X,) = lift(kernel, X=training.functionals)
    _check_determined(matching_mean(kernel, mean), X, learns=choices.learning is not None and len(kernel.theta) > 0)
    result, average, comparison = None, None, None
    if choices.learning is not None and len(kernel.theta):
        average = Average.empty(len(kernel.theta))
        if _can_learn(matching_mean(kernel, mean), X, y):
            start = default_kernel(training.X.shape[1]) if is_automatic(estimator.kernel) else kernel
            start = matching_kernel(start, kernel)
            data = Observations.of(start, _learnable(mean), X, y, training.noise_variance, training.weights)
            result, comparison = _learn(estimator, choices, data, training, target)
            kernel = result.kernel
            average = Average.known(result.theta, result.theta_information, result.n_segments, result.n_points)
    estimate = result.mean if result is not None and isinstance(mean.coefficients, Basis) else None
    segments = None if training.groups is None else choices.terms.segments(X, kernel, training.groups)
    return FittedModel(
        choices.prediction,
        choices.terms,
        target,
        kernel,
        mean,
        estimate,
        average,
        X,
        y,
        training.noise_variance,
        segments,
        result,
        comparison=comparison,
        weights=training.weights,
    )


def _check_determined(mean: MeanModel, X: Floats, *, learns: bool) -> None:
    """Refuse a mean with more unknown coefficients than there are data, and warn of one with nearly as many."""
    if not isinstance(mean.coefficients, Basis) or mean.coefficients.prior_covariance is not None:
        return
    n, q = len(X), mean.columns(X[:1]).shape[1]
    remedy = "Give mean='constant', or a Basis with a prior_covariance."
    if q > 1 and q >= n:
        raise ValueError(f"mean has {q} unknown coefficients, and there are only {n} observations. {remedy}")
    if learns and q > max(1, _SHARE_OF_COEFFICIENTS * n):
        warn_caller(
            f"mean has {q} unknown coefficients for {n} observations. The kernel is learned from what they leave of "
            f"the data, so that error bars are too small, by some {100 * (1 - np.sqrt(1 - q / n)):.0f} %. {remedy}",
            ConvergenceWarning,
        )


def check_untransformed(target: TargetScale, observed: Functionals) -> None:
    """Refuse observed functionals of a transformed target: an average of y is not one of its transform."""
    if not isinstance(target.transform, IdentityTarget) and not observed.is_point.all():
        raise ValueError(
            "target_transform is for observed values of f: an average or a derivative of the target is not that of its "
            "transform. Leave target_transform out."
        )


def _can_learn(mean: MeanModel, X: Floats, y: Floats) -> bool:
    residuals = y.reshape(len(y), -1) - mean.values(X)
    if len(y) == 1 or not np.ptp(residuals, axis=0).any():
        what = "one observation" if len(y) == 1 else "a constant target"
        warn_caller(f"There is {what}: hyper-parameters stay where the kernel has them.", ConvergenceWarning)
        return False
    return True


def _learnable(mean: MeanModel) -> MeanModel:
    return plugged_in(mean) if isinstance(mean.coefficients, Estimated) else mean


def _terms_in_gaps(
    estimator: Any, choices: Choices, data: Observations, training: Training
) -> LocalSegments | None:
    """The terms that learning reads where it is known in which gaps predictions are wanted; else None."""
    conditions = choices.learning is not None and choices.learning.conditions
    if training.gaps is None or not conditions or not choices.prediction.predicts_in_gaps(len(data.X)):
        return None
    search = NearestPredictor(data.with_kernel(at_scale(data.kernel, data.X, data.residuals)))
    seed = int(check_random_state(estimator.random_state).randint(2**31))
    terms = gap_terms(search, training.gaps, _GAP_TERMS, estimator.n_jobs, seed)
    return None if terms is None else LocalSegments(data, terms, 0)


def _learn(
    estimator: Any, choices: Choices, data: Observations, training: Training, target: TargetScale
) -> tuple[LearningResult, KernelComparison | None]:
    method = choices.learning
    assert method is not None
    in_gaps = _terms_in_gaps(estimator, choices, data, training)
    source = in_gaps or choices.terms.source(data, training.groups, method.conditions)
    options: Any = {
        "random_state": estimator.random_state,
        "n_jobs": estimator.n_jobs,
        "verbose": bool(method.verbose),
    }
    comparison = None
    observes_points = not isinstance(data.kernel, OnFunctionals)
    # Functionals may be derivatives, which not every kernel of the family has.
    candidates = (
        candidates_of(estimator.kernel, data, method)
        if observes_points or not is_automatic(estimator.kernel)
        else {}
    )
    candidates = {name: matching_kernel(one, data.kernel) for name, one in candidates.items()}
    if candidates:
        select = partial(
            by_held_out_errors,
            data=data,
            prediction=choices.prediction,
            heavy_tails=isinstance(target.transform, IdentityTarget),
            n_jobs=estimator.n_jobs,
        )
        result, comparison = choose_kernel(
            candidates,
            data,
            source,
            method,
            select=select if observes_points and in_gaps is None else None,
            **options,
        )
    else:
        result = learn_from(data, source, method, **options)
    for message in result.messages:
        # A user has chosen none of the default kernel's parameters: an irrelevant column is not worth a warning.
        if not (is_automatic(estimator.kernel) and message.parameters):
            warn_caller(message.text, message.category)
    return result, comparison
