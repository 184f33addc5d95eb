"""What a regressor has learned: the model, the data and their segments, in the kernel's units."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, Indices
from compositegp.composite import Observations
from compositegp.estimators.modes import (
    INDUCING,
    CommitteeMode,
    CompositeMode,
    Fitted,
    InducingMode,
    Mode,
    NearestMode,
    inducing_points,
)
from compositegp.estimators.scaling import Scaling
from compositegp.estimators.targets import AsTheyAre
from compositegp.learning import LearningResult
from compositegp.learning.averaging import Average
from compositegp.learning.information import pseudo_invert_information
from compositegp.learning.passes import total_score
from compositegp.means import Basis, Estimated, as_mean
from compositegp.posteriors import Belief
from compositegp.validation import check_points


@dataclass(frozen=True, eq=False)
class Choices:
    """A regressor's parameters that say which terms there are and how they predict.

    Attributes
    ----------
    prediction : str
    conditioning_size, n_neighbors : int
    group_size : int or None
    inducing : int or array of shape (m, d), in the data's units
    n_jobs : int or None
    """

    prediction: str
    conditioning_size: int
    n_neighbors: int
    group_size: int | None
    inducing: Any
    n_jobs: int | None

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
    scaling : Scaling
    kernel : scikit-learn kernel
    mean : as in `posterior`
        In the kernel's units: known, or with coefficients that are not.
    estimate : Estimated or None
        The mean with the coefficients that learning found.
    average : Average or None
        What is known of θ, for further segments to be averaged with.
    X, y : arrays of shape (n, d) and (n,)
        In the kernel's units, the target transformed; empty where only a belief is kept.
    noise_variance : array of shape (n,) or None
    segments : list of int arrays
    result : LearningResult or None
        None where nothing was learned, or the model was loaded.
    watched : Belief or None
        About a fixed set of test points, where that is all that is kept.
    """

    choices: Choices
    transform: AsTheyAre
    scaling: Scaling
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

    def observations(self, kernel: Kernel | None = None, *, mean: Any = None) -> Observations:
        """The data under the model's kernel, or another."""
        return Observations.checked(
            self.kernel if kernel is None else kernel,
            self.X,
            self.y,
            mean=self.mean if mean is None else mean,
            noise_variance=self.noise_variance,
        )

    @cached_property
    def fitted_mean(self) -> Any:
        """The mean with its coefficients: those learned, or by generalised least squares over the terms."""
        if not isinstance(as_mean(self.mean).coefficients, Basis):
            return self.mean
        if self.estimate is not None:
            return self.estimate
        data = self.observations()
        functions = as_mean(self.mean).coefficients.functions  # type: ignore[union-attr]
        terms = Fitted(data, self.segments, self.choices.conditioning_size).composite
        score = total_score(data, terms, np.zeros(data.columns.shape[1] - 1), n_jobs=self.choices.n_jobs)
        covariance = pseudo_invert_information(score.normal[:-1, :-1])
        return Estimated(functions, covariance @ score.normal[:-1, -1], covariance)

    @cached_property
    def fitted(self) -> Fitted:
        """Data, model and terms, ready to predict from."""
        return Fitted(self.observations(mean=self.fitted_mean), self.segments, self.choices.conditioning_size)

    @cached_property
    def mode(self) -> Mode:
        """The way to predict."""
        choices = self.choices
        if choices.prediction == "nearest":
            return NearestMode(self.fitted, choices.n_neighbors, choices.group_size)
        if choices.prediction == "composite":
            return CompositeMode(self.fitted, choices.group_size)
        if choices.prediction not in INDUCING:
            return CommitteeMode(self.fitted, choices.prediction)
        given = 256 if choices.inducing is None else choices.inducing
        if not isinstance(given, int | np.integer):
            given = self.scaling.points(check_points(given, "inducing", self.X.shape[1]))
        return InducingMode(self.fitted, inducing_points(self.fitted.data, given), choices.prediction == "fitc")

    def log_likelihood(self, kernel: Kernel) -> Any:
        """Score of all the terms under a kernel, the coefficients of the mean as they are."""
        estimate = self.fitted_mean if isinstance(self.fitted_mean, Estimated) else None
        coefficients = np.zeros(0) if estimate is None else np.asarray(estimate.coefficients)
        data = self.fitted.data.with_kernel(kernel)
        return total_score(data, self.fitted.composite, coefficients, n_jobs=self.choices.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        """What is stored, without what can be computed again."""
        lazy = {"fitted_mean", "fitted", "mode"}
        return {name: value for name, value in vars(self).items() if name not in lazy}

    def with_choices(self, choices: Choices) -> "State":
        """The same knowledge, to be used in another way."""
        return self if choices.same_as(self.choices) else replace(self, choices=choices)
