"""What is remembered: kernels of the time difference, a sum of named parts, learned by the horizon's own terms."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Floats
from compositegp.forecasting.damped_trend import DampedTrend
from compositegp.forecasting.horizon_terms import covariances, covariances_and_slopes
from compositegp.kernels import at_theta

_ROUNDS = 60  # of the optimizer
_VARIANCES = (1e-5, 50.0)  # bounds on the variance of a part, over that of the series
_REFUSED = 1e10


class Memory(NamedTuple):
    """A kind of memory: which parts the kernel has.

    Attributes
    ----------
    short, medium, long : float or None
        Smoothness ν of Matérn kernels (0.5 or 1.5) over some steps, over days and over weeks; None leaves a part out.
    drift : {"smooth", "rough", None}
        Whether the patterns of day and week drift by an RBF or by a Matérn 1/2 kernel; None leaves them out.
    """

    short: float | None = 1.5
    medium: float | None = 0.5
    long: float | None = None
    drift: str | None = "smooth"


def memory_kernel(memory: Memory, periods: dict[str, float], block: float, variance: float) -> dict[str, Kernel]:
    """The parts of the kernel by their names, with values to begin learning from.

    Parameters
    ----------
    memory : Memory
    periods : dict
        Steps of the patterns that drift, by their names.
    block : float
        Steps of a typical horizon.
    variance : float
        Of the series, less its effects.

    Returns
    -------
    dict of scikit-learn kernels of the time in steps; noise is the last

    Examples
    --------
    >>> list(memory_kernel(Memory(), {"day": 24.0}, 24.0, 1.0))
    ['short memory', 'medium memory', 'day pattern', 'noise']
    """
    lengths = {"short memory": block / 8, "medium memory": 2 * block, "long memory": 20 * block}
    parts: dict[str, Kernel] = {}
    for (name, length), nu in zip(lengths.items(), memory[:3], strict=True):
        if nu is not None:
            parts[name] = _scaled(variance, Matern(length, (length / 20, 20 * length), nu=nu))
    for name, period in periods.items() if memory.drift else ():
        drift = RBF if memory.drift == "smooth" else _rough
        shape = ExpSineSquared(1.0, period, (0.05, 10.0), periodicity_bounds="fixed")
        parts[f"{name} pattern"] = _scaled(variance, shape * drift(12 * period, (period, 400 * period)))
    share = 0.01 * variance
    return parts | {"noise": WhiteKernel(share, (1e-4 * share, 1e3 * share))}


def whole_kernel(
    periods: dict[str, float], block: float, size: int, variance: float, *, short: bool = False
) -> dict[str, Kernel]:
    """The parts of the kernel of a short series, all of which is remembered, by their names.

    A level that wanders (Matérn 1/2), a trend whose slope wanders and is damped, seasons that drift, and noise: over
    lengths beyond the series these are the parts of exponential smoothing. Learning begins at these values, and its
    prior is about them. Shorter lengths, from which a level returns to the mean of all years, forecast worse after a
    change, and so did a choice among several kinds of memory by the few horizons of a short series. What returns is a
    part of its own, for series of which the likelihood asks for it. The values were chosen on the series of
    `benchmarks/forecast_public.py`, where others near them do as well.

    Parameters
    ----------
    periods : dict
        Steps of the patterns that drift, by their names.
    block : float
        Steps of the horizon.
    size : int
        Of the series.
    variance : float
        Of the series.
    short : bool
        Whether there is a short memory too, from which the level returns.

    Returns
    -------
    dict of scikit-learn kernels of the time in steps; noise is the last

    Examples
    --------
    >>> list(whole_kernel({"year": 12.0}, 12.0, 120, 1.0))
    ['damped trend', 'long memory', 'year pattern', 'noise']
    """
    slope, level = 16 * block, max(32 * block, 4 * size)
    trend = DampedTrend(slope, level, (slope / 150, 150 * slope))
    walk = _rough(level, (level / 150, 150 * level))
    parts: dict[str, Kernel] = {
        "damped trend": _scaled(variance, trend, 1.0),
        "long memory": _scaled(variance, walk, 0.72),
    }
    for name, period in periods.items():
        shape = ExpSineSquared(0.6, period, (0.03, 10.0), periodicity_bounds="fixed")
        parts[f"{name} pattern"] = _scaled(variance, shape * _rough(40 * period, (period, 400 * period)))
    if short:
        length = block / 8
        parts["short memory"] = _scaled(variance, _rough(length, (length / 50, 50 * length)))
    return parts | {"noise": WhiteKernel(0.01 * variance, (1e-7 * variance, 10 * variance))}


def sum_of(parts: Sequence[Kernel]) -> Kernel:
    """The sum of some kernels."""
    total = parts[0]
    for part in parts[1:]:
        total = Sum(total, part)
    return total


def parts_of(kernel: Kernel, count: int) -> list[Kernel]:
    """The `count` kernels that `sum_of` added."""
    found = []
    for _ in range(count - 1):
        found.append(kernel.k2)
        kernel = kernel.k1
    return [kernel, *reversed(found)]


class LearnedMemory(NamedTuple):
    """A kernel that was learned.

    Attributes
    ----------
    kernel : scikit-learn kernel
    score : float
        Mean log density of a value: larger is better.
    """

    kernel: Kernel
    score: float


class Terms(Protocol):
    """Terms that a kernel is learned from: windows of one geometry, or the whole past."""

    @property
    def reach(self) -> int:
        """Number of different lags between all the values."""

    @property
    def count(self) -> int:
        """Number of values that are forecast."""

    def score(self, k: Floats) -> tuple[float, Floats]:
        """Σ log p(y | past), and its derivative in the covariances by lag."""

    def log_scores(self, k: Floats) -> Floats:
        """The independent parts of the score."""

    def fisher(self, k: Floats, slopes: Floats) -> Floats:
        """Fisher information about hyper-parameters in which the covariances have the slopes (p, reach): (p, p)."""


def prior_precision(kernel: Kernel, freedom: float) -> Floats:
    """Precision of a normal prior of the logarithms of a kernel's hyper-parameters: shape (p, p).

    `freedom` is the standard deviation of each length; that of a variance is three times as large.
    """
    names = [one.name for one in kernel.hyperparameters if not one.fixed]
    are_variances = [name.endswith(("constant_value", "noise_level")) for name in names]
    return np.diag((freedom * np.where(are_variances, 3.0, 1.0)) ** -2)


def learn_memory(
    kernel: Kernel,
    windows: Sequence[Terms],
    rounds: int = _ROUNDS,
    precision: Floats | None = None,
    center: Floats | None = None,
) -> LearnedMemory:
    """Learn a kernel by Σ log p(y_step | past) over windows.

    Parameters
    ----------
    kernel : scikit-learn kernel of the time in steps
        Learning begins at its hyper-parameters.
    windows : list of Windows or WholePast
    rounds : int
        The largest number of steps of the optimizer.
    precision : array of shape (p, p), optional
        Of a normal prior of the logarithms of the hyper-parameters; none by default.
    center : array of shape (p,), optional
        Of the prior; by default where learning begins.

    Returns
    -------
    LearnedMemory
    """
    count, reach = sum(one.count for one in windows), max(one.reach for one in windows)
    begin = kernel.theta
    center = begin if center is None else center
    prior = np.zeros((len(begin), len(begin))) if precision is None else precision
    trial = kernel.clone_with_theta(begin)
    places = _places_of_theta(trial)

    def objective(theta: Floats) -> tuple[float, Floats]:
        for (part, name), value in zip(places, np.exp(theta), strict=True):
            setattr(part, name, float(value))
        (k, slopes), total, slope = covariances_and_slopes(trial, reach), 0.0, np.zeros(reach)
        try:
            for one in windows:
                value, by_k = one.score(k)
                total += value
                slope[: len(by_k)] += by_k
        except LinAlgError:
            return _REFUSED, np.zeros_like(theta)
        pull = prior @ (theta - center)
        total -= 0.5 * float((theta - center) @ pull)
        return -total / count, -(slopes @ slope - pull) / count

    found = minimize(
        objective, kernel.theta, jac=True, method="L-BFGS-B", bounds=kernel.bounds, options={"maxiter": rounds}
    )
    if found.fun >= _REFUSED:
        raise LinAlgError(f"the kernel {kernel} cannot be learned: its covariances are not positive definite.")
    return LearnedMemory(kernel.clone_with_theta(found.x), -float(found.fun))


def fisher_information(kernel: Kernel, windows: Sequence[Terms]) -> Floats:
    """Fisher information of the terms of some windows about the kernel's hyper-parameters: shape (p, p)."""
    reach = max(one.reach for one in windows)
    k, slopes = covariances_and_slopes(kernel, reach)
    return np.asarray(sum(one.fisher(k[: one.reach], slopes[:, : one.reach]) for one in windows))


