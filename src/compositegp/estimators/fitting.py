"""Fit: segments, hyper-parameters and mean coefficients, in that order."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from compositegp.backend import Floats, Indices, warn_caller
from compositegp.composite import segment
from compositegp.estimators.fitted_model import Choices, State
from compositegp.estimators.inputs import Training
from compositegp.learning import Average, LearningResult, data_scale, learn, starting_kernel
from compositegp.means import Basis, Estimated, as_mean, plugged_in
from compositegp.predictive import AsTheyAre, as_target_transform


class Model(NamedTuple):
    """A model before anything is learned.

    Attributes
    ----------
    transform : AsTheyAre
    offset : float
    kernel : scikit-learn kernel
    mean : as in `posterior`
    """

    transform: AsTheyAre
    offset: float
    kernel: Kernel
    mean: Any

    def targets(self, y: Floats) -> Floats:
        """Targets as the model sees them."""
        return self.transform.forward(y) - self.offset


def default_kernel(n_columns: int) -> Kernel:
    """Matérn 3/2 with one length scale for each column, and noise; values of one stand for the data's own scale."""
    length_scale = np.ones(n_columns) if n_columns > 1 else 1.0
    return ConstantKernel(1.0) * Matern(length_scale, nu=1.5) + WhiteKernel(1.0)


def choices_of(estimator: Any) -> Choices:
    """The parameters of an estimator that say how it predicts."""
    return Choices(
        estimator.prediction,
        estimator.conditioning_size,
        estimator.n_neighbors,
        estimator.group_size,
        estimator.inducing,
        estimator.local_mean,
    )


def model_of(estimator: Any, training: Training) -> Model:
    """The model that an estimator's parameters say, for its first data.

    Without a kernel it is one at the data's own scale, around a constant that is to be estimated.
    """
    transform = as_target_transform(estimator.target_transform, training.y)
    mean = estimator.mean
    if hasattr(mean, "fit") and hasattr(mean, "transform"):
        mean = Basis(clone(mean).fit(training.X))
    if estimator.kernel is not None:
        return Model(transform, 0.0, clone(estimator.kernel), mean)
    y = transform.forward(training.y)
    offset = 0.0
    if mean is None:
        offset, mean = float(y.mean()), "constant"
    kernel = at_scale(default_kernel(training.X.shape[1]), training.X, y - y.mean())
    return Model(transform, offset, kernel, mean)


def at_scale(kernel: Kernel, X: Floats, residuals: Floats) -> Kernel:
    """A kernel that begins at the scale of some data, where they have one."""
    if np.ptp(residuals) == 0:
        return kernel
    return starting_kernel(kernel, data_scale(X, residuals, [np.arange(len(X))]))


def fit_state(estimator: Any, training: Training) -> State:
    """What an estimator's fit makes of training data."""
    model = model_of(estimator, training)
    kernel, X, y = model.kernel, training.X, model.targets(training.y)
    result, average = None, None
    if estimator.learning is not None and len(kernel.theta):
        average = Average.empty(len(kernel.theta))
        if _can_learn(model, X, y):
            segments = segments_of(estimator, X, training.observed, None)
            result = _learn(estimator, model, training._replace(y=y), segments)
            kernel = result.kernel
            average = Average.known(result.theta, result.theta_covariance, result.n_segments, result.n_points)
    estimate = result.mean if result is not None and isinstance(as_mean(model.mean).coefficients, Basis) else None
    return State(
        choices_of(estimator),
        model.transform,
        model.offset,
        kernel,
        model.mean,
        estimate,
        average,
        X,
        y,
        training.noise_variance,
        segments_of(estimator, X, training.observed, kernel),
        result,
    )


def segments_of(estimator: Any, X: Floats, observed: Any, kernel: Kernel | None) -> list[Indices]:
    """Segments by an estimator's scheme; nearness is in length scales, or before they are known in spreads."""
    scheme = estimator.segmentation
    if not isinstance(scheme, str):
        labels = np.asarray(scheme)
        if labels.shape == observed.shape:
            labels = labels[observed]
        return segment(X, estimator.segment_size, labels)
    if kernel is None:
        spreads = X.std(axis=0)
        X = X / np.where(spreads > 0, spreads, 1.0)
    return segment(X, estimator.segment_size, scheme, kernel=kernel, random_state=estimator.random_state)


def _can_learn(model: Model, X: Floats, y: Floats) -> bool:
    if len(y) == 1 or np.ptp(y - as_mean(model.mean).values(X)) == 0:
        what = "one observation" if len(y) == 1 else "a constant target"
        warn_caller(f"There is {what}: hyper-parameters stay where the kernel has them.", ConvergenceWarning)
        return False
    return True


def _learn(estimator: Any, model: Model, training: Training, segments: list[Indices]) -> LearningResult:
    average = estimator.learning == "fisher_average"
    mean = model.mean
    if isinstance(mean, Estimated):
        mean = plugged_in(as_mean(mean))
    result = learn(
        model.kernel if estimator.kernel is not None else default_kernel(training.X.shape[1]),
        training.X,
        training.y,
        segments,
        method=estimator.learning,
        conditioning_size=0 if average else estimator.conditioning_size,
        mean=mean,
        noise_variance=training.noise_variance,
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
