"""Prediction by several kernels that the data hardly tell apart: a mixture.

In a wide gap kernels that fit the observations about equally well predict different things. To take the likeliest alone
is to be surer than one can be. So those close to it predict too, each with a share: training points are predicted as if
they lay in gaps, and the shares maximize the log score of the mixture there. This is stacking (Yao, Vehtari, Simpson
and Gelman, 2018), on the terms on which test points are predicted.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, blas_threads_for
from compositegp.composite import Composite, Observations
from compositegp.functionals import Functionals
from compositegp.kernels import diagonal, noise_variance
from compositegp.posteriors import Belief, Marginals, NearestPredictor, Neighborhood, Surrounded
from compositegp.prediction.fitted_terms import HeldOutPart
from compositegp.prediction.kernel_shares import KernelShare, stacking_weights
from compositegp.prediction.method import Predictor
from compositegp.prediction.mixtures import mean_and_deviations, mixed_belief, mixed_variance
from compositegp.prediction.neighborhood_tuning import SMALLEST, GapSets, calibrate_by, gap_predictions, spread_of
from compositegp.predictive import Calibration, Family, Normal

_LEAST = 0.05  # weight of a further kernel that is worth its time
_MOST_IN_ALL = 1 - 1e-6  # weight of all of them, so that something is left for the first


def learn_shares(
    search: NearestPredictor,
    held: GapSets,
    parts: list[HeldOutPart],
    calibration: Calibration | None,
    alternatives: Mapping[str, Kernel],
    heavy_tails: bool,
    n_jobs: int | None,
) -> tuple[KernelShare, ...]:
    """The shares of further kernels in a mixture with the first.

    Parameters
    ----------
    search : NearestPredictor
        Under the first kernel.
    held : GapSets
        Training points in gaps.
    parts : list of HeldOutPart
        Their predictions under the first kernel.
    calibration : Calibration or None
        Of their errors.
    alternatives : mapping of str to scikit-learn kernel
        Learned.
    heavy_tails : bool
    n_jobs : int or None

    Returns
    -------
    tuple of KernelShare
        Of those whose weight is at least 0.05; what is left is the share of the first, however small.
    """
    shares, scores = [], [_log_scores(search.data, parts, calibration)]
    for name, kernel in alternatives.items():
        other = search.with_data(search.data.with_kernel(kernel))
        try:
            own = gap_predictions(other, held, n_jobs)
        except LinAlgError:  # as in the comparison, a kernel that is singular here has no say
            continue
        learned = calibrate_by(other.data, own, heavy_tails)
        shares.append(KernelShare(name, kernel, 0.0, learned))
        scores.append(_log_scores(other.data, own, learned))
    weights = stacking_weights(np.stack(scores))
    kept = [0, *(1 + np.flatnonzero(weights[1:] >= _LEAST))]
    weights = stacking_weights(np.stack([scores[number] for number in kept]))
    weights *= min(1.0, _MOST_IN_ALL / max(weights[1:].sum(), _MOST_IN_ALL))
    return tuple(
        replace(shares[number - 1], weight=float(weight))
        for number, weight in zip(kept[1:], weights[1:], strict=True)
    )


def _log_scores(data: Observations, parts: list[HeldOutPart], calibration: Calibration | None) -> Floats:
    """Log densities of what was observed at training points, under calibrated predictions."""
    found = []
    for rows, _, _, predicted, noise in parts:
        factors, family = spread_of(calibration, data.kernel, data.X[rows], predicted, noise)
        total = diagonal(data.kernel, data.X[rows], noise=False) + noise
        scale = np.sqrt(np.maximum(predicted.variance + noise, SMALLEST * total))[:, None] * factors
        errors = (data.targets_of(rows) - predicted.mean).reshape(len(rows), -1)
        found.append((family.shaped(2).logpdf(errors / scale) - np.log(scale)).ravel())
    return np.concatenate(found)


class MixedMarginals(NamedTuple):
    """Means and variances of a mixture, and of its members.

    Attributes
    ----------
    mean : array of shape (M,), or (M, t)
    variance : array of shape (M,)
    members : list of Marginals or Surrounded
    noise : array of shape (k, M)
        Noise variances of observations under each kernel.
    usual_noise : array of shape (M,)
        The noise variances that `KernelMixture.spread` is given, unless more is added to them.
    surroundings : Neighborhood or None
        Of the first member.
    """

    mean: Floats
    variance: Floats
    members: list[Any]
    noise: Floats
    usual_noise: Floats
    surroundings: Neighborhood | None


class KernelPredictor(Predictor):
    """A predictor under one kernel, which may be exchanged for another."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """The kernel, lifted to functionals where the predictor is."""

    @abstractmethod
    def under(self, share: KernelShare) -> "KernelPredictor":
        """The same predictor under another kernel, with what was learned of its errors."""

    @abstractmethod
    def lifted(self, functionals: Functionals) -> "KernelPredictor":
        """The same predictor for rows that name functionals."""


class KernelMixture(Predictor):
    """A predictor under several kernels, with weights.

    With means m_i, variances v_i and weights w_i, the mean is Σ w_i m_i and the variance Σ w_i (v_i + (m_i − mean)²).
    The errors of each member are calibrated by themselves; the mixture has the shape of the largest share. Derivatives
    of f, which not every kernel has, and parts of f, of which each kernel has its own, are those under the first one.

    Parameters
    ----------
    first : KernelPredictor
        Under the kernel that was chosen.
    others : sequence of KernelShare
    """

    def __init__(self, first: KernelPredictor, others: Sequence[KernelShare]) -> None:
        self.method = first.method
        self._members = [first, *(first.under(share) for share in others)]
        weights = np.array([share.weight for share in others])
        self._weights = np.array([1 - weights.sum(), *weights])

    def for_functionals(self, functionals: Functionals) -> Predictor:
        """The mixture, or for derivatives and parts its first member."""
        return self if functionals.has_noise.all() else self._members[0]

    def lifted(self, functionals: Functionals) -> Predictor:
        """The same mixture of the members, each lifted to functionals; for derivatives and parts its first member."""
        if self.for_functionals(functionals) is not self:
            return self._members[0].lifted(functionals)
        found = copy(self)
        found._members = [member.lifted(functionals) for member in self._members]
        return found

    def prepare(self) -> None:
        """Build the search tree, which the members share."""
        for member in self._members:
            member.prepare()

    def marginals(self, Z: Floats, n_jobs: int | None) -> MixedMarginals:  # type: ignore[override]
        """Predict under every kernel."""
        found = [member.marginals(Z, n_jobs) for member in self._members]
        noise = self._noise(Z)
        return self._mixed(found, noise, noise[0])

    def _noise(self, Z: Floats) -> Floats:
        """Noise variances of new observations under each kernel: shape (k, M)."""
        return np.array([noise_variance(member.kernel, Z) for member in self._members])

    def _mixed(self, found: Sequence[Any], noise: Floats, usual_noise: Floats) -> MixedMarginals:
        mean, deviations = mean_and_deviations(self._weights, [one.mean for one in found])
        variance = mixed_variance(self._weights, [one.variance for one in found], deviations)
        around = getattr(found[0], "surroundings", None)
        return MixedMarginals(mean, variance, list(found), noise, usual_noise, around)

    def means(self, Z: Floats, n_jobs: int | None) -> Floats:
        """Means alone."""
        found = np.array([member.means(Z, n_jobs) for member in self._members])
        return np.asarray(np.tensordot(self._weights, found, axes=1))

    def spread(self, Z: Floats, found: Any, noise: Floats) -> tuple[Any, Family]:
        """Factors by which errors are larger than the variance says, and the family of the largest share.

        The variance of the mixture of calibrated errors is Σ w_i (f_i² s_i² (v_i + σ_i²) + (m_i − mean)²), with σ_i²
        the noise under the i-th kernel, f_i the factor on its errors and s_i² the variance of their family.
        """
        extra = noise - found.usual_noise
        largest = int(np.argmax(self._weights))
        calibrated: Any = 0.0
        shape: Family = Normal()
        plain = True
        for number, (member, one) in enumerate(zip(self._members, found.members, strict=True)):
            own = found.noise[number] + extra
            factors, family = member.spread(Z, one, own)
            plain &= not np.ndim(factors) and isinstance(family, Normal)
            squares = (one.variance + own)[:, None] * (factors * family.shaped(2).std) ** 2
            deviations = (one.mean - found.mean).reshape(len(Z), -1)
            calibrated = calibrated + self._weights[number] * (squares + deviations**2)
            if number == largest:
                shape = family
        if plain:  # the variance of the mixture is that of its errors
            return 1.0, shape
        total = (found.variance + self._weights @ found.noise + extra)[:, None]
        ratio = np.divide(calibrated, total, out=np.ones_like(calibrated), where=total > 0)
        return np.sqrt(ratio) / shape.shaped(2).std, shape

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOutPart]:
        """Training points predicted without themselves and their K nearest, under every kernel."""
        found = [member.held_out(n_jobs, seed) for member in self._members]
        return [self._mixed_part(parts) for parts in zip(*found, strict=True)]

    def _mixed_part(self, parts: Sequence[HeldOutPart]) -> HeldOutPart:
        noise = np.array([part.noise for part in parts])
        average = self._weights @ noise
        mixed: Any = self._mixed([part.predicted for part in parts], noise, average)
        return parts[0]._replace(predicted=mixed, noise=average)

    def left_out(self, n_jobs: int | None) -> tuple[Any, Floats]:
        """Every training point predicted from its nearest neighbors without itself, under every kernel."""
        found, noise = zip(*(member.left_out(n_jobs) for member in self._members), strict=True)
        average = self._weights @ np.array(noise)
        return self._mixed(found, np.array(noise), average), average

    def joint(self, Z: Floats) -> Belief:
        """The covariance of the mixture."""
        with blas_threads_for(len(Z)):
            return mixed_belief(self._weights, (member.joint(Z) for member in self._members))

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term, the same for all members."""
        return self._members[0].terms(Z)

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """The claimed variances."""
        return claimed.variance

    def noise_variance(self, kernel: Kernel, Z: Floats) -> Floats:
        """The mean of the noise variances under every kernel."""
        return np.asarray(self._weights @ self._noise(Z))
