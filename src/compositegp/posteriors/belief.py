"""A Gaussian belief about the latent values at some points, before or after data."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from compositegp.backend import (
    Floats,
    RandomState,
    SingularMatrixError,
    blas_threads_for,
    cholesky,
    solve_lower,
)
from compositegp.composite import (
    Composite,
    Evidence,
    Latent,
    Observations,
    collect_evidence,
    factor_stacks,
)
from compositegp.functionals import PointsLike, lift, matching_kernel, matching_mean
from compositegp.means import (
    Basis,
    Estimated,
    InUnitsOfData,
    MeanLike,
    MeanModel,
    Prior,
    as_mean,
    check_coefficients,
    check_covariance,
    covariance_root,
    gaussian_prior,
    in_units_of,
)
from compositegp.posteriors.recursion import carry_over, take_in_segment
from compositegp.validation import check_count, check_kernel, check_points

FLAT = 1e-10
"""Precision of a coefficient with a flat prior, in units of the latent's precision: a standard deviation of 10⁵."""


class Model(NamedTuple):
    """The kernel and the mean of a belief.

    Attributes
    ----------
    kernel : scikit-learn kernel or None
    mean : MeanModel or None
    """

    kernel: Kernel | None
    mean: MeanModel | None


class Whitened(NamedTuple):
    """A belief in the coordinates (ξ, β) of its prior, with its model: everything that an update needs.

    Attributes
    ----------
    latent : Latent
    location : array of shape (r + q, t)
        Means of (ξ, β), one column for each output.
    scale : array of shape (r + q, r + q)
        scale · scaleᵀ is their covariance.
    natural : Evidence or None
        Prior and evidence so far, as natural parameters. Only with coefficients β: a flat prior has no other form.
    kernel : scikit-learn kernel or None
    mean : MeanModel or None
        The model. Both are None if they are not known, as in a belief that was read from a file.
    """

    latent: Latent
    location: Floats
    scale: Floats
    natural: Evidence | None = None
    kernel: Kernel | None = None
    mean: MeanModel | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Belief:
    """A Gaussian belief about the noise-free latent z at M points.

    The covariance is kept as a root, so it is symmetric and positive semi-definite by construction. Several outputs
    share it: they have one kernel and one factorization.

    Attributes
    ----------
    mean : array of shape (M,), or (M, t) for t outputs
    root : array of shape (M, r)
        root · rootᵀ is the covariance.
    whitened : Whitened or None
        The same belief in the coordinates of its prior. None for a belief that was computed through inducing points,
        which takes no further segments.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> belief = prior(RBF() + WhiteKernel(0.1), [[0.0], [1.0]])
    >>> belief = belief.update([[0.1], [0.4]], [1.0, 1.2]).update([[0.9]], [2.0])
    >>> belief.mean.round(1)
    array([0.9, 1.8])
    """

    mean: Floats
    root: Floats
    whitened: Whitened | None = None

    @classmethod
    def of(cls, whitened: Whitened, outputs: tuple[int, ...] = ()) -> "Belief":
        """Belief about z from one about ξ."""
        coordinates = whitened.latent.coordinates
        mean = whitened.latent.mean + coordinates @ whitened.location
        return cls(mean.reshape(-1, *outputs), coordinates @ whitened.scale, whitened)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The shape of the outputs: () for one, (t,) for t of them."""
        return self.mean.shape[1:]

    @cached_property
    def variance(self) -> Floats:
        """Variances of z, shape (M,); outputs share them."""
        return np.asarray(np.einsum("mr,mr->m", self.root, self.root))

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of z, shape (M, M); outputs share it."""
        return np.asarray(self.root @ self.root.T)

    @property
    def coefficients(self) -> Floats:
        """Means of the mean function's coefficients, shape (q,) or (q, t); empty where they are not in the belief."""
        if self.whitened is None:
            return np.empty(0)
        values = self.whitened.location[self._n_directions :]
        units = self._units
        return (values if units is None else units.given_coefficients(values)).reshape(-1, *self.outputs)

    @property
    def coefficient_covariance(self) -> Floats:
        """Covariance of the mean function's coefficients, shape (q, q)."""
        if self.whitened is None:
            return np.empty((0, 0))
        root = self.whitened.scale[self._n_directions :]
        units = self._units
        return np.asarray(root @ root.T) if units is None else units.given_covariance(root @ root.T)

    @property
    def _units(self) -> InUnitsOfData | None:
        mean = None if self.whitened is None else self.whitened.mean
        functions = None if mean is None or mean.coefficients is None else mean.coefficients.functions
        return functions if isinstance(functions, InUnitsOfData) else None

    @property
    def _n_directions(self) -> int:
        return 0 if self.whitened is None else int(self.whitened.latent.root.shape[1])

    @property
    def standard_deviation(self) -> Floats:
        """Standard deviations of z, shape (M,)."""
        return np.sqrt(self.variance)

    def update(self, X_k: PointsLike, y_k: ArrayLike, *, noise_variance: ArrayLike | None = None) -> "Belief":
        """Belief after one more segment of data; this one stays as it is.

        Segments in any order, one call each, give the belief of `posterior` with `Composite.marginal`; a single segment
        with all the data gives the exact Gaussian process. Unknown coefficients of the mean are learned as the
        segments come: they are part of the latent, so that a pattern of the mean which several segments
        share is not counted twice.

        Parameters
        ----------
        X_k : array of shape (n, d), or functionals
        y_k : array of shape (n,) or (n, t)
        noise_variance : None, number or array of shape (n,)
            Noise variances of the points, in addition to the kernel's own.

        Returns
        -------
        Belief
        """
        known = self._whitened("update")
        kernel, (X_k, points) = lift(known.kernel, X_k=X_k, points=known.latent.points)
        data = Observations.checked(
            kernel,
            X_k,
            y_k,
            mean=known.mean,
            noise_variance=noise_variance,
            n_columns=points.shape[1],
            names=("X_k", "y_k"),
        )
        return replace(self, whitened=known._replace(latent=replace(known.latent, points=points))).take_in(data)

    def take_in(self, data: Observations) -> "Belief":
        """Belief after one more segment, which has been checked and is under the model of this belief."""
        latent, location, scale, natural, *_ = self._whitened("update")
        if location.shape[1] > 1 and location.shape[1] != data.n_outputs:
            raise ValueError(
                f"y_k has {data.n_outputs} output(s), but the belief is about {location.shape[1]}. Give all of them."
            )
        model = Model(data.kernel, data.mean)
        with blas_threads_for(max(len(data.X), len(latent.points))):
            (factored,) = factor_stacks(data, Composite.full(len(data.X)))
            if natural is not None:
                total = natural.plus(collect_evidence(data.kernel, latent, factored))
                return condition(latent, total, model, data.outputs)
            if not len(location):
                return self
            moments = take_in_segment(data, factored, latent, location, scale)
            return Belief.of(Whitened(latent, *moments, None, *model), data.outputs)

    def under(self, kernel: Kernel) -> "Belief":
        """The belief from the same evidence under another kernel: only p(z) is replaced."""
        old, location, scale, natural, former, mean = self._whitened("change the kernel of")
        kernel = matching_kernel(kernel, former)
        new = Latent.prior(kernel, old.points, MeanModel(lambda _: old.mean, lambda _: old.basis, None))
        total = carry_over(old, new, location, scale, natural)
        return condition(new, total, Model(kernel, mean), self.outputs)

    def _whitened(self, what: str) -> Whitened:
        if self.whitened is None:
            raise ValueError(
                f"Cannot {what} {self!r}: it was computed through inducing points or with an Estimated mean. "
                "Begin with prior(kernel, Z), or with a posterior that has neither."
            )
        return self.whitened

    def sample(self, n_draws: int = 1, random_state: RandomState = None) -> Floats:
        """Draw joint values of z: shape (n_draws, M), or (n_draws, M, t) for t outputs."""
        count = (check_count(n_draws, "n_draws"), *self.outputs, self.root.shape[1])
        normal = check_random_state(random_state).standard_normal(count)
        return np.asarray(self.mean + np.moveaxis(normal @ self.root.T, -1, 1))

    def __repr__(self) -> str:
        return f"Belief(about {len(self.mean)} latent value(s))"


