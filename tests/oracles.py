"""Independent answers by dense algebra, written from the textbook formulas and sharing no code with the package."""

import numpy as np


def exact_gp(kernel, X, y, Z, noise_variance=0.0, mean=lambda X: np.zeros(len(X))):
    """Mean and covariance of the noise-free latent at Z."""
    K = kernel(X) + np.diag(np.broadcast_to(noise_variance, len(X)))
    K_zx = kernel(Z, X)
    weights = np.linalg.solve(K, K_zx.T).T
    return mean(Z) + weights @ (y - mean(X)), kernel(Z, Z) - weights @ K_zx.T


def composite_gp(kernel, X, y, Z, terms, noise_variance=0.0):
    """q(z) ∝ p(z) Π p(y_S | z)^w from the Gaussian densities p(y_S | z) themselves."""
    noise = np.broadcast_to(noise_variance, len(X))
    K_zz = kernel(Z, Z)
    precision = np.linalg.inv(K_zz)
    shift = np.zeros((len(Z), *np.shape(y)[1:]))
    for indices, weight in terms:
        H = np.linalg.solve(K_zz, kernel(Z, X[indices])).T
        R = kernel(X[indices]) + np.diag(noise[indices]) - H @ K_zz @ H.T
        precision = precision + weight * H.T @ np.linalg.solve(R, H)
        shift = shift + weight * H.T @ np.linalg.solve(R, y[indices])
    covariance = np.linalg.inv(precision)
    return covariance @ shift, covariance


def sparse_gp(kernel, X, y, Z, U, blocks, noise_variance=0.0):
    """PITC (FITC: blocks of one), by the formulas of Quiñonero-Candela and Rasmussen (2005)."""
    noise = np.broadcast_to(noise_variance, len(X))
    K_uu = kernel(U, U)

    def Q(A, B):
        return kernel(A, U) @ np.linalg.solve(K_uu, kernel(U, B))

    K = kernel(X) + np.diag(noise)
    covariance = Q(X, X)
    for block in blocks:
        grid = np.ix_(block, block)
        covariance[grid] = K[grid]
    weights = np.linalg.solve(covariance, Q(X, Z)).T
    return weights @ y, kernel(Z, Z) - weights @ Q(X, Z)
