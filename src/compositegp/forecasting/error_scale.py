"""Scale and tails of forecast errors, learned from forecasts of the past: by horizon, hour, season and recent errors.

By Gaussian theory z = error / √variance is standard normal. Here z ~ s · Student-t(df) with

    log s = β · features,

where the features are the step of the horizon, the hour of the day, the weekend, the time of year and the sizes of
recent errors. β and df maximize the log density, less a ridge penalty that pulls toward the Gaussian. The first of β,
the level of the scale, goes on learning from the errors of every further horizon, so that bands that have been too
narrow or too wide for weeks do not stay so.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from compositegp.backend import Floats, Indices
from compositegp.forecasting.clock import Clock
from compositegp.predictive import Family, Normal, NormalMixture, StudentT

SPANS = (1.0, 7.0, 28.0)  # horizons over which recent errors are averaged
# The penalty pulls the slopes on recent errors to these, and the rest to zero. Chosen among thirteen settings by the
# log score of the second half of the past of fifteen series, given the first half.
_FOLLOW, _FOLLOW_RIDGE, _RIDGE = (0.1, 0.3, 0.4), 100.0, 20.0
# Those of short series, whose longest span is decades. Chosen among four by CRPS and coverage of 34 such series.
_FOLLOW_WHOLE = (0.5, 0.3, 0.0)
# Horizons in which the level of the scale forgets. Chosen among 7, 14, 28, 56 and 112 by the log score of the second
# half of the past of ten series, given the first half: benchmarks/band_level.py.
_LEVEL_SPAN = 28.0
_FARTHEST_LEVEL = 1.0  # to which further errors take it: beyond, weeks would pass before it is back
_ONE_ERROR = 2.0  # information of one error about the log of its scale: the weight of the Gaussian's own scale
_LOG_DF = (np.log(2.5), np.log(100.0))
_FLOOR = 0.1  # added to mean squares of recent errors
_LARGEST_SQUARE = 25.0  # of a calibrated error, as it teaches the level, and the largest mean square of a horizon
_NORMAL_FROM = 60.0  # degrees of freedom from which a normal distribution is used


class Situation(NamedTuple):
    """When a forecast is made, and for when.

    Attributes
    ----------
    steps : array of shape (n,)
        Of the horizon, from 1.
    clock : Clock
        At the times that are forecast.
    recent : array of shape (n, 3)
        Mean squares of standardized errors over the last 1, 7 and 28 horizons.
    """

    steps: Floats
    clock: Clock
    recent: Floats


@dataclass(frozen=True, eq=False)
class ErrorScale:
    """Scale and tails of standardized errors.

    Attributes
    ----------
    block : float
        Steps of the horizon that it was learned for.
    sub_daily : bool
        Whether the hour of day matters.
    yearly : bool
        Whether the time of year matters.
    limited : bool
        Whether the scale of the tails is limited, so that a transformed target has a mean.
    slopes : array of shape (c,)
        β.
    log_df : float
    """

    block: float
    sub_daily: bool
    yearly: bool
    limited: bool
    slopes: Floats
    log_df: float

    @classmethod
    def gaussian(cls, block: float) -> "ErrorScale":
        """The one that changes nothing."""
        return cls(block, False, False, False, np.zeros(0), np.inf)

    @classmethod
    def learn(
        cls,
        errors: Floats,
        situation: Situation,
        block: float,
        *,
        sub_daily: bool,
        yearly: bool,
        limited: bool,
        overlap: float,
        whole: bool = False,
    ) -> "ErrorScale":
        """Learn from standardized errors (n,) of forecasts; each time is forecast by `overlap` of them.

        The scale follows the latest errors more closely for a short series, which is forecast from its `whole` past.
        """
        trial = cls(block, sub_daily, yearly, limited, np.zeros(0), np.inf)
        design, squares = trial._features(situation), errors**2
        ridge, prior = np.full(design.shape[1] + 1, _RIDGE), np.zeros(design.shape[1] + 1)
        follow = slice(3, 3 + len(_FOLLOW))
        ridge[0], ridge[-1], ridge[follow] = _ONE_ERROR, 1.0, _FOLLOW_RIDGE
        prior[-1], prior[follow] = np.log(20.0), _FOLLOW_WHOLE if whole else _FOLLOW
        # Errors of one horizon are alike: their number is not that of independent errors.
        share = 1.0 / (np.sqrt(block) * overlap)

        def objective(numbers: Floats) -> tuple[float, Floats]:
            score, by_scale, by_df = scaled_t_log_density(squares, design @ numbers[:-1], numbers[-1:])
            pull = ridge * (numbers - prior)
            slope = np.append(design.T @ by_scale, by_df.sum())
            return float(0.5 * (numbers - prior) @ pull - share * score.sum()), pull - share * slope

        free: tuple[float | None, float | None] = (None, None)
        bounds = [free] * design.shape[1] + [_LOG_DF]
        bounds[follow] = [(0.0, None)] * len(_FOLLOW)
        start = prior.copy()
        start[-1] = np.log(8.0)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(block, sub_daily, yearly, limited, found[:-1], float(found[-1]))

    def followed(self, errors: Floats, situation: Situation, horizons: Indices, size: float) -> "ErrorScale":
        """The scale after further errors: its level has learned from one horizon after the other.

        Each horizon moves the level by a step of natural gradient on its log density, within limits. So long averages
        of the calibrated errors become those of their family: the idea of adaptive conformal inference.

        Parameters
        ----------
        errors : array of shape (n,)
            Standardized, in the order of time.
        situation : Situation
            In which they were forecast.
        horizons : int array of shape (n,)
            Which horizon each is of, ascending.
        size : float
            Errors of one horizon, times the number of horizons that forecast the same value.

        Returns
        -------
        ErrorScale
        """
        if not len(self.slopes) or not len(errors):
            return self
        df, first = np.exp(min(self.log_df, _LOG_DF[1])), float(self.slopes[0])
        low, high = min(-_FARTHEST_LEVEL, first), max(_FARTHEST_LEVEL, first)
        others, level = self._features(situation) @ self.slopes - first, first
        ends = np.flatnonzero(np.diff(horizons)) + 1
        for squares, rest in zip(np.split(errors**2, ends), np.split(others, ends), strict=True):
            now = np.minimum(squares * np.exp(-2 * _limited(rest + level)), _LARGEST_SQUARE)
            slope = np.mean((df + 1) * now / (df + now)) - 1  # of the log density in the logarithm of the scale
            gain = 1 - np.exp(-len(squares) / (size * _LEVEL_SPAN))
            level += gain * slope * (df + 3) / (2 * df)  # over the information of one error
            level = min(max(level, low), high)
        return replace(self, slopes=np.concatenate([[level], self.slopes[1:]]))

    def widened(self, count: float) -> "ErrorScale":
        """The scale where it is known from `count` independent errors only: Student-t with fewer degrees of freedom.

        The next of n + 1 normal errors over the scale of the others is Student-t with n degrees of freedom. Excess
        variances of tails, 1 / df, add up.
        """
        df = 1 / (np.exp(-self.log_df) + 1 / count)
        return replace(self, log_df=max(float(np.log(df)), _LOG_DF[0]))

    def factors(self, situation: Situation) -> Floats:
        """Factors on the Gaussian's standard deviations, shape (n,)."""
        if not len(self.slopes):
            return np.ones(len(situation.steps))
        return np.exp(_limited(self._features(situation) @ self.slopes))

    @property
    def family(self) -> Family:
        """The family of the errors over their scale."""
        if self.log_df > np.log(_NORMAL_FROM):
            return Normal()
        df = float(np.exp(self.log_df))
        return NormalMixture(df) if self.limited else StudentT(np.array([df]))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return 7 + 6 * self.sub_daily + 2 * self.yearly

    def _features(self, situation: Situation) -> Floats:
        clock = situation.clock
        late = np.log1p(situation.steps) / np.log1p(self.block)
        columns = [np.ones_like(late), np.minimum(late, 1.0) - 0.7, np.maximum(late - 1.0, 0.0)]
        columns += list(0.5 * np.log((situation.recent.T + _FLOOR) / (1 + _FLOOR)))
        if self.sub_daily:
            columns += [f(2 * np.pi * j * clock.day) for j in (1, 2, 3) for f in (np.cos, np.sin)]
        columns.append(np.where(clock.is_holiday | (clock.weekday >= 5), 0.5, -0.5))
        if self.yearly:
            columns += [f(2 * np.pi * clock.year) for f in (np.cos, np.sin)]
        return np.column_stack(columns)


