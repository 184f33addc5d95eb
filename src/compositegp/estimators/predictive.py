"""Predictive distributions: Gaussian on the model's scale, told in the user's unit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from compositegp.backend import Floats, add_to_diagonal, psd_root
from compositegp.estimators.fitted_model import State
from compositegp.estimators.fitting import default_kernel
from compositegp.estimators.honest import honest_variance
from compositegp.kernels import diagonal
from compositegp.means import as_mean
from compositegp.posteriors import Belief, prior
from compositegp.predictive import AsTheyAre, Log, quantile
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

    @classmethod
    def of_belief(cls, transform: AsTheyAre, offset: float, belief: Belief, noise: Floats) -> "Predictive":
        """Joint prediction from a belief about the latent values and the variances of independent noise."""
        covariance = belief.covariance.copy()
        add_to_diagonal(covariance, noise)
        return cls(transform, offset + belief.mean, belief.variance + noise, covariance)

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


def predict_state(
    state: State, Z: Floats, *, latent: bool, noise_variance: Any, joint: bool, variance: str, n_jobs: int | None
) -> Predictive:
    """Prediction at test points by what a fitted estimator knows."""
    noise = _noise(state.kernel, Z, latent, noise_variance)
    if variance != "claimed" and (joint or state.watched is not None):
        what = "is for each point alone. Use return_std" if joint else "needs the data, of which watch keeps none"
        raise ValueError(f"variance={variance!r} {what}, or variance='claimed'.")
    if state.watched is not None:
        return Predictive.of_belief(state.transform, state.offset, _watched(state.watched, Z), noise)
    if joint:
        return Predictive.of_belief(state.transform, state.offset, state.mode.joint(Z), noise)
    found = state.mode.marginals(Z, n_jobs)
    variances = honest_variance(state, Z, found) if variance == "honest" else found.variance
    return Predictive(state.transform, state.offset + found.mean, variances + noise)


def predict_before_data(estimator: Any, X: Any, *, latent: bool, noise_variance: Any, joint: bool) -> Predictive:
    """Prediction by the prior, where that is known before any data."""
    log = isinstance(estimator.target_transform, str) and estimator.target_transform == "log"
    fixed = not hasattr(estimator.mean, "fit") and as_mean(estimator.mean).coefficients is None
    if not fixed or not (log or estimator.target_transform is None):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet, and its mean or target_transform has to be "
            "learned from data. Call fit first."
        )
    Z = check_array(X, dtype=np.float64, order="C")
    kernel = default_kernel(Z.shape[1]) if estimator.kernel is None else clone(estimator.kernel)
    transform = Log() if log else AsTheyAre()
    noise = _noise(kernel, Z, latent, noise_variance)
    if joint:
        return Predictive.of_belief(transform, 0.0, prior(kernel, Z, mean=estimator.mean), noise)
    return Predictive(transform, as_mean(estimator.mean).values(Z), diagonal(kernel, Z, noise=False) + noise)


def check_variance(variance: Any) -> str:
    """The name of a kind of variance."""
    if not isinstance(variance, str) or variance not in VARIANCES:
        raise ValueError(f"variance must be one of {', '.join(VARIANCES)}; found {variance!r}.")
    return variance


def _noise(kernel: Any, Z: Floats, latent: bool, noise_variance: Any) -> Floats:
    """Noise variances of new observations at `Z`: by the kernel, unless the latent is asked for, and as given."""
    given = check_noise_variance(noise_variance, len(Z))
    noise = np.zeros(len(Z)) if given is None else given
    if latent:
        return noise
    return np.asarray(noise + np.maximum(diagonal(kernel, Z) - diagonal(kernel, Z, noise=False), 0.0))


def _watched(belief: Belief, Z: Floats) -> Belief:
    """The belief about some of the points that are watched."""
    assert belief.whitened is not None
    # Adding zero makes −0 a 0, so that equal numbers have equal bytes.
    rows = {row.tobytes(): number for number, row in enumerate(belief.whitened.latent.points + 0.0)}
    chosen = [rows.get(row.tobytes(), -1) for row in Z + 0.0]
    if -1 in chosen:
        raise ValueError(
            f"X has points (the first in row {chosen.index(-1)}) that are not among those in watch, and nothing is "
            "kept that could tell about them."
        )
    return Belief(belief.mean[chosen], belief.root[chosen])
