"""Functionals by dense algebra: each is a weighted list of plain values of one part, derivatives as differences.

Shares no code with the package: covariances are those of scikit-learn's kernels at points.
"""

import numpy as np

STEP = 1e-3
STENCIL = np.array([(-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12)])  # of a derivative, fourth order


class Sum:
    """Σ weight · f_part(x): `terms` are (part, points (a, d), weights (a,)); a part None is all of f and the mean."""

    def __init__(self, *terms):
        self.terms = terms


def at(x, part=None):
    return Sum((part, np.atleast_2d(x), np.ones(1)))


def slope(x, column, part=None):
    points = np.repeat(np.atleast_2d(x), len(STENCIL), axis=0)
    points[:, column] += STEP * STENCIL[:, 0]
    return Sum((part, points, STENCIL[:, 1] / STEP))


def mean_over(points, weights=None, part=None):
    weights = np.ones(len(points)) if weights is None else np.asarray(weights)
    return Sum((part, points, weights / weights.sum()))


def combined(sums, weights):
    return Sum(
        *((part, x, weight * w) for one, weight in zip(sums, weights, strict=True) for part, x, w in one.terms)
    )


def covariance(parts, left, right):
    """Covariances of two lists of sums; `parts` are independent processes by name, which f adds up."""
    K = np.zeros((len(left), len(right)))
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            for p, x, v in one.terms:
                for q, y, w in other.terms:
                    shared = [kernel for name, kernel in parts.items() if p in (name, None) and q in (name, None)]
                    K[i, j] += sum(v @ kernel(x, y) @ w for kernel in shared)
    return K


def mean_of(mean, sums):
    return np.array([sum(w @ mean(x) for part, x, w in one.terms if part is None) for one in sums])


def exact(parts, X, y, noise, Z, mean=lambda X: np.zeros(len(X))):
    """Mean and covariance of the sums Z given observed sums X."""
    K = covariance(parts, X, X) + np.diag(np.broadcast_to(noise, len(X)))
    K_zx = covariance(parts, Z, X)
    weights = np.linalg.solve(K, K_zx.T).T
    return mean_of(mean, Z) + weights @ (y - mean_of(mean, X)), covariance(parts, Z, Z) - weights @ K_zx.T


def composite(parts, X, y, noise, Z, terms):
    """q(z) ∝ p(z) Π p(y_S | z)^w, from the Gaussian densities themselves."""
    noise = np.broadcast_to(noise, len(X))
    K_zz = covariance(parts, Z, Z)
    precision, shift = np.linalg.inv(K_zz), np.zeros(len(Z))
    for indices, weight in terms:
        own = [X[i] for i in indices]
        H = np.linalg.solve(K_zz, covariance(parts, Z, own)).T
        R = covariance(parts, own, own) + np.diag(noise[indices]) - H @ K_zz @ H.T
        precision = precision + weight * H.T @ np.linalg.solve(R, H)
        shift = shift + weight * H.T @ np.linalg.solve(R, y[indices])
    found = np.linalg.inv(precision)
    return found @ shift, found
