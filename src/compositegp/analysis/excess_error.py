"""Mean squared errors under the model: what a linear predictor really does, and what the exact GP would."""

import numpy as np

from compositegp.backend import Floats, add_to_diagonal, keep_freed_memory
from compositegp.composite import Observations
from compositegp.kernels import diagonal, gram

_ROW_ELEMENTS = 2**24  # covariances held at once


def actual_mse(data: Observations, Z: Floats, coefficients: Floats) -> Floats:
    """E[(z − ẑ)²] of the predictor ẑ = μ_z + w (y − μ), for each test point: σ_z² − 2 w Σ_yz + w Σ_yy wᵀ.

    No N × N matrix is factorised or held: Σ_yy passes in strips of rows, each half of it once.

    Parameters
    ----------
    data : Observations
    Z : array of shape (M, d)
    coefficients : array of shape (M, N)

    Returns
    -------
    array of shape (M,)
    """
    return np.asarray(
        diagonal(data.kernel, Z, noise=False)
        - 2 * np.einsum("mn,nm->m", coefficients, gram(data.kernel, data.X, Z))
        + quadratic_form(data, coefficients)
    )


def quadratic_form(data: Observations, coefficients: Floats) -> Floats:
    """Diagonal of w Σ_yy wᵀ for coefficients of shape (M, N), in strips: shape (M,)."""
    keep_freed_memory()
    n = len(data.X)
    total = np.zeros(len(coefficients))
    step = max(1, _ROW_ELEMENTS // n)
    for start in range(0, n, step):
        here = slice(start, min(start + step, n))
        own = coefficients[:, here]
        inner = observed_covariance(data, here)
        total += np.einsum("mi,mi->m", own @ inner, own)
        if here.stop < n:
            rest = slice(here.stop, n)
            outer = gram(data.kernel, data.X[here], data.X[rest])
            total += 2 * np.einsum("mi,mi->m", coefficients[:, rest] @ outer.T, own)
    return total


def observed_covariance(data: Observations, part: slice) -> Floats:
    """Covariance of some of the observations, noise included."""
    K = gram(data.kernel, data.X[part])
    if data.noise_variance is not None:
        add_to_diagonal(K, data.noise_variance[part])
    return np.asarray(K)
