"""The model of the NOx study: a repeating profile as mean, and a kernel of short and medium memory and patterns."""

from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Kernel, Matern, WhiteKernel

from compositegp.backend import Floats
from compositegp.forecasting import Season
from compositegp.kernels import DataScale, OnColumns
from compositegp.means import Basis, PeriodicLevels

_CYCLES_FOR_A_PROFILE = 4  # a season becomes the mean if the history has at least these
_LONGEST_PATTERN = 1024  # steps; the drift of a longer season cannot be learned from segments of 512
_PROFILE_FREEDOM = 3.0  # standard deviation of a level of the profile beforehand, over that of the series
_SHORTEST_PERIOD = 24.0  # steps between short and medium memory, where no season is known
_LENGTHS = (1e-5, 1e5)  # bounds on the length scales of further columns, over the columns' own spread


def mean_of(seasons: list[Season], places: Floats, values: Floats) -> Basis | str:
    """The mean: a profile of the longest season that the data show several times, else a constant.

    Parameters
    ----------
    seasons : list of Season
        Shortest first.
    places : array of shape (n,)
        Times in steps.
    values : array of shape (n,)

    Returns
    -------
    Basis or "constant"

    Examples
    --------
    >>> mean_of([Season("day", 24.0)], np.arange(240.0), np.zeros(240)).functions
    PeriodicLevels(period=24.0, phases=24, column=0)
    """
    span = places[-1] - places[0] + 1
    for season in reversed(seasons):
        # Its levels must be fine enough for the shortest season.
        fine = season.period / season.phases <= seasons[0].period / 4
        if fine and span >= _CYCLES_FOR_A_PROFILE * season.period:
            prior = np.full(season.phases, values.mean())
            # A level without data stays near the overall mean.
            covariance = (_PROFILE_FREEDOM * (values.std() or 1.0)) ** 2 * np.eye(season.phases)
            return Basis(PeriodicLevels(season.period, season.phases), prior, covariance)
    return "constant"


def kernel_of(seasons: list[Season], variance: float, spreads: Sequence[float] | Floats = ()) -> Kernel:
    """The kernel: short and medium memory, seasons that drift, further columns, and noise.

    Parameters
    ----------
    seasons : list of Season
        Shortest first.
    variance : float
        Of the series.
    spreads : array of shape (k,)
        Standard deviations of the further columns.

    Returns
    -------
    scikit-learn kernel
        Of points (time in steps, further columns), with values to begin learning from.

    Examples
    --------
    >>> kernel_of([], 3.0)
    1**2 * Matern(length_scale=3, nu=0.5) + 1**2 * Matern(length_scale=48, nu=0.5) + WhiteKernel(noise_level=0.2)
    """
    shortest = seasons[0].period if seasons else _SHORTEST_PERIOD
    share, n_extra = variance / (3 + len(seasons)), len(spreads)
    kernel = _scaled(share, _on_time(Matern(3.0, (0.5, 2 * shortest), nu=0.5), n_extra))
    kernel += _scaled(share, _on_time(Matern(2 * shortest, (shortest, 60 * shortest), nu=0.5), n_extra))
    for season in seasons:
        if season.period <= _LONGEST_PATTERN:
            drift = RBF(14 * season.period, (3 * season.period, 200 * season.period))
            shape = ExpSineSquared(1.0, season.period, (0.1, 10.0), periodicity_bounds="fixed")
            kernel += _scaled(share, _on_time(shape * drift, n_extra))
    if n_extra:
        lengths = np.reshape(DataScale(np.asarray(spreads), variance).length_scale(n_extra), n_extra)
        columns = RBF(lengths, np.outer(lengths, _LENGTHS))
        kernel += _scaled(share, OnColumns(columns, list(range(1, 1 + n_extra))))
    return kernel + WhiteKernel(0.2 * share, (1e-4 * share, 10 * share))


def _on_time(kernel: Kernel, n_extra: int) -> Kernel:
    return OnColumns(kernel, [0]) if n_extra else kernel


def _scaled(variance: float, kernel: Kernel) -> Kernel:
    return ConstantKernel(variance, (1e-4 * variance, 1e3 * variance)) * kernel
