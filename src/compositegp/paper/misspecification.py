"""What a wrong joint model does to estimates: segments by themselves against maximum likelihood for all of a series."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.composite import segment
from compositegp.learning import FisherAverage, LearningResult, learn
from compositegp.simulate import stationary_field

SIZE = 200
"""Points of a segment."""
COUNT = 5
"""Segments of a series."""


class JointModel(NamedTuple):
    """Errors of log θ where the joint model of the segments is right, or wrong: arrays of shape (draws, p).

    Attributes
    ----------
    average : array
        Of the average of the segments' estimates.
    whole : array
        Of maximum likelihood for all of a series.
    """

    average: Floats
    whole: Floats

    def scaled(self, factors: Floats) -> "JointModel":
        """Errors times a factor for each parameter."""
        return JointModel(self.average * factors, self.whole * factors)

    def root_mean_squares(self) -> tuple[Floats, Floats]:
        """Of the errors of both, arrays of shape (p,)."""
        average, whole = (np.sqrt(np.mean(errors**2, axis=0)) for errors in self)
        return average, whole


def estimates_table(cases: dict[str, JointModel], names: Sequence[str], truth: Floats) -> pd.DataFrame:
    """Every estimate, a row for each series and method.

    Parameters
    ----------
    cases : dict of str to JointModel
        By what the joint model is.
    names : sequence of p str
        Of the parameters.
    truth : array of shape (p,)

    Returns
    -------
    pandas DataFrame

    Examples
    --------
    >>> found = JointModel(np.array([[0.0]]), np.array([[np.log(2.0)]]))
    >>> estimates_table({"right": found}, ["α"], np.array([3.0]))["α"].round(9).to_list()
    [3.0, 6.0]
    """
    tables = []
    for joint_model, found in cases.items():
        for method, errors in (("weighted average", found.average), ("maximum likelihood", found.whole)):
            columns = {"joint model": joint_model, "method": method, "series": np.arange(len(errors))}
            tables.append(pd.DataFrame(columns | dict(zip(names, (truth * np.exp(errors)).T, strict=True))))
    return pd.concat(tables)


def estimate_by_segments(kernel: Kernel, y: Floats, size: int, first: int = 0) -> LearningResult:
    """Learning of Section 4.1 from a series of unit steps in segments of `size` points, each in turn.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Where learning begins.
    y : array of shape (n,)
    size : int
    first : int
        Time of the first point.

    Returns
    -------
    LearningResult
    """
    X = first + np.arange(len(y), dtype=np.float64)[:, None]
    learning = FisherAverage(tolerance=None, start="kernel")
    return learn(kernel, X, y, segment(X, size, "sequential"), learning=learning, warn=False)


def joint_models(
    start: Kernel,
    truth: Kernel,
    draws: int,
    seed: int,
    n_jobs: int | None,
    *,
    size: int = SIZE,
    count: int = COUNT,
) -> list[JointModel]:
    """Errors with the right joint model, and with a wrong one.

    In the first case a series is one draw, and all of it follows the model. In the second every segment is a draw of
    its own: the model of each segment is right, and that of the whole is wrong where they meet.

    Parameters
    ----------
    start, truth : scikit-learn kernel
        Where learning begins, and what series are drawn from.
    draws : int
        Series of each kind.
    seed : int
    n_jobs : int, optional
        Number of processes, as in joblib.
    size, count : int
        Points of a segment, and segments of a series.

    Returns
    -------
    list of two JointModel
    """
    n = count * size
    whole = stationary_field(truth, n, n_draws=draws, random_state=seed)
    broken = stationary_field(truth, size, n_draws=count * draws, random_state=seed + 1).reshape(draws, n)
    tasks = [(y, of) for series in (whole, broken) for of in (size, n) for y in series]
    found = Parallel(n_jobs=n_jobs)(delayed(_estimate)(start, y, of) for y, of in tasks)
    errors = np.stack(found).reshape(2, 2, draws, -1) - truth.theta
    return [JointModel(*case) for case in errors]


def _estimate(kernel: Kernel, y: Floats, size: int) -> Floats:
    return estimate_by_segments(kernel, y, size).theta
