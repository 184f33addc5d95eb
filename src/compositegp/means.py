"""Mean functions: what the process is before its covariance matters.

A mean is known (a number, or a function of the points) or a sum of basis functions whose coefficients are not:
those are learned beside the latent values (`Basis`), or were estimated elsewhere (`Estimated`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp.arrays import Floats
from compositegp.validation import check_targets

Functions = Callable[[Floats], Any]
"""A function of points (n, d) that returns their means (n,) or basis functions (n, q)."""


@dataclass(frozen=True)
class Constant:
    """The known mean μ(x) = value."""

    value: float = 0.0

    def __call__(self, X: Floats) -> Floats:
        """Means of the points `X`, shape (n,)."""
        return np.full(len(X), float(self.value))


@dataclass(frozen=True, eq=False)
class Linear:
    """The known mean μ(x) = intercept + x · coefficients.

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


@dataclass(frozen=True)
class Profile:
    """Basis functions of a level for each phase of a period, such as each hour of the week: shape (n, phases).

    Parameters
    ----------
    period : float
        In the unit of the column.
    phases : int
    column : int
        The column that counts time.
    """

    period: float
    phases: int
    column: int = 0

    def __call__(self, X: Floats) -> Floats:
        """Ones where a point is in a phase, zeros elsewhere."""
        # A little is added so that a time a rounding error short of a phase is in it.
        places = np.floor((X[:, self.column] / self.period % 1.0) * self.phases + 1e-6).astype(int) % self.phases
        functions = np.zeros((len(X), self.phases))
        functions[np.arange(len(X)), places] = 1.0
        return functions


def constant_functions(X: Floats) -> Floats:
    """The basis 1: shape (n, 1)."""
    return np.ones((len(X), 1))


def linear_functions(X: Floats) -> Floats:
    """The basis 1, x_1, …, x_d: shape (n, 1 + d)."""
    return np.concatenate([np.ones((len(X), 1)), X], axis=1)


@dataclass(frozen=True, eq=False)
class Basis:
    """A mean of basis functions with unknown coefficients β, which are learned beside the latent values.

    Parameters
    ----------
    functions : "constant", "linear", callable or fitted scikit-learn transformer
        Maps points (n, d) to basis functions (n, q).
    prior_mean : array of shape (q,), optional
        Gaussian prior of the coefficients; zero if left out.
    prior_covariance : array of shape (q, q), optional
        Left out, the prior is flat (a standard deviation of 10⁵ times the latent's, for what a function adds to it).
    """

    functions: Any
    prior_mean: Any = None
    prior_covariance: Any = None


@dataclass(frozen=True, eq=False)
class Estimated:
    """A mean of basis functions whose coefficients were estimated elsewhere, with an error covariance.

    In `posterior` and `nearest` their error is added to that of predictions (universal kriging), and the data do not
    update them. In a recursion (`prior`, `update`), and with inducing points, they are the prior that the data update.

    Parameters
    ----------
    functions : as in `Basis`
    coefficients : array of shape (q,)
    covariance : array of shape (q, q)
    """

    functions: Any
    coefficients: Any
    covariance: Any


@dataclass(frozen=True, eq=False)
class MeanModel:
    """A checked mean: a known part and basis functions, either of which may be missing.

    Attributes
    ----------
    known : callable
        Means of points (n, d), shape (n,).
    functions : callable
        Basis functions of points (n, d), shape (n, q).
    coefficients : Basis or Estimated or None
        What is known of the coefficients; None where there are no basis functions.
    """

    known: Functions
    functions: Functions
    coefficients: Basis | Estimated | None

    def columns(self, X: Floats) -> Floats:
        """Basis functions of the points `X`, checked: shape (n, q)."""
        values = np.asarray(self.functions(X), dtype=np.float64)
        if values.ndim != 2 or len(values) != len(X) or not np.isfinite(values).all():
            raise ValueError(
                f"mean must give finite basis functions of shape ({len(X)}, q) for the {len(X)} point(s); found "
                f"shape {values.shape} from {self.functions!r}."
            )
        return values

    def values(self, X: Floats) -> Floats:
        """Known means of the points `X`, checked: shape (n,)."""
        values = np.asarray(self.known(X), dtype=np.float64)
        if values.shape != (len(X),) or not np.isfinite(values).all():
            raise ValueError(
                f"mean must return one finite number for each of the {len(X)} point(s), shape ({len(X)},); "
                f"found shape {values.shape}, {np.count_nonzero(~np.isfinite(values))} not finite, from {self.known!r}."
            )
        return values


