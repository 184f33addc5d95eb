"""The kernels that a short series, all of which is remembered, may have: learned without the weight of outliers."""

from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.forecasting.horizon_terms import covariances
from compositegp.forecasting.memory import learn_memory, prior_precision, sum_of, whole_kernel
from compositegp.forecasting.whole_past import WholePast

LATEST = 300
"""Steps of a short series from which its kernel is learned, at most: the latest ones."""
FREEDOM = 1.0
"""Of the hyper-parameters: see `prior_precision`."""
_TEMPERED = 10  # times that the kernel is learned, at most, where there are outliers
_SETTLED = 0.05  # standard deviations of the series by which the last of these times moves no outlier


class Structure(NamedTuple):
    """A kernel of some parts, learned.

    Attributes
    ----------
    kernel : scikit-learn kernel of the time in steps
    names : list of str
        Of its parts.
    center : array of shape (p,)
        Of the prior of its hyper-parameters: see `prior_precision`.
    criterion : float
        Akaike's: log likelihood less the number of hyper-parameters.
    """

    kernel: Kernel
    names: list[str]
    center: Floats
    criterion: float


def learn_structures(
    observed: WholePast, patterns: dict[str, float], block: int, variance: float
) -> list[Structure]:
    """Learn the kernels that a short series may have: with its seasons and without, with a short memory and without.

    A season that is not there is learned from chance, and a short memory, from which the level returns, helps where
    there is one. All are learned from the same values, in which outliers are tempered.

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
    list of Structure
        The best by Akaike's criterion first.
    """
    size = observed.reach
    begin = sum_of(list(whole_kernel(patterns, block, size, variance).values()))
    first = _without_outliers(begin, observed)
    past = observed.tempered(covariances(first, size)).latest(LATEST)
    found = []
    for seasons in ({}, patterns) if patterns else ({},):
        for short in (False, True):
            parts = whole_kernel(seasons, block, size, variance, short=short)
            start = sum_of(list(parts.values()))
            if seasons == patterns and not short:
                kernel = first
            else:
                kernel = learn_memory(start, [past], precision=prior_precision(start, FREEDOM)).kernel
            found.append(Structure(kernel, list(parts), start.theta, _akaike(past, kernel)))
    return sorted(found, key=lambda one: -one.criterion)


def _akaike(past: WholePast, kernel: Kernel) -> float:
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
