"""Which axes of a raster or columns of a table are x, y and time, and whether they are longitude and latitude."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

_LONGITUDE = {"lon", "long", "longitude", "lng", "nav_lon"}
_LATITUDE = {"lat", "latitude", "nav_lat"}
_X = _LONGITUDE | {"x", "easting", "eastings", "east", "xc", "rlon", "projection_x_coordinate", "ni", "col"}
_Y = _LATITUDE | {"y", "northing", "northings", "north", "yc", "rlat", "projection_y_coordinate", "nj", "row"}
_TIME = {"time", "t", "date", "datetime", "valid_time"}
_EAST = re.compile(r"degrees?_?(e|east)$", re.IGNORECASE)
_NORTH = re.compile(r"degrees?_?(n|north)$", re.IGNORECASE)
# The first of these in a description is the horizontal system, alone or as a part of a compound or a bound one.
_HORIZONTAL = re.compile(
    r"\b(?:(GEOGCS|GEOGCRS|GEOGRAPHICCRS|GEODCRS|GEODETICCRS)|PROJCS|PROJCRS|PROJECTEDCRS|LOCAL_CS|ENGCRS)\s*[\[(]",
    re.IGNORECASE,
)


class Axes(NamedTuple):
    """Names of the axes of a raster.

    Attributes
    ----------
    y, x : str
    time : str or None
    """

    y: str
    x: str
    time: str | None

    @property
    def dims(self) -> tuple[str, ...]:
        """The names in the order time, y, x."""
        return (self.y, self.x) if self.time is None else (self.time, self.y, self.x)


def find_axes(array: "xr.DataArray", x: str | None = None, y: str | None = None, time: str | None = None) -> Axes:
    """Find the axes of a raster: by what a user says, by CF attributes, by names, and last by their order.

    Parameters
    ----------
    array : DataArray
        With two axes (y, x), or three with time.
    x, y, time : str, optional
        Names of axes that a user gives.
    """
    dims = [str(name) for name in array.dims]
    for given, name in ((x, "x"), (y, "y"), (time, "time")):
        if given is not None and given not in dims:
            raise ValueError(f"{name}={given!r} is no axis of the raster; it has {', '.join(dims)}.")
    if len(dims) not in (2, 3):
        raise ValueError(
            f"a raster has the axes y and x, or time, y and x; found {len(dims)}: {', '.join(dims) or 'none'}. "
            "Choose one layer of it first, as in data.isel(band=0)."
        )
    time = time or next((name for name in dims if name not in (x, y) and _is_time(array, name)), None)
    rest = [name for name in dims if name != time]
    x = x or next((name for name in rest if name != y and _is_axis(array, name, _X, "X", _EAST)), None)
    y = y or next((name for name in rest if name != x and _is_axis(array, name, _Y, "Y", _NORTH)), None)
    left = [name for name in rest if name not in (x, y)]
    x = x or left.pop()
    y = y or left.pop()
    if left:
        raise ValueError(
            f"the raster has the axes {', '.join(dims)}, and {left[0]!r} is not known to be time. Choose one layer, as "
            f"in data.isel({left[0]}=0), or say that it is: time={left[0]!r}."
        )
    return Axes(y, x, time)


def rasters_of(data: "xr.Dataset") -> list[str]:
    """Names of the variables of a Dataset that are rasters: not bounds of cells, and with a known x and y, if any have.

    Parameters
    ----------
    data : Dataset
    """
    bounds = {str(values.attrs.get("bounds", values.encoding.get("bounds"))) for values in data.coords.values()}
    names = [str(name) for name, values in data.data_vars.items() if values.ndim >= 2 and name not in bounds]
    known = [name for name in names if _has_known_axes(data[name])]
    return known or names


def _has_known_axes(array: "xr.DataArray") -> bool:
    dims = [str(name) for name in array.dims]
    x = next((name for name in dims if _is_axis(array, name, _X, "X", _EAST)), None)
    return x is not None and any(_is_axis(array, name, _Y, "Y", _NORTH) for name in dims if name != x)


def _attributes(array: "xr.DataArray", name: str) -> Mapping[Any, Any]:
    return array.coords[name].attrs if name in array.coords else {}


def _is_time(array: "xr.DataArray", name: str) -> bool:
    kind = array.coords[name].dtype.kind if name in array.coords else "i"
    return kind in "Mm" or _is_axis(array, name, _TIME, "T", None)


def _is_axis(array: "xr.DataArray", name: str, names: set[str], axis: str, units: re.Pattern[str] | None) -> bool:
    found = _attributes(array, name)
    return (
        name.lower() in names
        or str(found.get("axis", "")).upper() == axis
        or str(found.get("standard_name", "")).lower() in names
        or (units is not None and units.match(str(found.get("units", ""))) is not None)
    )


def is_longitude_latitude(
    x_name: str,
    y_name: str,
    x: Any,
    y: Any,
    units: Iterable[str] = (),
    geographic: bool | None = None,
) -> bool:
    """Whether coordinates are longitude and latitude: by the CRS, else by units, else by names; and by their range.

    Parameters
    ----------
    x_name, y_name : str
    x, y : arrays
    units : pair of str
        Of x and y.
    geographic : bool, optional
        What the coordinate reference system says, where there is one.

    Examples
    --------
    >>> is_longitude_latitude("lon", "lat", np.array([10.0, 20.0]), np.array([50.0, 60.0]))
    True
    >>> is_longitude_latitude("lon", "lat", np.array([5e5, 6e5]), np.array([6e6, 7e6]))  # meters
    False
    """
    east, north = [*units, "", ""][:2]
    named = (x_name.lower() in _LONGITUDE and y_name.lower() in _LATITUDE) or bool(
        _EAST.match(east) and _NORTH.match(north)
    )
    # A raster across the date line or the meridian of Greenwich may begin at 355° and end at 365°.
    plausible = np.nanmax(np.abs(y)) <= 90.0 and np.nanmin(x) >= -360.0 and np.nanmax(x) <= 540.0
    return bool((named if geographic is None else geographic) and plausible)


def raster_is_geographic(array: "xr.DataArray") -> bool | None:
    """What the coordinate reference system of a raster says, by CF's grid mapping; None where it has none."""
    name = array.attrs.get("grid_mapping", array.encoding.get("grid_mapping", "spatial_ref"))
    if name not in array.coords:
        return None
    found = array.coords[name].attrs
    text = str(found.get("crs_wkt", found.get("spatial_ref", "")))
    if text:
        horizontal = _HORIZONTAL.search(text)
        return horizontal is not None and horizontal.group(1) is not None
    mapping = found.get("grid_mapping_name")
    return None if mapping is None else mapping == "latitude_longitude"
