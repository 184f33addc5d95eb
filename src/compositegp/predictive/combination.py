"""Sums and averages of joint predictions, in the target's own unit."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from compositegp.predictive.distribution import PredictiveDistribution
from compositegp.predictive.families import Normal, StudentT
from compositegp.predictive.target_transforms import IdentityTarget, LogTarget


def combine_predictions(found: PredictiveDistribution, weights: ArrayLike) -> PredictiveDistribution:
    """Weighted sums of predicted values: totals, averages, differences.

    Mean and standard deviation are exact. They account for the correlation between the values, which sums of marginal
    variances do not. Without a target transform sums of normal values are normal, and sums of values that are jointly
    Student's t are Student's t. Sums of log-normal values, with no negative weight, are taken to be log-normal, and all
    others to be normal.

    Parameters
    ----------
    found : PredictiveDistribution
        Joint, of M values of one output.
    weights : array of shape (M,), or (K, M) for K sums

    Returns
    -------
    PredictiveDistribution
        Of K values.

    Examples
    --------
    The average of two values whose errors are the same has the error of one of them:

    >>> both = PredictiveDistribution(np.array([1.0, 3.0]), np.ones(2), covariance=np.ones((2, 2)))
    >>> average = combine_predictions(both, [0.5, 0.5])
    >>> average.mean, average.std
    (array([2.]), array([1.]))
    """
    W = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if found.covariance is None:
        raise ValueError("found has each value alone, and no covariance of them. Ask for a joint prediction.")
    if found.location.ndim > 1:
        raise ValueError(f"found must have one output; found {found.location.shape[1]}.")
    if W.ndim != 2 or W.shape[1] != len(found) or not np.isfinite(W).all():
        raise ValueError(f"weights must be finite, one for each of the {len(found)} values; found shape {W.shape}.")
    if isinstance(found.transform, IdentityTarget) and isinstance(found.family, Normal | StudentT):
        covariance = W @ found.covariance @ W.T
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0)) * found.output_scale
        return replace(found, location=W @ found.location, scale=scale, covariance=covariance)
    mean, covariance = found.mean_and_covariance()
    total, variance = W @ mean, np.maximum(np.einsum("km,mn,kn->k", W, covariance, W), 0.0)
    if isinstance(found.transform, LogTarget) and (W >= 0).all():
        spread = np.log1p(variance / total**2)
        return PredictiveDistribution(np.log(total) - 0.5 * spread, np.sqrt(spread), LogTarget())
    return PredictiveDistribution(total, np.sqrt(variance))
