"""Pictures of filled rasters and of maps of stations."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.plotting import MapPicture, draw_map
from compositegp.spatial.grid import grid_of
from compositegp.spatial.longitudes import turned_to
from compositegp.spatial.raster_files import open_layers
from compositegp.spatial.stations import Stations

if TYPE_CHECKING:
    import xarray as xr

_MOST_CELLS = 1200  # cells along a side that are drawn; of more every second, third, … is taken


def draw_filled(array: "xr.DataArray", filled: "xr.Dataset | str | Path", **axes: Any) -> bytes:
    """Draw a raster with gaps, its filling and the standard error; of several times the one with the largest gaps.

    Parameters
    ----------
    array : DataArray
        Before it was filled.
    filled : Dataset, str or Path
        From `fill`, or the file that it was written to: lazy layers are then not computed once more.
    **axes
        `x`, `y`, `time` and `sphere` as `fill` was given them.

    Returns
    -------
    bytes
        Content of a PNG file.
    """
    import xarray as xr

    grid = grid_of(array, **axes)
    title = str(array.attrs.get("long_name", array.name or "raster"))
    plane = (grid.axes.y, grid.axes.x)
    stride = max(1, -(-max(grid.shape[-2:]) // _MOST_CELLS))
    shown: dict[str, Any] = dict.fromkeys(plane, slice(None, None, stride))
    if grid.axes.time is not None:
        step = shown[grid.axes.time] = int(array.isnull().sum(plane).argmax())
        when: Any = array.coords[grid.axes.time].to_numpy()[step] if grid.axes.time in array.coords else step
        title += f", {np.datetime_as_string(when, 'm') if np.asarray(when).dtype.kind == 'M' else when}"
    layers = nullcontext(filled) if isinstance(filled, xr.Dataset) else open_layers(filled, grid.axes)
    with layers as opened:
        drawn = opened[["mean", "std"]].isel(shown).compute()
    mean, std, observed = (
        np.asarray(each.transpose(*plane), dtype=np.float64)
        for each in (drawn["mean"], drawn["std"], array.isel(shown))
    )
    x, y = (
        (grid.x[::stride], grid.y[::stride])
        if grid.x.ndim == 1
        else (grid.x[::stride, ::stride], grid.y[::stride, ::stride])
    )
    unit = str(array.attrs.get("units", ""))
    return draw_map(MapPicture(mean, std, x, y, observed, title, unit, (grid.axes.x, grid.axes.y), grid.sphere))


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
