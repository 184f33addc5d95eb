"""Prediction with few observations: a mixture over values of the hyper-parameters θ, which are then uncertain."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, blas_threads_for, current_device, psd_root
from compositegp.composite import Composite
from compositegp.functionals import Functionals
from compositegp.kernels import noise_variance
from compositegp.posteriors import (
    Belief,
    Marginals,
    Surrounded,
    exact_belief,
    exact_marginals,
    leave_one_out,
)
from compositegp.prediction.fitted_terms import FittedTerms, HeldOutPart
from compositegp.prediction.method import Predictor
from compositegp.prediction.nearest import ExactPredictor
from compositegp.prediction.neighborhood_tuning import NeighborhoodTuning, learn_errors_by
from compositegp.prediction.theta_posterior import WeightedKernel, weighted_kernels
from compositegp.predictive import Family


def over_theta(predictor: Predictor, fitted: FittedTerms) -> Predictor:
    """A predictor that takes the uncertainty of θ into account; the given one if its method does not ask for that.

    Parameters
    ----------
    predictor : Predictor
        Under the learned θ.
    fitted : FittedTerms

    Returns
    -------
    Predictor

    Examples
    --------
    >>> from compositegp.composite import Observations
    >>> from compositegp.means import as_mean
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> data = Observations.checked(RBF(2.0) + WhiteKernel(0.1), X, np.sin(X[:, 0]), mean=None, noise_variance=None)
    >>> fitted = FittedTerms(data, as_mean(None), list, Composite)
    >>> from compositegp.prediction import Nearest
    >>> mixed = over_theta(Nearest().bind(fitted), fitted)
    >>> type(mixed).__name__, mixed.marginals(X[:2], None).mean.shape
    ('ThetaMixture', (2,))
    >>> type(over_theta(Nearest(theta_uncertainty=False).bind(fitted), fitted)).__name__
    'ExactPredictor'
    """
    if isinstance(predictor, ExactPredictor) and predictor.method.mixes_theta(len(fitted.data.X)):
        return ThetaMixture(predictor, fitted)
    return predictor


class ThetaMixture(Predictor):
    """The exact Gaussian process, averaged over values of θ by their posterior weights.

    With means m_i, variances v_i and weights w_i, the mean is Σ w_i m_i and the variance Σ w_i (v_i + (m_i − mean)²).
    Several outputs share a variance, with the mean over the outputs of (m_i − mean)². Unknown coefficients of the mean
    are estimated under each θ. If the covariance is singular at the learned θ, predictions are made under that θ alone.

    Parameters
    ----------
    plug_in : ExactPredictor
        The exact Gaussian process under the learned θ.
    fitted : FittedTerms
    """

    def __init__(self, plug_in: ExactPredictor, fitted: FittedTerms) -> None:
        self.method = plug_in.method
        self._plug_in = plug_in
        self._fitted = fitted
        self._data = fitted.undetermined

    @cached_property
    def _cached(self) -> dict[str | None, list[WeightedKernel]]:
        return {}

    @property
    def members(self) -> list[WeightedKernel]:
        """Values of θ with their weights, and the data factorized under each on the device in use."""
        device = current_device()
        name = None if device is None else device.name
        if name not in self._cached:
            with blas_threads_for(len(self._data.X)):
                self._cached[name] = weighted_kernels(self._data)
        return self._cached[name]

    def tune(self, *, heavy_tails: bool, n_jobs: int | None) -> NeighborhoodTuning | None:
        """Learn how large errors are from training points at several distances; None with few of them.

        Near the data they are predicted from all the others by the mixture. Farther away they are predicted under the
        learned θ alone, where one factorization serves all of them. So is what neighborhoods say of errors, there and
        at test points.
        """
        n = len(self._data.X)
        if not self._plug_in.method.learns_errors_exactly(n):
            return None
        if not self.members:
            return self._plug_in.tune(heavy_tails=heavy_tails, n_jobs=n_jobs)
        near = self._left_out_part(n_jobs).take(self._plug_in.order)
        farther = [part for part in self._plug_in.held_out_thinned(n_jobs) if part.n_skipped]
        learned = learn_errors_by(self._fitted.data, [near, *farther], heavy_tails)
        return NeighborhoodTuning(n, calibration=learned.calibration, gross=learned.gross)

    def _left_out_part(self, n_jobs: int | None) -> HeldOutPart:
        """Every training point predicted from all the others, with what the observations around it say of errors."""
        predicted, noise = self.left_out(n_jobs)
        part = self._plug_in.left_out_surroundings(n_jobs)
        found = Surrounded(predicted.mean, predicted.variance, part.predicted.surroundings)
        return part._replace(predicted=found, noise=noise)

    def tuned(self, tuning: NeighborhoodTuning) -> "ThetaMixture":
        """The same mixture, with what was learned of its errors."""
        found = copy(self)
        found._plug_in = self._plug_in.tuned(tuning)
        found._cached = self._cached
        return found

    def lifted(self, functionals: Functionals) -> "ThetaMixture":
        """The same values of θ, each with its model lifted to functionals."""
        found = copy(self)
        found._plug_in = self._plug_in.lifted(functionals)
        found._cached = {
            name: [member._replace(data=member.data.lifted(functionals)) for member in members]
            for name, members in self._cached.items()
        }
        found._data = self._data.lifted(functionals)
        return found

    def prepare(self) -> None:
        """Find the values of θ and their weights."""
        if not self.members:
            self._plug_in.prepare()

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals | Surrounded:
        """Predict each point under every θ."""
        members = self.members
        if not members:
            return self._plug_in.marginals(Z, n_jobs)
        found = [exact_marginals(member.data, member.factored, Z) for member in members]
        weights = np.array([member.weight for member in members])
        mean, deviations = _mean_and_deviations(weights, [one.mean for one in found])
        variance = weights @ np.array([one.variance for one in found]) + weights @ (deviations**2).mean(axis=2)
        if not self._plug_in.is_calibrated:
            return Marginals(mean, variance)
        return Surrounded(mean, variance, self._plug_in.surroundings(Z, n_jobs))

    def spread(self, Z: Floats, found: Any, noise: Floats) -> tuple[Any, Family]:
        """Factors and family by what was learned of errors at training points."""
        return self._plug_in.spread(Z, found, noise)

    def joint(self, Z: Floats) -> Belief:
        """The covariance of the mixture: Σ w_i (C_i + (m_i − mean) (m_i − mean)ᵀ)."""
        members = self.members
        if not members:
            return self._plug_in.joint(Z)
        with blas_threads_for(len(Z)):
            covariance, means = np.zeros((len(Z), len(Z))), []
            for member in members:
                belief = exact_belief(member.data, member.factored, Z)
                covariance += member.weight * belief.covariance
                means.append(belief.mean)
            weights = np.array([member.weight for member in members])
            mean, deviations = _mean_and_deviations(weights, means)
            spread = np.sqrt(weights / deviations.shape[2])[:, None, None] * deviations
            root = np.moveaxis(spread, 1, 0).reshape(len(Z), -1)
            return Belief(mean, np.concatenate([psd_root(covariance), root], axis=1))

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """One term."""
        return self._plug_in.terms(Z)

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """The claimed variances: they already contain the uncertainty of θ."""
        return claimed.variance

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOutPart]:
        """Training points predicted without themselves and their K nearest: for K > 0 under the learned θ alone."""
        parts = self._plug_in.held_out(n_jobs, seed)
        if not self.members:
            return parts
        mixed = self._left_out_part(n_jobs)
        return [part if part.n_skipped else mixed.take(part.rows) for part in parts]

    def left_out(self, n_jobs: int | None) -> tuple[Marginals | Surrounded, Floats]:
        """Every training point predicted from all the others under every θ, whose weights do without the point too.

        What the others say of θ is what all say, over p(y_i | the others, θ).
        """
        members = self.members
        if not members:
            return self._plug_in.left_out(n_jobs)
        found = [leave_one_out(member.data, member.factored) for member in members]
        noises = np.array([member.data.noise for member in members])
        means = np.array([one.mean.reshape(len(one.mean), -1) for one in found])
        variances = np.array([one.variance for one in found])
        total, errors = variances + noises, self._data.targets.reshape(means.shape[1:]) - means
        log_density = -0.5 * ((errors**2).sum(axis=2) / total + means.shape[2] * np.log(total))
        weights = softmax(np.log([[member.weight] for member in members]) - log_density, axis=0)
        mean = (weights[..., None] * means).sum(axis=0)
        spread = ((means - mean) ** 2).mean(axis=2)
        variance = (weights * (variances + spread)).sum(axis=0)
        alone = Marginals(mean.reshape(-1, *self._data.outputs), variance)
        return self._plug_in.surrounded(alone, n_jobs), (weights * noises).sum(axis=0)

    def noise_variance(self, kernel: Kernel, Z: Floats) -> Floats:
        """The mean of the noise variances under every θ."""
        members = self.members
        if not members:
            return super().noise_variance(kernel, Z)
        return np.asarray(sum(member.weight * noise_variance(member.data.kernel, Z) for member in members))


def _mean_and_deviations(weights: Floats, means: list[Floats]) -> tuple[Floats, Floats]:
    """Mean of means, as they are shaped, and the deviations from it: shape (members, M, t)."""
    stacked = np.array(means)
    mean = np.tensordot(weights, stacked, axes=1)
    return mean, (stacked - mean).reshape(*stacked.shape[:2], -1)
