"""The paper's claims about the measurements of NOx and about the forecast of one day."""

import numpy as np
import pandas as pd
from scipy.stats import kurtosis, skew

from compositegp.backend import Floats
from compositegp.paper.claims import Claim

_RUSH, _NIGHT = (7, 8, 9, 16, 17, 18), (23, 24, 1, 2, 3, 4, 5)  # hours of a working day, counted from 1
_YEAR = pd.Timedelta(days=365.25)


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
    """Verdicts about the distribution of the measurements."""
    logs = np.log(values)
    shape = [float(measure(each)) for each in (values, logs) for measure in (skew, kurtosis)]
    return [
        Claim(
            f"NOx is non-negative, skewed towards low values, with a long tail: {name}",
            "all values ≥ 0, skewness > 1, excess kurtosis > 1 (both are 0 for a normal distribution)",
            f"smallest {values.min():.2g}, skewness {shape[0]:.2f}, excess kurtosis {shape[1]:.2f}",
            bool(values.min() >= 0 and shape[0] > 1 and shape[1] > 1),
            "one of these numbers is not so",
        ),
        Claim(
            f"the logarithm of NOx is normally distributed: {name}",
            "roughly: skewness and excess kurtosis are within ± 0.5 (so many hours would reject any exact law)",
            f"skewness {shape[2]:.2f}, excess kurtosis {shape[3]:.2f}",
            bool(max(abs(shape[2]), abs(shape[3])) < 0.5),
            "its tails or its skewness are not those of a normal distribution",
        ),
    ]


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
            "a quantile of a log-normal distribution cannot be negative",
        ),
        Claim(
            "the forecast of 12 March 2014 is skewed, with a long tail in high values",
            "the 97.5 % quantile is farther from the median than the 2.5 % quantile, in every hour",
            f"in {skewed.sum()} of {len(skewed)} hours",
            bool(skewed.all()),
            "not in the other hours",
        ),
        Claim(
            "the intervals of 12 March 2014 are significantly wider at rush hours than late and early",
            "on average at least 1.5 times as wide at 7 to 9 and 16 to 18 o'clock as from 23 to 5",
            f"{rush:.0f} against {night:.0f} µg/m³: {rush / night:.2f} times",
            rush > 1.5 * night,
            "they are more alike on this day",
        ),
    ]
