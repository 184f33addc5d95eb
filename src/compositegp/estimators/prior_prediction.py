"""Predictions before any data: by the prior of an estimator, as scikit-learn's Gaussian process has them."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from compositegp.estimators.fitted_model import new_noise
from compositegp.functionals import find_functionals, lift, matching_mean
from compositegp.kernels import diagonal
from compositegp.learning import default_kernel, single_kernel
from compositegp.means import as_mean
from compositegp.posteriors import Belief, prior
from compositegp.predictive import IdentityTarget, PredictiveDistribution, as_target_transform
from compositegp.validation import check_noise_variance


def predict_from_prior(
    estimator: BaseEstimator, X: Any, joint: bool, latent: bool, noise_variance: Any
) -> PredictiveDistribution:
    """The predictive distribution under the prior.

    Parameters
    ----------
    estimator : CompositeGPRegressor
        Its kernel, mean and target_transform decide; a NotFittedError where these have to be learned.
    X : array of shape (M, d), or functionals
    joint : bool
        All the points together, with a covariance.
    latent : bool
        Of the noise-free values.
    noise_variance : None, number or array of shape (M,)

    Returns
    -------
    PredictiveDistribution
    """
    named = estimator.target_transform is None or isinstance(estimator.target_transform, str)
    if hasattr(estimator.mean, "fit") or not named or as_mean(estimator.mean).coefficients is not None:
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet, and its mean or target_transform has to be "
            "learned from data. Call fit first."
        )
    asked = find_functionals(X)
    points = check_array(X, dtype=np.float64, order="C") if asked is None else asked.points
    given = single_kernel(estimator.kernel)
    kernel = default_kernel(points.shape[1]) if given is None else clone(given)
    if asked is not None:
        if not isinstance(as_target_transform(estimator.target_transform, np.ones(1)), IdentityTarget):
            raise ValueError("functionals of a transformed target need a fitted model. Call fit first.")
        kernel, (points,) = lift(kernel, X=asked)
    Z = points
    transform = as_target_transform(estimator.target_transform, np.ones(1))
    noise = new_noise(kernel, Z, latent, check_noise_variance(noise_variance, len(Z)))
    mean = matching_mean(kernel, as_mean(estimator.mean)).values(Z)
    mean = mean[:, 0] if mean.shape[1] == 1 else mean
    if joint:
        belief = Belief(mean, prior(kernel, Z).root)
        return PredictiveDistribution.of_belief(belief, noise, transform=transform)
    variance = diagonal(kernel, Z, noise=False) + noise
    return PredictiveDistribution.of_marginals(mean, variance, transform=transform)
