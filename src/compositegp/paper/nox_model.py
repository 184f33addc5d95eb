"""The model of the NOx study, learned from the hours before it."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, psd_root
from compositegp.composite import segment
from compositegp.forecasting import Season
from compositegp.learning import CompositeLikelihood, learn
from compositegp.means import Estimated, as_mean
from compositegp.paper.nox_kernel import kernel_of, mean_of

WEEK = 168
_SEGMENT = 6 * WEEK  # hours of a segment to learn from
FIRST = pd.Timestamp("2014-01-01")


class Model(NamedTuple):
    """The model that was learned before 2014; times are hours since the series began.

    Attributes
    ----------
    kernel : scikit-learn kernel
    mean : Estimated
    """

    kernel: Kernel
    mean: Estimated

    def level(self, hours: Floats) -> Floats:
        """The mean of ln NOx at some hours."""
        return np.asarray(as_mean(self.mean).columns(hours[:, None]) @ np.asarray(self.mean.coefficients))

    def functions(self, hours: Floats) -> Floats:
        """Its basis functions, shape (n, q)."""
        return as_mean(self.mean).columns(hours[:, None])

    @property
    def root(self) -> Floats:
        """A root of the error covariance of its coefficients."""
        return psd_root(np.asarray(self.mean.covariance))

    @property
    def noise(self) -> float:
        """Noise variance of ln NOx."""
        return float(self.kernel.k2.noise_level)


def hours_of(series: pd.Series) -> Floats:
    """Hours since a series began.

    Examples
    --------
    >>> hours_of(pd.Series([1.0, 2.0], pd.to_datetime(["2024-01-01", "2024-01-02"])))
    array([ 0., 24.])
    """
    return np.asarray((series.index - series.index[0]) / pd.Timedelta(hours=1), dtype=np.float64)


def learn_model(
    series: pd.Series, kind: str, history: int, first: pd.Timestamp = FIRST, *, n_jobs: int | None = -1
) -> Model:
    """Learn hyper-parameters and mean coefficients from the hours before a day.

    Parameters
    ----------
    series : pandas Series
        Hourly; gaps are not observed.
    kind : {"profile", "constant"}
    history : int
        Hours to learn from.
    first : pandas Timestamp
        The day.
    n_jobs : int, optional
        Number of processes, as in joblib.

    Returns
    -------
    Model

    Examples
    --------
    >>> index = pd.date_range("2013-12-20", "2014-01-02", freq="h")
    >>> values = np.exp(np.random.default_rng(0).normal(3.0, 0.5, size=len(index)))
    >>> model = learn_model(pd.Series(values, index), "constant", 200, n_jobs=1)
    >>> len(model.mean.coefficients)
    1
    """
    before = int((series.index <= first).sum())
    X = hours_of(series)[:before][-history:, None]
    y = np.log(series.to_numpy()[:before])[-history:]
    seasons = [Season("day", 24.0), Season("week", float(WEEK))]
    mean = mean_of(seasons, X[:, 0], y) if kind == "profile" else "constant"
    result = learn(
        kernel_of(seasons, float(y.var())),
        X,
        y,
        segment(X, _SEGMENT, "sequential"),
        mean=mean,
        learning=CompositeLikelihood(tolerance=0.1, start="kernel"),
        conditioning_size=0,
        n_jobs=n_jobs,
        warn=False,
    )
    return Model(result.kernel, result.mean)
