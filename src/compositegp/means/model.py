"""A checked mean: what a user gives is parsed once, and the rest of the library uses the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compositegp.backend import Floats
from compositegp.means.functions import (
    Basis,
    Constant,
    Estimated,
    Functions,
    Transformer,
    constant_functions,
    linear_functions,
    no_functions,
)
from compositegp.means.least_squares import check_coefficients


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
        The prior or the estimate of the coefficients; None if there are no basis functions.
    """

    known: Functions
    functions: Functions
    coefficients: Basis | Estimated | None

    def same_functions(self, other: "MeanModel") -> bool:
        """Whether another mean has the same known part and the same basis functions, whatever their coefficients."""
        constants = [one.known.value for one in (self, other) if isinstance(one.known, Constant)]
        same_known = np.array_equal(*constants) if len(constants) == 2 else self.known is other.known
        return same_known and self.functions is other.functions

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
        """Known means of the points `X`, checked: shape (n, 1), or (n, t) where t outputs have means of their own."""
        values = np.asarray(self.known(X), dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != len(X) or not np.isfinite(values).all():
            raise ValueError(
                f"mean must return one finite number for each of the {len(X)} point(s), shape ({len(X)},); "
                f"found shape {values.shape}, {np.count_nonzero(~np.isfinite(values))} not finite, from {self.known!r}."
            )
        return values.reshape(len(X), -1)


MeanLike: TypeAlias = float | Sequence[float] | Floats | str | Functions | Basis | Estimated | MeanModel | None
"""A mean as a user gives it: see `as_mean`."""


def plugged_in(mean: MeanModel) -> MeanModel:
    """A mean whose estimated coefficients are taken as known."""
    if not isinstance(mean.coefficients, Estimated):
        return mean
    return MeanModel(WithCoefficients(mean, mean.coefficients), no_functions, None)


@dataclass(frozen=True, eq=False)
class WithCoefficients:
    """A known mean: basis functions with the coefficients of an estimate.

    Attributes
    ----------
    mean : MeanModel
    estimate : Estimated
    """

    mean: MeanModel
    estimate: Estimated

    def __call__(self, X: Floats) -> Floats:
        """Means of the points `X`, shape (n, t)."""
        functions = self.mean.columns(X)
        return np.asarray(
            self.mean.values(X) + functions @ check_coefficients(self.estimate.coefficients, functions.shape[1])
        )


def as_mean(mean: MeanLike) -> MeanModel:
    """Mean model from a user's argument.

    None is a mean of zero, a number is a constant, several numbers are constants of several outputs, and a callable is
    a known mean. "constant" and "linear" are means with unknown coefficients, which have a flat prior; so is a `Basis`,
    with a prior of its own. An `Estimated` has coefficients with an error covariance.
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
    if isinstance(mean, list | tuple | np.ndarray) and np.ndim(mean) == 1 and np.size(mean):
        values = np.asarray(mean)
        if values.dtype.kind in "iuf" and np.isfinite(values).all():
            return MeanModel(Constant(values.astype(np.float64)), no_functions, None)
    raise ValueError(
        'mean must be None, a finite number, one for each output, "constant", "linear", a function of points (n, d) '
        f"that returns (n,), a Basis or an Estimated; found {mean!r}."
    )


_NAMED: dict[str, Functions] = {"constant": constant_functions, "linear": linear_functions}


def as_functions(functions: str | Functions | Transformer) -> Functions:
    """Basis functions from a name, a fitted transformer or a callable."""
    if isinstance(functions, str) and functions in _NAMED:
        return _NAMED[functions]
    if hasattr(functions, "transform"):
        return _Transformed(functions)
    if callable(functions):
        return functions
    raise ValueError(
        'functions must be "constant", "linear", a transformer or a function of points (n, d) that returns (n, q); '
        f"found {functions!r}."
    )


@dataclass(frozen=True)
class _Transformed:
    transformer: Transformer

    def __call__(self, X: Floats) -> Floats:
        values = self.transformer.transform(X)
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
