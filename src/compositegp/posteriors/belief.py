"""A Gaussian belief about the latent values at some points, before or after data."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import Floats, SingularMatrixError, cholesky, psd_root, solve_lower
from compositegp.composite import Evidence, Latent
from compositegp.means import Basis, Estimated, as_mean, check_covariance, gaussian_prior
from compositegp.validation import check_count, check_kernel, check_points, check_targets

FLAT = 1e-10
"""Precision of a coefficient with a flat prior, over the latent's: a standard deviation of 10⁵ of its own."""


class Whitened(NamedTuple):
    """A belief in the coordinates (ξ, β) of its prior: what an update needs to carry.

    Attributes
    ----------
    latent : Latent
    location : array of shape (r + q,)
        Mean of (ξ, β).
    scale : array of shape (r + q, r + q)
        scale · scaleᵀ is their covariance.
    natural : Evidence or None
        Prior and evidence so far as natural parameters, where there are coefficients β: a flat prior has no other
        form.
    """

    latent: Latent
    location: Floats
    scale: Floats
    natural: Evidence | None = None


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
        coordinates = whitened.latent.coordinates
        mean = whitened.latent.mean + coordinates @ whitened.location
        return cls(mean, coordinates @ whitened.scale, whitened)

    @cached_property
    def variance(self) -> Floats:
        """Variances of z, shape (M,)."""
        return np.asarray(np.einsum("mr,mr->m", self.root, self.root))

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of z, shape (M, M)."""
        return np.asarray(self.root @ self.root.T)

    @property
    def coefficients(self) -> Floats:
        """Means of the mean function's coefficients, shape (q,); empty where they are not part of the belief."""
        return np.empty(0) if self.whitened is None else self.whitened.location[self._n_directions :]

    @property
    def coefficient_covariance(self) -> Floats:
        """Covariance of the mean function's coefficients, shape (q, q)."""
        if self.whitened is None:
            return np.empty((0, 0))
        root = self.whitened.scale[self._n_directions :]
        return np.asarray(root @ root.T)

    @property
    def _n_directions(self) -> int:
        return 0 if self.whitened is None else int(self.whitened.latent.root.shape[1])

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


class Marginals(NamedTuple):
    """Beliefs about single latent values, one at a time, with nothing said about pairs.

    Attributes
    ----------
    mean : array of shape (M,)
    variance : array of shape (M,)
    """

    mean: Floats
    variance: Floats


def prior(kernel: Kernel, Z: Any, *, mean: Any = None) -> Belief:
    """Belief about the latent values at `Z` before any data.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its WhiteKernel part is noise of observations and no part of the latent.
    Z : array of shape (M, d)
    mean : None, number, callable, "constant", "linear", Basis or Estimated
        Prior mean: zero, a constant, or a known function of points (n, d) that returns (n,). With unknown
        coefficients these are part of the belief, which learns them from the segments that follow.

    Returns
    -------
    Belief
    """
    model = as_mean(mean)
    latent = Latent.prior(check_kernel(kernel), check_points(Z, "Z"), model)
    if model.coefficients is not None:
        return condition(latent, prior_evidence(latent, model.coefficients))
    r = latent.root.shape[1]
    return Belief.of(Whitened(latent, np.zeros(r), np.eye(r)))


def prior_evidence(latent: Latent, coefficients: Basis | Estimated | None) -> Evidence:
    """What is known of a mean's coefficients β before the data, as evidence."""
    total = Evidence.none(latent)
    if coefficients is not None:
        r, q = latent.root.shape[1], latent.basis.shape[1]
        sizes = (latent.basis**2).mean(axis=0)
        flat = FLAT / (latent.variance or 1.0) * np.diag(np.where(sizes > 0, sizes, 1.0)), np.zeros(q)
        precision, mean = gaussian_prior(coefficients, q) or flat
        total.precision[r:, r:] = precision
        total.shift[r:] = precision @ mean
    return total


def condition(latent: Latent, total: Evidence) -> Belief:
    """Belief about a latent from the prior of ξ and the sum of all evidence, that about β before the data included."""
    # docs/theory.md: posterior precision I + Σ w Λ, mean μ_z + L (I + Σ w Λ)⁻¹ Σ w η
    r = latent.root.shape[1]
    precision = 0.5 * (total.precision + total.precision.T)
    precision[np.arange(r), np.arange(r)] += 1.0
    location, scale = _moments(precision, total.shift[:, None])
    natural = total if latent.basis.shape[1] else None
    return Belief.of(Whitened(latent, location[:, 0], scale, natural))


def condition_on_estimate(latent: Latent, total: Evidence, estimate: Estimated) -> Belief:
    """Belief about z where β was estimated elsewhere: the estimate's error adds to that of z (universal kriging)."""
    r, q = latent.root.shape[1], latent.basis.shape[1]
    beta = check_targets(estimate.coefficients, q, "coefficients")
    covariance = check_covariance(estimate.covariance, q)
    precision = 0.5 * (total.precision[:r, :r] + total.precision[:r, :r].T) + np.eye(r)
    explained = np.concatenate([total.shift[:r, None], total.precision[:r, r:]], axis=1)
    solved, scale = _moments(precision, explained)
    location = solved[:, 0] - solved[:, 1:] @ beta
    sensitivity = latent.basis - latent.root @ solved[:, 1:]  # of the mean of z to β
    return Belief(
        latent.mean + latent.basis @ beta + latent.root @ location,
        np.concatenate([latent.root @ scale, sensitivity @ psd_root(covariance)], axis=1),
    )


def _moments(precision: Floats, shifts: Floats) -> tuple[Floats, Floats]:
    """Solutions of precision · X = shifts, and a root of the inverse of the precision."""
    if not len(precision):
        return shifts, precision
    try:
        diagonal = np.diagonal(precision)
        if not (diagonal > 0).all():
            raise SingularMatrixError(0)
        units = 1 / np.sqrt(diagonal)
        lower, jitter = cholesky(precision * np.outer(units, units))
        if jitter.any():
            raise SingularMatrixError(0)
    except SingularMatrixError as error:
        raise LinAlgError(
            "The belief has no precision that is positive definite in double precision. Either the terms of the "
            "composite take away more evidence than they bring (give every set with a negative weight a set of "
            "positive weight that holds it, or use Composite.conditional), or two basis functions of the mean cannot "
            "be told apart (leave one out), or data without noise say the same too often (add a WhiteKernel)."
        ) from error
    scale = units[:, None] * solve_lower(lower, np.eye(len(precision))).T
    return scale @ (scale.T @ shifts), scale
