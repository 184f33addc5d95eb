"""The grid that stations are mapped to: by a step, by a count of cells, or that of a raster."""

from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.backend import Floats, warn_caller
from compositegp.spatial.axes import find_axes, rasters_of
from compositegp.spatial.grid import Grid, grid_of
from compositegp.spatial.longitudes import turned_to, unwrapped
from compositegp.spatial.raster_reading import read_raster_at
from compositegp.spatial.stations import Stations

if TYPE_CHECKING:
    import xarray as xr

_MOST_CELLS = 200_000_000
_FEW = 0.1  # share of the cells that a covariate may not reach without a warning


def target_grid(
    stations: Stations, grid: Any, count: Any, covariates: dict[str, Any]
) -> tuple["xr.DataArray", Grid]:
    """The raster to fill, empty, and its grid with the covariates.

    Parameters
    ----------
    stations : Stations
        Around which a grid is made.
    grid : float, (float, float), DataArray or Dataset, optional
        A step, steps of x and y, or a raster whose cells are taken.
    count : int or (int, int), optional
        Cells along x and y; of one number along the longer side.
    covariates : dict of str to DataArray or None
        Rasters; those that are None are variables of the Dataset `grid`.
    """
    if (grid is None) == (count is None):
        raise ValueError(
            "the grid is given by grid (a step, or a raster) or by count (of cells): give one of them."
        )
    template = _template(stations, grid, count)
    rasters = {}
    for name, raster in covariates.items():
        own = raster
        if own is None and hasattr(grid, "data_vars") and name in grid.data_vars:
            own = grid[name]
        if own is None:
            raise ValueError(
                f"covariate {name!r} has no values on the grid, and those at stations do not tell it between them. "
                f"Give a raster, as covariates={{{name!r}: raster}}, or a variable of the Dataset that is the grid."
            )
        rasters[name] = _on(template, own, name, stations.sphere)
    return template, grid_of(template, sphere=stations.sphere, covariates=rasters)


def _template(stations: Stations, grid: Any, count: Any) -> "xr.DataArray":
    import xarray as xr

    if hasattr(grid, "dims"):
        array = check_template(grid)
        found = grid_of(array, sphere=stations.sphere)
        coordinates = {
            name: values for name, values in array.coords.items() if set(values.dims) <= set(found.axes.dims)
        }
        template = xr.DataArray(np.full(found.shape, np.nan), coordinates, found.axes.dims)
        _warn_if_apart(stations, found)
        return _in_system(template, array.attrs.get("grid_mapping", array.encoding.get("grid_mapping")))
    names = stations.names
    places = stations.places.copy()
    if stations.sphere:
        places[:, 0] = unwrapped(places[:, 0])
    low, high = places.min(axis=0), places.max(axis=0)
    if grid is not None:
        steps = np.broadcast_to(np.asarray(grid, dtype=np.float64), 2)
        if not (np.isfinite(steps).all() and (steps > 0).all()):
            raise ValueError(f"grid must be a positive step, or steps of x and y; found {grid!r}.")
    else:
        numbers = np.asarray(count)
        if numbers.dtype.kind not in "iu" or numbers.min() < 1:
            raise ValueError(f"count must be a whole number of cells, or two; found {count!r}.")
        widths = np.maximum(high - low, 1e-12)
        steps = (
            widths / np.maximum(numbers - 1, 1) if numbers.ndim else np.full(2, widths.max() / max(numbers - 1, 1))
        )
    sizes = (
        (np.floor((high - low) / steps) + 2).astype(int) if grid is not None else np.round((high - low) / steps) + 1
    )
    if np.prod(sizes.astype(float)) > _MOST_CELLS:
        raise ValueError(f"the grid would have {sizes[0]:.0f} × {sizes[1]:.0f} cells. Give a larger step.")
    x, y = (_axis(low[side], high[side], steps[side], grid is not None) for side in (0, 1))
    if stations.sphere:
        y = y[np.abs(y) <= 90.0]
    template = xr.DataArray(np.full((len(y), len(x)), np.nan), {names[1]: y, names[0]: x}, (names[1], names[0]))
    if stations.sphere:
        template[names[0]].attrs = {"units": "degrees_east", "standard_name": "longitude"}
        template[names[1]].attrs = {"units": "degrees_north", "standard_name": "latitude"}
    if stations.system is None:
        return template
    return _in_system(template.assign_coords(spatial_ref=xr.DataArray(0, attrs=stations.system)), "spatial_ref")


def _warn_if_apart(stations: Stations, grid: Grid) -> None:
    """Say so if no cell is near the stations: their coordinates hardly have the same meaning then."""
    x, y = stations.places.T
    cells = grid.x
    if stations.sphere:
        x = unwrapped(x)
        cells = turned_to(np.asarray(cells), float(x.min() + x.max()) / 2)
    reach = max(float(np.ptp(x)), float(np.ptp(y)))
    for name, own, there in (("x", x, cells), ("y", y, grid.y)):
        if np.min(there) > own.max() + reach or np.max(there) < own.min() - reach:
            warn_caller(
                f"No cell of the grid is near a station: {name} is from {np.min(there):g} to {np.max(there):g} on the "
                f"grid, and from {own.min():g} to {own.max():g} at the stations. Do both have the same coordinate "
                "reference system?",
                UserWarning,
            )
            return


def _in_system(template: "xr.DataArray", name: Any) -> "xr.DataArray":
    """A raster whose coordinate reference system has a name, if any."""
    if name in template.coords:
        template.encoding["grid_mapping"] = name
    return template


def _axis(low: float, high: float, step: float, snapped: bool) -> Floats:
    """Centers of cells from below the lowest place to above the highest; multiples of the step where it is given."""
    if not snapped:
        return np.asarray(low + step * np.arange(round((high - low) / step) + 1))
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    digits = max(0, 12 - int(np.floor(np.log10(step))))
    return np.asarray(np.round(np.arange(first, last + 1) * step, min(digits, 15)), dtype=np.float64)


def check_template(grid: Any) -> "xr.DataArray":
    """The raster whose cells a map is to have: one of a Dataset, or itself; a ValueError says why it cannot be.

    Parameters
    ----------
    grid : DataArray or Dataset
    """
    array = grid
    if hasattr(grid, "data_vars"):
        names = rasters_of(grid)
        if not names:
            raise ValueError("the Dataset that is the grid has no raster.")
        array = grid[names[0]]
    if find_axes(array).time is not None:
        raise ValueError("the raster that is the grid has a time axis. Choose one time of it first.")
    return array


def _on(template: "xr.DataArray", raster: "xr.DataArray", name: str, sphere: bool) -> "xr.DataArray":
    """A covariate on the cells of the grid: as it is, or between its cells by linear interpolation."""
    import xarray as xr

    same = all(dim in raster.dims and raster.sizes[dim] == template.sizes[dim] for dim in template.dims)
    if same and all(np.array_equal(raster[dim], template[dim]) for dim in template.dims if dim in template.coords):
        return raster
    grid = grid_of(template, sphere=sphere)
    found = read_raster_at(raster, name, grid.x, grid.y, sphere, outer=grid.x.ndim == 1)
    if found.beyond > _FEW:
        warn_caller(
            f"covariate {name!r} does not reach {found.beyond:.0%} of the map's cells, which stay missing: it has "
            f"{found.reach}.",
            UserWarning,
        )
    return xr.DataArray(found.values, dims=grid.axes.dims)
