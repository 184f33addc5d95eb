"""What a regressor has learned: the model, the data and their segments."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices, pseudo_invert_information
from compositegp.composite import Observations, Score, total_score
from compositegp.estimators.prediction_methods import (
    INDUCING,
    CommitteeMode,
    CompositeMode,
    Fitted,
    InducingMode,
    Mode,
    NearestMode,
    inducing_points,
)
from compositegp.learning import Average, LearningResult
from compositegp.means import Basis, Estimated, as_mean, inflated, plugged_in
from compositegp.posteriors import Belief
from compositegp.predictive import AsTheyAre
from compositegp.validation import check_points

_LOCAL_SHARE = 32  # neighbours for each coefficient of the mean, at least, to be estimated from them
_LOCAL_FREEDOM = 100.0  # error of a coefficient in a neighbourhood beforehand, over that of the estimate from all


@dataclass(frozen=True, eq=False)
class Choices:
    """A regressor's parameters that say which terms there are and how they predict.

    Attributes
    ----------
    prediction : str
    conditioning_size, n_neighbors : int
    group_size : int or None
    inducing : int or array of shape (m, d)
    local_mean : bool or "auto"
    """

    prediction: str
    conditioning_size: int
    n_neighbors: int
    group_size: int | None
    inducing: Any
    local_mean: Any

    def same_as(self, other: "Choices") -> bool:
        """Whether these are the same choices."""
        return all(np.array_equal(mine, vars(other)[name]) for name, mine in vars(self).items())


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a fitted regressor knows; never changed, only replaced.

    Attributes
    ----------
    choices : Choices
    transform : AsTheyAre
        Of the target.
    offset : float
        Taken off the (transformed) target before anything else, for the sake of digits.
    kernel : scikit-learn kernel
    mean : as in `posterior`
        Of what is left: known, or with coefficients that are not.
    estimate : Estimated or None
        The mean with the coefficients that learning found.
    average : Average or None
        What is known of θ, for further segments to be averaged with; None where it is not to be learned.
    X, y : arrays of shape (n, d) and (n,)
        y is transformed and less the offset; both are empty where only a belief is kept.
    noise_variance : array of shape (n,) or None
    segments : list of int arrays
    result : LearningResult or None
        None where nothing was learned, or the model was loaded.
    watched : Belief or None
        About a fixed set of test points, where that is all that is kept.
    """

    choices: Choices
    transform: AsTheyAre
    offset: float
    kernel: Kernel
    mean: Any
    estimate: Estimated | None
    average: Average | None
    X: Floats
    y: Floats
    noise_variance: Floats | None
    segments: list[Indices]
    result: LearningResult | None = None
    watched: Belief | None = None

    @cached_property
    def fitted_mean(self) -> Any:
        """The mean with its coefficients: those learned, or by generalised least squares over the terms."""
        coefficients = as_mean(self.mean).coefficients
        if not isinstance(coefficients, Basis):
            return self.mean
        if self.estimate is not None:
            return self.estimate
        data = self._observations(self.mean)
        score = total_score(data, self._fitted(data).composite, np.zeros(data.columns.shape[1] - 1))
        covariance = pseudo_invert_information(score.normal[:-1, :-1])
        return Estimated(coefficients.functions, covariance @ score.normal[:-1, -1], covariance)

    @cached_property
    def fitted(self) -> Fitted:
        """Data, model and terms; the mean is known or estimated."""
        return self._fitted(self._observations(self.fitted_mean))

    @cached_property
    def mode(self) -> Mode:
        """The way to predict."""
        choices = self.choices
        if choices.prediction == "nearest":
            return NearestMode(self._local(), choices.n_neighbors, choices.group_size)
        if choices.prediction == "composite":
            return CompositeMode(self.fitted, choices.group_size)
        if choices.prediction not in INDUCING:
            return CommitteeMode(self.fitted, choices.prediction)
        # Unknown coefficients are learned beside the inducing variables: from the data once, not twice.
        data = self._observations(self.mean)
        given = 256 if choices.inducing is None else choices.inducing
        if isinstance(given, int | np.integer):
            given = inducing_points(data, int(given))
        points = check_points(given, "inducing", self.X.shape[1])
        return InducingMode(self._fitted(data), points, choices.prediction == "fitc")

    def score(self, kernel: Kernel, n_jobs: int | None) -> Score:
        """Score of all the terms under a kernel, the coefficients of the mean as they are."""
        data = self._observations(plugged_in(as_mean(self.fitted_mean))).with_kernel(kernel)
        return total_score(data, self.fitted.composite, np.zeros(0), n_jobs=n_jobs)

    def with_choices(self, choices: Choices) -> "State":
        """The same knowledge, to be used in another way."""
        return self if choices.same_as(self.choices) else replace(self, choices=choices)

    def _observations(self, mean: Any) -> Observations:
        return Observations.checked(self.kernel, self.X, self.y, mean=mean, noise_variance=self.noise_variance)

    def _fitted(self, data: Observations) -> Fitted:
        return Fitted(data, self.segments, self.choices.conditioning_size)

    def _local(self) -> Fitted:
        """Data whose mean's coefficients are free in every neighbourhood, if it is large enough to tell them."""
        mean, local = self.fitted_mean, self.choices.local_mean
        if self.mean is mean or not isinstance(mean, Estimated):
            return self.fitted
        if local == "auto":
            local = len(mean.coefficients) * _LOCAL_SHARE <= self.choices.n_neighbors < len(self.X)
        return self._fitted(self._observations(inflated(mean, _LOCAL_FREEDOM))) if local else self.fitted

    def __getstate__(self) -> dict[str, Any]:
        """What is stored, without what can be computed again."""
        lazy = {"fitted_mean", "fitted", "mode"}
        return {name: value for name, value in vars(self).items() if name not in lazy}
