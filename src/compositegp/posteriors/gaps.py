"""Observations that are held out together, such as those of a gap, predicted from the others."""

import numpy as np
from scipy.spatial import KDTree

from compositegp.backend import Booleans, Indices
from compositegp.composite import Observations
from compositegp.kernels import in_length_scales
from compositegp.posteriors.local_kriging import NearestPredictor
from compositegp.posteriors.surroundings import Surrounded

_PLACES = 200  # places in gaps where observations are predicted
_SHARED = 5  # observations at each place, which share their neighbors
_SEED = 0  # of the choice of places


def rows_in_gaps(data: Observations, held_out: Booleans) -> Indices:
    """Some of the observations that are held out, a few at each of many places: int array, ascending.

    Parameters
    ----------
    data : Observations
    held_out : boolean array of shape (n,)
    """
    inside = np.flatnonzero(held_out)
    places = in_length_scales(data.kernel, data.X[inside])
    chosen = np.random.default_rng(_SEED).permutation(len(inside))[:_PLACES]
    near = KDTree(places).query(places[chosen], k=np.arange(1, min(_SHARED, len(inside)) + 1))[1]
    return np.unique(inside[near])


def predict_gaps(
    data: Observations, held_out: Booleans, rows: Indices, size: int, n_jobs: int | None
) -> Surrounded:
    """Predict some of the observations that are held out from the nearest of those that are not.

    Parameters
    ----------
    data : Observations
    held_out : boolean array of shape (n,)
    rows : int array of shape (m,)
        Among those that are held out.
    size : int
        Observations that each is predicted from.
    n_jobs : int or None
    """
    rest = NearestPredictor(data.take(~held_out))
    return rest.predict_surrounded(data.X[rows], size, _SHARED, n_jobs=n_jobs)
