"""Prediction by inducing points, FITC and PITC: terms inform about inducing variables, and these about test points."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from compositegp.analysis import predict_honest_variance
from compositegp.backend import Floats
from compositegp.composite import Composite, Observations, factor_stacks, partition
from compositegp.functionals import Functionals
from compositegp.kernels import in_length_scales
from compositegp.posteriors import (
    Belief,
    Marginals,
    Surrounded,
    belief_about_inducing,
    project_belief,
    project_groups,
)
from compositegp.prediction.fitted_terms import FittedTerms
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.storage import storable
from compositegp.validation import check_count, check_points

RULES = ("fitc", "pitc")
_GROUP = 256  # test points predicted at once


@storable
class Inducing(PredictionMethod):
    """FITC and PITC: a belief about the latent values at inducing points, and from it one about the test points.

    Parameters
    ----------
    points : int or array of shape (m, d)
        The inducing points, or how many to spread over the data.
    rule : {"fitc", "pitc"}
        ``fitc``: each observation is a term. ``pitc``: each segment is a term.

    Examples
    --------
    >>> Inducing(128, "pitc")
    Inducing(points=128, rule='pitc')
    """

    def __init__(self, points: int | ArrayLike = 256, rule: str = "fitc") -> None:
        self.points = points
        self.rule = rule

    def check(self) -> None:
        """Check the parameters."""
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}; found {self.rule!r}.")
        if np.ndim(self.points) == 0:
            check_count(self.points, "points")
        elif not hasattr(self.points, "columns"):
            check_points(self.points, "points")

    def bind(self, fitted: FittedTerms, tuning: Any = None) -> "InducingPredictor":
        """The predictor for fitted data."""
        # Unknown coefficients are learned here, together with the inducing variables: an estimate from the same data
        # would count them twice.
        data = fitted.undetermined
        points = spread_points(data, int(np.asarray(self.points))) if np.ndim(self.points) == 0 else self.points
        return InducingPredictor(self, fitted, data, check_points(points, "points", data.X.shape[1]))


class InducingPredictor(Predictor):
    """Predicts from a belief about inducing variables."""

    def __init__(self, method: Inducing, fitted: FittedTerms, data: Observations, points: Floats) -> None:
        self.method = method
        self._fitted = fitted
        self._data = data
        self._points = points

    def lifted(self, functionals: Functionals) -> "InducingPredictor":
        """The same belief about the inducing variables, under the model lifted to functionals."""
        found = copy(self)
        found._data = self._data.lifted(functionals)
        found._cached_belief = self._cached_belief
        return found

    @property
    def _composite(self) -> Composite:
        assert isinstance(self.method, Inducing)
        if self.method.rule == "fitc":
            return Composite.pointwise(len(self._data.X))
        return Composite.of_segments(self._fitted.segments)

    @cached_property
    def _cached_belief(self) -> Belief:
        composite = self._composite
        return belief_about_inducing(self._data, composite, factor_stacks(self._data, composite), self._points)

    def prepare(self) -> None:
        """Collect the evidence about the inducing variables."""
        _ = self._cached_belief

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict some points at a time."""
        return project_groups(self._cached_belief, self._data, Z, _GROUP)

    def joint(self, Z: Floats) -> Belief:
        """Predict all the points jointly."""
        return project_belief(self._cached_belief, self._data.kernel, Z, self._data.mean)

    def terms(self, Z: Floats) -> tuple[Composite, Floats | None]:
        """All the terms, and the inducing points."""
        return self._composite, self._points

    def honest_variance(self, Z: Floats, claimed: Marginals | Surrounded) -> Floats:
        """Actual error variances; the mean must be known."""
        if self._data.mean.coefficients is not None:
            raise ValueError(
                "variance='honest' with inducing points needs a known mean. Use prediction=CompositeSum()."
            )
        return predict_honest_variance(self._data, self._composite, Z, _GROUP, inducing=self._points)


def spread_points(data: Observations, count: int) -> Floats:
    """At most `count` points, spread over the data (in length scales): shape (m, d)."""
    n = len(data.X)
    if count >= n:
        return np.unique(data.X, axis=0)
    scaled = in_length_scales(data.kernel, data.X)
    cells = partition(scaled, -(-n // count))
    middle = [cell[np.argmin(((scaled[cell] - scaled[cell].mean(axis=0)) ** 2).sum(axis=1))] for cell in cells]
    return np.unique(data.X[middle], axis=0)
