"""The cells of a raster as points: coordinates, time in hours, and covariates."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.backend import Floats
from compositegp.spatial.alignment import covariates_on
from compositegp.spatial.axes import Axes, find_axes, is_longitude_latitude, raster_is_geographic

if TYPE_CHECKING:
    import xarray as xr

Window = tuple[slice, ...]
"""A part of a raster: a slice of each axis, in the order (time,) y, x."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of a raster.

    Attributes
    ----------
    axes : Axes
    x, y : arrays of shape (nx,) and (ny,), or both (ny, nx) for curvilinear coordinates
    time : array of shape (nt,) or None
        Hours, since `epoch` where times are dates; numbers as they are, where time is a number.
    sphere : bool
        Whether x and y are longitude and latitude, and distances are measured on the sphere.
    covariates : dict of str to array of shape (ny, nx) or (nt, ny, nx)
    epoch : datetime64 or None
        Origin of time, in UTC.
    time_unit : str
        Of time; empty where it is not known.
    """

    axes: Axes
    x: Floats
    y: Floats
    time: Floats | None
    sphere: bool
    covariates: dict[str, Any] = field(default_factory=dict)
    epoch: Any = None
    time_unit: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along (time,) y, x."""
        plane = self.x.shape if self.x.ndim == 2 else (len(self.y), len(self.x))
        return plane if self.time is None else (len(self.time), *plane)

    @property
    def n_columns(self) -> int:
        """Columns of the points: x, y, time where there is one, covariates."""
        return len(self.axes.dims) + len(self.covariates)

    def points(self, window: Window) -> Floats:
        """The cells of a window as points: shape (cells, columns), in the order of the axes."""
        *times, rows, columns = window
        x, y = (
            (self.x[rows, columns], self.y[rows, columns]) if self.x.ndim == 2 else (self.x[columns], self.y[rows])
        )
        if x.ndim == 1:
            x, y = np.meshgrid(x, y)
        parts = [x, y]
        if self.time is not None:
            hours = self.time[times[0]]
            parts = [np.broadcast_to(part, (len(hours), *part.shape)) for part in parts]
            parts.append(np.broadcast_to(hours[:, None, None], parts[0].shape))
        for values in self.covariates.values():
            part = values[(*times, rows, columns)[-np.ndim(values) :]]
            parts.append(np.broadcast_to(np.asarray(part, dtype=np.float64), parts[0].shape))
        return np.stack(parts, axis=-1).reshape(-1, self.n_columns)

    @property
    def everything(self) -> Window:
        """The window of all cells."""
        return tuple(slice(0, size) for size in self.shape)


def grid_of(
    array: "xr.DataArray",
    *,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    sphere: bool | str = "auto",
    covariates: dict[str, Any] | None = None,
) -> Grid:
    """The cells of a raster.

    Parameters
    ----------
    array : DataArray
    x, y, time : str, optional
        Names of axes; found by names and attributes where they are left out.
    sphere : bool or "auto"
        Whether x and y are longitude and latitude in degrees.
    covariates : dict of str to DataArray, optional
    """
    axes = find_axes(array, x, y, time)
    names = _places(array, axes)
    xs, ys = _coordinates(array, axes, names)
    times, epoch = (None, None) if axes.time is None else hours_of(_along(array, axes.time), axes.time)
    if times is not None and (np.diff(np.sort(times)) == 0).any():
        raise ValueError(f"axis {axes.time!r} has times that occur more than once. Keep one of each.")
    if sphere == "auto":
        units = [str(array.coords[name].attrs.get("units", "")) if name in array.coords else "" for name in names]
        # A coordinate reference system is about the axes, not about longitudes and latitudes beside them.
        geographic = raster_is_geographic(array) if names == (axes.x, axes.y) else None
        sphere = is_longitude_latitude(*names, xs, ys, units, geographic)
    elif not isinstance(sphere, bool | np.bool_):
        raise ValueError(f'sphere must be True, False or "auto"; found {sphere!r}.')
    if sphere and np.abs(ys).max() > 90.0:
        raise ValueError(
            f"{names[1]!r} is no latitude in degrees: it has {ys[np.abs(ys) > 90].flat[0]:g}. Where places are in "
            "meters, say so (sphere=False), and give all of them in meters."
        )
    return Grid(
        axes,
        xs,
        ys,
        times,
        bool(sphere),
        covariates_on(covariates, array, axes, bool(sphere)),
        epoch,
        _time_unit(array, axes),
    )


