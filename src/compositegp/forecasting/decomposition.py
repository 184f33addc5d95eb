"""A simple forecast to compare with: seasons and trend taken apart by moving averages, the rest smoothed.

In order: the trend is a centered moving average over the longest season; each season is the mean of what is left at
each of its phases; the series less its seasons is smoothed exponentially, about the mean slope of the trend; its last
level, the slope and the seasons are continued. This is the classical decomposition with several seasons, a small
relative of MSTL with exponential smoothing. It is exact for a line plus periodic functions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import fftconvolve, lfilter

from compositegp.backend import Floats, Indices

_CYCLES = 8  # of the longest season whose phases are averaged: patterns drift
_FEWEST = 2  # of a season that is used
_ROUNDS = 4  # of trend and seasons in turn; one is enough where nothing is missing and seasons divide each other
_GAINS = np.linspace(0.02, 1.0, 50)  # of exponential smoothing, of which the best for one step is taken


class Decomposition(NamedTuple):
    """A series taken apart.

    Attributes
    ----------
    trend : array of shape (N,)
        NaN at both ends, where the moving average has too few values.
    seasons : dict of arrays
        Profiles of zero mean by their periods: shape (period,), whose first phase is that of the first row.
    """

    trend: Floats
    seasons: dict[int, Floats]

    def seasonal(self, rows: Indices) -> Floats:
        """Sum of the seasons at some rows (n,), which may be beyond the last."""
        found = np.zeros(len(rows))
        for period, profile in self.seasons.items():
            found += profile[rows % period]
        return found


def decompose(values: Floats, periods: Sequence[int]) -> Decomposition:
    """Trend and seasons of a series.

    Parameters
    ----------
    values : array of shape (N,)
        One for each step; NaN where it is missing.
    periods : sequence of int
        Steps of the seasons; the longest has to fit in three times.

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> parts = decompose(np.arange(12.0) + np.tile([1.0, 0.0, -1.0], 4), [3])
    >>> parts.trend.round(9)[1:4], parts.seasons[3].round(9)
    (array([1., 2., 3.]), array([ 1.,  0., -1.]))
    """
    rows, known = np.arange(len(values)), np.isfinite(values)
    found = Decomposition(np.full(len(values), np.nan), {period: np.zeros(period) for period in sorted(periods)})
    for _ in range(_ROUNDS):
        seasonal = found.seasonal(rows)
        trend = _moving_average(values - seasonal, max(periods))
        used = known & np.isfinite(trend)
        for period, before in found.seasons.items():
            rest = (values - trend - seasonal)[used] + before[rows[used] % period]
            counts = np.bincount(rows[used] % period, minlength=period)
            profile = np.bincount(rows[used] % period, rest, minlength=period) / np.maximum(counts, 1)
            profile -= profile.mean()
            seasonal = seasonal + (profile - before)[rows % period]
            found.seasons[period] = profile
        found = found._replace(trend=trend)
    return found


def continue_decomposition(values: Floats, periods: Sequence[float], steps: Indices) -> Floats | None:
    """Forecast a series by its seasons, its mean slope and its smoothed level.

    Parameters
    ----------
    values : array of shape (N,)
        One for each step; NaN where it is missing.
    periods : sequence of float
        Steps of the seasons; those that are too long for the series are left out.
    steps : array of int, shape (m,)
        Steps after the last value, from 1.

    Returns
    -------
    array of shape (m,), or None where no season fits in three times

    Examples
    --------
    >>> continue_decomposition(np.arange(12.0) + np.tile([1.0, 0.0, -1.0], 4), [3], np.array([1, 2])).round(9)
    array([13., 13.])
    """
    whole = sorted({round(period) for period in periods if round(period) >= 2})
    used = [period for period in whole if (_FEWEST + 1) * period <= len(values)]
    if not used:
        return None
    latest = values[-(_CYCLES + 1) * max(used) :]
    found = decompose(latest, used)
    rows = np.arange(len(latest))
    there = np.flatnonzero(np.isfinite(found.trend))
    known = np.isfinite(latest)
    if len(there) < 2 or not known.any():
        return None
    slope = (found.trend[there[-1]] - found.trend[there[0]]) / (there[-1] - there[0])
    level = latest - found.seasonal(rows) - slope * rows
    ends = _last_level(np.interp(rows, rows[known], level[known]))
    ahead = len(latest) - 1 + np.asarray(steps)
    return np.asarray(ends + slope * ahead + found.seasonal(ahead))


def _moving_average(values: Floats, period: int) -> Floats:
    """Centered means over a period, those of an even one with half of both ends; NaN where half is not known."""
    weights = np.ones(period) if period % 2 else np.concatenate([[0.5], np.ones(period - 1), [0.5]])
    known = np.isfinite(values)
    center = np.nanmean(values) if known.any() else 0.0
    sums = fftconvolve(np.where(known, values - center, 0.0), weights, mode="valid")
    counts = fftconvolve(known.astype(np.float64), weights, mode="valid")
    enough = counts > 0.5 * period
    found = np.full(len(values), np.nan)
    half = (len(weights) - 1) // 2
    found[half : half + len(sums)] = np.where(enough, center + sums / np.where(enough, counts, 1.0), np.nan)
    return found


def _last_level(values: Floats) -> float:
    """The last level of exponential smoothing, with the gain that forecasts one step best."""
    levels = [lfilter([gain], [1, gain - 1], values, zi=[(1 - gain) * values[0]])[0] for gain in _GAINS]
    errors = [float(((values[1:] - level[:-1]) ** 2).sum()) for level in levels]
    return float(levels[int(np.argmin(errors))][-1])
