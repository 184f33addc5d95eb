"""Honest error bars: the mean squared error that a composite's mean really has under the model."""

import numpy as np

from compositegp.analysis.excess_error import actual_mse
from compositegp.analysis.linear_predictor import predictor
from compositegp.backend import Floats, invert_lower, on_processor, psd_root
from compositegp.composite import Composite, Observations, factor_stacks, group_by_place
from compositegp.means import Estimated, NormalEquations


def predict_honest_variance(
    data: Observations,
    composite: Composite,
    Z: Floats,
    group_size: int,
    *,
    inducing: Floats | None = None,
    own_estimate: bool = False,
) -> Floats:
    """Mean squared errors, under the model, of the means that a composite predicts in groups: shape (M,).

    Parameters
    ----------
    data : Observations
    composite : Composite
    Z : array of shape (M, d)
    group_size : int
        Test points in a group, as in the prediction.
    inducing : array of shape (m, d), optional
    own_estimate : bool
        Whether the coefficients of the mean were estimated from these data; else their error is independent of them.

    Returns
    -------
    array of shape (M,)

    Examples
    --------
    The mean of an exact Gaussian process has the error that it claims:

    >>> from compositegp import posterior
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel, X, Z = RBF() + WhiteKernel(0.1), np.arange(6.0)[:, None], np.array([[2.5]])
    >>> data = Observations.checked(kernel, X, np.zeros(6), mean=None, noise_variance=None)
    >>> honest = predict_honest_variance(data, Composite.full(6), Z, 1)
    >>> bool(np.allclose(honest, posterior(kernel, X, np.zeros(6), Z, Composite.full(6)).variance))
    True
    """
    estimate = data.mean.coefficients
    by_data = _least_squares_weights(data, composite) if own_estimate else None
    variance = np.empty(len(Z))
    for group in group_by_place(data.kernel, Z, group_size):
        weights = predictor(data, Z[group], composite, inducing).coefficients
        sensitivity = data.mean.columns(Z[group]) - weights @ data.basis
        if by_data is not None:
            weights = weights + sensitivity @ by_data
        variance[group] = actual_mse(data, Z[group], weights)
        if by_data is None and isinstance(estimate, Estimated):
            variance[group] += ((sensitivity @ psd_root(np.asarray(estimate.covariance))) ** 2).sum(axis=1)
    return np.maximum(variance, 0.0)


@on_processor("variance='honest'")
def _least_squares_weights(data: Observations, composite: Composite) -> Floats:
    """What each observation adds to the mean's coefficients by generalized least squares: shape (q, n)."""
    q = data.basis.shape[1]
    information, weights = np.zeros((q, q)), np.zeros((q, len(data.X)))
    for factored in factor_stacks(data, composite):
        functions = factored.innovations[..., :q]
        weighted = factored.stack.row_weights[..., None] * functions
        information += np.einsum("bni,bnj->ij", weighted, functions)
        rows = weighted.transpose(0, 2, 1) @ np.tril(invert_lower(factored.lower.copy()))
        for indices, row in zip(factored.stack.indices, rows, strict=True):
            weights[:, indices] += row
    return NormalEquations(information, weights).coefficients