def standard_errors(kernel: Kernel, windows: Sequence[Terms]) -> Floats:
    """Relative standard errors of the hyper-parameters by Godambe's sandwich, windows taken as independent: (p,).

    The curvature is that of the mean score, and the spread of the score that of the windows' own scores.
    """
    theta, reach = kernel.theta, max(one.reach for one in windows)
    step = 1e-3

    def slopes(at: Floats) -> Floats:
        (k, by_theta), total = covariances_and_slopes(at_theta(kernel, at), reach), np.zeros(reach)
        for one in windows:
            by_k = one.score(k)[1]
            total[: len(by_k)] += by_k
        return np.asarray(by_theta @ total)

    def scores(at: Floats) -> Floats:
        k = covariances(at_theta(kernel, at), reach)
        return np.concatenate([one.log_scores(k) for one in windows])

    directions = step * np.eye(len(theta))
    try:
        curvature = -np.stack([(slopes(theta + d) - slopes(theta - d)) / (2 * step) for d in directions])
        each = np.stack([(scores(theta + d) - scores(theta - d)) / (2 * step) for d in directions])
    except LinAlgError:
        return np.full(len(theta), np.inf)
    spread = each @ each.T
    # Directions in which the score is flat, at a bound for example, are not known at all.
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    known = values > 1e-6 * max(values[-1], 1e-300)
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    unknown = (vectors[:, ~known] ** 2).sum(axis=1) > 0.5
    found = np.sqrt(np.diagonal(inverse @ spread @ inverse))
    return np.where(unknown | ~np.isfinite(found), np.inf, found)


def _places_of_theta(kernel: Kernel) -> list[tuple[Kernel, str]]:
    """Where each number of kernel.theta is kept: a part and the name of its attribute.

    To set them there costs a small part of what a copy of the kernel costs.
    """
    paths = [one.name.split("__") for one in kernel.hyperparameters if not one.fixed]
    return [(reduce(getattr, path[:-1], kernel), path[-1]) for path in paths]


def _rough(length: float, bounds: tuple[float, float]) -> Kernel:
    return Matern(length, bounds, nu=0.5)


def _scaled(variance: float, kernel: Kernel, share: float = 0.25) -> Kernel:
    return ConstantKernel(share * variance, (_VARIANCES[0] * variance, _VARIANCES[1] * variance)) * kernel
