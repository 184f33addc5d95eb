"""Mean functions: known ones, and sums of basis functions whose coefficients are learned.

The coefficients of a `Basis` are learned together with the latent values. The coefficients of an `Estimated` were
estimated before, and come with an error covariance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Floats, Indices

_MOST_PHASES = 100_000  # of a period: each point has a number for each of them

Functions: TypeAlias = Callable[[Floats], Any]
"""A function of points (n, d) that returns their means (n,) or basis functions (n, q)."""


class Transformer(Protocol):
    """A fitted transformer of scikit-learn, whose columns are basis functions."""

    def transform(self, X: Any) -> Any:
        """Basis functions (n, q) of points (n, d)."""


@dataclass(frozen=True)
class Constant:
    """The known mean μ(x) = value.

    Parameters
    ----------
    value : float, or array of shape (t,) for t outputs

    Examples
    --------
    >>> Constant(3.0)(np.zeros((2, 1)))
    array([3., 3.])
    """

    value: Any = 0.0

    def __call__(self, X: Floats) -> Floats:
        """Means of the points `X`, shape (n,) or (n, t)."""
        return np.full((len(X), *np.shape(self.value)), self.value, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Linear:
    """The known mean μ(x) = intercept + x · coefficients.

    Parameters
    ----------
    coefficients : array of shape (d,)
    intercept : float

    Examples
    --------
    >>> Linear([2.0], intercept=1.0)(np.array([[0.0], [5.0]]))
    array([ 1., 11.])
    """

    coefficients: ArrayLike
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
class PeriodicLevels:
    """Basis functions for one level in each phase of a period, such as each hour of the week: shape (n, phases).

    Parameters
    ----------
    period : float
        In the unit of the column.
    phases : int
    column : int
        The column that counts time.

    Examples
    --------
    >>> PeriodicLevels(24.0, 2)(np.array([[1.0], [13.0], [25.0]]))
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """

    period: float
    phases: int
    column: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.period, int | float | np.number) or not 0 < self.period < np.inf:
            raise ValueError(f"period must be a finite number above zero; found {self.period!r}.")
        if not isinstance(self.phases, int | np.integer) or not 1 <= self.phases <= _MOST_PHASES:
            raise ValueError(f"phases must be a whole number from 1 to {_MOST_PHASES}; found {self.phases!r}.")
        if not isinstance(self.column, int | np.integer) or self.column < 0:
            raise ValueError(f"column must be a column number counted from zero; found {self.column!r}.")

    def __call__(self, X: Floats) -> Floats:
        """Ones where a point is in a phase, zeros elsewhere."""
        functions = np.zeros((len(X), self.phases))
        functions[np.arange(len(X)), phase_of(X[:, self.column], self.period, self.phases)] = 1.0
        return functions


@dataclass(frozen=True)
class LinearIn:
    """The basis 1 and some of the columns: a drift in covariates, shape (n, 1 + columns).

    Parameters
    ----------
    columns : tuple of int

    Examples
    --------
    >>> LinearIn((2,))(np.array([[0.0, 0.0, 7.0]]))
    array([[1., 7.]])
    """

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(column, int | np.integer) and column >= 0 for column in self.columns):
            raise ValueError(f"columns must be column numbers counted from zero; found {self.columns!r}.")

    def __call__(self, X: Floats) -> Floats:
        """Basis functions of the points `X`."""
        return linear_functions(X[:, list(self.columns)])


def phase_of(times: Floats, period: float, phases: int) -> Indices:
    """Phase, counted from 0 to `phases` − 1, in which each time of a period lies: shape (n,)."""
    # The small number puts a time that is just below a phase, by a rounding error, into that phase.
    return np.asarray(np.floor((times / period % 1.0) * phases + 1e-6).astype(np.intp) % phases)


def constant_functions(X: Floats) -> Floats:
    """The basis 1: shape (n, 1)."""
    return np.ones((len(X), 1))


def linear_functions(X: Floats) -> Floats:
    """The basis 1, x_1, …, x_d: shape (n, 1 + d)."""
    return np.concatenate([np.ones((len(X), 1)), X], axis=1)


@dataclass(frozen=True, eq=False)
class Basis:
    """A mean of basis functions with unknown coefficients β, which are learned together with the latent values.

    Parameters
    ----------
    functions : "constant", "linear", callable or fitted scikit-learn transformer
        Maps points (n, d) to basis functions (n, q).
    prior_mean : array of shape (q,), optional
        Mean of the Gaussian prior of the coefficients; zero if left out.
    prior_covariance : array of shape (q, q), optional
        If left out, the prior is flat: what a basis function adds to the mean has a standard deviation of 10⁵ times
        that of the latent values.

    Examples
    --------
    The mean β₀ + β₁ x², learned from two points:

    >>> from compositegp import Composite, posterior
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> mean = Basis(lambda X: np.concatenate([np.ones_like(X), X**2], axis=1))
    >>> kernel, X = 1e-4 * RBF() + WhiteKernel(1e-6), [[0.0], [1.0]]
    >>> posterior(kernel, X, [1.0, 4.0], [[2.0]], Composite.full(2), mean=mean).coefficients.round(2)
    array([1., 3.])
    """

    functions: str | Functions | Transformer
    prior_mean: ArrayLike | None = None
    prior_covariance: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Estimated:
    """A mean of basis functions whose coefficients were estimated before, with an error covariance.

    In `posterior` and `nearest` the error of the coefficients is added to the error of predictions (universal kriging),
    and the data do not update them. In a recursion (`prior`, `update`), and with inducing points, they are the prior,
    and the data update them.

    Parameters
    ----------
    functions : as in `Basis`
    coefficients : array of shape (q,), or (q, t) for t outputs
    covariance : array of shape (q, q)

    Examples
    --------
    A level of 10 ± 0.5. Far from the data a prediction has the error of the level and that of the latent values:

    >>> from compositegp import Composite, posterior
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> mean = Estimated("constant", [10.0], [[0.25]])
    >>> belief = posterior(RBF() + WhiteKernel(0.1), [[0.0]], [11.0], [[99.0]], Composite.full(1), mean=mean)
    >>> belief.mean, belief.variance
    (array([10.]), array([1.25]))
    """

    functions: str | Functions | Transformer
    coefficients: ArrayLike
    covariance: ArrayLike


def no_functions(X: Floats) -> Floats:
    """The empty basis: shape (n, 0)."""
    return np.empty((len(X), 0))


def inflated(estimate: Estimated, factor: float) -> Basis:
    """Unknown coefficients whose prior is an estimate, with `factor` times its standard deviations."""
    covariance = np.asarray(estimate.covariance, dtype=np.float64)
    variances = np.diagonal(covariance)
    variances = np.where(variances > 0, variances, 1.0)
    return Basis(estimate.functions, estimate.coefficients, factor**2 * (covariance + 1e-8 * np.diag(variances)))
