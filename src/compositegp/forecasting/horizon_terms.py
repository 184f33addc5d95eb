"""Terms of the task: each step of a horizon given the values before its origin, Σ log p(y_step | past).

A window is an origin with the values before it, at some lags, and the values after it, at some steps. For a kernel of
the time difference all windows without missing values have the same covariances, so that one factorization serves all
of them: their forecasts are one matrix product. This is the conditional composite whose terms are (past and one step,
weight 1) and (past, weight −1), in order of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.kernels import gram, linearize, noise_variance

_JITTER = 1e-8  # added to the variance of the past, over that of the series


def covariances(kernel: Kernel, count: int) -> Floats:
    """Covariances of observations that are 0, 1, …, `count` − 1 steps apart; noise counts at lag 0.

    Parameters
    ----------
    kernel : scikit-learn kernel of the time in steps
    count : int

    Returns
    -------
    array of shape (count,)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> covariances(Matern(2.0, nu=0.5) + WhiteKernel(0.5), 3).round(3)
    array([1.5  , 0.607, 0.368])
    """
    lags, origin = np.arange(float(count))[:, None], np.zeros((1, 1))
    found = np.asarray(gram(kernel, lags, origin))[:, 0].copy()
    found[0] += np.asarray(noise_variance(kernel, origin))[0]
    return found


def covariances_and_slopes(kernel: Kernel, count: int) -> tuple[Floats, Floats]:
    """The same, and their derivatives in kernel.theta: shapes (count,) and (p, count)."""
    # Pairs of points: the origin and a lag. Their Gram matrices are 2 × 2, with noise in the diagonal.
    pairs = np.zeros((count, 2, 1))
    pairs[:, 1, 0] = np.arange(count)
    linearized = linearize(kernel, pairs)
    value, jacobian = np.asarray(linearized.value), np.asarray(linearized.jacobian())
    found, slopes = value[:, 0, 1].copy(), jacobian[:, :, 0, 1].T.copy()
    found[0], slopes[:, 0] = value[0, 0, 0], jacobian[0, :, 0, 0]
    return found, slopes


class Filter(NamedTuple):
    """How the past forecasts the steps of a horizon.

    Attributes
    ----------
    weights : array of shape (m, n)
        Of the values at the lags, in the forecast of each step.
    variance : array of shape (m,)
        Variance of its error, noise included.
    """

    weights: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class Geometry:
    """The lags and the steps that windows have in common.

    Attributes
    ----------
    lags : array of int, shape (n,)
        Steps before the origin, at least 1, of the values that are known.
    steps : array of int, shape (m,)
        Steps after the origin, at least 0, of the values that are forecast.
    """

    lags: Indices
    steps: Indices

    @property
    def reach(self) -> int:
        """Number of different lags between all the values."""
        return int(self.lags.max(initial=0) + self.steps.max(initial=0)) + 1

    @cached_property
    def inner(self) -> Indices:
        """Lags between the known values: shape (n, n)."""
        return np.asarray(np.abs(self.lags[:, None] - self.lags))

    @cached_property
    def outer(self) -> Indices:
        """Lags between the known values and the steps: shape (n, m)."""
        return np.asarray(self.lags[:, None] + self.steps)

    def only(self, known: Floats) -> "Geometry":
        """The geometry with some of the lags, given as a boolean array of shape (n,)."""
        return Geometry(self.lags[np.asarray(known, dtype=bool)], self.steps)

    def filter(self, k: Floats) -> Filter:
        """How the past forecasts the steps, from the covariances k by lag."""
        if not len(self.lags):
            return Filter(np.zeros((len(self.steps), 0)), np.full(len(self.steps), k[0]))
        weights = cho_solve(self._factor(k), k[self.outer], check_finite=False)
        return Filter(weights.T, k[0] - (k[self.outer] * weights).sum(axis=0))

    def weights(self, k: Floats, parts: Sequence[Floats]) -> list[Floats]:
        """Weights (m, n) of the past in the forecast of each part of the series, which have covariances by lag."""
        if not len(self.lags):
            return [np.zeros((len(self.steps), 0)) for _ in parts]
        factor = self._factor(k)
        return [np.asarray(cho_solve(factor, part[self.outer], check_finite=False).T) for part in parts]

    def _factor(self, k: Floats) -> tuple[Floats, bool]:
        matrix = k[self.inner]
        matrix[np.diag_indices(len(matrix))] += _JITTER * k[0]
        factor, lower = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(factor), bool(lower)


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one geometry.

    Attributes
    ----------
    geometry : Geometry
    past : array of shape (n, D)
        Known values before each of D origins, none of them missing.
    ahead : array of shape (m, D)
        Values to be forecast; those that are missing (NaN) do not count.
    """

    geometry: Geometry
    past: Floats
    ahead: Floats

    def log_scores(self, k: Floats) -> Floats:
        """Σ_steps log p(y_step | past) of each window, from the covariances k by lag: shape (D,)."""
        weights, variance = self.geometry.filter(k)
        errors = self.ahead - weights @ self.past
        v = variance[:, None]
        return np.asarray(np.nansum(-0.5 * (errors**2 / v + np.log(2 * np.pi * v)), axis=0))

    def score(self, k: Floats) -> tuple[float, Floats]:
        """Σ log p(y_step | past) over windows and steps, and its derivative in k: a number, shape (reach,)."""
        geometry = self.geometry
        factor, outer = geometry._factor(k), k[geometry.outer]
        weights = cho_solve(factor, outer, check_finite=False)  # (n, m)
        solved = cho_solve(factor, self.past, check_finite=False)
        v = (k[0] - (outer * weights).sum(axis=0))[:, None]
        if v.min() <= 0:
            raise LinAlgError("a forecast's variance is not positive")
        there = np.isfinite(self.ahead)
        errors = np.where(there, self.ahead - weights.T @ self.past, 0.0)
        value = -0.5 * float((there * (errors**2 / v + np.log(2 * np.pi * v))).sum())
        # The adjoints of the errors (m, D) and of the variances (m,), then those of the covariances.
        by_error = -errors / v
        by_variance = (0.5 * there * (errors**2 / v - 1) / v).sum(axis=1)
        crossed = by_error @ solved.T  # (m, n)
        by_outer = -crossed.T - 2 * weights * by_variance
        by_inner = weights @ crossed + (weights * by_variance) @ weights.T
        slope: Floats = np.zeros(geometry.reach)
        slope += np.bincount(geometry.outer.ravel(), by_outer.ravel(), minlength=geometry.reach)
        slope += np.bincount(geometry.inner.ravel(), by_inner.ravel(), minlength=geometry.reach)
        slope[0] += by_variance.sum() + _JITTER * np.trace(by_inner)
        return value, slope

    def fisher(self, k: Floats, slopes: Floats) -> Floats:
        """Fisher information of the terms log p(y_step | past), from covariances k and their slopes (p, reach): (p, p).

        Of the mean of a term it is ∂wᵀ K ∂w / v with ∂w = K⁻¹ (∂c − ∂K w), and of its variance (∂v)² / (2 v²).
        """
        geometry = self.geometry
        factor, outer = geometry._factor(k), k[geometry.outer]
        weights = cho_solve(factor, outer, check_finite=False)  # (n, m)
        v = k[0] - (outer * weights).sum(axis=0)
        counts = np.isfinite(self.ahead).sum(axis=1)
        halves, by_variance = [], []
        for slope in slopes:
            moved = slope[geometry.inner] @ weights + _JITTER * slope[0] * weights
            across = slope[geometry.outer]
            halves.append(solve_triangular(factor[0], across - moved, lower=True, check_finite=False))
            by_variance.append(slope[0] + (weights * (moved - 2 * across)).sum(axis=0))
        scaled = np.stack(halves) * np.sqrt(counts / v)
        changes = np.stack(by_variance) * np.sqrt(0.5 * counts) / v
        return np.asarray(np.einsum("anm,bnm->ab", scaled, scaled) + changes @ changes.T)

    def mean_square(self, k: Floats) -> float:
        """Mean of the squared errors of forecasts over their variances."""
        weights, variance = self.geometry.filter(k)
        return float(np.nanmean((self.ahead - weights @ self.past) ** 2 / variance[:, None]))

    @property
    def reach(self) -> int:
        """Number of different lags between all the values."""
        return self.geometry.reach

    @property
    def count(self) -> int:
        """Number of values that are forecast."""
        return int(np.isfinite(self.ahead).sum())


