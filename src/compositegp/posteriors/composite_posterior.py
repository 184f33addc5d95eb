"""The posterior of any composite: GP, CGP, PITC, FITC and block Vecchia by one mechanism."""

from collections.abc import Iterable
from dataclasses import dataclass

from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, blas_threads_for
from compositegp.composite import (
    Composite,
    Evidence,
    FactoredStack,
    Latent,
    Observations,
    check_composite,
    collect_evidence,
    factor_stacks,
)
from compositegp.functionals import OnFunctionals, PointsLike, lift
from compositegp.means import Estimated, MeanLike
from compositegp.posteriors.belief import Belief, Model, condition, condition_on_estimate, prior_evidence
from compositegp.posteriors.inducing import project_belief
from compositegp.validation import check_kernel, check_points


@dataclass(frozen=True, eq=False, repr=False)
class FactoredComposite:
    """Data and a composite with all factorizations done, to predict any number of test points.

    Made by `factorize`. Holds the factors: 8 bytes for each pair of points in a block (a segment and the points it is
    conditioned on).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel, X = RBF() + WhiteKernel(0.1), [[0.0], [1.0], [2.0], [3.0]]
    >>> factorize(kernel, X, [0.0, 1.0, 0.0, 1.0], Composite.marginal([[0, 1], [2, 3]]))
    FactoredComposite(Composite(2 term(s) over 4 point(s)))
    """

    data: Observations
    composite: Composite
    stacks: tuple[FactoredStack, ...]

    def posterior(self, Z: PointsLike, *, inducing: ArrayLike | None = None) -> Belief:
        """Belief about the latent values at `Z`, as `compositegp.posterior` gives it."""
        data = self.data
        kernel, (points, sites) = lift(data.kernel, Z=Z, inducing=inducing)
        if isinstance(kernel, OnFunctionals):
            return self.believe(data.lifted(kernel.functionals), points, sites)
        return self.believe(data, check_points(Z, "Z", data.X.shape[1]), _sites(inducing, data.X.shape[1]))

    def believe(self, data: Observations, Z: Floats, inducing: Floats | None = None) -> Belief:
        """Belief about checked test points, under the data's model or what it was lifted to."""
        return _posterior(data, self.composite, self.stacks, Z, inducing)

    def __repr__(self) -> str:
        return f"FactoredComposite({self.composite!r})"


def factorize(
    kernel: Kernel,
    X: PointsLike,
    y: ArrayLike,
    composite: Composite,
    *,
    mean: MeanLike = None,
    noise_variance: ArrayLike | None = None,
) -> FactoredComposite:
    """Factorize the terms of a composite once, to predict at any number of test points later.

    Parameters
    ----------
    kernel, X, y, composite, mean, noise_variance
        As for `posterior`.

    Returns
    -------
    FactoredComposite

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel, X = RBF() + WhiteKernel(0.1), [[0.0], [1.0], [2.0], [3.0]]
    >>> factored = factorize(kernel, X, [0.0, 1.0, 0.0, 1.0], Composite.marginal([[0, 1], [2, 3]]))
    >>> factored.posterior([[1.0]]).mean.round(2), factored.posterior([[3.0]]).mean.round(2)
    (array([0.79]), array([0.88]))
    """
    data = Observations.checked(kernel, X, y, mean=mean, noise_variance=noise_variance)
    with blas_threads_for(check_composite(composite).largest_block):
        return FactoredComposite(data, composite, tuple(factor_stacks(data, composite)))


