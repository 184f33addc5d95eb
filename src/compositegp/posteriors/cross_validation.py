"""Every observation of a block predicted from all the others, from the one factor of the block."""

import numpy as np

from compositegp.backend import blas_threads_for, fetch, like, solve_lower
from compositegp.composite import FactoredStack, Observations
from compositegp.means import NormalEquations
from compositegp.posteriors.belief import Marginals, check_finite
from compositegp.posteriors.block_coefficients import coefficients_from


def leave_one_out(data: Observations, factored: FactoredStack) -> Marginals:
    """Beliefs about the latent value of each observation, given all the observations but that one.

    With A = Σ⁻¹ the value of an observation, given the others and β, has the precision A_ii and is
    [A (y − F β)]_i / A_ii below y_i. What is known of β without the observation is what is known with it, less
    A_ii s sᵀ, where s is the i-th row of A F over A_ii: what the observation itself says.

    Parameters
    ----------
    data : Observations
        Their mean is known, or has coefficients: estimated elsewhere, or to be learned from the others.
    factored : FactoredStack
        All of them as one block.

    Returns
    -------
    Marginals
    """
    q, n = data.basis.shape[1], len(data.X)
    with blas_threads_for(n):
        inverse = fetch(solve_lower(factored.lower, like(np.eye(n)[None], factored.lower)))[0]
        whitened = fetch(factored.innovations)[0]
        precision = np.einsum("ij,ij->j", inverse, inverse)
        shares = (inverse.T @ whitened) / precision[:, None]
    loadings, below = shares[:, :q], shares[:, q:]
    variance = 1 / precision - data.noise
    if q:
        products = (
            whitened[:, :q].T @ whitened - precision[:, None, None] * loadings[:, :, None] * shares[:, None, :]
        )
        beta, root = coefficients_from(data, NormalEquations(products[..., :q], products[..., q:]))
        below = below - (loadings[:, None, :] @ beta)[:, 0]
        variance = np.maximum(variance, 0.0) + ((loadings[:, None, :] @ root)[:, 0] ** 2).sum(axis=1)
    found = Marginals((data.targets.reshape(n, -1) - below).reshape(n, *data.outputs), np.maximum(variance, 0.0))
    check_finite(data.kernel, *found)
    return found
