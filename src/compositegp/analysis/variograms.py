"""Variograms: what a geostatistician reads from a kernel, and the empirical variogram of data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.kernels import (
    EARTH_RADIUS,
    MaternOnSphere,
    RotatedMatern,
    RotatedMaternOnSphere,
    diagonal,
    gram,
    in_length_scales,
    noise_variance,
)

_LEFT = 0.05  # correlation that is left at the practical range
_ANCHORS, _NEAR, _FAR = 600, 200, 200  # points of which pairs are made, with how many near and any other points
_STEP = 1e-4  # of log θ, for derivatives


class Direction(NamedTuple):
    """A way through the columns of points.

    Attributes
    ----------
    name : str
        Such as "x", or "time".
    unit : str
        Of distances; may be empty.
    place : callable
        Points (m, d) at distances (m,) from a first one.

    Examples
    --------
    >>> northeast = Direction("northeast", "m", lambda h: np.outer(h, [np.sqrt(0.5), np.sqrt(0.5)]))
    >>> northeast.place(np.array([0.0, 2.0])).round(3)
    array([[0.   , 0.   ],
           [1.414, 1.414]])
    """

    name: str
    unit: str
    place: Callable[[Floats], Floats]


def directions_of(
    kernel: Kernel,
    n_columns: int,
    *,
    sphere: bool = False,
    has_time: bool = False,
    latitude: float = 0.0,
    names: tuple[str, str] = ("x", "y"),
) -> list[Direction]:
    """Directions in which a kernel's range differs: along the columns, along rotated axes, or any on the sphere.

    Parameters
    ----------
    kernel : scikit-learn kernel
    n_columns : int
        Columns of the points: x, y, time where there is one, and others.
    sphere : bool
        Whether the first two are longitude and latitude; distances are then chords in kilometers.
    has_time : bool
    latitude : float
        On the sphere, where the range to the north may differ from that to the east: where they are told.
    names : (str, str)
        Of the first two columns.

    Returns
    -------
    list of Direction
        Those in space, then that of time.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> [direction.name for direction in directions_of(RBF([1.0, 2.0]), 2)]
    ['x', 'y']
    """
    found = []
    rotated = _part_of(kernel, RotatedMatern)
    if sphere and isinstance(rotated, RotatedMaternOnSphere):
        found += [Direction(name, "km", _from_center(n_columns, rotated, angle)) for name, angle in _axes(rotated)]
    elif sphere and _part_of(kernel, MaternOnSphere) is not None:
        found.append(Direction("east", "km", lambda h: _on_parallel(h, n_columns, latitude)))
        found.append(Direction("north", "km", lambda h: _on_meridian(h, n_columns, latitude)))
    elif sphere:
        found.append(Direction("any direction", "km", lambda h: _on_meridian(h, n_columns, 0.0)))
    elif rotated is not None:
        for name, angle in _axes(rotated):
            found.append(Direction(name, "", _along(np.pad(_unit(angle), (0, n_columns - 2)))))
    else:
        found += [Direction(name, "", _along(np.eye(n_columns)[axis])) for axis, name in enumerate(names)]
    if has_time:
        found.append(Direction("time", "h", _along(np.eye(n_columns)[2])))
    return found


def _axes(kernel: RotatedMatern) -> list[tuple[str, float]]:
    """Names of a long and a short axis, and their angles in degrees."""
    angles = {"long axis": kernel.angle, "short axis": (kernel.angle + 90) % 180}
    return [(f"{name} ({angle:.0f}°)", angle) for name, angle in angles.items()]


def _unit(angle: float) -> Floats:
    return np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])


def _from_center(n_columns: int, kernel: RotatedMaternOnSphere, angle: float) -> Callable[[Floats], Floats]:
    """Points at chords of length h from a kernel's center, along the great circle in a direction."""
    way, up = kernel.frame[:, :2] @ _unit(angle), kernel.frame[:, 2]

    def place(h: Floats) -> Floats:
        turn = np.radians(_angles(h, EARTH_RADIUS))[:, None]
        x, y, z = (np.cos(turn) * up + np.sin(turn) * way).T
        points = np.zeros((len(turn), n_columns))
        points[:, 0], points[:, 1] = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
        return points

    return place


def _along(direction: Floats) -> Callable[[Floats], Floats]:
    return lambda h: np.asarray(h)[:, None] * direction


def _angles(h: Floats, radius: float) -> Floats:
    """Degrees along a circle of some radius, in kilometers, between points with chords of length h."""
    return np.asarray(np.degrees(2 * np.arcsin(np.minimum(np.asarray(h) / (2 * radius), 1.0))))


def _on_meridian(h: Floats, n_columns: int, latitude: float) -> Floats:
    points = np.zeros((len(h), n_columns))
    points[:, 1] = latitude - np.sign(latitude) * _angles(h, EARTH_RADIUS) if latitude else _angles(h, EARTH_RADIUS)
    return points


def _on_parallel(h: Floats, n_columns: int, latitude: float) -> Floats:
    points = np.zeros((len(h), n_columns))
    points[:, 0] = _angles(h, EARTH_RADIUS * max(float(np.cos(np.radians(latitude))), 1e-6))
    points[:, 1] = latitude
    return points


def _part_of(kernel: Kernel, kind: type[Any]) -> Any:
    """The first part of a kernel that is of a class; None where there is none."""
    if isinstance(kernel, kind):
        return kernel
    inner = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return next(
        (found for one in inner if isinstance(one, Kernel) and (found := _part_of(one, kind)) is not None), None
    )


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
