"""Pictures of filled rasters and of maps of stations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.plotting import MapPicture, draw_map
from compositegp.spatial.grid import grid_of

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
