"""Fit: units, segments, hyper-parameters and mean coefficients, in that order."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from compositegp.arrays import Floats, Indices
from compositegp.composite import segment
from compositegp.estimators.inputs import Training
from compositegp.estimators.scaling import Scaling
from compositegp.estimators.state import Choices, State
from compositegp.estimators.targets import as_target_transform
from compositegp.learning import LearningResult, learn
from compositegp.learning.averaging import Average
from compositegp.means import Estimated
from compositegp.messages import warn_caller


def default_kernel(n_columns: int) -> Kernel:
    """Matérn 3/2 with one length scale for each column, and noise: for standardised data."""
    length_scale = np.ones(n_columns) if n_columns > 1 else 1.0
    return ConstantKernel(1.0) * Matern(length_scale, nu=1.5) + WhiteKernel(0.1)


def choices_of(estimator: Any) -> Choices:
    """The parameters of an estimator that say how it predicts."""
    return Choices(
        estimator.prediction,
        estimator.conditioning_size,
        estimator.n_neighbors,
        estimator.group_size,
        estimator.inducing,
        estimator.n_jobs,
    )


def fit_state(estimator: Any, training: Training) -> State:
    """What an estimator's fit makes of training data."""
    transform = as_target_transform(estimator.target_transform, training.y)
    y = transform.forward(training.y)
    scaling = Scaling.of(training.X, y) if standardizes(estimator) else Scaling.none(training.X.shape[1])
    X, y, noise = scaling.points(training.X), scaling.targets(y), scaling.variances(training.noise_variance)
    n_columns = X.shape[1]
    kernel = default_kernel(n_columns) if estimator.kernel is None else clone(estimator.kernel)
    mean = scaling.mean(estimator.mean, training.X)
    result = None
    if estimator.learning is not None and _can_learn(kernel, y):
        result = _learn(estimator, kernel, X, y, mean, noise, segments_of(estimator, X, training.observed, None))
        kernel = result.kernel
    estimate = result.mean if result is not None and isinstance(result.mean, Estimated) else None
    average = None
    if result is not None:
        average = Average.known(result.theta, result.theta_covariance, result.n_segments, result.n_points)
    segments = segments_of(estimator, X, training.observed, kernel)
    choices = choices_of(estimator)
    return State(choices, transform, scaling, kernel, mean, estimate, average, X, y, noise, segments, result)


def standardizes(estimator: Any) -> bool:
    """Whether an estimator works in units of its own."""
    return estimator.kernel is None if estimator.standardize == "auto" else bool(estimator.standardize)


def segments_of(estimator: Any, X: Floats, observed: Any, kernel: Kernel | None) -> list[Indices]:
    """Segments by an estimator's scheme; nearness is in length scales, or before they are known in spreads."""
    scheme = estimator.segmentation
    if not isinstance(scheme, str):
        labels = np.asarray(scheme)
        if labels.shape == observed.shape:
            labels = labels[observed]
        return segment(X, estimator.segment_size, labels)
    if scheme == "auto":
        conditioned = estimator.conditioning_size and estimator.learning != "fisher_average"
        scheme = "nested" if conditioned else "tree"
    if kernel is None:
        spreads = X.std(axis=0)
        X = X / np.where(spreads > 0, spreads, 1.0)
    return segment(X, estimator.segment_size, scheme, kernel=kernel, random_state=estimator.random_state)


def _can_learn(kernel: Kernel, y: Floats) -> bool:
    if not len(kernel.theta):
        return False
    if len(y) == 1 or np.ptp(y) == 0:
        what = "one observation" if len(y) == 1 else "a constant target"
        warn_caller(f"There is {what}: hyper-parameters stay where the kernel has them.", ConvergenceWarning)
        return False
    return True


def _learn(
    estimator: Any, kernel: Kernel, X: Floats, y: Floats, mean: Any, noise: Floats | None, segments: list[Indices]
) -> LearningResult:
    average = estimator.learning == "fisher_average"
    result = learn(
        kernel,
        X,
        y,
        segments,
        method=estimator.learning,
        conditioning_size=0 if average else estimator.conditioning_size,
        mean=mean,
        noise_variance=noise,
        tolerance=estimator.tolerance,
        n_restarts=estimator.n_restarts,
        random_state=estimator.random_state,
        n_jobs=estimator.n_jobs,
        progress=bool(estimator.verbose),
        warn=False,
    )
    for message in result.messages:
        # Of the default kernel's parameters a user has chosen none: an irrelevant column is no cause for alarm.
        if not (estimator.kernel is None and message.parameters):
            warn_caller(message.text, message.category)
    return result
