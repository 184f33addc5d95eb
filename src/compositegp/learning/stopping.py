"""The stop rule: learning reads segments until the hyper-parameters are known well enough."""

import numpy as np

from compositegp.backend import Booleans, Floats

_ORDER_OF_MAGNITUDE = 1.0  # a parameter whose log has a larger standard error than this is not known
_PATIENCE = 2**16  # after this many points, learning no longer waits for a parameter that is still unknown
_ON_BOUND = 1e-6  # an estimate this close to a bound, in log θ, is on the bound


def on_bound(theta: Floats, bounds: Floats) -> Booleans:
    """Which hyper-parameters, on the log scale, are on one of their bounds: a boolean array of shape (p,)."""
    return (theta - bounds[:, 0] < _ON_BOUND) | (bounds[:, 1] - theta < _ON_BOUND)


def growth_needed(
    standard_errors: Floats, theta: Floats, bounds: Floats, n_points: float, tolerance: float | None
) -> float:
    """How many times as many points are needed to know the parameters to the tolerance; at most 1 if they are known.

    Learning stops waiting for a parameter whose order of magnitude is still not known after `_PATIENCE` points, such as
    the length scale of a column that does not matter. It does not wait for a parameter on its bound either. Without a
    tolerance all the data are read.
    """
    if tolerance is None:
        return np.inf
    inside = ~on_bound(theta, bounds) & np.isfinite(standard_errors)
    unknown = standard_errors > _ORDER_OF_MAGNITUDE
    if (inside & unknown).any() and n_points < _PATIENCE:
        return _PATIENCE / max(n_points, 1.0)
    # A standard error is proportional to one over the root of the number of points.
    return float((standard_errors[inside & ~unknown] / tolerance).max(initial=0.0)) ** 2
