"""Error covariances from Fisher information."""

import numpy as np

from compositegp.backend.arrays import Floats

_NOTHING = 1e-10  # eigenvalue of a scaled information matrix under which it holds nothing
_INVOLVED = 1e-3  # share of a parameter in a direction that nothing is known about


def invert_information(information: Floats) -> Floats:
    """Error covariance (p, p) from Fisher information (p, p).

    A parameter that nothing is known about, or that cannot be told from another, has infinite variance.
    """
    values, vectors, units = _scaled(information)
    known = values > _NOTHING
    unknown = (vectors[:, ~known] ** 2).sum(axis=1) > _INVOLVED
    covariance = _assemble(values[known], vectors[:, known], units)
    covariance[unknown] = 0.0
    covariance[:, unknown] = 0.0
    covariance[unknown, unknown] = np.inf
    return covariance


def pseudo_invert_information(information: Floats) -> Floats:
    """Error covariance (q, q) of what can be known: zero along directions that the data do not determine.

    For the coefficients of a mean, whose predictions do not depend on such directions.
    """
    values, vectors, units = _scaled(information)
    known = values > _NOTHING
    return _assemble(values[known], vectors[:, known], units)


def _scaled(information: Floats) -> tuple[Floats, Floats, Floats]:
    """Eigenvalues and eigenvectors of an information matrix scaled to a unit diagonal, and the units."""
    diagonal = np.diagonal(information)
    units = np.divide(1.0, np.sqrt(np.maximum(diagonal, 0.0)), out=np.zeros(len(diagonal)), where=diagonal > 0)
    values, vectors = np.linalg.eigh(information * np.outer(units, units))
    return values, vectors, units


def _assemble(values: Floats, vectors: Floats, units: Floats) -> Floats:
    root = units[:, None] * vectors / np.sqrt(values)
    return np.asarray(root @ root.T)
