"""Rasters that lie beside the one that is filled, such as masks and covariates: placed on its cells by coordinates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import KDTree

from compositegp.backend import Floats, Indices
from compositegp.spatial.axes import Axes

if TYPE_CHECKING:
    import xarray as xr

_SAME = 0.01  # of the step between cells, up to which two coordinates are the same


def covariates_on(
    given: "Mapping[str, xr.DataArray] | None", array: "xr.DataArray", axes: Axes, sphere: bool
) -> dict[str, Any]:
    """Covariates on the cells of a raster: arrays of shape (ny, nx) or (nt, ny, nx), lazy ones stay so.

    Parameters
    ----------
    given : mapping of str to DataArray, or None
    array : DataArray
        The raster.
    axes : Axes
        Of the raster.
    sphere : bool
        Whether x is a longitude, so that 350° is −10°.
    """
    found = {}
    for name, values in (given or {}).items():
        if axes.x not in values.dims or axes.y not in values.dims or set(values.dims) - set(axes.dims):
            raise ValueError(
                f"covariate {name!r} has the axes {', '.join(map(str, values.dims))}; it needs {axes.y} and {axes.x}"
                + (f", and may have {axes.time}." if axes.time else ".")
            )
        found[name] = _on_cells(values, array, axes, sphere, f"covariate {name!r}").data
    return found


def wanted_cells(wanted: "xr.DataArray | None", array: "xr.DataArray", axes: Axes, sphere: bool) -> Any:
    """The cells that are to be filled, shape (cells along (time,) y, x); True where all are.

    Parameters
    ----------
    wanted : DataArray, or None
        Not zero where cells are to be filled; what is missing in it is not wanted.
    array, axes, sphere
        As for `covariates_on`.
    """
    if wanted is None:
        return True
    if not hasattr(wanted, "dims"):
        raise ValueError(f"wanted must be an xarray DataArray; found {type(wanted).__name__}.")
    sizes = {str(dim): array.sizes[dim] for dim in axes.dims}
    if set(wanted.dims) - set(axes.dims):
        raise ValueError(f"wanted has the axes {dict(wanted.sizes)}, but the raster has {sizes}.")
    placed = _on_cells(wanted, array, axes, sphere, "wanted")
    cells = (placed.notnull() & (placed != 0)).to_numpy()
    shape = [sizes[dim] if dim in wanted.dims else 1 for dim in axes.dims]
    return np.broadcast_to(cells.reshape(shape), tuple(sizes.values()))


def _on_cells(values: "xr.DataArray", array: "xr.DataArray", axes: Axes, sphere: bool, what: str) -> "xr.DataArray":
    """A raster whose axes are some of another's, with its cells in the order of the other's."""
    order = [dim for dim in axes.dims if dim in values.dims]
    placed = values.transpose(*order)
    for dim in order:
        if dim in values.coords and dim in array.coords:
            rows = _rows(values[dim].to_numpy(), array[dim].to_numpy(), sphere and dim == axes.x)
            if (rows < 0).any():
                raise ValueError(
                    f"{what} has no cell at {dim} = {array[dim].to_numpy()[np.argmax(rows < 0)]}, which the raster has "
                    f"({int((rows < 0).sum())} of {len(rows)} are not there). Bring it to the raster's cells first, as "
                    "by interp_like."
                )
            if not np.array_equal(rows, np.arange(values.sizes[dim])):
                placed = placed.isel({dim: rows})
        elif values.sizes[dim] != array.sizes[dim]:
            sizes = {each: array.sizes[each] for each in axes.dims}
            raise ValueError(f"{what} has the axes {dict(values.sizes)}, but the raster has {sizes}.")
    for name, places in array.coords.items():
        in_both = set(places.dims) == {axes.y, axes.x} and name in placed.coords
        if in_both and not _are_same(placed.coords[name], places):
            raise ValueError(
                f"{what} has other places than the raster ({name}). Bring it to the raster's cells first."
            )
    return placed


def _rows(own: Any, others: Any, around: bool) -> Indices:
    """Where the coordinates `others` are among `own`: an int array, −1 where they are not."""
    if np.array_equal(own, others):
        return np.arange(len(own))
    if own.dtype.kind not in "iuf" or others.dtype.kind not in "iuf":
        import pandas as pd

        return np.asarray(pd.Index(own).get_indexer(pd.Index(others)))
    steps = np.concatenate([np.diff(np.unique(each)) for each in (own, others)]).astype(np.float64)
    step = steps.min() if len(steps) else 1e-3 * max(abs(float(others[0])), 1.0)
    apart, rows = KDTree(_points(own, around)).query(_points(others, around))
    return np.where(apart <= _SAME * step, rows, -1)


def _points(coordinates: Any, around: bool) -> Floats:
    """Coordinates as points; those of longitudes are on a circle, whose distances are about those in degrees."""
    numbers = np.asarray(coordinates, dtype=np.float64)
    if not around:
        return numbers[:, None]
    angles = np.radians(numbers)
    return np.asarray(np.degrees(np.column_stack([np.cos(angles), np.sin(angles)])))


def _are_same(one: "xr.DataArray", other: "xr.DataArray") -> bool:
    if set(one.dims) != set(other.dims) or dict(one.sizes) != dict(other.sizes):
        return False
    mine, others = (np.asarray(each, dtype=np.float64) for each in (one.transpose(*other.dims), other))
    step = np.median(np.hypot(*np.gradient(others))) if min(others.shape) > 1 else 1.0
    return bool((np.abs(mine - others) <= _SAME * step).all())
