"""Mean squared errors of linear predictors under the model, and their excess over the exact GP's."""

import numpy as np

from compositegp.backend import Floats, add_to_diagonal, keep_freed_memory
from compositegp.composite import Observations
from compositegp.kernels import diagonal, gram, noise_variance

_ROW_ELEMENTS = 2**24  # most covariances to hold at once: 128 MiB


def actual_mse(data: Observations, Z: Floats, coefficients: Floats, covariance: Floats | None = None) -> Floats:
    """E[(z − ẑ)²] of the predictor ẑ = μ_z + w (y − μ), for each test point: σ_z² − 2 w Σ_yz + w Σ_yy wᵀ.

    No N × N matrix is factorized.

    Parameters
    ----------
    data : Observations
    Z : array of shape (M, d)
    coefficients : array of shape (M, N)
    covariance : array of shape (N, N), optional
        As in `quadratic_form`.

    Returns
    -------
    array of shape (M,)

    Examples
    --------
    The exact Gaussian process has its posterior variance as its error:

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel, X, Z = RBF() + WhiteKernel(0.5), np.zeros((1, 1)), np.zeros((1, 1))
    >>> data = Observations.checked(kernel, X, np.zeros(1), mean=None, noise_variance=None)
    >>> actual_mse(data, Z, np.array([[1 / 1.5]])).round(3)
    array([0.333])
    """
    return np.asarray(
        diagonal(data.kernel, Z, noise=False)
        - 2 * np.einsum("mn,nm->m", coefficients, gram(data.kernel, data.X, Z))
        + quadratic_form(data, coefficients, covariance)
    )


def excess_mse(data: Observations, coefficients: Floats, exact: Floats) -> Floats:
    """E[(ẑ_GP − ẑ)²] = (w_GP − w) Σ_yy (w_GP − w)ᵀ: how much the error of a predictor exceeds the exact GP's.

    Parameters
    ----------
    data : Observations
    coefficients, exact : arrays of shape (M, N)
        Coefficients of the predictor and of the exact Gaussian process.

    Returns
    -------
    array of shape (M,)
    """
    return quadratic_form(data, exact - coefficients)


def quadratic_form(data: Observations, coefficients: Floats, covariance: Floats | None = None) -> Floats:
    """Diagonal of w Σ_yy wᵀ.

    Parameters
    ----------
    data : Observations
    coefficients : array of shape (M, N)
    covariance : array of shape (N, N), optional
        Σ_yy, where a caller has it (`observed_covariance`). If left out, it is computed in strips of rows, each half
        of it once, and never held as a whole.

    Returns
    -------
    array of shape (M,)
    """
    if covariance is not None:
        return np.asarray(np.einsum("mn,mn->m", coefficients @ covariance, coefficients))
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


def observed_covariance(data: Observations, part: slice = slice(None)) -> Floats:
    """Covariance of the observations, or of a part of them, with their noise.

    Parameters
    ----------
    data : Observations
    part : slice

    Returns
    -------
    array of shape (n, n)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel, X = RBF() + WhiteKernel(0.5), np.array([[0.0], [9.0]])
    >>> data = Observations.checked(kernel, X, np.zeros(2), mean=None, noise_variance=[0.0, 1.0])
    >>> observed_covariance(data).round(3)
    array([[1.5, 0. ],
           [0. , 2.5]])
    """
    K = gram(data.kernel, data.X[part])
    if data.noise_variance is not None or data.weights is not None:
        add_to_diagonal(K, data.take(part).noise - noise_variance(data.kernel, data.X[part]))
    return np.asarray(K)