def _places(array: "xr.DataArray", axes: Axes) -> tuple[str, str]:
    """Names of the coordinates that are the places of cells, x first: two axes, or two arrays of all the cells.

    Longitudes and latitudes of all the cells are the places, where the axes have no coordinates, or only count cells.
    """
    flat = {str(name).lower(): str(name) for name, values in array.coords.items() if values.ndim == 2}
    if all(_counts_cells(array, name) for name in (axes.x, axes.y)):
        for east, north in (("lon", "lat"), ("longitude", "latitude"), ("nav_lon", "nav_lat"), ("xc", "yc")):
            if east in flat and north in flat:
                return flat[east], flat[north]
    return axes.x, axes.y


def _counts_cells(array: "xr.DataArray", name: str) -> bool:
    """Whether an axis has no coordinates, or numbers that grow by one and have no unit."""
    if name not in array.coords:
        return True
    values, found = array.coords[name].to_numpy(), array.coords[name].attrs
    has_unit = str(found.get("units", "1")) != "1" or "standard_name" in found
    return values.dtype.kind in "iuf" and not has_unit and bool((np.diff(values.astype(np.float64)) == 1).all())


def _coordinates(array: "xr.DataArray", axes: Axes, names: tuple[str, str]) -> tuple[Floats, Floats]:
    if names == (axes.x, axes.y):
        return _numbers(array, axes.x), _numbers(array, axes.y)
    xs, ys = (array.coords[name].transpose(axes.y, axes.x).to_numpy().astype(np.float64) for name in names)
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise ValueError(f"coordinates {names[0]!r} and {names[1]!r} have missing values. Give every cell a place.")
    return xs, ys


def _along(array: "xr.DataArray", name: str) -> Any:
    return array.coords[name].to_numpy() if name in array.coords else np.arange(array.sizes[name], dtype=np.float64)


def _numbers(array: "xr.DataArray", name: str) -> Floats:
    values = _along(array, name)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"axis {name!r} must have numbers as coordinates; found {values.dtype}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"axis {name!r} has {int((~np.isfinite(numbers)).sum())} coordinate(s) that are not finite."
        )
    if len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"axis {name!r} has coordinates that occur more than once. Keep one of each.")
    return numbers


def hours_of(values: Any, name: str) -> tuple[Floats, Any]:
    """Times as hours since the first, and the first (UTC); numbers stay as they are, and spans have no first."""
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64), None
    if array.dtype.kind == "m":
        return array / np.timedelta64(1, "h"), None
    try:
        import pandas as pd

        stamps = pd.to_datetime(pd.Series(array.ravel()), utc=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name!r} has times of a kind that has no place in UTC ({type(array.ravel()[0]).__name__}). Convert them "
            "to datetime64, or to numbers."
        ) from error
    if stamps.isna().any():
        raise ValueError(f"{name!r} has {int(stamps.isna().sum())} missing time(s). Every value needs a time.")
    first = stamps.min()
    return np.asarray((stamps - first) / pd.Timedelta("1h"), dtype=np.float64), first


def _time_unit(array: "xr.DataArray", axes: Axes) -> str:
    """The unit of time: hours, where the axis has times, else what the attributes say, such as days (since 2000)."""
    if axes.time is None or axes.time not in array.coords:
        return ""
    along = array.coords[axes.time]
    return str(along.attrs.get("units", "")).split(" since ")[0] if along.dtype.kind in "iuf" else "h"


def is_even(along: Floats) -> bool:
    """Whether the coordinates of an axis are evenly spaced, up to the rounding of single precision."""
    steps = np.diff(along)
    rounding = 2 * float(np.finfo(np.float32).eps) * float(np.abs(along).max(initial=0.0))
    return len(steps) == 0 or bool(np.allclose(steps, steps.mean(), rtol=1e-3, atol=rounding))
