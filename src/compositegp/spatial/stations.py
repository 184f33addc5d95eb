"""Stations: places with values, from data frames of pandas or GeoPandas, and from files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.spatial.axes import is_longitude_latitude
from compositegp.spatial.map_model import check_targets
from compositegp.spatial.raster_reading import read_raster_at

_MOST_NAMES = 12  # column names that an error lists


@dataclass(frozen=True, eq=False)
class Stations:
    """Observed values at places.

    Attributes
    ----------
    places : array of shape (n, 2)
        x and y.
    values : array of shape (n,)
    covariates : dict of str to array of shape (n,)
    noise_variance : array of shape (n,) or None
    names : (str, str)
        Of x and y.
    target : str
    sphere : bool
    notes : tuple of str
    system : dict or None
        Attributes of the coordinate reference system (CF), where there is one.
    """

    places: Floats
    values: Floats
    covariates: dict[str, Floats]
    noise_variance: Floats | None
    names: tuple[str, str]
    target: str
    sphere: bool
    notes: tuple[str, ...]
    system: dict[str, Any] | None = None

    @property
    def points(self) -> Floats:
        """Places and covariates: shape (n, 2 + covariates)."""
        return np.column_stack([self.places, *self.covariates.values()])


def read_stations(
    frame: Any,
    *,
    x: str | None,
    y: str | None,
    target: str,
    covariates: dict[str, Any],
    noise_variance: str | None,
    sphere: bool | str,
    log: bool,
) -> Stations:
    """Stations from a data frame; rows that lack something are left out, and a note says so.

    Parameters
    ----------
    frame : pandas DataFrame or GeoPandas GeoDataFrame
    x, y : str or None
        Columns; of a GeoDataFrame they may be left out, and the points of its geometry are taken.
    target : str
        Column.
    covariates : dict of str to DataArray or None
        Columns; of one that the frame lacks the values are read from its raster.
    noise_variance : str or None
        Column with the variance of each measurement's error.
    sphere : bool or "auto"
    log : bool
        Whether the logarithm of the target is modeled.
    """
    if not hasattr(frame, "columns"):
        raise ValueError(f"frame must be a data frame of pandas or GeoPandas; found {type(frame).__name__}.")
    places, names, crs = _places(frame, x, y)
    values = _column(frame, target)
    noise = None if noise_variance is None else _column(frame, noise_variance)
    complete = np.isfinite(places).all(axis=1) & ~np.isnan(values)
    check_targets(values[complete], log, f"column {target!r}")
    if sphere == "auto":
        geographic = None if crs is None else bool(crs.is_geographic)
        sphere = is_longitude_latitude(*names, places[complete, 0], places[complete, 1], (), geographic)
    elif not isinstance(sphere, bool | np.bool_):
        raise ValueError(f'sphere must be True, False or "auto"; found {sphere!r}.')
    found = {
        name: _column(frame, name) if name in frame.columns else _at_places(raster, name, places, bool(sphere))
        for name, raster in covariates.items()
    }
    for name, column in [*found.items(), *([] if noise is None else [(str(noise_variance), noise)])]:
        if not (complete & np.isfinite(column)).any():
            raise ValueError(f"{name!r} has no value at any station that has a value of {target!r}.")
    for column in [*found.values(), *([] if noise is None else [noise])]:
        complete &= np.isfinite(column)
    notes = []
    if not complete.all():
        notes.append(f"{int((~complete).sum())} of {len(complete)} rows lack a place or a value and are left out.")
    check_targets(values[complete], log, f"column {target!r}")
    if noise is not None and (noise[complete] < 0).any():
        raise ValueError(f"column {noise_variance!r} has negative variances.")
    places = places[complete]
    repeated = len(places) - len(np.unique(places, axis=0))
    if repeated:
        notes.append(f"{repeated} rows share their place with another row; they differ by noise.")
    return Stations(
        places,
        values[complete],
        {name: column[complete] for name, column in found.items()},
        None if noise is None else noise[complete],
        names,
        target,
        bool(sphere),
        tuple(notes),
        None if crs is None else dict(crs.to_cf()),
    )


def _places(frame: Any, x: str | None, y: str | None) -> tuple[Floats, tuple[str, str], Any]:
    """Places (n, 2), the names of their columns, and their coordinate reference system, where it is known."""
    geometry = getattr(frame, "geometry", None) if hasattr(frame, "crs") else None
    if x is not None and y is not None:
        return np.column_stack([_column(frame, x), _column(frame, y)]), (x, y), None
    if geometry is None:
        for east, north in (("lon", "lat"), ("longitude", "latitude"), ("x", "y")):
            if east in frame.columns and north in frame.columns:
                return np.column_stack([_column(frame, east), _column(frame, north)]), (east, north), None
        raise ValueError(
            f"the columns of x and y are not found; there are {_listed(frame)}. Name them: x=..., y=..."
        )
    if not (geometry.geom_type == "Point").all():
        kinds = ", ".join(sorted(set(map(str, geometry.geom_type))))
        raise ValueError(f"stations must be points; the geometry has {kinds}. Take centroids first.")
    names = ("lon", "lat") if frame.crs is not None and frame.crs.is_geographic else ("x", "y")
    return np.column_stack([geometry.x, geometry.y]).astype(np.float64), names, frame.crs


def _column(frame: Any, name: str) -> Floats:
    import pandas as pd

    if name not in frame.columns:
        raise ValueError(f"there is no column {name!r}; there are {_listed(frame)}.")
    values = pd.to_numeric(frame[name], errors="coerce")
    wrong = (values.isna() & frame[name].notna()).to_numpy()
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"column {name!r} has text where numbers should be: {frame[name].iloc[first]!r} in row {first + 1} "
            f"({int(wrong.sum())} such rows)."
        )
    return np.asarray(values, dtype=np.float64)


def _listed(frame: Any) -> str:
    names = [str(name) for name in frame.columns]
    return ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")


def _at_places(raster: Any, name: str, places: Floats, sphere: bool) -> Floats:
    """Values of a raster at places, between its cells by linear interpolation."""
    if raster is None:
        raise ValueError(f"the frame has no column {name!r} for the covariate, and no raster of it is given.")
    found = read_raster_at(raster, name, places[:, 0], places[:, 1], sphere)
    if found.beyond == 1:
        raise ValueError(f"the raster of covariate {name!r} reaches none of the stations: it has {found.reach}.")
    return found.values


def read_station_file(path: str | Path) -> Any:
    """A table of stations from a CSV, Parquet or GeoJSON file; of GeoJSON the places are columns lon and lat.

    Parameters
    ----------
    path : str or Path
    """
    import pandas as pd

    file = Path(path)
    if not file.exists():
        raise ValueError(f"{path} does not exist. Check the path.")
    endings = [ending.lower() for ending in file.suffixes]
    try:
        if {".geojson", ".json"} & set(endings):
            return _of_geojson(json.loads(file.read_text()))
        table = pd.read_parquet(file) if {".parquet", ".pq"} & set(endings) else pd.read_csv(file)
    except ImportError:
        raise
    except Exception as error:  # the readers raise many kinds for a file of another format
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} cannot be read as CSV, Parquet or GeoJSON: {reason}") from error
    if not len(table):
        raise ValueError(f"{path} has no rows.")
    table.columns = table.columns.map(str)
    return table


def _of_geojson(content: Any) -> Any:
    import pandas as pd

    rows = []
    for number, feature in enumerate(content["features"]):
        geometry = feature.get("geometry") or {}
        if geometry.get("type") != "Point":
            raise ValueError(f"feature {number + 1} is a {geometry.get('type')}, not a Point")
        lon, lat, *_ = geometry["coordinates"]
        rows.append({**(feature.get("properties") or {}), "lon": lon, "lat": lat})
    return pd.DataFrame(rows)
