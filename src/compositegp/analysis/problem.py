"""A problem without its data: a model, where it is observed and where it is to be predicted."""

from typing import Any

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations
from compositegp.kernels import in_length_scales
from compositegp.validation import check_points


def without_data(kernel: Kernel, X: Any, Z: Any, noise_variance: Any) -> tuple[Observations, Floats]:
    """Checked points and test points; the targets are zero, since nothing depends on them."""
    points = check_points(X, "X")
    data = Observations.checked(kernel, points, np.zeros(len(points)), mean=None, noise_variance=noise_variance)
    return data, check_points(Z, "Z", points.shape[1])


def nearest_to(data: Observations, Z: Floats, count: int) -> Indices:
    """The observations nearest to any of the test points, in length scales: `count` of them, or all, ascending."""
    if len(data.X) <= count:
        return np.arange(len(data.X))
    distances, _ = KDTree(in_length_scales(data.kernel, Z)).query(in_length_scales(data.kernel, data.X))
    return np.sort(np.argpartition(distances, count)[:count])
