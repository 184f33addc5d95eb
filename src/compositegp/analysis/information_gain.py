"""Information about the latent values, in nats: what a belief claims to have learned, and what each term has."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, solve_lower
from compositegp.composite import FactoredStack, Latent
from compositegp.kernels import gram


def gain_by_precision(lower: Floats) -> float:
    """½ ln det P, where P is the precision of a whitened latent (its prior is I) and `lower` its Cholesky factor."""
    return float(np.log(np.diagonal(lower)).sum())


def gain_by_covariance(latent: Latent, root: Floats) -> float:
    """½ (ln det Σ_zz − ln det Σ̃_z) of a belief with covariance Σ̃_z = root · rootᵀ."""
    whitened = latent.whiten(np.ascontiguousarray(root.T))
    return -0.5 * float(np.linalg.slogdet(whitened.T @ whitened)[1])


def information_of_blocks(row_weights: Floats, lower: Floats) -> Floats:
    """Σ w I(z; y_S) over the terms of each block, shape (blocks,).

    Parameters
    ----------
    row_weights : array of shape (blocks, n)
        Weight of the term that each row of a block belongs to.
    lower : array of shape (blocks, n, n)
        Cholesky factors T of I − W Wᵀ, where W are the loadings of the whitened data on the whitened latent.
    """
    # I(z; y_stage | y_earlier) = −Σ_rows ln T_ii, by the chain rule
    return -np.asarray((row_weights * np.log(np.einsum("bii->bi", lower))).sum(axis=1))


def pointwise_information(kernel: Kernel, part: FactoredStack, Z: Floats, prior_variance: Floats) -> Floats:
    """Σ w I(z_i; y_S) for each latent value alone, shape (M,)."""
    V = solve_lower(part.lower, gram(kernel, part.points, Z))
    explained = np.cumsum(V**2, axis=1) / np.where(prior_variance > 0, prior_variance, 1.0)
    total: Any = np.zeros(len(Z))
    for stop, weight in zip(part.stack.stops, part.stack.term_weights.T, strict=True):
        # I(z_i; y_S) = −½ ln (σ²_i|S / σ²_i)
        remaining = np.maximum(1 - explained[:, stop - 1], np.finfo(np.float64).eps)
        total = total - 0.5 * weight @ np.log(remaining)
    return np.asarray(total)
