"""How good a map is on values that were held out, beside inverse distances and the nearest neighbor."""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF

from compositegp.backend import Booleans, Floats
from compositegp.kernels import OnSphere, in_length_scales
from compositegp.spatial.map_model import MapModel

_HELD_OUT = 500  # values that are held out, at most
_SHARE = 0.1  # of all values, at most
_GAPS = 10  # gaps that are made, at most
_NEIGHBORS, _POWER = 12, 2.0  # of the inverse distances


class MapScores(NamedTuple):
    """Scores on held-out values, one row for each method: for ``pandas.DataFrame(scores.table, index=scores.methods)``.

    Attributes
    ----------
    methods : list of str
    table : dict of str to list of float
    """

    methods: list[str]
    table: dict[str, list[float]]


def score_map(model: MapModel, random_state: int = 0) -> MapScores:
    """Hold values out, single ones and whole gaps, and predict them from the rest.

    The hyper-parameters are those learned from all the values.

    Parameters
    ----------
    model : MapModel
    random_state : int
    """
    X, y, noise_variance = model.X, model.y, model.noise_variance
    rng = np.random.default_rng(random_state)
    n_places = 3 if model.has_time else 2
    places = in_space(X[:, :2], model.sphere)
    table: dict[str, list[float]] = {}
    for name, held in (("single", _single(len(y), rng)), ("gaps", _gaps(places, rng))):
        noise = None if noise_variance is None else noise_variance[~held]
        rest = model.regressor.with_data(X[~held], y[~held], noise)
        new_noise = None if noise_variance is None else noise_variance[held]
        found = rest.predict_distribution(X[held], noise_variance=new_noise)
        inverse, nearest = _simple(X[:, :n_places], y, held, model)
        errors = [found.mean - y[held], inverse - y[held], nearest - y[held]]
        crps = float(np.mean(found.crps(y[held])))
        # Of a forecast without an error bar the CRPS is the mean absolute error.
        table[f"RMSE, {name}"] = [float(np.sqrt(np.mean(error**2))) for error in errors]
        table[f"CRPS, {name}"] = [crps, *(float(np.mean(np.abs(error))) for error in errors[1:])]
        table[f"in 95 %, {name}"] = [float(found.coverage(y[held], 0.95)), np.nan, np.nan]
    return MapScores(["this map", "inverse distances", "nearest neighbor"], table)


def _single(n: int, rng: Any) -> Booleans:
    held = np.zeros(n, dtype=bool)
    held[rng.permutation(n)[: _n_held_out(n)]] = True
    return held


def _gaps(places: Floats, rng: Any) -> Booleans:
    """Values around some places, so many that a tenth of all is held out."""
    n = len(places)
    wanted = _n_held_out(n)
    gaps = min(_GAPS, wanted)
    _, near = KDTree(places).query(places[rng.permutation(n)[:gaps]], k=np.arange(1, wanted // gaps + 1))
    held = np.zeros(n, dtype=bool)
    held[near.ravel()] = True
    return held


def _n_held_out(n: int) -> int:
    return max(1, min(_HELD_OUT, int(_SHARE * n)))


def _simple(X: Floats, y: Floats, held: Booleans, model: MapModel) -> tuple[Floats, Floats]:
    """Predictions of the held-out values by inverse distances, and by the nearest value."""
    places = in_space(X[:, :2], model.sphere)
    if model.has_time:  # in the model's own exchange rate of time for space
        places = in_length_scales(model.regressor.kernel_, _padded(X, model.regressor.n_features_in_))
    rest = places[~held]
    distances, near = KDTree(rest).query(places[held], k=np.arange(1, min(_NEIGHBORS, len(rest)) + 1))
    values = y[~held][near]
    weights = (distances + 1e-9 * (distances.max() or 1.0)) ** -_POWER
    return (weights * values).sum(axis=1) / weights.sum(axis=1), values[:, 0]


def _padded(X: Floats, d: int) -> Floats:
    return np.pad(X, ((0, 0), (0, d - X.shape[1])))


def in_space(places: Floats, sphere: bool) -> Floats:
    """Places whose Euclidean distances are those of the map: in kilometers, where they are on the sphere."""
    return np.asarray(OnSphere(RBF()).view(places) if sphere else places)
