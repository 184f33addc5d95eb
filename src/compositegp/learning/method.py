"""The base class of learning methods: parameters with checks, and a way to solve a learning problem."""

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from compositegp.learning.problem import LearningProblem

STARTS = ("data", "kernel")


class LearningMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A method of learning hyper-parameters and mean coefficients from the terms of a composite.

    A subclass stores its parameters in ``__init__``, like the estimators of scikit-learn, and solves a problem in
    `solve`. It has the parameters `tolerance` and `start`, and may have `verbose`.

    Examples
    --------
    >>> from compositegp import CompositeLikelihood
    >>> isinstance(CompositeLikelihood(), LearningMethod)
    True
    """

    tolerance: float | str | None
    start: str
    verbose: bool = False

    def check(self) -> None:
        """Check the parameters; a ValueError names the one that is wrong."""
        named = self.stops_by_prediction and self.tolerance == "prediction"
        if self.tolerance is not None and not (named or (isinstance(self.tolerance, Real) and self.tolerance > 0)):
            choices = 'a positive number, "prediction"' if self.stops_by_prediction else "a positive number"
            raise ValueError(f"tolerance must be {choices} or None; found {self.tolerance!r}.")
        if self.start not in STARTS:
            raise ValueError(f"start must be data or kernel; found {self.start!r}.")
        if not isinstance(self.verbose, bool | int | np.bool_):
            raise ValueError(f"verbose must be True or False; found {self.verbose!r}.")

    @property
    def stops_by_prediction(self) -> bool:
        """Whether the method knows the tolerance ``prediction``."""
        return False

    @property
    def conditions(self) -> bool:
        """Whether segments may be conditioned on each other."""
        return True

    def prior_spread(self, *, compared: bool) -> float | None:
        """Standard deviation of log θ a priori, where several kernels are compared or not; None for no prior."""
        return None

    @abstractmethod
    def solve(self, problem: LearningProblem) -> None:
        """Learn: leave the best estimate in ``problem.best``."""


def check_method(learning: Any, named: dict[str, type[LearningMethod]]) -> LearningMethod:
    """A learning method from its name, or from an object, whose parameters are checked."""
    if isinstance(learning, str) and learning in named:
        return named[learning]()
    if isinstance(learning, LearningMethod):
        learning.check()
        return learning
    names = ", ".join(repr(name) for name in named)
    raise ValueError(
        f"learning must be one of {names} or an object such as CompositeLikelihood(tolerance=0.01); found {learning!r}."
    )
