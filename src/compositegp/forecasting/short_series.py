"""The kernel of a short series, all of which is remembered: its parts, learned without the weight of outliers."""

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.forecasting.horizon_terms import covariances
from compositegp.forecasting.memory import learn_memory, prior_precision, sum_of, whole_kernel
from compositegp.forecasting.whole_past import WholePast

LATEST = 300
"""Steps of a short series from which its kernel is learned, at most: the latest ones."""
FREEDOM = 1.0
"""Of the hyper-parameters: see `prior_precision`."""
_TEMPERED = 10  # times that the kernel is learned, at most, where there are outliers
_SETTLED = 0.05  # standard deviations of the series by which the last of these times moves no outlier


def learn_short_kernel(
    observed: WholePast, patterns: dict[str, float], block: int, variance: float
) -> tuple[Kernel, list[str]]:
    """Learn the kernel of a short series.

    Seasons that are no likelier than none are left out, since one that is not there is learned from chance, and a short
    memory, from which the level returns, is added where it is likelier: by Akaike's criterion, given the same values.

    Parameters
    ----------
    observed : WholePast
    patterns : dict
        Steps of the seasons that may drift, by name.
    block : int
        Steps of the horizon.
    variance : float
        Of the series.

    Returns
    -------
    scikit-learn kernel of the time in steps
    list of str
        Names of its parts.
    """
    size = observed.reach
    parts = whole_kernel(patterns, block, size, variance)
    kernel = _without_outliers(sum_of(list(parts.values())), observed)
    past = observed.tempered(covariances(kernel, size)).latest(LATEST)

    def learned(tried: dict[str, Kernel]) -> Kernel:
        begin = sum_of(list(tried.values()))
        return learn_memory(begin, [past], precision=prior_precision(begin, FREEDOM)).kernel

    if patterns:
        fewer = whole_kernel({}, block, size, variance)
        other = learned(fewer)
        if _akaike(past, other) > _akaike(past, kernel):
            kernel, parts, patterns = other, fewer, {}
    more = whole_kernel(patterns, block, size, variance, short=True)
    other = learned(more)
    if _akaike(past, other) > _akaike(past, kernel):
        kernel, parts = other, more
    return kernel, list(parts)


def _akaike(past: WholePast, kernel: Kernel) -> float:
    """Log likelihood less the number of hyper-parameters."""
    return float(past.score(covariances(kernel, past.reach))[0] - len(kernel.theta))


def _without_outliers(begin: Kernel, observed: WholePast) -> Kernel:
    """A kernel learned again and again without the weight of outliers.

    Outliers that are learned from make the variance large, and then seem credible: each time they count for less.
    """
    prior, kernel, past = prior_precision(begin, FREEDOM), begin, observed
    for _ in range(_TEMPERED):
        kernel = learn_memory(kernel, [past.latest(LATEST)], precision=prior, center=begin.theta).kernel
        before, past = past, observed.tempered(covariances(kernel, observed.reach))
        if np.nanmax(np.abs(past.values - before.values)) <= _SETTLED * np.nanstd(past.values):
            break
    return kernel
