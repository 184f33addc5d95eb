"""Predictive distributions: Gaussian on the model's scale, told in the user's unit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from compositegp.arrays import Floats, add_to_diagonal
from compositegp.estimators.fitting import default_kernel
from compositegp.estimators.honest import honest_variance
from compositegp.estimators.inputs import read_points
from compositegp.estimators.scaling import Scaling
from compositegp.estimators.state import State
from compositegp.estimators.targets import AsTheyAre, Log, quantile
from compositegp.kernels import diagonal
from compositegp.linalg import psd_root
from compositegp.means import as_mean
from compositegp.posteriors import Belief, Marginals, prior
from compositegp.validation import check_count, check_noise_variance

VARIANCES = ("claimed", "honest")


@dataclass(frozen=True, eq=False)
class Predictive:
    """A prediction at M points, Gaussian on the scale of a transformed target.

    Attributes
    ----------
    transform : AsTheyAre
    mean, variance : arrays of shape (M,)
    covariance : array of shape (M, M) or None
        Where the prediction is joint.
    """

    transform: AsTheyAre
    mean: Floats
    variance: Floats
    covariance: Floats | None = None

    def mean_and_std(self) -> tuple[Floats, Floats]:
        """Means and standard deviations in the user's unit."""
        return self.transform.moments(self.mean, np.sqrt(self.variance))

    def mean_and_covariance(self) -> tuple[Floats, Floats]:
        """Means and covariance in the user's unit."""
        assert self.covariance is not None
        return self.transform.covariance(self.mean, self.covariance)

    def quantile(self, level: float) -> Floats:
        """Quantile in the user's unit."""
        return quantile(self.transform, self.mean, np.sqrt(self.variance), level)

    def sample(self, n_samples: int, generator: Any) -> Floats:
        """Joint samples in the user's unit, shape (M, n_samples)."""
        assert self.covariance is not None
        root = psd_root(self.covariance)
        normal = generator.standard_normal((root.shape[1], check_count(n_samples, "n_samples")))
        return self.transform.inverse(self.mean[:, None] + root @ normal)


def predictive(
    estimator: Any, state: State | None, X: Any, *, latent: bool, noise_variance: Any, joint: bool, variance: str
) -> Predictive:
    """Prediction of an estimator in a state, or before any data (None)."""
    if variance not in VARIANCES:
        raise ValueError(f"variance must be one of {', '.join(VARIANCES)}; found {variance!r}.")
    if variance == "honest" and joint:
        raise ValueError("variance='honest' is for each point alone. Use return_std, or variance='claimed'.")
    if state is None:
        return _before_data(estimator, X, latent=latent, noise_variance=noise_variance, joint=joint)
    points = read_points(estimator, X)
    Z = state.scaling.points(points)
    extra = _noise(state.kernel, Z, latent) * state.scaling.unit**2 + _given_noise(noise_variance, len(Z))
    if state.watched is not None:
        belief = _watched(state.watched, Z)
        return _of_belief(state.transform, state.scaling, belief, extra, joint)
    if joint:
        return _of_belief(state.transform, state.scaling, state.mode.joint(Z), extra, joint)
    if variance == "honest":
        marginals = honest_variance(state.mode, Z, state.choices)
    else:
        marginals = state.mode.marginals(Z, state.choices.n_jobs)
    mean, latent_variance = state.scaling.restore(marginals)
    return Predictive(state.transform, mean, latent_variance + extra)


def _of_belief(transform: AsTheyAre, scaling: Scaling, belief: Belief, extra: Floats, joint: bool) -> Predictive:
    mean, variance = scaling.restore(Marginals(belief.mean, belief.variance))
    covariance = None
    if joint:
        covariance = scaling.unit**2 * belief.covariance
        add_to_diagonal(covariance, extra)
    return Predictive(transform, mean, variance + extra, covariance)


def _before_data(estimator: Any, X: Any, *, latent: bool, noise_variance: Any, joint: bool) -> Predictive:
    """The prior, where it is known before any data."""
    transform = Log() if isinstance(estimator.target_transform, str) else AsTheyAre()
    known = estimator.mean is None or not (isinstance(estimator.mean, str) or hasattr(estimator.mean, "fit"))
    known = known and as_mean(estimator.mean).coefficients is None
    if not known or (estimator.target_transform is not None and not isinstance(transform, Log)):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet, and its mean or target_transform has to be "
            "learned from data. Call fit first."
        )
    Z = check_array(X, dtype=np.float64, order="C")
    kernel = default_kernel(Z.shape[1]) if estimator.kernel is None else clone(estimator.kernel)
    extra = _noise(kernel, Z, latent) + _given_noise(noise_variance, len(Z))
    if joint:
        belief = prior(kernel, Z, mean=estimator.mean)
        return _of_belief(transform, Scaling.none(Z.shape[1]), belief, extra, joint)
    return Predictive(transform, as_mean(estimator.mean).values(Z), diagonal(kernel, Z, noise=False) + extra)


def _noise(kernel: Any, Z: Floats, latent: bool) -> Floats:
    """Noise variances, by the kernel, of new observations at `Z`."""
    if latent:
        return np.zeros(len(Z))
    return np.asarray(np.maximum(diagonal(kernel, Z) - diagonal(kernel, Z, noise=False), 0.0))


def _given_noise(noise_variance: Any, count: int) -> Floats | float:
    variances = check_noise_variance(noise_variance, count)
    return 0.0 if variances is None else variances


def _watched(belief: Belief, Z: Floats) -> Belief:
    """The belief about some of the points that are watched."""
    assert belief.whitened is not None
    rows = {row.tobytes(): number for number, row in enumerate(belief.whitened.latent.points)}
    chosen = [rows.get(row.tobytes(), -1) for row in Z]
    if -1 in chosen:
        raise ValueError(
            f"X has points (the first in row {chosen.index(-1)}) that are not among those in watch, and nothing is "
            "kept that could tell about them."
        )
    return Belief(belief.mean[chosen], belief.root[chosen])
