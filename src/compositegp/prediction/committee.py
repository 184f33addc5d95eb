"""Prediction by a committee of experts, one for each segment, point by point: for comparison."""

from copy import copy
from typing import Any

from compositegp.backend import Floats
from compositegp.functionals import Functionals
from compositegp.means import plugged_in
from compositegp.posteriors import Marginals, ask_committee, joined
from compositegp.prediction.fitted_terms import FittedTerms
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.storage import storable

RULES = ("bcm", "rbcm", "gpoe", "grbcm")
_GROUP = 1024  # test points predicted at once


@storable
class Committee(PredictionMethod):
    """A committee of experts, one for each segment, that are combined point by point.

    Parameters
    ----------
    rule : {"bcm", "rbcm", "gpoe", "grbcm"}
        How the experts are combined: see `committee`.

    Examples
    --------
    >>> Committee("grbcm")
    Committee(rule='grbcm')
    """

    def __init__(self, rule: str = "rbcm") -> None:
        self.rule = rule

    def check(self) -> None:
        """Check the parameters."""
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}; found {self.rule!r}.")

    def bind(self, fitted: FittedTerms, tuning: Any = None) -> "CommitteePredictor":
        """The predictor for fitted data."""
        return CommitteePredictor(self, fitted)


class CommitteePredictor(Predictor):
    """Asks the experts of all the segments."""

    def __init__(self, method: Committee, fitted: FittedTerms) -> None:
        self.method = method
        self._data = fitted.data.with_mean(plugged_in(fitted.data.mean))
        self._fitted = fitted

    def lifted(self, functionals: Functionals) -> "CommitteePredictor":
        """The same experts, under the model lifted to functionals."""
        found = copy(self)
        found._data = self._data.lifted(functionals)
        return found

    def marginals(self, Z: Floats, n_jobs: int | None) -> Marginals:
        """Predict some points at a time."""
        assert isinstance(self.method, Committee)
        segments = self._fitted.segments
        rule = self.method.rule if len(segments) > 1 else "bcm"  # with one expert all rules are the same
        parts = [
            ask_committee(self._data, Z[start : start + _GROUP], segments, rule)
            for start in range(0, len(Z), _GROUP)
        ]
        return joined(parts)
