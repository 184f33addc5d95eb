"""Pictures of filled rasters and of maps of stations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.plotting import MapPicture, draw_map
from compositegp.spatial.grid import grid_of
from compositegp.spatial.longitudes import turned_to
from compositegp.spatial.stations import Stations

if TYPE_CHECKING:
    import xarray as xr


def draw_filled(array: "xr.DataArray", filled: "xr.Dataset", **axes: Any) -> bytes:
    """Draw a raster with gaps, its filling and the standard error; of several times the one with the largest gaps.

    Parameters
    ----------
    array : DataArray
        Before it was filled.
    filled : Dataset
        From `fill`.
    **axes
        `x`, `y`, `time` and `sphere` as `fill` was given them.

    Returns
    -------
    bytes
        Content of a PNG file.
    """
    grid = grid_of(array, **axes)
    title = str(array.attrs.get("long_name", array.name or "raster"))
    mean, std = filled["mean"], filled["std"]
    if grid.axes.time is not None:
        others = [name for name in array.dims if name != grid.axes.time]
        step = int(array.isnull().sum(others).argmax())
        array, mean, std = (each.isel({grid.axes.time: step}) for each in (array, mean, std))
        when: Any = array.coords[grid.axes.time].to_numpy() if grid.axes.time in array.coords else step
        title += f", {np.datetime_as_string(when, 'm') if np.asarray(when).dtype.kind == 'M' else when}"
    plane = (grid.axes.y, grid.axes.x)
    layers = [np.asarray(each.transpose(*plane), dtype=np.float64) for each in (mean, std, array)]
    return draw_map(
        MapPicture(
            layers[0],
            layers[1],
            grid.x,
            grid.y,
            layers[2],
            title,
            str(array.attrs.get("units", "")),
            (grid.axes.x, grid.axes.y),
            grid.sphere,
        )
    )


def draw_stations(stations: Stations, field: "xr.Dataset", unit: str = "") -> bytes:
    """Draw a map with its stations, and its standard error.

    Parameters
    ----------
    stations : Stations
    field : Dataset
        From `krige`.
    unit : str
        Of the target.

    Returns
    -------
    bytes
        Content of a PNG file.
    """
    grid = grid_of(field["mean"], sphere=stations.sphere)
    plane = (grid.axes.y, grid.axes.x)
    mean, std = (np.asarray(field[name].transpose(*plane), dtype=np.float64) for name in ("mean", "std"))
    places = stations.places.copy()
    if stations.sphere:  # on the side of the globe where the grid is
        places[:, 0] = turned_to(places[:, 0], float(np.mean(grid.x)))
    observed = np.column_stack([places, stations.values])
    return draw_map(
        MapPicture(
            mean, std, grid.x, grid.y, observed, stations.target, unit, (grid.axes.x, grid.axes.y), grid.sphere
        )
    )
