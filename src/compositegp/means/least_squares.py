"""Least squares for the coefficients of a mean: ordinary, generalized, and with a Gaussian prior."""

from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.means.functions import Basis, Estimated
from compositegp.validation import check_targets


def gaussian_prior(coefficients: "Basis | Estimated | None", q: int) -> tuple[Floats, Floats] | None:
    """Precision (q, q) and mean (q,) of a Gaussian prior of a mean's coefficients; None for a flat prior."""
    if coefficients is None:
        return None
    if isinstance(coefficients, Estimated):
        mean, covariance = coefficients.coefficients, coefficients.covariance
    else:
        mean, covariance = coefficients.prior_mean, coefficients.prior_covariance
    mean = np.zeros(q) if mean is None else check_targets(mean, q, "coefficients")
    if covariance is None:
        return None
    checked = check_covariance(covariance, q)
    # In units of their own, so that an intercept far from the data and a slope keep their digits.
    variances = np.diagonal(checked)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    values, vectors = np.linalg.eigh(checked / np.outer(units, units))
    least = 1e-12 * max(values[-1], 1.0)
    if isinstance(coefficients, Basis) and values[0] < least:
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    half = vectors / np.sqrt(np.maximum(values, least)) / units[:, None]
    return np.asarray(half @ half.T), mean


def check_covariance(covariance: Any, q: int) -> Floats:
    """Covariance of the coefficients of a mean: finite, symmetric and positive semi-definite, shape (q, q)."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.shape != (q, q) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"the covariance of the mean's coefficients must be a finite, symmetric matrix of shape ({q}, {q}); found "
            f"shape {matrix.shape}."
        )
    if q and np.linalg.eigvalsh(matrix)[0] < -1e-8 * np.abs(matrix).max():
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    return matrix
