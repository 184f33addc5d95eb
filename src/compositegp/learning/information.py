"""Error covariances from Fisher information."""

import numpy as np

from compositegp.arrays import Floats


def invert_information(information: Floats) -> Floats:
    """Error covariance (p, p) from Fisher information (p, p); infinite variance where there is none."""
    diagonal = np.diagonal(information)
    known = diagonal > 0
    covariance = np.diag(np.where(known, 0.0, np.inf))
    part = np.ix_(known, known)
    units = 1 / np.sqrt(diagonal[known])
    scaled = information[part] * np.outer(units, units)
    covariance[part] = np.linalg.pinv(scaled, hermitian=True) * np.outer(units, units)
    return covariance
