"""Error covariances from information matrices, which may hold no information along some directions."""

import numpy as np

from compositegp.backend.arrays import Floats, diagonals

_NOTHING = 1e-10  # eigenvalue of a scaled information matrix under which a direction holds no information
_LEAST = np.finfo(np.float64).tiny / _NOTHING  # a smaller one has no variance in float64: it counts as none
_INVOLVED = 1e-3  # a parameter is unknown if more than this part of it has no information


def invert_information(information: Floats) -> Floats:
    """Error covariance (p, p) from Fisher information (p, p).

    The variance is infinite for a parameter that the data do not determine, or cannot distinguish from another.
    """
    values, vectors, _ = _scaled(information)
    known = values > _NOTHING
    unknown = (vectors[:, ~known] ** 2).sum(axis=1) > _INVOLVED
    root = pseudo_inverse_root(information)
    covariance = root @ root.T
    covariance[unknown] = 0.0
    covariance[:, unknown] = 0.0
    covariance[unknown, unknown] = np.inf
    return np.asarray(covariance)


def pseudo_invert_information(information: Floats) -> Floats:
    """Error covariance (..., q, q), with zero along directions that the data do not determine.

    For the coefficients of a mean: predictions do not depend on such directions.
    """
    root = pseudo_inverse_root(information)
    return np.asarray(root @ np.swapaxes(root, -1, -2))


def pseudo_inverse_root(information: Floats) -> Floats:
    """A root (..., q, q) of the pseudo-inverse of information matrices: root · rootᵀ is the error covariance."""
    values, vectors, units = _scaled(information)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > _NOTHING)
    return np.asarray(units[..., :, None] * vectors * np.sqrt(inverse)[..., None, :])


def _scaled(information: Floats) -> tuple[Floats, Floats, Floats]:
    """Eigenvalues and eigenvectors of information matrices scaled to a unit diagonal, and the units."""
    diagonal = np.maximum(diagonals(information), 0.0)
    units = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > _LEAST)
    values, vectors = np.linalg.eigh(units[..., :, None] * information * units[..., None, :])
    return values, vectors, units