def cut_windows(
    series: Floats, starts: Sequence[int] | Indices, geometry: Geometry, fewest: int, most: int
) -> list[Windows]:
    """Windows of a series on a regular grid, those without missing values together.

    Parameters
    ----------
    series : array of shape (N,)
        One value for each step; NaN where it is missing.
    starts : array of int
        Origins: the first step of each horizon.
    geometry : Geometry
    fewest : int
        If there are as many complete windows, only they are taken.
    most : int
        The largest number of incomplete windows, each of which costs a factorization.

    Returns
    -------
    list of Windows
    """
    starts = np.asarray(starts)
    past, ahead = series[starts - geometry.lags[:, None]], series[starts + geometry.steps[:, None]]
    known = np.isfinite(past)
    useful = np.isfinite(ahead).any(axis=0)
    whole = known.all(axis=0) & useful
    found = [Windows(geometry, past[:, whole], ahead[:, whole])] if whole.any() else []
    if whole.sum() < fewest:
        rest = np.flatnonzero(~whole & useful & known.any(axis=0))
        for one in rest[np.unique(np.linspace(0, len(rest) - 1, most).round().astype(int))] if len(rest) else []:
            rows = known[:, one]
            found.append(Windows(geometry.only(rows), past[rows][:, [one]], ahead[:, [one]]))
    return found