class Marginals(NamedTuple):
    """Beliefs about single latent values, without their covariances.

    Attributes
    ----------
    mean : array of shape (M,), or (M, t) for t outputs
    variance : array of shape (M,)
        Outputs share it.

    Examples
    --------
    >>> found = Marginals(np.array([1.0, 2.0]), np.array([0.25, 4.0]))
    >>> found.mean - 2 * np.sqrt(found.variance)
    array([ 0., -2.])
    """

    mean: Floats
    variance: Floats


def empty_marginals(count: int, outputs: tuple[int, ...]) -> Marginals:
    """Room for the beliefs about `count` values of each output."""
    return Marginals(np.empty((count, *outputs)), np.empty(count))


def check_finite(kernel: Kernel | None, *moments: Floats) -> None:
    """Refuse means or variances that are not finite, as covariances with the data beyond double precision give them."""
    wrong = sum(int(np.count_nonzero(~np.isfinite(values))) for values in moments)
    if wrong:
        name = "The kernel" if kernel is None else f"Kernel {kernel}"
        raise LinAlgError(
            f"{name} gives covariances between the observations and the test points that are not finite in double "
            f"precision: {wrong} number(s) of the prediction cannot be computed. Scale the inputs, or choose "
            "hyper-parameters of their size."
        )