def _limited(log_factors: Floats) -> Floats:
    return np.clip(log_factors, -2.5, 2.5)


def recent_squares(squares: Floats, counts: Floats, block: float, before: Floats | None = None) -> Floats:
    """Running means of squared errors: one row before each window, and one after the last.

    Parameters
    ----------
    squares : array of shape (D,)
        Mean squares of the standardized errors of each window.
    counts : array of shape (D,)
        Number of errors in each.
    block : float
        Steps of a horizon.
    before : array of shape (3,), optional
        The means before the first window; by default its first weeks.

    Returns
    -------
    array of shape (D + 1, 3)
    """
    if before is None:
        weight = counts[:28].sum()
        before = np.full(len(SPANS), (squares[:28] * counts[:28]).sum() / weight if weight else 1.0)
    found, now = [before], before
    for square, count in zip(squares, counts, strict=True):
        if count:
            gain = 1 - np.exp(-count / (block * np.asarray(SPANS)))
            now = now + gain * (np.minimum(square, _LARGEST_SQUARE) - now)
        found.append(now)
    return np.stack(found)


def scaled_t_log_density(squares: Floats, log_scale: Floats, log_df: Floats) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the density of s · t(df) at z, given z², and its derivatives in log s and log df."""
    df = np.exp(log_df)
    r = squares * np.exp(-2 * log_scale) / df
    share, log_tail = r / (1 + r), np.log1p(r)
    value = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * (log_df + np.log(np.pi)) - log_scale
    value = value - (df + 1) / 2 * log_tail
    by_scale = (df + 1) * share - 1
    by_df = 0.5 * (df * (digamma((df + 1) / 2) - digamma(df / 2) - log_tail) - 1 + (df + 1) * share)
    return value, by_scale, by_df
