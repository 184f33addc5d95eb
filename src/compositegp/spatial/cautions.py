"""What a geostatistician would ask about a map: a trend that is left, stations in clusters, a nugget at its bound."""

import numpy as np
from scipy.spatial import KDTree

from compositegp.backend import Floats
from compositegp.spatial.baselines import in_space
from compositegp.spatial.longitudes import unwrapped
from compositegp.spatial.map_model import MapModel

_TREND = 0.25  # share of the variance that a plane explains, from which a trend is told
_CLUSTERED = 0.5  # mean distance to the nearest, over that without any order, under which places are in clusters
_MOST = 5000  # places that are looked at


def cautions_about(model: MapModel, random_state: int = 0) -> list[str]:
    """Sentences about what may be wrong with a map.

    Parameters
    ----------
    model : MapModel
    random_state : int
        For the choice of a sample.
    """
    X, y = model.X.copy(), model.y
    if model.sphere:
        X[:, 0] = unwrapped(X[:, 0])
    rows = np.random.default_rng(random_state).permutation(len(y))[:_MOST]
    values = np.log(y) if model.regressor.target_transform == "log" else y
    found = [_trend(X[rows], values[rows], model), _clusters(X, model.sphere, model.has_time)]
    result = model.regressor.learning_result_
    if result is not None:
        found += [message.text for message in result.messages]
    return [text for text in found if text is not None]


def _trend(X: Floats, y: Floats, model: MapModel) -> str | None:
    drift = np.column_stack([np.ones(len(X)), X[:, 3 if model.has_time else 2 :]])
    plane = np.column_stack([drift, X[:, :2]])
    left = [y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0] for basis in (drift, plane)]
    before, after = (float(part @ part) for part in left)
    share = 1 - after / before if before > 0 else 0.0
    if share < _TREND:
        return None
    return (
        f"A plane in the coordinates explains {share:.0%} of the variance: there is a trend. Far from the data the map "
        "returns to the mean; give the trend's cause as a covariate, if you know it."
    )


def _clusters(X: Floats, sphere: bool, has_time: bool) -> str | None:
    """By the index of Clark and Evans: mean distance to the nearest, over that of places without order."""
    places = np.unique(X[:, :2], axis=0)
    if has_time or len(places) < 10:
        return None
    spread = in_space(places, sphere)
    nearest = KDTree(spread).query(spread, k=[2])[0][:, 0]
    if sphere:
        height = np.ptp(places[:, 1]) * 111.2
        width = np.ptp(places[:, 0]) * 111.2 * np.cos(np.radians(places[:, 1].mean()))
    else:
        width, height = np.ptp(places, axis=0)
    expected = 0.5 * np.sqrt(width * height / len(places))
    if not expected or nearest.mean() >= _CLUSTERED * expected:
        return None
    return (
        f"Places are in clusters: a place is {nearest.mean() / expected:.0%} as far from its nearest as without order. "
        "Scores of single values that were held out are then better than those of a place far from all others."
    )
