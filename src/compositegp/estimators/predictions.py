"""The ways to ask a regressor for predictions."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from compositegp.backend import Floats
from compositegp.estimators.inputs import read_points
from compositegp.estimators.knowledge import Knowledge
from compositegp.estimators.predictive import Predictive, check_variance, predict_before_data, predict_state


class Predictions(Knowledge):
    """Means, error bars, quantiles, intervals and samples."""

    n_jobs: int | None

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        latent: bool = False,
        noise_variance: Any = None,
        variance: str = "claimed",
    ) -> Any:
        """Predict the target: its mean and, if asked for, standard deviation or joint covariance.

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        return_std : bool
        return_cov : bool
            All of `X` is then one group, predicted jointly.
        latent : bool
            The one switch for what an error bar is about: False (default) a new observation y, noise of the kernel's
            WhiteKernel included, as scikit-learn has it; True the noise-free f. The mean is the same, except with a
            `target_transform`.
        noise_variance : None, number or array of shape (M,)
            Noise of the new observations beside the kernel's own.
        variance : {"claimed", "honest"}
            What the composite's belief claims, or the mean squared error that its mean really has under the model:
            with ``prediction="composite"`` segments that share information make the claim too small. For ``nearest``
            the two are the same. ``honest`` takes time that grows as n² for every group.

        Returns
        -------
        mean : array of shape (M,)
        std : array of shape (M,)
            With `return_std`.
        cov : array of shape (M, M)
            With `return_cov`.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        found = self._predictive(X, latent, noise_variance, joint=return_cov, variance=variance)
        if return_cov:
            return found.mean_and_covariance()
        mean, std = found.mean_and_std()
        return (mean, std) if return_std else mean

    def predict_quantiles(
        self, X: Any, q: Any = (0.05, 0.5, 0.95), *, latent: bool = False, noise_variance: Any = None
    ) -> Floats:
        """Quantiles of the target (or of the latent f).

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        q : float or sequence of floats between 0 and 1
        latent, noise_variance
            As for `predict`.

        Returns
        -------
        array of shape (M, len(q)), or (M,) for a single number
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q must be a number, or numbers, between 0 and 1; found {q!r}.")
        found = self._predictive(X, latent, noise_variance)
        if levels.ndim == 0:
            return found.quantile(float(levels))
        return np.stack([found.quantile(level) for level in levels], axis=1)

    def predict_interval(
        self, X: Any, level: float = 0.95, *, latent: bool = False, noise_variance: Any = None
    ) -> tuple[Floats, Floats]:
        """Ends of the central interval that holds the target (or the latent f) with probability `level`.

        Parameters
        ----------
        X : array or data frame of shape (M, d)
        level : float
            Between 0 and 1.
        latent, noise_variance
            As for `predict`.

        Returns
        -------
        lower, upper : arrays of shape (M,)
        """
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level must be a number between 0 and 1, such as 0.95; found {level!r}.")
        tails = [0.5 - level / 2, 0.5 + level / 2]
        lower, upper = self.predict_quantiles(X, tails, latent=latent, noise_variance=noise_variance).T
        return lower, upper

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, latent: bool = False, noise_variance: Any = None
    ) -> Floats:
        """Draw joint samples at `X`: shape (M, n_samples).

        Parameters are those of `predict`; all of `X` is one group.
        """
        found = self._predictive(X, latent, noise_variance, joint=True)
        return found.sample(n_samples, check_random_state(random_state))

    def _predictive(
        self, X: Any, latent: bool, noise_variance: Any, *, joint: bool = False, variance: str = "claimed"
    ) -> Predictive:
        check_variance(variance)
        if not self.__sklearn_is_fitted__():
            return predict_before_data(self, X, latent=latent, noise_variance=noise_variance, joint=joint)
        with self._on_device():
            return predict_state(
                self._current(),
                read_points(self, X),
                latent=latent,
                noise_variance=noise_variance,
                joint=joint,
                variance=variance,
                n_jobs=self.n_jobs,
            )