def gaussian_prior(coefficients: "Basis | Estimated | None", q: int) -> tuple[Floats, Floats] | None:
    """Precision (q, q) and mean (q,) of a Gaussian prior of a mean's coefficients; None for a flat prior."""
    if coefficients is None:
        return None
    if isinstance(coefficients, Estimated):
        mean, covariance = coefficients.coefficients, coefficients.covariance
    else:
        mean, covariance = coefficients.prior_mean, coefficients.prior_covariance
    mean = np.zeros(q) if mean is None else check_targets(mean, q, "coefficients")
    if covariance is None:
        return None
    checked = check_covariance(covariance, q)
    # In units of their own, so that an intercept far from the data and a slope keep their digits.
    variances = np.diagonal(checked)
    units = np.sqrt(np.where(variances > 0, variances, 1.0))
    values, vectors = np.linalg.eigh(checked / np.outer(units, units))
    least = 1e-12 * max(values[-1], 1.0)
    if isinstance(coefficients, Basis) and values[0] < least:
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    half = vectors / np.sqrt(np.maximum(values, least)) / units[:, None]
    return np.asarray(half @ half.T), mean


def check_covariance(covariance: Any, q: int) -> Floats:
    """Covariance of the coefficients of a mean: finite, symmetric and positive semi-definite, shape (q, q)."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.shape != (q, q) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"the covariance of the mean's coefficients must be a finite, symmetric matrix of shape ({q}, {q}); found "
            f"shape {matrix.shape}."
        )
    if q and np.linalg.eigvalsh(matrix)[0] < -1e-8 * np.abs(matrix).max():
        raise ValueError("the covariance of the mean's coefficients is not positive definite.")
    return matrix


def inflated(estimate: Estimated, factor: float) -> Basis:
    """Coefficients that are free to depart from an estimate, by errors `factor` times its own."""
    covariance = np.asarray(estimate.covariance, dtype=np.float64)
    variances = np.diagonal(covariance)
    variances = np.where(variances > 0, variances, 1.0)
    return Basis(estimate.functions, estimate.coefficients, factor**2 * (covariance + 1e-8 * np.diag(variances)))


def plugged_in(mean: MeanModel) -> MeanModel:
    """A mean whose estimated coefficients are taken as known."""
    if not isinstance(mean.coefficients, Estimated):
        return mean
    return MeanModel(_WithCoefficients(mean, np.asarray(mean.coefficients.coefficients)), no_functions, None)


@dataclass(frozen=True, eq=False)
class _WithCoefficients:
    mean: MeanModel
    coefficients: Floats

    def __call__(self, X: Floats) -> Floats:
        return np.asarray(self.mean.values(X) + self.mean.columns(X) @ self.coefficients)


def no_functions(X: Floats) -> Floats:
    """The empty basis: shape (n, 0)."""
    return np.empty((len(X), 0))


def as_mean(mean: Any) -> MeanModel:
    """Mean model from what a user gives.

    None is zero, a number a constant, a callable a known mean; "constant" and "linear" have unknown coefficients with a
    flat prior, and `Basis` and `Estimated` are what they say.
    """
    if isinstance(mean, MeanModel):
        return mean
    if isinstance(mean, Basis | Estimated):
        return MeanModel(Constant(), as_functions(mean.functions), mean)
    if isinstance(mean, str) and mean in _NAMED:
        return MeanModel(Constant(), _NAMED[mean], Basis(mean))
    if mean is None:
        return MeanModel(Constant(), no_functions, None)
    if callable(mean) and not isinstance(mean, type):
        return MeanModel(mean, no_functions, None)
    if isinstance(mean, (int, float, np.number)) and np.isfinite(mean):
        return MeanModel(Constant(float(mean)), no_functions, None)
    raise ValueError(
        'mean must be None, a finite number, "constant", "linear", a function of points (n, d) that returns (n,), '
        f"a Basis or an Estimated; found {mean!r}."
    )


_NAMED: dict[str, Functions] = {"constant": constant_functions, "linear": linear_functions}


def as_functions(functions: Any) -> Functions:
    """Basis functions from a name, a fitted transformer or a callable."""
    if isinstance(functions, str) and functions in _NAMED:
        return _NAMED[functions]
    if hasattr(functions, "transform"):
        return _Transformed(functions)
    if callable(functions):
        return functions  # type: ignore[no-any-return]
    raise ValueError(
        'functions must be "constant", "linear", a transformer or a function of points (n, d) that returns (n, q); '
        f"found {functions!r}."
    )


@dataclass(frozen=True)
class _Transformed:
    transformer: Any

    def __call__(self, X: Floats) -> Floats:
        values = self.transformer.transform(X)
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
