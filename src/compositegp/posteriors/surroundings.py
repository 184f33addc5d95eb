"""What the observations around a point say about the errors of predictions there."""

from typing import NamedTuple

import numpy as np

from compositegp.backend import Floats

WINDOWS = (8, 32, 128)
"""Numbers of nearest observations whose errors give the local scale."""
COMPARED = 32
"""Nearest observations whose variances are compared with that of a prediction."""
_FLOOR = 1e-3  # ε: least sum of standardized errors in a window, so that its logarithm exists


class Neighborhood(NamedTuple):
    """Errors and variances of the observations around points, as an exact GP predicts them from farther ones.

    Order the observations around a point from far to near, and let Σ = C Cᵀ be their covariance, noise included. Then
    u = C⁻¹(y − μ) are the standardized errors, and C_ii² the variances, of predicting each from those before it.

    Attributes
    ----------
    scales : array of shape (..., t, 3)
        ℓ_w = log((ε + √(π/2) Σ |u_i|) / (ε + w)) over the w nearest, w = 8, 32, 128, for each of t outputs: the size of
        the errors nearby; zero where they are as the model says.
    log_variance : array of shape (...)
        Mean of log C_ii² over the 32 nearest.
    """

    scales: Floats
    log_variance: Floats


def neighborhood(u: Floats, pivots: Floats) -> Neighborhood:
    """Statistics of neighborhoods from whitened observations, nearest first.

    Parameters
    ----------
    u : array of shape (..., n, t)
        C⁻¹(y − μ) of the nearest observations, the nearest first; at least as many as the largest window, if there are.
    pivots : array of shape (..., n)
        Diagonal of C, in the same order.
    """
    n = u.shape[-2]
    counts = np.minimum(WINDOWS, n)
    sums = np.cumsum(np.abs(u[..., : max(WINDOWS), :]), axis=-2) * np.sqrt(np.pi / 2)
    scales = np.log((_FLOOR + np.moveaxis(sums[..., counts - 1, :], -2, -1)) / (_FLOOR + counts))
    return Neighborhood(scales, 2 * np.log(pivots[..., :COMPARED]).mean(axis=-1))


class Surrounded(NamedTuple):
    """Beliefs about latent values, with what the observations around them say about errors there.

    Attributes
    ----------
    mean : array of shape (M,), or (M, t) for t outputs
    variance : array of shape (M,)
    surroundings : Neighborhood
    """

    mean: Floats
    variance: Floats
    surroundings: Neighborhood


def join_surrounded(parts: list[Surrounded], outputs: tuple[int, ...]) -> Surrounded:
    """Those of several parts, one after the other."""
    around = zip(*(part.surroundings for part in parts), strict=True)
    return Surrounded(
        np.concatenate([part.mean for part in parts]).reshape(-1, *outputs),
        np.concatenate([part.variance for part in parts]),
        Neighborhood(*(np.concatenate(piece) for piece in around)),
    )
