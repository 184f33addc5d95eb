"""The paper's claims about the measurements of NOx and about the forecast of one day."""

import numpy as np
import pandas as pd
from scipy.stats import kurtosis, skew

from compositegp.backend import Floats
from compositegp.paper.claims import OWN, Claim

_RUSH, _NIGHT = (7, 8, 9, 16, 17, 18), (23, 24, 1, 2, 3, 4, 5)  # hours of a working day, counted from 1
_YEAR = pd.Timedelta(days=365.25)
_BLOCK = 4 * 168  # hours that the jackknife leaves out at once


def span_claim(series: pd.Series, why: str) -> Claim:
    """The verdict about the length of a series of measurements, and the reason where it is shorter."""
    first, last = series.index[0], series.index[-1]
    years = (last - first) / _YEAR
    return Claim(
        "the data set has more than 10 years of hourly measurements",
        "more than 10 years from the first hour to the last",
        f"{first:%Y-%m-%d} to {last:%Y-%m-%d}: {years:.1f} years, {len(series):,} hours",
        years > 10,
        why,
    )


def data_claims(name: str, values: Floats) -> list[Claim]:
    """Verdicts about the distribution of the measurements at a station, shape (n,)."""
    logs = np.log(values)
    before, after = shape_of(values), shape_of(logs)
    errors = standard_errors_of_shape(logs)
    off = np.abs(after) / errors
    wrong = [
        text
        for text, holds in (
            (f"the smallest value is {values.min():.2g}", values.min() >= 0),
            (f"the skewness is {before[0]:.2f}", before[0] > 1),
            (f"the excess kurtosis is {before[1]:.2f}", before[1] > 1),
        )
        if not holds
    ]
    tail = "low" if after[0] < 0 else "high"
    return [
        Claim(
            "NOx is non-negative, skewed towards low values, with a long tail",
            "all values ≥ 0, skewness > 1, excess kurtosis > 1 (both are 0 for a normal distribution)",
            f"smallest {values.min():.2g}, skewness {before[0]:.2f}, excess kurtosis {before[1]:.2f}",
            not wrong,
            " and ".join(wrong),
            case=name,
        ),
        Claim(
            f"{OWN}the logarithm is nearer to a normal distribution than NOx",
            "its skewness and its excess kurtosis are nearer to 0",
            f"skewness {before[0]:.2f} before and {after[0]:.2f} after, excess kurtosis {before[1]:.2f} and "
            f"{after[1]:.2f}",
            bool((np.abs(after) < np.abs(before)).all()),
            "the transformation overshoots: " + _farther(before, after),
            case=name,
        ),
        Claim(
            "the logarithm of NOx is normally distributed",
            "skewness and excess kurtosis are within 3 standard errors of 0 (jackknife over blocks of four weeks, as "
            "hours are not independent)",
            f"skewness {after[0]:.2f} ± {errors[0]:.2f}, excess kurtosis {after[1]:.2f} ± {errors[1]:.2f}",
            bool((off < 3).all()),
            f"the skewness is {off[0]:.1f} standard errors from 0 and the excess kurtosis {off[1]:.1f}: the tail of "
            f"{tail} values is the longer one",
            case=name,
        ),
    ]


def shape_of(values: Floats) -> Floats:
    """Skewness and excess kurtosis, shape (2,).

    Examples
    --------
    >>> shape_of(np.array([-1.0, 1.0])).tolist()
    [0.0, -2.0]
    """
    return np.array([skew(values), kurtosis(values)])


def standard_errors_of_shape(values: Floats, size: int = _BLOCK) -> Floats:
    """Standard errors of skewness and excess kurtosis, shape (2,): the jackknife over blocks of neighbors."""
    blocks = np.array_split(np.arange(len(values)), max(len(values) // size, 2))
    left_out = np.array([shape_of(np.delete(values, block)) for block in blocks])
    count = len(blocks)
    return np.asarray(np.sqrt((count - 1) * left_out.var(axis=0)))


def _farther(before: Floats, after: Floats) -> str:
    """Which of the two numbers are farther from 0 than they were."""
    names = ("the skewness", "the excess kurtosis")
    return (
        " and ".join(name for name, a, b in zip(names, before, after, strict=True) if abs(b) >= abs(a)) + " grows"
    )


def days_claim(days: int, last: pd.Timestamp) -> Claim:
    """The verdict about the number of days that are predicted."""
    return Claim(
        "365 days of 2014 are predicted",
        "that many",
        f"{days}",
        days == 365,
        f"the file ends with {last:%d %B %H:%M}; the author's own files have 364 days, too",
    )


def day_claims(shown: dict[str, Floats]) -> list[Claim]:
    """Verdicts about the forecast of one day: 24 values of each quantile."""
    lower, middle, upper = shown["q0.025"], shown["q0.5"], shown["q0.975"]
    widths = upper - lower
    rush, night = (float(widths[np.array(hours) - 1].mean()) for hours in (_RUSH, _NIGHT))
    skewed = upper - middle > middle - lower
    return [
        Claim(
            "the forecast of 12 March 2014 is non-negative",
            "the 2.5 % quantile is ≥ 0 in every hour",
            f"smallest {lower.min():.3g}",
            bool(lower.min() >= 0),
            "a quantile of a log-normal distribution cannot be negative, so this forecast is not log-normal",
        ),
        Claim(
            "the forecast of 12 March 2014 is skewed, with a long tail in high values",
            "the 97.5 % quantile is farther from the median than the 2.5 % quantile, in every hour",
            f"in {skewed.sum()} of {len(skewed)} hours",
            bool(skewed.all()),
            "not in hour " + ", ".join(str(hour) for hour in np.flatnonzero(~skewed) + 1),
        ),
        Claim(
            "the intervals of 12 March 2014 are significantly wider at rush hours than late and early",
            "on average at least 1.5 times as wide at 7 to 9 and 16 to 18 o'clock as from 23 to 5",
            f"{rush:.0f} against {night:.0f} µg/m³: {rush / night:.2f} times",
            rush > 1.5 * night,
            f"on this day they are {rush / night:.2f} times as wide, which is less than significantly wider",
        ),
    ]