def posterior(
    kernel: Kernel,
    X: PointsLike,
    y: ArrayLike,
    Z: PointsLike,
    composite: Composite,
    *,
    inducing: ArrayLike | None = None,
    mean: MeanLike = None,
    noise_variance: ArrayLike | None = None,
) -> Belief:
    """Belief q(z) ∝ p(z) Π_(S,w) p(y_S | z)^w about the latent values at `Z`.

    All of `Z` is one joint latent. With more than one term, the belief about a point depends on the other points of
    `Z`: they are the only connection between the terms.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Covariance of the observations; its WhiteKernel part is their noise, and does not belong to z.
    X : array of shape (n, d), or functionals
        What was observed: f at points, with noise, or functionals of f.
    y : array of shape (n,), or (n, t) for t outputs
    Z : array of shape (M, d), or functionals
        Test points, or what else is asked for: see `compositegp.functionals`.
    composite : Composite
        ``Composite.full(n)`` is the exact GP, ``marginal(segments)`` the composite GP of Liu et al. (2018),
        ``conditional(segments, conditioning)`` block Vecchia.
    inducing : array of shape (m, d), optional
        Inducing points: the data inform about the latent values there, and z follows from these. With
        ``Composite.pointwise(n)`` this is FITC, with ``marginal(segments)`` PITC.
    mean : None, number, callable, "constant", "linear", Basis or Estimated
        Prior mean: zero, a constant, or a known function of points (n, d) that returns (n,). Unknown
        coefficients (a name, or a Basis) are learned together with z; with an Estimated their error is added.
    noise_variance : None, number or array of shape (n,)
        Noise variances of the points, in addition to the noise of the kernel.

    Returns
    -------
    Belief

    Examples
    --------
    >>> from compositegp import segment
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0.0, 10.0, 100)[:, None]
    >>> composite = Composite.marginal(segment(X, 50))
    >>> belief = posterior(RBF() + WhiteKernel(0.01), X, np.sin(X[:, 0]), [[2.0], [7.0]], composite)
    >>> belief.mean.round(1), belief.standard_deviation.round(1)
    (array([0.9, 0.7]), array([0., 0.]))
    """
    kernel, (X, Z, inducing) = lift(check_kernel(kernel), X=X, Z=Z, inducing=inducing)
    data = Observations.checked(kernel, X, y, mean=mean, noise_variance=noise_variance)
    points, sites = check_points(Z, "Z", data.X.shape[1]), _sites(inducing, data.X.shape[1])
    return _posterior(data, composite, factor_stacks(data, check_composite(composite)), points, sites)


def _sites(inducing: ArrayLike | None, n_columns: int) -> Floats | None:
    return None if inducing is None else check_points(inducing, "inducing", n_columns)


def _posterior(
    data: Observations,
    composite: Composite,
    stacks: Iterable[FactoredStack],
    Z: Floats,
    inducing: Floats | None,
) -> Belief:
    if inducing is not None:
        about_u = belief_about_inducing(data, composite, stacks, inducing)
        return project_belief(about_u, data.kernel, Z, data.mean)
    latent, total = _evidence(data, composite, stacks, Z)
    return believe(data, latent, total)


def belief_about_inducing(
    data: Observations, composite: Composite, stacks: Iterable[FactoredStack], points: Floats
) -> Belief:
    """Belief about the latent values at inducing points; the data update the coefficients of an estimated mean."""
    latent, total = _evidence(data, composite, stacks, points)
    total = total.plus(prior_evidence(latent, data.mean.coefficients))
    return condition(latent, total, Model(data.kernel, data.mean), data.outputs)


def believe(data: Observations, latent: Latent, total: Evidence) -> Belief:
    """Belief about a latent from the evidence of all the terms."""
    coefficients = data.mean.coefficients
    if isinstance(coefficients, Estimated):
        return condition_on_estimate(latent, total, coefficients, data.outputs)
    total = total.plus(prior_evidence(latent, coefficients))
    return condition(latent, total, Model(data.kernel, data.mean), data.outputs)


def _evidence(
    data: Observations, composite: Composite, stacks: Iterable[FactoredStack], points: Floats
) -> tuple[Latent, Evidence]:
    with blas_threads_for(max(composite.largest_block, len(points))):
        latent = Latent.prior(data.kernel, points, data.mean)
        total = Evidence.none(latent)
        for factored in stacks:
            total = total.plus(collect_evidence(data.kernel, latent, factored))
        return latent, total
