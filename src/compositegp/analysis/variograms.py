"""Variograms: what a geostatistician reads from a kernel, and the empirical variogram of data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.analysis.directions import Direction
from compositegp.backend import Floats
from compositegp.kernels import diagonal, gram, in_length_scales, noise_variance

_LEFT = 0.05  # correlation that is left at the practical range
_ANCHORS, _NEAR, _FAR = 600, 200, 200  # points of which pairs are made, with how many near and any other points
_STEP = 1e-4  # of log θ, for derivatives


def model_variogram(kernel: Kernel, direction: Direction, lags: Floats) -> Floats:
    """The variogram of a kernel, γ(h) = nugget + k(0) − k(h).

    Parameters
    ----------
    kernel : scikit-learn kernel
    direction : Direction
        The way along which the distances are.
    lags : array of shape (m,)
        Positive distances, in the unit of the direction.

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> from compositegp.analysis import directions_of
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> kernel = 2.0 * RBF(1.0) + WhiteKernel(0.5)
    >>> model_variogram(kernel, directions_of(kernel, 2)[0], np.array([9.0])).round(3)
    array([2.5])
    """
    first = direction.place(np.zeros(1))
    return np.asarray(diagonal(kernel, first)[0] - gram(kernel, first, direction.place(np.asarray(lags)))[0])


@dataclass(frozen=True)
class VariogramSummary:
    """Nugget, sill and practical ranges of a kernel, each with its standard error (NaN where it is not known).

    Attributes
    ----------
    nugget, sill : (float, float)
        Variance of noise, and of observations in all. Value and standard error.
    ranges : dict of str to (float, float)
        By the names of directions: the distance at which 5 % of the correlation is left. Infinite where it never is.

    Examples
    --------
    >>> from compositegp.analysis import directions_of
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> kernel = 2.0 * Matern([1.0, 10.0], nu=0.5) + WhiteKernel(0.5)
    >>> found = summarize_variogram(kernel, directions_of(kernel, 2))
    >>> {name: round(reach, 1) for name, (reach, error) in found.ranges.items()}
    {'x': 3.0, 'y': 30.0}
    """

    nugget: tuple[float, float]
    sill: tuple[float, float]
    ranges: dict[str, tuple[float, float]]


def summarize_variogram(
    kernel: Kernel, directions: list[Direction], covariance: Floats | None = None
) -> VariogramSummary:
    """Nugget, sill and practical ranges of a kernel.

    Parameters
    ----------
    kernel : scikit-learn kernel
    directions : list of Direction
    covariance : array of shape (p, p), optional
        Error covariance of ``kernel.theta``, from which standard errors follow (delta method).

    Returns
    -------
    VariogramSummary

    Examples
    --------
    >>> from compositegp.analysis import directions_of
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> kernel = 2.0 * Matern(1.0, nu=0.5) + WhiteKernel(0.5)
    >>> found = summarize_variogram(kernel, directions_of(kernel, 2), 0.01 * np.eye(3))
    >>> [round(value, 2) for value in (*found.nugget, *found.sill, *found.ranges["x"])]
    [0.5, 0.05, 2.5, 0.21, 3.0, 0.3]
    """
    values = _numbers(kernel, directions)
    errors = np.full(len(values), np.nan)
    if covariance is not None and np.isfinite(covariance).all():
        steps = _STEP * np.eye(len(kernel.theta))
        both = [
            [_numbers(kernel.clone_with_theta(kernel.theta + s * one), directions) for s in (1, -1)]
            for one in steps
        ]
        with np.errstate(invalid="ignore"):
            slopes = np.array([(up - down) / (2 * _STEP) for up, down in both])
            errors = np.sqrt(np.maximum(np.einsum("pi,pq,qi->i", slopes, covariance, slopes), 0.0))
    pairs = [(float(value), float(error)) for value, error in zip(values, errors, strict=True)]
    return VariogramSummary(
        pairs[0], pairs[1], {one.name: pair for one, pair in zip(directions, pairs[2:], strict=True)}
    )


def _numbers(kernel: Kernel, directions: list[Direction]) -> Floats:
    first = directions[0].place(np.zeros(1))
    nugget = float(noise_variance(kernel, first)[0])
    return np.array([nugget, float(diagonal(kernel, first)[0]), *(_range(kernel, one) for one in directions)])


def _range(kernel: Kernel, direction: Direction) -> float:
    first = direction.place(np.zeros(1))
    most = float(diagonal(kernel, first, noise=False)[0])

    def left(log_h: float) -> float:
        return float(gram(kernel, first, direction.place(np.exp([log_h])))[0, 0]) / most - _LEFT

    tries = np.arange(-30.0, 30.0, 0.5)
    below = [left(one) < 0 for one in tries]
    if not any(below) or below[0]:
        return np.inf if not any(below) else 0.0
    end = int(np.argmax(below))
    return float(np.exp(brentq(left, tries[end - 1], tries[end], xtol=1e-10)))


class EmpiricalVariogram(NamedTuple):
    """Half the mean squared difference of pairs, by their distance.

    Attributes
    ----------
    lags, semivariances : arrays of shape (bins,)
        Mean distance and half the mean squared difference of the pairs in a bin.
    counts : array of shape (bins,)
        Pairs in a bin; bins without any are left out.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.random.default_rng(0).uniform(size=(500, 1))
    >>> found = empirical_variogram(RBF(), X, 2 * X[:, 0], lambda A, B: abs(A - B)[:, 0], 0.5, n_bins=50)
    >>> bool(np.allclose(found.semivariances, 2 * found.lags**2, atol=1e-4))  # a slope of 2: (2h)² / 2
    True
    """

    lags: Floats
    semivariances: Floats
    counts: Floats


def empirical_variogram(
    kernel: Kernel,
    X: Floats,
    residuals: Floats,
    distance: Callable[[Floats, Floats], Floats],
    longest: float,
    n_bins: int = 24,
    random_state: Any = 0,
) -> EmpiricalVariogram:
    """The variogram of a sample of the data, with many near pairs as well as far ones.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Whose length scales say which points are near.
    X : array of shape (n, d)
    residuals : array of shape (n,)
        Targets less their drift.
    distance : callable
        Of two arrays of points (m, d): distances (m,) in the unit of the variogram; NaN leaves a pair out.
    longest : float
        Pairs at a larger distance are left out.
    n_bins : int
        Bins of equal width up to the longest distance.
    random_state : int
        For the choice of the pairs.

    Returns
    -------
    EmpiricalVariogram

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.uniform(size=(2000, 2)), rng.normal(size=2000)
    >>> apart = lambda A, B: np.sqrt(((A - B) ** 2).sum(axis=1))
    >>> found = empirical_variogram(RBF(), X, noise, apart, 0.5)
    >>> bool(abs(found.semivariances - 1).max() < 0.25)  # noise has no structure
    True
    """
    rng = np.random.default_rng(random_state)
    n = len(X)
    anchors = rng.permutation(n)[:_ANCHORS]
    places = in_length_scales(kernel, X)
    near = KDTree(places).query(places[anchors], k=np.arange(2, min(_NEAR, n - 1) + 2))[1]
    far = rng.integers(0, n, size=(len(anchors), _FAR))
    others = np.concatenate([near, far], axis=1)
    first, second = np.repeat(anchors, others.shape[1]), others.ravel()
    apart = distance(X[first], X[second])
    kept = (apart > 0) & (apart <= longest)
    apart, squares = apart[kept], 0.5 * (residuals[first] - residuals[second])[kept] ** 2
    bins = np.minimum((apart / longest * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins).astype(np.float64)
    used = counts > 0
    return EmpiricalVariogram(
        np.bincount(bins, apart, n_bins)[used] / counts[used],
        np.bincount(bins, squares, n_bins)[used] / counts[used],
        counts[used],
    )


def value_with_error(value: float, error: float) -> str:
    """A number with its standard error, rounded to two digits of the error; without one, to three digits.

    Parameters
    ----------
    value : float
    error : float
        NaN, infinite or 0 where there is none.

    Returns
    -------
    str

    Examples
    --------
    >>> value_with_error(754.6, 263.2), value_with_error(0.01234, 0.00051), value_with_error(2.0, float("nan"))
    ('750 ± 260', '0.01234 ± 0.00051', '2')
    """
    if not (np.isfinite(error) and error > 0 and np.isfinite(value)):
        return f"{value:.3g}"
    digits = 1 - int(np.floor(np.log10(error)))
    if not -6 <= digits <= 8:
        return f"{value:.3g} ± {error:.2g}"
    return f"{round(value, digits):.{max(digits, 0)}f} ± {round(error, digits):.{max(digits, 0)}f}"
