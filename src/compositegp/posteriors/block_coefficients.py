"""Means given a block of observations, with the coefficients of the mean that the block or the whole determines."""

import numpy as np

from compositegp.backend import Array, Floats, fetch, like, solve_upper
from compositegp.composite import Observations
from compositegp.kernels import gram
from compositegp.means import Estimated, NormalEquations, check_coefficients, covariance_root, gaussian_prior


def coefficients_in_blocks(data: Observations, columns: Array) -> tuple[Floats, Floats]:
    """The mean's coefficients in each block, shape (blocks, q, t), and a root of their covariance, (blocks, q, q).

    From C⁻¹ [F y], shape (blocks, n, q + t).
    """
    q = data.basis.shape[1]
    if data.mean.coefficients is None:
        return np.zeros((1, 0, data.n_outputs)), np.zeros((1, 0, 0))
    products = fetch(columns[..., :q].mT @ columns)
    return coefficients_from(data, NormalEquations(products[..., :q], products[..., q:]))


def coefficients_from(data: Observations, normal: NormalEquations) -> tuple[Floats, Floats]:
    """The same from the normal equations of each block.

    Those of the whole where they were estimated elsewhere, else from the block's own observations and the prior.
    """
    known, q = data.mean.coefficients, data.basis.shape[1]
    if isinstance(known, Estimated):
        root = covariance_root(known.covariance)
        return check_coefficients(known.coefficients, q)[None], root[None]
    own = normal.with_prior(gaussian_prior(known, q))
    root = own.covariance_root
    return np.asarray(root @ (np.swapaxes(root, -1, -2) @ own.moment)), root


def conditional_mean(data: Observations, columns: Array, V: Array, Z: Floats) -> tuple[Floats, Floats, Floats]:
    """Means (blocks, g, t) given each block, a root (blocks, g, q) of what the error of β adds, and β (blocks, q, t).

    From C⁻¹ [F y], shape (blocks, n, q + t), and C⁻¹ Σ_kz, shape (blocks, n, g).
    """
    q = data.basis.shape[1]
    explained = fetch(V.mT @ columns)  # Σ_zk Σ_kk⁻¹ [F y]
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(*Z.shape[:2], -1) + explained[..., q:]
    if data.mean.coefficients is None:
        return np.asarray(mean), np.zeros((*Z.shape[:2], 0)), np.zeros((1, 0, data.n_outputs))
    sensitivity = data.mean.columns(flat).reshape(*Z.shape[:2], -1) - explained[..., :q]
    coefficients, root = coefficients_in_blocks(data, columns)
    return np.asarray(mean + sensitivity @ coefficients), np.asarray(sensitivity @ root), coefficients


def standardized_errors(data: Observations, columns: Array, coefficients: Floats) -> Array:
    """U = C⁻¹(y − μ), shape (blocks, n, t), from C⁻¹ [F y] and the coefficients of the mean."""
    q = data.basis.shape[1]
    return columns[..., q:] - columns[..., :q] @ like(coefficients, columns)


def kriging_weights(data: Observations, lower: Array, columns: Array) -> tuple[Array, Floats]:
    """Σ_kk⁻¹(y − μ) of each block, shape (blocks, n, t), and the coefficients of the mean, from C⁻¹ [F y]."""
    coefficients, _ = coefficients_in_blocks(data, columns)
    return solve_upper(lower, standardized_errors(data, columns, coefficients)), coefficients


def weighted_means(data: Observations, points: Array, weights: Array, coefficients: Floats, Z: Floats) -> Floats:
    """Means (blocks, g, t) at test points (blocks, g, d): μ + Σ_zk Σ_kk⁻¹(y − μ)."""
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(*Z.shape[:2], -1)
    mean = mean + fetch(gram(data.kernel, like(Z, points), points) @ weights)
    if data.mean.coefficients is not None:
        mean = mean + data.mean.columns(flat).reshape(*Z.shape[:2], -1) @ coefficients
    return np.asarray(mean)
