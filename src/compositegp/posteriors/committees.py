"""Committee rules: how experts that each see one segment are combined, point by point.

All of them are sums of the same evidence of segments as in a composite. With σ₀² the prior variance of a test
value z and σ_k² its variance given segment k alone, the combined precision is

    a / σ₀² + Σ_k β_k (1/σ_k² − 1/σ₀²)

and the rules differ in the weights β_k of the experts and in the exponent a of the prior:

======  ==============================================  =======================
rule    β_k                                             a
======  ==============================================  =======================
poe     1                                               Σ β_k: each expert
gpoe    1/K, or entropy change normalized to sum to 1   brings the prior
bcm     1                                               1
rbcm    entropy change ½ ln(σ₀²/σ_k²)                   1
grbcm   1, then as rbcm; experts and prior given the    1
        communication set
======  ==============================================  =======================
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import JITTER_START, Floats, IndexSets, Indices, blas_threads_for, fetch, like, solve_lower
from compositegp.composite import Composite, Observations, factor_stacks
from compositegp.functionals import PointsLike, lift
from compositegp.kernels import diagonal, gram
from compositegp.means import MeanLike
from compositegp.posteriors.belief import Marginals, check_finite
from compositegp.validation import check_index_sets, check_kernel, check_points

RULES = ("poe", "gpoe", "bcm", "rbcm", "grbcm")
WEIGHTS = ("unit", "uniform", "entropy")
_LEAST_VARIANCE = 1e-300  # smallest prior variance: a value that is known before the data needs a finite precision
_DEFAULT_WEIGHTS = {"poe": "unit", "gpoe": "uniform", "bcm": "unit", "rbcm": "entropy", "grbcm": "entropy"}


@dataclass(frozen=True, eq=False)
class Experts:
    """What each segment alone says about each test value.

    Attributes
    ----------
    prior_mean : array of shape (M, t)
    prior_variance : array of shape (M,)
        Before any expert; with a communication set, given that set.
    mean : array of shape (K, M, t)
    variance : array of shape (K, M)
        Given segment k (and the communication set).
    """

    prior_mean: Floats
    prior_variance: Floats
    mean: Floats
    variance: Floats

    def entropy_changes(self) -> Floats:
        """Entropy changes ½ ln(σ₀²/σ_k²), shape (K, M): how much each expert has learned."""
        return np.asarray(0.5 * np.log(self.prior_variance / self.variance))

    def combine(self, weights: Floats, prior_exponent: Floats | float = 1.0) -> Marginals:
        """Combine the experts with weights of shape (K, M) and an exponent of the prior."""
        prior_precision = 1 / self.prior_variance
        precision = prior_exponent * prior_precision + (weights * (1 / self.variance - prior_precision)).sum(axis=0)
        precision = np.where(precision > 0, precision, prior_precision)  # if no expert has a weight
        shares = weights / self.variance
        shift = (shares[..., None] * (self.mean - self.prior_mean)).sum(axis=0)
        return Marginals(self.prior_mean + shift / precision[:, None], 1 / precision)


def committee(
    kernel: Kernel,
    X: PointsLike,
    y: ArrayLike,
    Z: PointsLike,
    segments: IndexSets,
    *,
    rule: str = "rbcm",
    weights: str | None = None,
    communication: ArrayLike | None = None,
    mean: MeanLike = None,
    noise_variance: ArrayLike | None = None,
) -> Marginals:
    """Predict each latent value at `Z` by a committee of experts, one for each segment.

    Parameters
    ----------
    kernel, X, y, Z, mean, noise_variance
        As for `compositegp.posterior`.
    segments : list of int arrays
        Disjoint.
    rule : {"poe", "gpoe", "bcm", "rbcm", "grbcm"}
        Product of experts, generalized product (Cao and Fleet 2014), Bayesian committee machine (Tresp
        2000), robust (Deisenroth and Ng 2015) and generalized robust (Liu et al. 2018) committee machine.
    weights : {"unit", "uniform", "entropy"}, optional
        Weights of the experts: 1, 1/K, or their entropy change (for ``gpoe`` normalized to sum to one). By
        default those of the rule's authors.
    communication : int array, optional
        For ``grbcm``: the points that every expert sees; the first segment if left out.

    Returns
    -------
    Marginals

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 10, 40)[:, None]
    >>> found = committee(RBF() + WhiteKernel(0.01), X, np.sin(X[:, 0]), [[5.0]], [np.arange(20), np.arange(20, 40)])
    >>> found.mean.round(1)
    array([-1.])
    """
    weights = _check_rule(rule, weights)
    kernel, (X, Z) = lift(check_kernel(kernel), X=X, Z=Z)
    data = Observations.checked(kernel, X, y, mean=mean, noise_variance=noise_variance)
    if data.mean.coefficients is not None:
        raise ValueError("mean must be known for a committee: None, a number or a function of points.")
    return ask_committee(data, check_points(Z, "Z", data.X.shape[1]), segments, rule, weights, communication)


def ask_committee(
    data: Observations,
    Z: Floats,
    segments: IndexSets,
    rule: str,
    weights: str | None = None,
    communication: ArrayLike | None = None,
) -> Marginals:
    """Predict by a committee, from data that have been checked and whose mean is known: see `committee`."""
    weights = _DEFAULT_WEIGHTS[rule] if weights is None else weights
    if rule == "grbcm":
        shared, parts = _communication(segments, communication)
    elif communication is None:
        shared, parts = None, check_index_sets(segments, "segments")
    else:
        raise ValueError(f"communication is for rule grbcm; found rule {rule!r}.")
    experts = _ask(data, Z, parts, shared)
    K = len(experts.mean)
    if not K:  # there is only the communication set
        return Marginals(experts.prior_mean.reshape(-1, *data.outputs), experts.prior_variance)
    if weights == "entropy":
        beta = experts.entropy_changes()
        if rule == "gpoe":
            total = beta.sum(axis=0)
            beta = np.divide(beta, total, out=np.full(beta.shape, 1 / K), where=total > 0)
        elif rule == "grbcm":
            beta[0] = 1.0  # Liu et al. (2018): the first expert after the communication set counts in full
    else:
        beta = np.full(experts.variance.shape, 1.0 if weights == "unit" else 1 / K)
    found = experts.combine(beta, prior_exponent=beta.sum(axis=0) if rule in ("poe", "gpoe") else 1.0)
    check_finite(data.kernel, found.mean, found.variance)
    return Marginals(found.mean.reshape(-1, *data.outputs), found.variance)


def _ask(data: Observations, Z: Floats, parts: list[Indices], shared: Indices | None) -> Experts:
    """Beliefs of the experts, each conditioned on `shared` if given."""
    K, M = len(parts), len(Z)
    prior_variance = np.maximum(diagonal(data.kernel, Z, noise=False), _LEAST_VARIANCE)
    # The first row: the communication set alone.
    explained, shift = np.zeros((K + 1, M)), np.zeros((K + 1, M, data.n_outputs))
    if shared is None:
        composite = Composite.marginal(parts)
        first_expert = 1
    else:
        composite = Composite.conditional([shared, *parts], [[], *[shared] * K])
        first_expert = 0
    with blas_threads_for(composite.largest_block):
        for factored in factor_stacks(data, composite):
            V = solve_lower(factored.lower, gram(data.kernel, factored.points, like(Z, factored.points)))
            rows = factored.stack.segment_numbers + first_expert
            explained[rows] = fetch((V * V).sum(1))
            shift[rows] = fetch(V.mT @ factored.innovations)
    # An expert may not claim to know a value exactly.
    floor = JITTER_START * prior_variance
    variance = np.maximum(prior_variance - explained, floor)
    means = data.mean.values(Z) + shift
    return Experts(means[0], variance[0], means[1:], np.minimum(variance[1:], variance[0]))


def _communication(segments: IndexSets, communication: ArrayLike | None) -> tuple[Indices, list[Indices]]:
    parts = check_index_sets(segments, "segments")
    if communication is None:
        if len(parts) < 2:
            raise ValueError("grbcm needs a communication set and at least one segment; found one segment.")
        return parts[0], parts[1:]
    (shared,) = check_index_sets([communication], "communication")
    if not len(shared):
        raise ValueError("communication is empty. Give it at least one point, or leave it out.")
    rest = [part[~np.isin(part, shared)] for part in parts]
    return shared, [part for part in rest if len(part)]


def _check_rule(rule: str, weights: str | None) -> str:
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}; found {rule!r}.")
    weights = _DEFAULT_WEIGHTS[rule] if weights is None else weights
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}; found {weights!r}.")
    return weights
