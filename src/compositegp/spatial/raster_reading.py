"""A raster read at other places than its cells: between them by linear interpolation, around the globe."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compositegp.backend import Floats
from compositegp.spatial.axes import Axes, find_axes
from compositegp.spatial.longitudes import turned_to, unwrapped

if TYPE_CHECKING:
    import xarray as xr


class Read(NamedTuple):
    """What was read.

    Attributes
    ----------
    values : array of the shape of the places
        NaN where the raster does not reach, and beside its missing cells.
    beyond : float
        Share of the places that the raster does not reach.
    reach : str
        How far it does, in words.
    """

    values: Floats
    beyond: float
    reach: str


def read_raster_at(
    raster: "xr.DataArray", name: str, x: Floats, y: Floats, sphere: bool, *, outer: bool = False
) -> Read:
    """Read a raster at places.

    Parameters
    ----------
    raster : DataArray
        With the axes y and x.
    name : str
        Of the raster, for messages.
    x, y : arrays of one shape, or with `outer` of shape (nx,) and (ny,)
        The places; those that are not finite have no value.
    sphere : bool
        Whether x is a longitude, so that 350° is −10°, and the last column of a whole globe is beside the first.
    outer : bool
        The places are all pairs of an x and a y, and what is read has the shape (ny, nx).
    """
    import xarray as xr

    axes = _checked_axes(raster, name)
    placed = _around(raster, axes.x) if sphere else raster
    along, up = (np.asarray(placed[axis], dtype=np.float64) for axis in (axes.x, axes.y))
    if sphere:
        x = turned_to(x, float(along.min() + along.max()) / 2)
    dims = [f"place_{number}" for number in range(np.ndim(x))]
    x_dims, y_dims = (["to_x"], ["to_y"]) if outer else (dims, dims)
    found = placed.interp({axes.x: xr.DataArray(x, dims=x_dims), axes.y: xr.DataArray(y, dims=y_dims)})
    values = np.asarray(found.transpose(*(["to_y", "to_x"] if outer else dims)), dtype=np.float64)
    on_x, on_y = (x >= along.min()) & (x <= along.max()), (y >= up.min()) & (y <= up.max())
    reached = np.mean(on_x) * np.mean(on_y) if outer else np.mean(on_x & on_y)
    reach = f"{axes.x} from {along.min():g} to {along.max():g}, {axes.y} from {up.min():g} to {up.max():g}"
    return Read(values, 1 - float(reached), reach)


def _checked_axes(raster: Any, name: str) -> Axes:
    if not hasattr(raster, "dims"):
        raise ValueError(f"covariate {name!r} must be an xarray DataArray; found {type(raster).__name__}.")
    axes = find_axes(raster)
    if axes.time is not None:
        raise ValueError(f"covariate {name!r} has the time axis {axes.time!r}. Choose one time of it first.")
    for axis in (axes.x, axes.y):
        if axis not in raster.coords or raster[axis].dtype.kind not in "iuf":
            raise ValueError(
                f"covariate {name!r} has no coordinates along {axis}, so that it cannot be read at other places. Give "
                "it the coordinates of its cells, or bring it to the cells of the map first."
            )
    return axes


def _around(raster: "xr.DataArray", axis: str) -> "xr.DataArray":
    """A raster in the order of its longitudes, without a jump; one of the whole globe has its first column twice."""
    import xarray as xr

    placed = raster.assign_coords({axis: unwrapped(np.asarray(raster[axis], dtype=np.float64))}).sortby(axis)
    along = placed[axis].to_numpy()
    left = 360.0 - np.ptp(along)
    if len(along) < 2 or not 0 < left < 1.5 * np.diff(along).max():
        return placed
    return xr.concat([placed, placed.isel({axis: [0]}).assign_coords({axis: [along[0] + 360.0]})], axis)
