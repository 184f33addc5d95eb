"""Calibration: scale and tails of prediction errors, learned from training points predicted at many distances.

By Gaussian theory z = (y − mean) / √v is standard normal. Data are rougher in one place than in another, have tails,
and vary more or less over a gap than their kernel says. So let

    z ~ s · Student-t(df), skewed by γ,
    log s  = a(δ) + Σ_w b_w(δ) ℓ_w + a_ρ ρ,        b_w ≥ 0,
    log df = f + f_ρ ρ,

with three things that the neighborhood of a prediction says at no cost:

    ℓ_w  the size of the errors made nearby, among the w nearest observations (`Neighborhood.scales`);
    δ    log v less the mean log variance of the nearest observations: how much harder to predict the point is than they
         were, near 0 among the observations and large in a gap;
    ρ    log(v / total): the share of the variance that the data leave unexplained.

a and b_w are linear between knots, one at the median δ of each distance at which training points were predicted, so
that each distance is calibrated by its own errors. γ² is the scale of errors above the mean over that below it
(`TwoPieceT`). The numbers maximize the log density, less a ridge penalty that pulls toward s = 1, a large df and γ = 1:
the Gaussian. It lets b_w fade from knot to knot with the share of the variance that the data explain. Where the numbers
gain next to nothing, the Gaussian itself is kept.

Many targets may have one and the same value, such as a zero. A density can then be as high as it likes beside that
value, and its intervals may miss it. So where intervals hold a share of the training errors that is off by a tenth,
simpler distributions are tried too: without skew, normal, the Gaussian. Of those whose intervals are closest to what
they say, the one with the smallest CRPS is taken.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import minimize

from compositegp.backend import Floats, blas_threads_for
from compositegp.posteriors import COMPARED, WINDOWS, Neighborhood
from compositegp.predictive.families import Family, Normal, StudentT
from compositegp.predictive.two_piece import TwoPieceT, two_piece_log_density
from compositegp.storage import storable
from compositegp.validation import are_finite, is_real

_SMALLEST = 1e-12  # least variance of a prediction, over the prior's
_KNOTS_APART = 0.05  # least distance of two knots, in δ
_RIDGE = 8.0  # weight of the penalty; a quarter or four times of it changes held-out scores by 0.001 nats at most
_LOG_DF = (np.log(2.1), np.log(200.0))  # from 2.1, so that a variance exists; above 200 it is a normal distribution
_PRIOR_LOG_DF = np.log(30.0)  # log df that the penalty pulls to
_WORTH = 0.005  # least gain, in nats a prediction, for which the Gaussian is given up
_WORTH_IN_ALL = 5.0  # least gain in nats over all the points
_MOST_LOG_SKEW = 1.5  # largest |log γ|
_LEVELS = (0.5, 0.8, 0.95)  # of intervals by which a calibration is checked
_MISSED = 0.1  # share of the errors by which one of them may be off
_ALIKE = 0.05  # difference of such shares that does not matter
_FAINT = 0.005  # largest slope of a window that is none: errors twice as large nearby would add 0.4 % to a scale
_TO_THE_END = {"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-6}  # so that rounding leaves no trace
_LARGEST = 1e6  # number that a calibration from a file may have
_LARGEST_LOG_SCALE = 300.0  # so that factors are numbers
_NO_ERROR = 1e-9  # largest size of standardized errors that say nothing
_NORMAL_DF = 1e6  # degrees of freedom that stand for a normal distribution


def ratios(variance: Floats, total: Floats, surroundings: Neighborhood) -> tuple[Floats, Floats]:
    """ρ and δ of predictions of observations, shape (M,), from their variance and their prior variance."""
    log_v = np.log(np.maximum(variance, _SMALLEST * total))
    return log_v - np.log(total), log_v - surroundings.log_variance


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Scale, tails and skew of standardized errors: log s = a(δ) + Σ_w b_w(δ) ℓ_w + a_ρ ρ, log df = f + f_ρ ρ, log γ.

    Attributes
    ----------
    knots : array of shape (k,)
        δ at which a and b are given; linear between, constant beyond.
    level : array of shape (k,)
        a.
    slopes : array of shape (3, k)
        b, for the windows of 8, 32 and 128 observations.
    trend : float
        a_ρ.
    log_df, log_df_trend : float
        f and f_ρ.
    rho_range : array of shape (3,)
        Least and greatest ρ that are distinguished, and the one that counts as zero.
    gain : float
        Log score gained over the Gaussian, in nats a prediction, on the errors that it was fitted to.
    log_skew : float
        log γ.
    """

    knots: Floats
    level: Floats
    slopes: Floats
    trend: float
    log_df: float
    log_df_trend: float
    rho_range: Floats
    gain: float = 0.0
    log_skew: float = 0.0

    @classmethod
    def fit(
        cls,
        errors: Floats,
        rho: Floats,
        delta: Floats,
        scales: Floats,
        distance: Any,
        *,
        heavy_tails: bool = True,
        weights: Floats | None = None,
    ) -> "Calibration":
        """Calibrate by the log score of predictions of training points.

        Parameters
        ----------
        errors, rho, delta : arrays of shape (m,)
            z, ρ and δ of predictions of training points; a point may be there at several distances.
        scales : array of shape (m, 3)
        distance : array of shape (m,)
            How many of the nearest observations the prediction was made without.
        heavy_tails : bool
            False keeps the errors normal, given their scale: for a transformed target, whose mean would not exist.
            Then they are not skewed either: that is what the transform is for.
        weights : array of shape (m,), optional
            How much a prediction counts; by default all count alike.
        """
        if not (np.abs(errors) > _NO_ERROR).any():  # of a constant target, say: no scale is small enough
            return cls.gaussian()
        distances = np.unique(distance)
        knots, explained = _spread_knots(
            *np.array([(np.median(delta[own]), np.median(rho[own])) for own in distance == distances[:, None]]).T
        )
        low, high = np.quantile(rho, [0.01, 0.99])
        rho_range = np.array([low, high, np.mean(rho)])
        k, n_scales = len(knots), scales.shape[-1]
        w = np.ones(len(errors)) if weights is None else np.asarray(weights)
        x, hats = _centered(rho, rho_range), _hats(delta, knots)
        design = np.hstack([hats, *(hats * scale[:, None] for scale in scales.T), x[:, None]])
        tails = np.column_stack([np.ones_like(x), x])
        ridge, prior = _ridge(explained, n_scales), np.zeros(design.shape[1] + 3)
        prior[-3] = _PRIOR_LOG_DF

        def log_density(numbers: Floats, tailed: bool) -> tuple[Floats, Floats]:
            """Of the errors, each times its weight, and the slope of their sum in the numbers."""
            log_df, inside = _bounded(tails @ numbers[-3:-1], tailed)
            log_scale, log_skew = design @ numbers[:-3], float(numbers[-1])
            score, by_scale, by_df, by_skew = two_piece_log_density(errors, log_scale, log_df, log_skew)
            slopes = (design.T @ (w * by_scale), tails.T @ (w * inside * by_df), np.atleast_1d(w @ by_skew))
            return w * score, np.concatenate(slopes)

        def objective(numbers: Floats, tailed: bool) -> tuple[float, Floats]:
            score, slope = log_density(numbers, tailed)
            pull = ridge @ (numbers - prior)
            return float(0.5 * (numbers - prior) @ pull - score.sum()), pull - slope

        start = prior.copy()
        start[-3] = np.log(8.0)
        gaussian = -0.5 * w * (errors**2 + np.log(2 * np.pi))

        def learned(tailed: bool, most_skew: float) -> "Calibration":
            skews: tuple[Any, Any] = (-most_skew, most_skew)
            bounds = [(None, None)] * k + [(0.0, None)] * (n_scales * k) + [(None, None)] * 3 + [skews]
            with blas_threads_for(0):  # on products this small, threads wait for each other
                found = minimize(
                    objective, start, (tailed,), jac=True, method="L-BFGS-B", bounds=bounds, options=_TO_THE_END
                ).x
            gain = float((log_density(found, tailed)[0] - gaussian).sum() / w.sum())
            trend, log_df, log_df_trend, log_skew = found[-4:].tolist()
            if not tailed:
                log_df, log_df_trend = np.inf, 0.0
            slopes = found[k:-4].reshape(n_scales, k)
            slopes = np.where(slopes.max(axis=1, keepdims=True) > _FAINT, slopes, 0.0)
            return cls(knots, found[:k], slopes, trend, log_df, log_df_trend, rho_range, gain, log_skew)

        found = learned(heavy_tails, _MOST_LOG_SKEW if heavy_tails else 0.0)
        points = max(np.count_nonzero(distance == one) for one in distances)
        if not found.gain >= max(_WORTH, _WORTH_IN_ALL / points):
            return cls.gaussian()
        told = rho, delta, scales
        if not heavy_tails or found._misses(errors, w, *told) <= _MISSED:
            return found
        tried = [found, learned(True, 0.0), learned(False, 0.0), cls.gaussian()]
        missed = [one._misses(errors, w, *told) for one in tried]
        closest = [one for one, miss in zip(tried, missed, strict=True) if miss <= min(missed) + _ALIKE]
        return min(closest, key=lambda one: one._crps(errors, w, *told))

    def _misses(self, errors: Floats, weights: Floats, rho: Floats, delta: Floats, scales: Floats) -> float:
        """By how much the share of errors inside an interval is off, at the worst of three levels."""
        factors, df = self.apply(rho, delta, scales[:, None, :])
        levels = self.family(df).cdf(errors / factors[:, 0])
        inside = [np.average(np.abs(levels - 0.5) <= share / 2, weights=weights) for share in _LEVELS]
        return float(np.abs(np.array(inside) - _LEVELS).max())

    def _crps(self, errors: Floats, weights: Floats, rho: Floats, delta: Floats, scales: Floats) -> float:
        """Mean CRPS of the errors."""
        factors, df = self.apply(rho, delta, scales[:, None, :])
        return float(np.average(factors[:, 0] * self.family(df).crps(errors / factors[:, 0]), weights=weights))

    @classmethod
    def gaussian(cls) -> "Calibration":
        """The one that changes nothing: s = 1, df = ∞.

        Examples
        --------
        >>> Calibration.gaussian()
        Calibration: none needed, errors are as the Gaussian says
        """
        return cls(np.zeros(1), np.zeros(1), np.zeros((len(WINDOWS), 1)), 0.0, np.inf, 0.0, np.zeros(3))

    def check(self) -> None:
        """Check the numbers; a ValueError says what is wrong."""
        k, w = np.size(self.knots), len(WINDOWS)
        shapes = {"knots": (k,), "level": (k,), "slopes": (w, k), "rho_range": (3,)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            if not isinstance(value, np.ndarray) or value.shape != shape or not k or not are_finite(value):
                raise ValueError(f"{name} of a calibration must be finite numbers of shape {shape}")
        numbers = (self.trend, self.log_df_trend, self.gain, self.log_skew)
        if not all(map(is_real, (*numbers, self.log_df))) or not are_finite(numbers):
            raise ValueError("the numbers of a calibration must be finite")
        if not are_finite(self.log_df) and self.log_df != np.inf:
            raise ValueError("log_df of a calibration must be infinite or a number that double precision has")
        if abs(self.log_skew) > _MOST_LOG_SKEW:
            raise ValueError(f"log_skew of a calibration must be within ±{_MOST_LOG_SKEW}; found {self.log_skew}")
        largest = max(np.abs(values).max() for values in (self.level, self.slopes, self.trend, self.log_df_trend))
        if largest > _LARGEST:
            raise ValueError(f"the numbers of a calibration must be at most {_LARGEST:g}; found {largest:g}")
        if (np.diff(self.knots) <= 0).any() or self.rho_range[0] > self.rho_range[1]:
            raise ValueError("the numbers of a calibration are out of order")

    @property
    def is_gaussian(self) -> bool:
        """Whether it changes nothing."""
        numbers = (*self.level, *self.slopes.flat, self.trend, self.log_skew)
        return math.isinf(self.log_df) and not np.any(numbers)

    @property
    def reach(self) -> int:
        """How many of the observations nearest to a point it asks about their errors and variances."""
        asked = [window for window, slopes in zip(WINDOWS, self.slopes, strict=True) if slopes.any()]
        return max(COMPARED, *asked, 0)

    def apply(self, rho: Floats, delta: Floats, scales: Floats) -> tuple[Floats, Floats]:
        """Factors (m, t) on the Gaussian's standard deviation, and degrees of freedom (m,) of Student's t.

        Parameters
        ----------
        rho, delta : arrays of shape (m,)
        scales : array of shape (m, t, 3)
        """
        hats, x = _hats(delta, self.knots), _centered(rho, self.rho_range)
        local = ((hats @ self.slopes.T)[:, None, :] * scales).sum(axis=-1)
        log_scale = (hats @ self.level + self.trend * x)[:, None] + local
        return np.exp(np.clip(log_scale, -_LARGEST_LOG_SCALE, _LARGEST_LOG_SCALE)), self._df(x)

    def family(self, df: Floats) -> Family:
        """The family of standardized errors with those degrees of freedom."""
        if self.log_skew:
            return TwoPieceT(np.minimum(df, _NORMAL_DF), float(np.exp(self.log_skew)))
        return Normal() if np.isinf(df).all() else StudentT(np.minimum(df, _NORMAL_DF))

    def _df(self, x: Floats) -> Floats:
        if math.isinf(self.log_df):
            return np.full(len(x), np.inf)
        log_df = self.log_df + self.log_df_trend * x
        return np.where(log_df < _LOG_DF[1], np.exp(np.clip(log_df, *_LOG_DF)), np.inf)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The numbers by their names, for files."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        if self.is_gaussian:
            return "Calibration: none needed, errors are as the Gaussian says"
        near, far = self._df(_centered(self.rho_range[:2], self.rho_range))
        lines = [
            f"Calibration: gains {self.gain:.3f} nats a prediction; degrees of freedom {near:.1f} near the data, "
            f"{far:.1f} far from them; scale above the mean over that below {np.exp(2 * self.log_skew):.2f}",
            "     δ   scale   slopes on the errors of the nearest " + ", ".join(map(str, WINDOWS)),
        ]
        for knot, level, slopes in zip(self.knots, self.level, self.slopes.T, strict=True):
            lines.append(f"{knot:6.2f} {np.exp(level):7.3f}   " + " ".join(f"{slope:6.3f}" for slope in slopes))
        return "\n".join(lines)


def _spread_knots(delta: Floats, rho: Floats) -> tuple[Floats, Floats]:
    """Knots from medians of δ, ascending, and the share of the variance that the data explain at each, from ρ."""
    order = np.argsort(delta, kind="stable")
    chosen = [order[0]]
    for one in order[1:]:
        if delta[one] - delta[chosen[-1]] >= _KNOTS_APART:
            chosen.append(one)
    return delta[chosen], np.maximum(-np.expm1(rho[chosen]), _SMALLEST)


def _bounded(log_df: Floats, heavy_tails: bool) -> tuple[Floats, Floats]:
    """Log df within its bounds, and ones where it was inside; without heavy tails it is that of a normal."""
    if not heavy_tails:
        return np.full_like(log_df, np.log(_NORMAL_DF)), np.zeros_like(log_df)
    bounded = np.clip(log_df, *_LOG_DF)
    return bounded, (bounded == log_df).astype(np.float64)


def _ridge(explained: Floats, w: int) -> Floats:
    """Penalty matrix of all the numbers: small values, and small steps from knot to knot.

    The slopes on errors nearby are pulled to fade from knot to knot as the share of the variance that the data explain:
    far from the data, where few training points are independent of each other, errors nearby say nothing.
    """
    k = len(explained)
    steps = np.diff(np.eye(k), axis=0)
    rough = steps.T @ steps
    fading = steps.copy()
    fading[np.arange(k - 1), np.arange(k - 1)] = -np.minimum(explained[1:] / explained[:-1], 1.0)
    fades = fading.T @ fading
    ridge = np.diag(np.r_[np.zeros((w + 1) * k), 1.0, 0.3, 0.3, 1.0])
    for block in range(w + 1):
        own = slice(block * k, (block + 1) * k)
        ridge[own, own] = rough + 0.1 * np.eye(k) if block == 0 else 4 * fades + np.eye(k) / k
    return np.asarray(_RIDGE * ridge)


def _hats(x: Floats, knots: Floats) -> Floats:
    """Linear interpolation from knots as a matrix, shape (m, k); constant beyond them."""
    return np.column_stack([np.interp(x, knots, row) for row in np.eye(len(knots))])


def _centered(rho: Floats, rho_range: Floats) -> Floats:
    return np.asarray(np.clip(rho, rho_range[0], rho_range[1]) - rho_range[2])
