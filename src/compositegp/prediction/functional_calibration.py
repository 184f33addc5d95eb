"""Calibration of functionals: what is learned of errors at points, applied to what is made of points."""

from collections.abc import Callable
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.functionals import Functionals
from compositegp.predictive import Family, Normal

_REFERENCES = 8  # points of a functional whose calibration it takes, at most


def functional_spread(asked: Functionals, spread_at: Callable[[Floats], tuple[Any, Family]]) -> dict[str, Any]:
    """Factors (M, t) on the standard deviations of functionals, which are normal; empty where there is no calibration.

    The factor of a functional is the geometric mean of those of its points, or of eight of them: the calibrated
    standard deviation of an observation there, scale and tails together, over that of the model.

    Parameters
    ----------
    asked : Functionals
    spread_at : callable
        Factors and family of the errors at points (m, d), as `Predictor.spread` gives them.

    Returns
    -------
    dict
        With the key ``factors``, or empty.
    """
    ranks = np.arange(len(asked.points)) - asked.starts[asked.owners]
    steps = np.maximum(asked.counts // _REFERENCES, 1)[asked.owners]
    chosen = np.flatnonzero((ranks % steps == 0) & (ranks // steps < _REFERENCES))
    points, place = np.unique(asked.points[chosen], axis=0, return_inverse=True)
    factors, family = spread_at(points)
    if not np.ndim(factors) and isinstance(family, Normal):
        return {}
    width = np.shape(factors)[-1] if np.ndim(factors) else 1
    tails = np.broadcast_to(np.reshape(family.std, (-1, 1)), (len(points), 1))
    logs = np.log(np.broadcast_to(factors, (len(points), width)) * tails)
    owners = asked.owners[chosen]
    sums = [np.bincount(owners, column, len(asked)) for column in logs[place.ravel()].T]
    return {"factors": np.exp(np.stack(sums, axis=1) / np.bincount(owners, minlength=len(asked))[:, None])}
