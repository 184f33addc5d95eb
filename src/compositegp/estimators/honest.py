"""Honest error bars: the mean squared error that a composite's mean really has under the model."""

import numpy as np

from compositegp.analysis import actual_mse, predictor
from compositegp.backend import Floats, invert_lower, psd_root, pseudo_invert_information, use_device
from compositegp.composite import Composite, Observations, factor_stacks, segment
from compositegp.estimators.fitted_model import State
from compositegp.estimators.prediction_methods import COMPOSITE_GROUP, CommitteeMode, CompositeMode, InducingMode
from compositegp.means import Estimated
from compositegp.posteriors import Marginals


def honest_variance(state: State, Z: Floats, claimed: Marginals) -> Floats:
    """Mean squared errors, under the model, of means that a state predicts."""
    mode = state.mode
    if isinstance(mode, CommitteeMode):
        raise ValueError(
            "variance='honest' is for composites; committees have no closed form. Use prediction='composite'."
        )
    if not isinstance(mode, CompositeMode | InducingMode):
        return claimed.variance  # an exact Gaussian process given its neighbours: it claims what it does
    data = mode.fitted.data
    if isinstance(mode, InducingMode) and data.mean.coefficients is not None:
        raise ValueError(
            "variance='honest' with inducing points is there for a known mean. Use prediction='composite'."
        )
    composite, inducing = mode.terms(Z)
    given = isinstance(state.mean, Estimated)  # elsewhere, so that its error has nothing to do with these data
    by_data = None if given or data.mean.coefficients is None else _least_squares_weights(data, composite)
    variance = np.empty(len(Z))
    size = state.choices.group_size or COMPOSITE_GROUP  # the groups that the means are by
    for group in segment(Z, size, kernel=data.kernel):
        weights = predictor(data, Z[group], composite, inducing).coefficients
        sensitivity = data.mean.columns(Z[group]) - weights @ data.columns[:, :-1]
        if by_data is not None:
            weights = weights + sensitivity @ by_data
        variance[group] = actual_mse(data, Z[group], weights)
        if given:
            assert isinstance(state.mean, Estimated)
            variance[group] += ((sensitivity @ psd_root(np.asarray(state.mean.covariance))) ** 2).sum(axis=1)
    return np.maximum(variance, 0.0)


@use_device(None)
def _least_squares_weights(data: Observations, composite: Composite) -> Floats:
    """What each observation adds to the mean's coefficients by generalised least squares: shape (q, n)."""
    q = data.columns.shape[1] - 1
    information, weights = np.zeros((q, q)), np.zeros((q, len(data.X)))
    for factored in factor_stacks(data, composite):
        functions = factored.innovations[..., :-1]
        weighted = factored.stack.row_weights[..., None] * functions
        information += np.einsum("bni,bnj->ij", weighted, functions)
        rows = weighted.transpose(0, 2, 1) @ np.tril(invert_lower(factored.lower.copy()))
        for indices, row in zip(factored.stack.indices, rows, strict=True):
            weights[:, indices] += row
    return np.asarray(pseudo_invert_information(information) @ weights)
