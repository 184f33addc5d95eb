"""Which terms can matter to a latent: a bound on what a far-away block says about it."""

import numpy as np

from compositegp.arrays import Floats
from compositegp.composite.factors import FactoredStack, Observations
from compositegp.composite.latent import Latent
from compositegp.kernels import Boxes, covariance_bounds, diagonal
from compositegp.linalg import psd_root
from compositegp.means import Estimated


def least_noise(data: Observations) -> float:
    """The smallest noise variance of an observation: no covariance of observations has a smaller eigenvalue."""
    white = diagonal(data.kernel, data.X) - diagonal(data.kernel, data.X, noise=False)
    if data.noise_variance is not None:
        white = white + data.noise_variance
    return max(float(white.min()), 0.0)


def influence_bounds(data: Observations, latent: Latent, factored: FactoredStack, noise: float) -> Floats:
    """Upper bounds on how far each block can move the belief about a latent, in its prior standard deviations.

    A block's loadings W = C⁻¹ Σ_kz L⁻ᵀ have ‖W‖ ≤ ‖Σ_kz‖ ‖L⁻¹‖ / σ, where σ² is the least noise variance and Σ_kz is at
    most the largest covariance between their bounding boxes. With ‖W‖ = ε < 1 its evidence is at most
    ‖Λ‖ ≤ ε² / (1 − ε²) and ‖η‖ ≤ ε ‖C⁻¹(y − μ)‖ / (1 − ε²). The precision is at least one, so that to first order in ε
    no more than this can change in the mean and the variance of any z, over its prior standard deviation and variance.

    Parameters
    ----------
    data : Observations
    latent : Latent
    factored : FactoredStack
    noise : float
        `least_noise` of the data.

    Returns
    -------
    array of shape (blocks,)
        Infinite where nothing can be said.
    """
    if noise <= 0:
        return np.full(len(factored.stack), np.inf)
    boxes, own = Boxes.around(factored.points), Boxes.around(latent.points[None])
    n, count = factored.innovations.shape[1], len(latent.points)
    largest = covariance_bounds(data.kernel, boxes, own)
    loading = largest * np.sqrt(n * count / noise) * latent.inverse_norm
    sizes = np.linalg.norm(_innovations(data, factored.innovations), axis=(1, 2))
    weights = np.abs(factored.stack.weights).max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = weights * loading * (loading + sizes) / (1 - loading**2)
    return np.where(loading < 0.5, moved, np.inf)


def _innovations(data: Observations, innovations: Floats) -> Floats:
    """Whitened data less their mean and, beside them, what the error of its coefficients is worth."""
    estimate = data.mean.coefficients
    if not isinstance(estimate, Estimated):
        return innovations
    functions, y = innovations[..., :-1], innovations[..., -1:]
    coefficients = np.asarray(estimate.coefficients, dtype=np.float64)
    error = functions @ psd_root(np.asarray(estimate.covariance, dtype=np.float64))
    return np.concatenate([y - (functions @ coefficients)[..., None], error], axis=-1)
