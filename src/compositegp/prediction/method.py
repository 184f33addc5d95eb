"""What a prediction method is: parameters that a user gives, and a predictor once there are data."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.composite import Composite, Observations
from compositegp.functionals import Functionals
from compositegp.kernels import noise_variance
from compositegp.posteriors import Belief, Gaps, Marginals, Surrounded
from compositegp.prediction.fitted_terms import FittedTerms, HeldOutPart
from compositegp.predictive import Family, Normal


class Predictor(ABC):
    """A prediction method at work on fitted data.

    Only `marginals` has to be there. Without the others a user gets an error that says what the method lacks.
    """

    method: "PredictionMethod"

    def prepare(self) -> None:  # noqa: B027  (nothing to do is a good default)
        """Do what can be done before the test points are known."""

    @abstractmethod
    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals | Surrounded:
        """Means and variances of the latent values at any number of test points, shape (M, d)."""

    def means(self, Z: Floats, n_jobs: int | None) -> Floats:
        """Means of the latent values alone, where no variance is asked for: shape (M,), or (M, t) for t outputs."""
        return self.marginals(Z, n_jobs).mean

    def lifted(self, functionals: Functionals) -> "Predictor":
        """The same predictor for rows that name functionals, in the place of test points: see `functionals.lift`."""
        raise ValueError(
            f"prediction={self.method!r} predicts f at points only. Use Nearest() or CompositeSum() for functionals."
        )

    def joint(self, Z: Floats) -> Belief:
        """Joint belief about the latent values at some test points."""
        raise ValueError(
            f"prediction={self.method!r} predicts point by point and has no joint covariance. Use Nearest() or "
            "CompositeSum() for return_cov and sample_y."
        )

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """The composite that a joint prediction at `Z` is made from, and its inducing points or None."""
        raise ValueError(
            f"prediction={self.method!r} is not made from the terms of a composite: its cost has no closed form."
        )

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """Mean squared errors, under the model, of the means that this predicts: shape (M,)."""
        raise ValueError(
            f"variance='honest' has no closed form for prediction={self.method!r}. Use CompositeSum() or Nearest()."
        )

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOutPart]:
        """Training points predicted without themselves and their K nearest: see `HeldOutPart`."""
        raise ValueError(f"validate needs prediction=Nearest(); found {self.method!r}.")

    def left_out(self, n_jobs: int | None) -> tuple[Marginals | Surrounded, Floats]:
        """Every training point predicted without itself: its latent value, and the noise variance (n,) to add."""
        raise ValueError(f"predict_leave_one_out needs prediction=Nearest(); found {self.method!r}.")

    def spread(self, Z: Floats, found: Marginals | Surrounded, noise: Floats) -> tuple[Any, Family]:
        """Factors on the standard deviations of observations, shape (M, 1) or (M, t), and the family of their errors.

        Parameters
        ----------
        Z : array of shape (M, d)
        found : Marginals
            What `marginals` returned for these points.
        noise : array of shape (M,)
            Noise variances of the observations to predict.
        """
        return 1.0, Normal()

    def noise_variance(self, kernel: Kernel, Z: Floats) -> Floats:
        """Noise variances of new observations at `Z`, shape (M,): those of the kernel, with the learned θ."""
        return np.asarray(noise_variance(kernel, Z))

    def __getstate__(self) -> dict[str, Any]:
        """What is stored, without results that can be computed again."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_cached")}


class PredictionMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to predict: which terms speak about a test point, and how they are combined.

    A subclass stores its parameters in ``__init__``, as scikit-learn's estimators do, checks them in `check`, and makes
    a `Predictor` in `bind`. That is all a new method needs.
    """

    def check(self) -> None:
        """Check the parameters; a ValueError names the one that is wrong."""

    def predicts_in_gaps(self, n_samples: int) -> bool:
        """Whether the method makes use of gaps with this many observations."""
        return False

    def held_out_crps(
        self, candidates: Sequence[Observations], *, heavy_tails: bool, n_jobs: int | None
    ) -> list[Floats] | None:
        """CRPS of training points predicted without themselves under each of several kernels; None: it has no say.

        Parameters
        ----------
        candidates : list of Observations
            The same ones under each kernel, the most likely first.
        heavy_tails : bool
        n_jobs : int or None

        Returns
        -------
        list of arrays of shape (m,), or None
            Of the same training points for all kernels.
        """
        return None

    def tune(self, fitted: FittedTerms, *, heavy_tails: bool, n_jobs: int | None, gaps: Gaps | None = None) -> Any:
        """What the method learns from the data before it predicts: a storable object, or None (the default).

        Parameters
        ----------
        fitted : FittedTerms
        heavy_tails : bool
            Whether predictive distributions may have heavy tails: not with a target transform.
        n_jobs : int or None
        gaps : Gaps, optional
            Observations that are hidden from a training point, as around points that will be predicted.
        """
        return None

    def outgrows(self, tuning: Any, n_samples: int) -> bool:
        """Whether what `tune` has learned from fewer observations is to be learned anew."""
        return False

    def check_tuning(self, tuning: Any, n_functions: int, outputs: tuple[int, ...]) -> None:
        """Check what `tune` is said to have learned, when a file is read; a ValueError says what is wrong.

        Parameters
        ----------
        tuning : object or None
        n_functions : int
            Basis functions of the mean.
        outputs : tuple of int
            () for one output, (t,) for t of them.
        """

    @abstractmethod
    def bind(self, fitted: FittedTerms, tuning: Any = None) -> Predictor:
        """The predictor for fitted data, with what `tune` has learned."""
