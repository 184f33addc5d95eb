"""Least squares for the coefficients of a mean: ordinary, generalized, and with a Gaussian prior."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Floats, psd_root, pseudo_inverse_root, pseudo_invert_information
from compositegp.means.functions import Basis, Estimated


class Prior(NamedTuple):
    """A Gaussian prior of q coefficients.

    Attributes
    ----------
    precision : array of shape (q, q)
    mean : array of shape (q, t), or (q, 1) where the outputs share it
    """

    precision: Floats
    mean: Floats

    def penalty(self, coefficients: Floats) -> float:
        """½ (β − m)ᵀ P (β − m), summed over the outputs: the prior reduces the log likelihood by this."""
        off = coefficients - self.mean
        return 0.5 * float((off * (self.precision @ off)).sum())


class NormalEquations(NamedTuple):
    """The normal equations of generalized least squares for the coefficients β of a mean; they add over terms.

    Attributes
    ----------
    information : array of shape (..., q, q)
        Σ w FᵀΣ⁻¹F: the information about β, the same for each output.
    moment : array of shape (..., q, t)
        Σ w FᵀΣ⁻¹y, for t outputs.
    """

    information: Floats
    moment: Floats

    def plus(self, other: "NormalEquations") -> "NormalEquations":
        """The normal equations of both."""
        return NormalEquations(self.information + other.information, self.moment + other.moment)

    def with_prior(self, prior: Prior | None) -> "NormalEquations":
        """The normal equations with a Gaussian prior of the coefficients, the same for each output."""
        if prior is None:
            return self
        return NormalEquations(self.information + prior.precision, self.moment + prior.precision @ prior.mean)

    @property
    def coefficients(self) -> Floats:
        """β̂ = (FᵀΣ⁻¹F)⁻¹ FᵀΣ⁻¹y, shape (..., q, t); zero along directions that the data do not determine."""
        return np.asarray(self.covariance @ self.moment)

    @property
    def covariance(self) -> Floats:
        """Error covariance (FᵀΣ⁻¹F)⁻¹ of the coefficients of an output, shape (..., q, q)."""
        return pseudo_invert_information(self.information)

    @property
    def covariance_root(self) -> Floats:
        """A root of the error covariance, shape (..., q, q)."""
        return pseudo_inverse_root(self.information)


def ordinary_least_squares(functions: Floats, y: Floats) -> Floats:
    """Coefficients (q, t) of basis functions (n, q) by ordinary least squares to targets (n, t)."""
    if not functions.shape[1]:
        return np.zeros((0, y.shape[1]))
    sizes = np.sqrt((functions**2).mean(axis=0))
    sizes[sizes == 0] = 1.0
    return np.asarray(np.linalg.lstsq(functions / sizes, y, rcond=None)[0] / sizes[:, None])


def gaussian_prior(coefficients: Basis | Estimated | None, q: int) -> Prior | None:
    """Gaussian prior of a mean's q coefficients; None for a flat prior."""
    if coefficients is None:
        return None
    given: ArrayLike | None
    covariance: ArrayLike | None
    if isinstance(coefficients, Estimated):
        given, covariance = coefficients.coefficients, coefficients.covariance
    else:
        given, covariance = coefficients.prior_mean, coefficients.prior_covariance
    mean = np.zeros((q, 1)) if given is None else check_coefficients(given, q)
    if covariance is None:
        return None
    checked = check_covariance(covariance, q)
    # Scale each coefficient by its standard deviation, so that a large intercept and a small slope both keep their
    # digits.
    variances = np.diagonal(checked)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    values, vectors = np.linalg.eigh(checked / np.outer(units, units))
    least = 1e-12 * max(values[-1], 1.0)
    if isinstance(coefficients, Basis) and values[0] < least:
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    half = vectors / np.sqrt(np.maximum(values, least)) / units[:, None]
    return Prior(np.asarray(half @ half.T), mean)


def check_coefficients(coefficients: ArrayLike, q: int) -> Floats:
    """Coefficients of a mean, of shape (q,) or (q, t), as an array of shape (q, t)."""
    values = np.asarray(coefficients, dtype=np.float64)
    columns = values.reshape(len(values), -1) if values.ndim else values.reshape(0, 1)
    if values.ndim > 2 or len(columns) != q or not np.isfinite(columns).all():
        raise ValueError(
            f"the mean's coefficients must be finite numbers of shape ({q},), or ({q}, t) for t outputs; found shape "
            f"{values.shape}."
        )
    return columns


def covariance_root(covariance: ArrayLike) -> Floats:
    """A root (q, r) of the error covariance (q, q) of coefficients, each in units of its own standard error."""
    matrix = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(matrix)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    return np.asarray(units[:, None] * psd_root(matrix / np.outer(units, units)))


def check_covariance(covariance: ArrayLike, q: int) -> Floats:
    """Covariance of the coefficients of a mean: finite, symmetric and positive semi-definite, shape (q, q)."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.shape != (q, q) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"the covariance of the mean's coefficients must be a finite, symmetric matrix of shape ({q}, {q}); found "
            f"shape {matrix.shape}."
        )
    sizes = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(np.float64).tiny))
    if q and np.linalg.eigvalsh(matrix / np.outer(sizes, sizes))[0] < -1e-8:
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    return matrix
