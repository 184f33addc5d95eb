"""Mean functions: what the process is before its covariance matters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp.arrays import Floats

Mean = Callable[[Floats], Any]
"""A function of points (n, d) that returns their means (n,)."""


@dataclass(frozen=True)
class Constant:
    """The mean μ(x) = value."""

    value: float = 0.0

    def __call__(self, X: Floats) -> Floats:
        """Means of the points `X`, shape (n,)."""
        return np.full(len(X), float(self.value))


@dataclass(frozen=True)
class Linear:
    """The mean μ(x) = intercept + x · coefficients.

    Parameters
    ----------
    coefficients : array of shape (d,)
    intercept : float
    """

    coefficients: Any
    intercept: float = 0.0

    def __call__(self, X: Floats) -> Floats:
        """Means of the points `X`, shape (n,)."""
        coefficients = np.atleast_1d(np.asarray(self.coefficients, dtype=np.float64))
        if coefficients.shape != X.shape[1:]:
            raise ValueError(
                f"mean has coefficients of shape {coefficients.shape}, but the points have {X.shape[1]} "
                "column(s). Give one coefficient for each column."
            )
        return np.asarray(X @ coefficients + self.intercept)


def as_mean(mean: Any) -> Mean:
    """Mean function from what a user gives: None (zero), a number (constant), or a callable of points."""
    if mean is None:
        return Constant()
    if callable(mean):
        return mean  # type: ignore[no-any-return]
    if isinstance(mean, (int, float, np.number)) and np.isfinite(mean):
        return Constant(float(mean))
    raise ValueError(
        f"mean must be None, a finite number, or a function of points (n, d) that returns (n,); found {mean!r}."
    )


def evaluate_mean(mean: Mean, X: Floats) -> Floats:
    """Means of the points `X`, shape (n,), with the function's answer checked."""
    values = np.asarray(mean(X), dtype=np.float64)
    if values.shape != (len(X),) or not np.isfinite(values).all():
        raise ValueError(
            f"mean must return one finite number for each of the {len(X)} point(s), shape ({len(X)},); "
            f"found shape {values.shape} from {mean!r}."
        )
    return values
