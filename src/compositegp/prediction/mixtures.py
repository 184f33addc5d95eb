"""Mean and covariance of a mixture of beliefs: Σ w_i m_i and Σ w_i (C_i + (m_i − mean) (m_i − mean)ᵀ)."""

from collections.abc import Iterable, Sequence

import numpy as np

from compositegp.backend import Floats, psd_root
from compositegp.posteriors import Belief


def mean_and_deviations(weights: Floats, means: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean of means, as they are shaped, and the deviations from it: shape (members, M, t)."""
    stacked = np.array(means)
    mean = np.tensordot(weights, stacked, axes=1)
    return mean, (stacked - mean).reshape(*stacked.shape[:2], -1)


def mixed_variance(weights: Floats, variances: Sequence[Floats], deviations: Floats) -> Floats:
    """Variances of the mixture, shape (M,): several outputs share one, with their mean squared deviation."""
    return np.asarray(weights @ np.array(variances) + weights @ (deviations**2).mean(axis=2))


def mixed_belief(weights: Floats, beliefs: Iterable[Belief]) -> Belief:
    """The normal belief with the mean and the covariance of the mixture; beliefs are taken one after the other."""
    covariance, means = 0.0, []
    for weight, belief in zip(weights, beliefs, strict=True):
        covariance = covariance + weight * belief.covariance
        means.append(belief.mean)
    mean, deviations = mean_and_deviations(weights, means)
    spread = np.sqrt(weights / deviations.shape[2])[:, None, None] * deviations
    root = np.moveaxis(spread, 1, 0).reshape(len(mean), -1)
    return Belief(mean, np.concatenate([psd_root(np.asarray(covariance)), root], axis=1))
