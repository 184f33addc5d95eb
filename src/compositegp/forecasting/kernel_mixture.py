"""Forecasts of a short series, averaged over the kernels that it allows.

A hundred values tell little about their kernel: whether there is a season, how fast it drifts, how far a level wanders.
So a forecast is averaged over structures, each with its Akaike weight, and in each over values of θ, which are drawn
around the mode and weighted by importance. With means m_i, variances v_i and weights w_i it has the mean m = Σ w_i m_i
and the variance Σ w_i (v_i + (m_i − m)²), as predictions of few rows of a table have (`prediction.ThetaMixture`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.forecasting.coefficients import Forecasts, Information
from compositegp.forecasting.horizon_terms import Filter, covariances
from compositegp.forecasting.memory import fisher_information, prior_precision
from compositegp.forecasting.short_series import FREEDOM, LATEST, Structure
from compositegp.forecasting.whole_past import WholePast
from compositegp.kernels import at_theta
from compositegp.prediction import Proposal

_DRAWS = 32  # values of θ of each structure
_LEAST_SHARE = 0.02  # of a structure, over that of the best
_LEAST_WEIGHT = 0.01  # of a member, over the largest


@dataclass(frozen=True, eq=False)
class LikelyKernel:
    """One of the kernels that forecasts are averaged over.

    Attributes
    ----------
    weight : float
        All the weights add up to one.
    kernel : scikit-learn kernel of the time in steps
    names : list of str
        Of the parts of the kernel, in their order.
    theta : array of shape (p,)
        Logarithms of its hyper-parameters, to all digits.
    """

    weight: float
    kernel: Kernel
    names: list[str]
    theta: Floats


@dataclass(frozen=True, eq=False)
class MixtureMember:
    """The same, with what is known about the coefficients of the effects under this kernel.

    Attributes
    ----------
    weight : float
    kernel : scikit-learn kernel
    names : list of str
    theta : array of shape (p,)
    information : Information
    filters : dict
        See `FittedSeries`.
    """

    weight: float
    kernel: Kernel
    names: list[str]
    theta: Floats
    information: Information
    filters: dict[bytes, Filter] = field(default_factory=dict, repr=False)


AnyMember = TypeVar("AnyMember", LikelyKernel, MixtureMember)


def likely_kernels(structures: Sequence[Structure], past: WholePast) -> list[LikelyKernel]:
    """Structures and values of θ that are likely given a series.

    Parameters
    ----------
    structures : list of Structure
        The best first.
    past : WholePast
        Outliers are tempered.

    Returns
    -------
    list of LikelyKernel
        Empty where no value of θ that was drawn has a likelihood.
    """
    latest, found = past.latest(LATEST), []
    for structure in structures:
        ratio = float(np.exp(structure.criterion - structures[0].criterion))
        for theta, part in _likely_thetas(structure, latest) if ratio >= _LEAST_SHARE else ():
            kernel = at_theta(structure.kernel, theta)
            found.append(LikelyKernel(ratio * part, kernel, structure.names, theta))
    return weighted(found, [one.weight for one in found], _LEAST_WEIGHT)


def mixed_forecasts(
    kernels: Sequence[LikelyKernel], past: WholePast, horizon: int
) -> tuple[list[LikelyKernel], Forecasts | None]:
    """The forecasts of known values by all of some kernels, and those kernels that could make them.

    Returns
    -------
    list of LikelyKernel
    Forecasts or None
        Errors and variances by origin: see `WholePast.forecasts`. None where there is no kernel.
    """
    kept, each = [], []
    for one in kernels:
        try:
            each.append(past.forecasts(covariances(one.kernel, past.reach), horizon))
            kept.append(one)
        except LinAlgError:  # of all the past: that of its latest part can be factorized
            continue
    kept = weighted(kept, [one.weight for one in kept])
    if not kept:
        return [], None
    moments = mixed_moments(kept, [one.errors for one in each], [one.variance for one in each])
    return kept, Forecasts(*moments)


def members_of(kernels: Sequence[LikelyKernel], past: WholePast, weight: float) -> list[MixtureMember]:
    """The kernels with what the past tells about the coefficients, as windows of some weight would."""
    found = []
    for one in kernels:
        try:
            information = past.information(covariances(one.kernel, past.reach), weight)
            found.append(MixtureMember(one.weight, one.kernel, one.names, one.theta, information))
        except LinAlgError:  # without the effects, which made the matrix larger
            continue
    return weighted(found, [one.weight for one in found])


def weighted(members: Sequence[AnyMember], weights: Sequence[float], least: float = 0.0) -> list[AnyMember]:
    """Members with weights that are made to add up to one, without those of less than a part of the largest."""
    kept = [pair for pair in zip(members, weights, strict=True) if pair[1] >= least * max(weights)]
    total = sum(weight for _, weight in kept)
    return [replace(one, weight=weight / total) for one, weight in kept]


def mixed_moments(
    members: Sequence[LikelyKernel] | Sequence[MixtureMember], means: Sequence[Floats], variances: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture, from those of its members, of one shape; a mean may be NaN in all of them."""
    weights, each = np.array([one.weight for one in members]), np.array(means)
    mean = np.tensordot(weights, each, axes=1)
    spread = np.where(np.isfinite(mean), (each - mean) ** 2, 0.0)
    return mean, np.tensordot(weights, np.array(variances) + spread, axes=1)


@dataclass(frozen=True, eq=False)
class _ThetaPosterior:
    """Posterior density of log θ of one structure: the likelihood of a series, times the prior it was learned with."""

    structure: Structure
    past: WholePast

    @cached_property
    def precision(self) -> Floats:
        """Of the prior, shape (p, p)."""
        return prior_precision(self.structure.kernel, FREEDOM)

    @cached_property
    def bounds(self) -> Floats:
        """Of log θ, shape (p, 2)."""
        return np.asarray(self.structure.kernel.bounds)

    def log_density(self, theta: Floats) -> float:
        """Its logarithm, up to a constant; −∞ where the covariance cannot be factorized."""
        away = theta - self.structure.center
        try:
            k = covariances(at_theta(self.structure.kernel, theta), self.past.reach)
            return float(self.past.log_scores(k).sum() - 0.5 * away @ self.precision @ away)
        except LinAlgError:
            return -np.inf

    def clip(self, theta: Floats) -> Floats:
        """Values within the kernel's bounds."""
        return np.asarray(np.clip(theta, *self.bounds.T))


def _likely_thetas(structure: Structure, past: WholePast) -> list[tuple[Floats, float]]:
    posterior = _ThetaPosterior(structure, past)
    fisher = fisher_information(structure.kernel, [past]) + posterior.precision
    return Proposal.around(posterior, structure.kernel.theta, fisher).likely(posterior, _DRAWS)
