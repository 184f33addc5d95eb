"""A Gaussian belief about the latent values at some points, before or after data."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.arrays import Floats
from compositegp.composite import Evidence, Latent
from compositegp.linalg import SingularMatrixError, cholesky, solve_lower, solve_lower_vectors, solve_right
from compositegp.means import as_mean
from compositegp.validation import check_count, check_kernel, check_points


class Whitened(NamedTuple):
    """A belief in the whitened coordinates ξ of its prior: what an update needs to carry.

    Attributes
    ----------
    latent : Latent
    location : array of shape (r,)
        Mean of ξ.
    scale : array of shape (r, r)
        scale · scaleᵀ is the covariance of ξ.
    """

    latent: Latent
    location: Floats
    scale: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Belief:
    """A Gaussian belief about the noise-free latent z at M points.

    The covariance is kept as a root, so it is symmetric and positive semi-definite by construction.

    Attributes
    ----------
    mean : array of shape (M,)
    root : array of shape (M, r)
        root · rootᵀ is the covariance.
    whitened : Whitened or None
        The same belief in the coordinates of its prior; None for a belief that came by way of inducing
        points, which takes no further segments.
    """

    mean: Floats
    root: Floats
    whitened: Whitened | None = None

    @classmethod
    def of(cls, whitened: Whitened) -> "Belief":
        """Belief about z from one about ξ."""
        latent, location, scale = whitened
        return cls(latent.mean + latent.root @ location, latent.root @ scale, whitened)

    @cached_property
    def variance(self) -> Floats:
        """Variances of z, shape (M,)."""
        return np.asarray(np.einsum("mr,mr->m", self.root, self.root))

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of z, shape (M, M)."""
        return np.asarray(self.root @ self.root.T)

    @property
    def standard_deviation(self) -> Floats:
        """Standard deviations of z, shape (M,)."""
        return np.sqrt(self.variance)

    def sample(self, n_draws: int = 1, random_state: Any = None) -> Floats:
        """Draw joint values of z: shape (n_draws, M)."""
        normal = check_random_state(random_state).standard_normal(
            (check_count(n_draws, "n_draws"), self.root.shape[1])
        )
        return np.asarray(self.mean + normal @ self.root.T)

    def __repr__(self) -> str:
        return f"Belief(about {len(self.mean)} latent value(s))"


def prior(kernel: Kernel, Z: Any, *, mean: Any = None) -> Belief:
    """Belief about the latent values at `Z` before any data.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its WhiteKernel part is noise of observations and no part of the latent.
    Z : array of shape (M, d)
    mean : None, number or callable
        Prior mean: zero, a constant, or a function of points (n, d) that returns (n,).

    Returns
    -------
    Belief
    """
    latent = Latent.prior(check_kernel(kernel), check_points(Z, "Z"), as_mean(mean))
    r = latent.root.shape[1]
    return Belief.of(Whitened(latent, np.zeros(r), np.eye(r)))


def condition(latent: Latent, evidence: Evidence) -> Belief:
    """Belief about a latent from its prior and the sum of all evidence."""
    # docs/theory.md: posterior precision I + Σ w Λ, mean μ_z + L (I + Σ w Λ)⁻¹ Σ w η
    r = len(evidence.shift)
    precision = evidence.precision + np.eye(r)
    precision = 0.5 * (precision + precision.T)
    if not r:
        return Belief.of(Whitened(latent, np.zeros(0), np.eye(0)))
    try:
        lower, jitter = cholesky(precision)
        if jitter.any():
            raise SingularMatrixError(0)
    except SingularMatrixError as error:
        raise LinAlgError(
            "The terms of the composite take away more evidence than they bring: the belief has no positive "
            "definite precision. Give every set with a negative weight a set of positive weight that holds it, "
            "or use Composite.conditional."
        ) from error
    scale = solve_lower(lower, np.eye(r)).T  # the inverse root itself is the result here
    location = scale @ solve_lower_vectors(lower, evidence.shift)
    root = solve_right(lower, latent.root.copy())
    return Belief(latent.mean + latent.root @ location, root, Whitened(latent, location, scale))
