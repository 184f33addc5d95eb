"""Averages of a field over regions: polygons from GeoJSON, predicted with the error of the average itself."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp import functionals
from compositegp.backend import Booleans, Floats
from compositegp.spatial.longitudes import turned_to
from compositegp.spatial.map_model import MapModel

if TYPE_CHECKING:
    import pandas as pd

_NODES = 400  # points by which the average over a region is computed, from half to twice as many
_PER_SIDE = 20  # of the coarsest lattice of them
_MOST_HALVED = 16  # times that the lattice is made finer, at most
_MOST_TRIED = 2**17  # points of a lattice, at most
_NAMES = ("name", "NAME", "Name", "id")


def region_averages(
    model: MapModel, regions: Mapping[str, Sequence[Floats]], quantiles: Sequence[float] = (0.05, 0.5, 0.95)
) -> "pd.DataFrame":
    """Predict the average of a field over each of some regions.

    The standard error accounts for the correlation between the places of a region, which sums of errors at single
    places get wrong. It is about the field itself, without measurement noise.

    Parameters
    ----------
    model : MapModel
        Of a field without time and covariates, on the scale of the target.
    regions : mapping of str to sequence of arrays of shape (k, 2)
        Rings of the polygons of each region, x and y of their corners; a ring inside another is a hole. On the sphere a
        region may be cut at the date line.
    quantiles : sequence of float

    Returns
    -------
    DataFrame
        One row a region, by its name: mean, std and quantiles.

    Examples
    --------
    >>> import pandas as pd
    >>> from compositegp.spatial import learn_stations
    >>> rng = np.random.default_rng(0)
    >>> stations = pd.DataFrame(rng.uniform(0, 10, size=(80, 2)), columns=["x", "y"])
    >>> stations["rain"] = stations.x + 0.01 * rng.normal(size=80)
    >>> model, _ = learn_stations(stations, target="rain")
    >>> west = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 10.0], [0.0, 10.0]])
    >>> float(region_averages(model, {"west": [west]})["mean"].iloc[0].round(1))
    2.0
    """
    import pandas as pd

    if model.has_time or model.covariates:
        raise ValueError("Averages over regions need a field of x and y alone: do without time and covariates.")
    if model.regressor.target_transform is not None:
        raise ValueError("Averages over regions are of the field itself, not of its logarithm: do without log.")
    if not regions:
        raise ValueError("regions has no region. Give at least one polygon.")
    levels = np.asarray(quantiles, dtype=np.float64)
    sets = [_nodes(name, rings, model.sphere) for name, rings in regions.items()]
    weights = [np.cos(np.deg2rad(points[:, 1])) if model.sphere else np.ones(len(points)) for points in sets]
    averages: Any = functionals.average(sets, weights)
    found = model.regressor.predict_distribution(averages, latent=True)
    table = pd.DataFrame({"mean": found.mean, "std": found.std}, index=pd.Index(list(regions), name="region"))
    for level, column in zip(levels, np.atleast_2d(found.quantile(levels).T), strict=True):
        table[f"q{level:g}"] = column
    return table


def read_regions(path: str | Path) -> dict[str, list[Floats]]:
    """Regions of a GeoJSON file: the rings of each feature's polygons, by its name.

    Parameters
    ----------
    path : path
        Features with a Polygon or a MultiPolygon. Names are the property "name" or "id", else numbers from 1.

    Returns
    -------
    dict of str to list of arrays of shape (k, 2)

    Examples
    --------
    >>> import tempfile
    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    >>> file = Path(tempfile.mkdtemp()) / "regions.geojson"
    >>> _ = file.write_text(json.dumps({"type": "Feature", "properties": {"name": "A"}, "geometry": square}))
    >>> list(read_regions(file))
    ['A']
    """
    try:
        content = json.loads(Path(path).read_text())
        features = content["features"] if content.get("type") == "FeatureCollection" else [content]
        found: dict[str, list[Floats]] = {}
        for number, feature in enumerate(features, start=1):
            properties = feature.get("properties") or {}
            name = str(next((properties[key] for key in _NAMES if properties.get(key) is not None), number))
            geometry = feature.get("geometry", feature)
            shapes = {"Polygon": [geometry["coordinates"]], "MultiPolygon": geometry["coordinates"]}[
                geometry["type"]
            ]
            rings = [np.asarray(ring, dtype=np.float64)[:, :2] for shape in shapes for ring in shape]
            if name in found:
                raise ValueError(f"two regions are called {name!r}")
            found[name] = rings
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} cannot be read as GeoJSON with polygons ({type(error).__name__}: {error}). Each feature needs a "
            "Polygon or a MultiPolygon."
        ) from error
    if not found:
        raise ValueError(f"{path} has no feature. Give at least one polygon.")
    return found


def _nodes(name: str, rings: Sequence[Floats], sphere: bool) -> Floats:
    """Points on a regular lattice inside a region, shape (a, 2)."""
    rings = [np.asarray(ring, dtype=np.float64) for ring in rings]
    if not rings or any(
        ring.ndim != 2 or ring.shape[1] != 2 or not len(ring) or not np.isfinite(ring).all() for ring in rings
    ):
        raise ValueError(f"region {name!r} must have rings of finite corners, shape (k, 2).")
    if sphere:
        rings = _side_by_side(rings)
    corners = np.concatenate(rings)
    low, size = corners.min(axis=0), np.ptp(corners, axis=0)
    if not (size > 0).all():
        raise ValueError(f"region {name!r} has no area.")
    inside = np.empty((0, 2))
    for fineness in range(_MOST_HALVED):  # finer where the region is thin, or its parts are far apart
        lattice = _lattice(rings, low, size / (_PER_SIDE * 2**fineness))
        if len(lattice) > _MOST_TRIED:
            break
        inside = lattice[_inside(lattice, rings)]
        if len(inside) >= _NODES // 2:
            break
    if not len(inside):
        raise ValueError(f"region {name!r} is too thin to place points in it.")
    return np.asarray(inside)


def _side_by_side(rings: list[Floats]) -> list[Floats]:
    """Rings on the sphere without a jump between them: a region that is cut at the date line is one.

    A ring is turned to the side of the first one; a hole goes with the ring before it that it lies in.
    """
    first = (rings[0][:, 0].min() + rings[0][:, 0].max()) / 2
    moves: list[float] = []
    for number, ring in enumerate(rings):
        around = [
            move
            for move, other in zip(moves, rings[:number], strict=True)
            if (other.min(axis=0) <= ring.min(axis=0)).all() and (ring.max(axis=0) <= other.max(axis=0)).all()
        ]
        middle = np.array([(ring[:, 0].min() + ring[:, 0].max()) / 2])
        moves.append(around[0] if around else float((turned_to(middle, first) - middle)[0]))
    return [ring + np.array([move, 0.0]) for ring, move in zip(rings, moves, strict=True)]


def _lattice(rings: Sequence[Floats], low: Floats, step: Floats) -> Floats:
    """Points low + (i + ½) step that lie in the rectangle around any of the rings, each once: shape (m, 2)."""
    found: list[Floats] = []
    for ring in rings:
        first, last = (np.floor((corner - low) / step).astype(np.int64) for corner in (ring.min(0), ring.max(0)))
        count = last - first + 1
        if np.prod(count.astype(float)) > _MOST_TRIED:
            return np.empty((_MOST_TRIED + 1, 2))
        across, up = np.meshgrid(*(np.arange(count[side]) + first[side] for side in (0, 1)))
        found.append(np.stack([across, up], axis=-1).reshape(-1, 2))
    return np.asarray(low + step * (np.unique(np.concatenate(found), axis=0) + 0.5))


def _inside(points: Floats, rings: Sequence[Floats]) -> Booleans:
    """Which points are inside an odd number of rings: holes are outside."""
    inside = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for ring in rings:
        start = np.asarray(ring, dtype=np.float64)
        stop = np.roll(start, -1, axis=0)
        for (x0, y0), (x1, y1) in zip(start, stop, strict=True):
            if y0 != y1:
                crosses = (y0 > y) != (y1 > y)
                inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside
