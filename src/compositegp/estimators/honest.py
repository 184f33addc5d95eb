"""Honest error bars: the mean squared error that a composite's mean really has under the model."""

import numpy as np

from compositegp.analysis.errors import actual_mse
from compositegp.analysis.predictor import predictor
from compositegp.arrays import Floats
from compositegp.composite import Observations, segment
from compositegp.estimators.modes import COMPOSITE_GROUP, CommitteeMode, CompositeMode, InducingMode, Mode
from compositegp.estimators.state import Choices
from compositegp.linalg import psd_root
from compositegp.means import Estimated
from compositegp.posteriors import Marginals


def honest_variance(mode: Mode, Z: Floats, choices: Choices) -> Marginals:
    """Means by a mode, with their mean squared errors under the model in the place of the variances that it claims."""
    if isinstance(mode, CommitteeMode):
        raise ValueError(
            "variance='honest' is for composites; committees have no closed form. Use prediction='composite'."
        )
    claimed = mode.marginals(Z, choices.n_jobs)
    if not isinstance(mode, CompositeMode | InducingMode):
        return claimed  # an exact Gaussian process given its neighbours: it claims what it does
    data = mode.fitted.data
    composite, inducing = mode.terms(Z)
    variance = np.empty(len(Z))
    for group in segment(
        Z, choices.group_size or COMPOSITE_GROUP, kernel=data.kernel
    ):  # the groups that the means are by
        weights = predictor(data, Z[group], composite, inducing).coefficients
        variance[group] = actual_mse(data, Z[group], weights) + _mean_error(data, Z[group], weights)
    return Marginals(claimed.mean, np.maximum(variance, 0.0))


def _mean_error(data: Observations, Z: Floats, weights: Floats) -> Floats:
    """What the error of the mean's estimated coefficients adds."""
    estimate = data.mean.coefficients
    if not isinstance(estimate, Estimated):
        return np.zeros(len(Z))
    sensitivity = data.mean.columns(Z) - weights @ data.columns[:, :-1]
    return np.asarray(((sensitivity @ psd_root(np.asarray(estimate.covariance))) ** 2).sum(axis=1))
