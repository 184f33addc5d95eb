"""What a regressor has learned: the model, the data, and how they predict."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Composite, Observations, Score, total_score
from compositegp.estimators.held_out import HeldOut
from compositegp.estimators.term_choice import TermChoice
from compositegp.functionals import OnFunctionals
from compositegp.kernels import noise_variance
from compositegp.learning import Average, KernelComparison, LearningResult
from compositegp.means import Basis, Estimated, MeanModel, as_mean, plugged_in
from compositegp.posteriors import Belief, Gaps
from compositegp.prediction import (
    ExactPredictor,
    FittedTerms,
    Nearest,
    PredictionMethod,
    Predictor,
    ThetaMixture,
    over_theta,
)
from compositegp.predictive import IdentityTarget, PredictiveDistribution, TargetTransform

_KEPT = ("own_segments", "composite", "data", "_fitted_terms")  # computed; tuning changes none of them


@dataclass(frozen=True, eq=False)
class TargetScale:
    """How the model sees the target: transformed, less an offset, over a scale.

    Attributes
    ----------
    transform : TargetTransform
    offset, scale : float or array of shape (t,)
    """

    transform: TargetTransform
    offset: Any
    scale: Any

    def forward(self, y: Floats) -> Floats:
        """Targets as the model sees them."""
        return np.asarray((self.transform.forward(y) - self.offset) / self.scale)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Everything that a fitted regressor knows; never changed, only replaced.

    Attributes
    ----------
    prediction : PredictionMethod
    terms : TermChoice
    target : TargetScale
    kernel : scikit-learn kernel
    mean : MeanModel
        Known, or with coefficients that are not.
    estimate : Estimated or None
        The mean's coefficients as learning found them.
    average : Average or None
        What is known of θ, for further segments to be averaged with; None where it is not to be learned.
    X, y : arrays of shape (n, d) and (n,) or (n, t)
        y is as the model sees it; both are empty where only a belief is kept.
    noise_variance : array of shape (n,) or None
    segments : list of int arrays or None
        None where they are made when they are first needed.
    result : LearningResult or None
        None where nothing was learned, or the model was read from a file.
    watched : Belief or None
        About a fixed set of test points, where that is all that is kept.
    tuning : object or None
        What the prediction method has learned from the data; None where it has learned nothing, or not yet.
    comparison : KernelComparison or None
        How the kernel was chosen, where several were compared.
    weights : array of shape (n,) or None
        The kernel's noise of an observation is divided by its weight.
    waiting : int
        How many of the last segments are single points that have not been learned from.
    """

    prediction: PredictionMethod
    terms: TermChoice
    target: TargetScale
    kernel: Kernel
    mean: MeanModel
    estimate: Estimated | None
    average: Average | None
    X: Floats
    y: Floats
    noise_variance: Floats | None
    segments: list[Indices] | None = None
    result: LearningResult | None = None
    watched: Belief | None = None
    tuning: Any = None
    comparison: KernelComparison | None = None
    weights: Floats | None = None
    waiting: int = 0

    @cached_property
    def own_segments(self) -> list[Indices]:
        """The segments of the data."""
        return self.terms.segments(self.X, self.kernel) if self.segments is None else self.segments

    @cached_property
    def composite(self) -> Composite:
        """The terms of the data."""
        return self.terms.composite_of(self.X, self.kernel, self.own_segments)

    @cached_property
    def data(self) -> Observations:
        """The data under the model: the mean is known, or its coefficients are estimated."""
        given = Observations.of(self.kernel, self.mean, self.X, self.y, self.noise_variance, self.weights)
        basis = self.mean.coefficients
        if not isinstance(basis, Basis):
            return given
        estimate = self.estimate
        if estimate is None:  # by generalized least squares over the terms
            nothing = np.zeros((given.basis.shape[1], given.n_outputs))
            normal = total_score(given, self.composite, nothing).normal
            coefficients = normal.coefficients.reshape(-1, *given.outputs)
            estimate = Estimated(basis.functions, coefficients, normal.covariance)
        return given.with_mean(as_mean(estimate))

    @cached_property
    def predictor(self) -> Predictor:
        """The prediction method at work on the data."""
        fitted = self._fitted_terms
        found = self.prediction.bind(fitted) if self.tuning is None else self.prediction.bind(fitted, self.tuning)
        return over_theta(found, fitted) if self._is_learned else found

    @property
    def _is_learned(self) -> bool:
        return self.average is not None and bool(self.average.estimate.known.any())

    @cached_property
    def _fitted_terms(self) -> FittedTerms:
        return FittedTerms(self.data, self.mean, lambda: self.own_segments, lambda _: self.composite)

    def tuned(self, n_jobs: int | None, gaps: Gaps | None = None) -> "FittedModel":
        """The model with what its prediction method learns from the data, if that is not known yet."""
        if self.tuning is not None or self.watched is not None or not len(self.X):
            return self
        heavy_tails = isinstance(self.target.transform, IdentityTarget)
        options: dict[str, Any] = {"heavy_tails": heavy_tails, "n_jobs": n_jobs}
        is_exact = isinstance(self.prediction, Nearest) and self.prediction.is_exact(len(self.X))
        exact = self.predictor if is_exact else None
        if isinstance(exact, ExactPredictor | ThetaMixture):
            found = exact.tune(**options)
        else:
            options |= {} if gaps is None else {"gaps": gaps}
            found = self.prediction.tune(self._fitted_terms, **options)
        if found is None:
            return self
        tuned = replace(self, tuning=found)
        vars(tuned).update({name: vars(self)[name] for name in _KEPT if name in vars(self)})
        if isinstance(exact, ExactPredictor | ThetaMixture):
            vars(tuned)["predictor"] = exact.tuned(found)
        return tuned

    def score(self, kernel: Kernel, n_jobs: int | None) -> Score:
        """Score of all the terms under a kernel, the coefficients of the mean as they are."""
        data = self.data.with_mean(plugged_in(self.data.mean)).with_kernel(kernel)
        return total_score(data, self.composite, np.zeros((0, data.n_outputs)), n_jobs=n_jobs)

    def with_choices(self, prediction: PredictionMethod, terms: TermChoice) -> "FittedModel":
        """The same knowledge, to be used in another way."""
        if _same_method(prediction, self.prediction) and terms.same_as(self.terms):
            return self
        return replace(self, prediction=prediction, terms=terms, tuning=None)

    def with_data(self, X: Floats, y: Floats, noise_variance: Floats | None) -> "FittedModel":
        """What was learned, to predict from other observations; y is in the target's own unit."""
        known = self.data.mean.coefficients
        return replace(
            self,
            estimate=known if isinstance(known, Estimated) else None,
            X=X,
            y=self.target.forward(y),
            noise_variance=noise_variance,
            segments=None,
            result=None,
            weights=None,
            waiting=0,
        )

    def predict(
        self, Z: Floats, *, latent: bool, extra_noise: Floats | None, joint: bool, variance: str, n_jobs: int | None
    ) -> PredictiveDistribution:
        """Predictive distribution at test points."""
        noise_of = noise_variance if self.watched is not None else self.predictor.noise_variance
        noise = new_noise(self.kernel, Z, latent, extra_noise, noise_of)
        unit = {"transform": self.target.transform, "offset": self.target.offset, "output_scale": self.target.scale}
        if self.watched is not None:
            if variance == "honest":
                raise ValueError("variance='honest' needs the data, of which a model with watch keeps none.")
            return PredictiveDistribution.of_belief(_some_of(self.watched, Z), noise, **unit)
        if joint:
            if variance == "honest":
                raise ValueError("variance='honest' is for each point alone, not for a joint prediction.")
            belief = self.predictor.joint(Z)
            if self.tuning is not None:
                unit |= self._spread(Z, self.predictor.marginals(Z, n_jobs), extra_noise)
            return PredictiveDistribution.of_belief(belief, noise, **unit)
        found = self.predictor.marginals(Z, n_jobs)
        variances = found.variance if variance == "claimed" else self.predictor.honest_variance(Z, found)
        unit |= self._spread(Z, found, extra_noise)
        return PredictiveDistribution.of_marginals(found.mean, variances + noise, **unit)

    def predict_mean(self, Z: Floats, n_jobs: int | None) -> Floats | None:
        """The mean of the target alone; None where it depends on variances, as with a transformed target."""
        if self.watched is not None or not isinstance(self.target.transform, IdentityTarget):
            return None
        return np.asarray(self.target.offset + self.target.scale * self.predictor.means(Z, n_jobs))

    @property
    def watches_functionals(self) -> bool:
        """Whether a belief about functionals is all that is kept."""
        return self.watched is not None and isinstance(self.kernel, OnFunctionals)

    def held_out(self, n_jobs: int | None, seed: int) -> list[HeldOut]:
        """Training points predicted without themselves and their nearest neighbors, at several distances."""
        return [
            HeldOut(skip, distance, *self._predicted(rows, found, noise))
            for rows, skip, distance, found, noise in self.predictor.held_out(n_jobs, seed)
        ]

    def left_out(self, n_jobs: int | None) -> PredictiveDistribution:
        """Every training point predicted without itself."""
        if len(self.X) < 2:
            raise ValueError(f"predict_leave_one_out needs at least two observations; found {len(self.X)}.")
        return self._predicted(np.arange(len(self.X)), *self.predictor.left_out(n_jobs))[0]

    def _predicted(self, rows: Indices, found: Any, noise: Floats) -> tuple[PredictiveDistribution, Floats]:
        """Predictions of observations from beliefs about their latent values, and what was observed."""
        factors, family = self.predictor.spread(self.X[rows], found, noise)
        predicted = PredictiveDistribution.of_marginals(
            found.mean,
            found.variance + noise,
            transform=self.target.transform,
            offset=self.target.offset,
            output_scale=self.target.scale,
            factors=factors,
            family=family,
        )
        return predicted, self.target.transform.inverse(self.target.offset + self.target.scale * self.y[rows])

    def _spread(self, Z: Floats, found: Any, extra_noise: Floats | None) -> dict[str, Any]:
        """Factors on standard deviations, and the family of errors: of observations, and used for the latent too."""
        factors, family = self.predictor.spread(Z, found, new_noise(self.kernel, Z, False, extra_noise))
        return {"factors": factors, "family": family}

    def __getstate__(self) -> dict[str, Any]:
        """What is stored, without what can be computed again."""
        return {name: value for name, value in vars(self).items() if name not in (*_KEPT, "predictor")}


def new_noise(
    kernel: Kernel,
    Z: Floats,
    latent: bool,
    extra: Floats | None,
    noise_of: Callable[[Kernel, Floats], Floats] = noise_variance,
) -> Floats:
    """Noise variances of new observations at `Z`: the kernel's, unless the latent is asked for, and what is added."""
    noise = np.zeros(len(Z)) if extra is None else extra
    return noise if latent else np.asarray(noise + noise_of(kernel, Z))


def _same_method(one: PredictionMethod, other: PredictionMethod) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    return all(np.array_equal(mine[name], theirs[name]) for name in mine)


def _some_of(belief: Belief, Z: Floats) -> Belief:
    """The belief about some of the points that are watched."""
    assert belief.whitened is not None
    # Adding zero makes −0 a 0, so that equal numbers have equal bytes.
    rows = {row.tobytes(): number for number, row in enumerate(belief.whitened.latent.points + 0.0)}
    chosen = [rows.get(row.tobytes(), -1) for row in Z + 0.0]
    if -1 in chosen:
        raise ValueError(
            f"X has points (the first in row {chosen.index(-1)}) that are not among those in watch, and nothing is "
            "kept that could predict them."
        )
    return Belief(belief.mean[chosen], belief.root[chosen])
