"""The stop rules: learning reads segments until errors of θ hardly cost a prediction, or until θ is known well."""

import numpy as np

from compositegp.backend import Booleans, Floats, pseudo_inverse_root
from compositegp.composite import Score

_ORDER_OF_MAGNITUDE = 1.0  # a parameter whose log has a larger standard error than this is not known
_PATIENCE = 2**16  # after this many points, learning no longer waits for a parameter that is still unknown
_FLOOR = 8192  # points that are read in any case: fewer may not show where data are not as the kernel says
_CLUSTER = 4  # neighboring segments whose gradients are added up: those of neighbors depend on each other
_FEW_CLUSTERS = 32  # with fewer clusters than this each segment counts for itself
_SUMS_A_PARAMETER = 4  # with fewer sums for each parameter than this they say nothing about J
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


def scatter(score: Score) -> tuple[Floats, int]:
    """J, the covariance of the gradient of a composite likelihood, and the number of sums that it is found from.

    J = Σ g gᵀ over sums g of the gradients of neighboring blocks, less their mean. With blocks that are as the model
    says, and conditioned on each other, it is the Fisher information H. Data that are not as the kernel says, and
    blocks that depend on each other, have a larger J. It is drawn toward H where there are few sums.

    Parameters
    ----------
    score : Score

    Returns
    -------
    array of shape (p, p)
    int
    """
    gradients, p = score.gradients[np.argsort(score.numbers, kind="stable")], len(score.gradient)
    if len(gradients) >= _CLUSTER * _FEW_CLUSTERS:
        starts = np.arange(0, len(gradients), _CLUSTER)
        gradients = np.add.reduceat(gradients, starts, axis=0)
    count = len(gradients)
    share = max(0.0, 1 - _SUMS_A_PARAMETER * p / max(count, 1))
    centered = gradients - gradients.mean(axis=0)
    return share * (count / max(count - 1, 1)) * centered.T @ centered + (1 - share) * score.fisher, count


def predictive_loss(score: Score, theta: Floats, bounds: Floats) -> tuple[float, float]:
    """Expected loss of log score from the error of θ, tr(H⁻¹ J) / (2 n), in nats a point, and its standard error."""
    inside = np.flatnonzero(~on_bound(theta, bounds))
    J, count = scatter(score)
    part = np.ix_(inside, inside)
    root = pseudo_inverse_root(score.fisher[part])
    loss = float(np.trace(root.T @ J[part] @ root)) / (2 * max(score.n_points, 1.0))
    return loss, loss * float(np.sqrt(2 / max(len(inside) * count, 1)))


def predictive_growth(score: Score, theta: Floats, bounds: Floats, nats: float) -> float:
    """How many times as many points are needed for a loss under `nats`; at most 1 if those read are enough."""
    loss, error = predictive_loss(score, theta, bounds)
    return max((loss + 2 * error) / nats, _FLOOR / max(score.n_points, 1.0))


def sandwich_information(score: Score) -> Floats:
    """Godambe's information H J⁻¹ H: that of blocks which are not conditioned on each other, shape (p, p)."""
    J, _ = scatter(score)
    root = pseudo_inverse_root(J)
    half = score.fisher @ root
    return np.asarray(half @ half.T)