def joined(parts: list[Marginals]) -> Marginals:
    """Beliefs about the values of several parts, one after the other."""
    return Marginals(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def prior(kernel: Kernel, Z: PointsLike, *, mean: MeanLike = None) -> Belief:
    """Belief about the latent values at `Z` before any data.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its WhiteKernel part is the noise of observations, and does not belong to the latent.
    Z : array of shape (M, d), or functionals
    mean : None, number, callable, "constant", "linear", Basis or Estimated
        Prior mean: zero, a constant, or a known function of points (n, d) that returns (n,). Unknown
        coefficients are part of the belief, which learns them from the segments that follow.

    Returns
    -------
    Belief

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> belief = prior(4.0 * RBF() + WhiteKernel(0.1), [[0.0], [9.0]], mean=3.0)
    >>> belief.mean, belief.variance
    (array([3., 3.]), array([4., 4.]))
    """
    kernel, (Z,) = lift(check_kernel(kernel), Z=Z)
    points = check_points(Z, "Z")
    return prior_of(clone(kernel), points, in_units_of(matching_mean(kernel, as_mean(mean)), points))


def prior_of(kernel: Kernel, Z: Floats, mean: MeanModel) -> Belief:
    """Belief before any data, from values that have been checked."""
    mean = matching_mean(kernel, mean)
    latent = Latent.prior(kernel, Z, mean)
    model = Model(kernel, mean)
    if mean.coefficients is not None:
        return condition(latent, prior_evidence(latent, mean.coefficients), model)
    r = latent.root.shape[1]
    return Belief.of(Whitened(latent, np.zeros((r, 1)), np.eye(r), None, *model))


def prior_evidence(latent: Latent, coefficients: Basis | Estimated | None) -> Evidence:
    """The prior of the coefficients β of a mean, as evidence."""
    total = Evidence.none(latent)
    if coefficients is not None:
        r, q = latent.root.shape[1], latent.basis.shape[1]
        sizes = (latent.basis**2).mean(axis=0)
        flat = FLAT / (latent.variance or 1.0) * np.diag(np.where(sizes > 0, sizes, 1.0))
        precision, mean = gaussian_prior(coefficients, q) or Prior(flat, np.zeros((q, 1)))
        total.precision[r:, r:] = precision
        if mean.shape[1] > 1:
            total = Evidence(total.precision, np.zeros((r + q, mean.shape[1])))
        total.shift[r:] = precision @ mean
    return total


def condition(latent: Latent, total: Evidence, model: Model, outputs: tuple[int, ...] = ()) -> Belief:
    """Belief about a latent from the prior of ξ and the sum of all evidence, which includes the prior of β."""
    # docs/theory.md: posterior precision I + Σ w Λ, mean μ_z + L (I + Σ w Λ)⁻¹ Σ w η
    r = latent.root.shape[1]
    precision = 0.5 * (total.precision + total.precision.T)
    precision[np.arange(r), np.arange(r)] += 1.0
    location, scale = _moments(precision, total.shift)
    natural = total if latent.basis.shape[1] else None
    return Belief.of(Whitened(latent, location, scale, natural, *model), outputs)


def condition_on_estimate(latent: Latent, total: Evidence, estimate: Estimated, outputs: tuple[int, ...]) -> Belief:
    """Belief about z if β was estimated before: the error of β adds to the error of z (universal kriging)."""
    r, q = latent.root.shape[1], latent.basis.shape[1]
    beta = check_coefficients(estimate.coefficients, q)
    covariance = check_covariance(estimate.covariance, q)
    precision = 0.5 * (total.precision[:r, :r] + total.precision[:r, :r].T) + np.eye(r)
    t = total.shift.shape[1]
    explained = np.concatenate([total.shift[:r], total.precision[:r, r:]], axis=1)
    solved, scale = _moments(precision, explained)
    location = solved[:, :t] - solved[:, t:] @ beta
    sensitivity = latent.basis - latent.root @ solved[:, t:]  # of the mean of z to β
    return Belief(
        (latent.mean + latent.basis @ beta + latent.root @ location).reshape(-1, *outputs),
        np.concatenate([latent.root @ scale, sensitivity @ covariance_root(covariance)], axis=1),
    )


def _moments(precision: Floats, shifts: Floats) -> tuple[Floats, Floats]:
    """Solutions of precision · X = shifts, and a root of the inverse of the precision."""
    if not len(precision):
        return shifts, precision
    check_finite(None, precision, shifts)
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
            "be distinguished (leave one out), or data without noise repeat each other (add a WhiteKernel)."
        ) from error
    scale = units[:, None] * solve_lower(lower, np.eye(len(precision))).T
    return scale @ (scale.T @ shifts), scale
