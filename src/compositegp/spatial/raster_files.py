"""Rasters from files and into files: NetCDF, Zarr and, where rioxarray is installed, GeoTIFF."""

import importlib.util
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compositegp.progress import ProgressBar
from compositegp.spatial.axes import Axes, find_axes
from compositegp.spatial.grid import grid_of, is_even

if TYPE_CHECKING:
    import xarray as xr

_NETCDF = (".nc", ".nc4", ".cdf", ".h5", ".netcdf")
_TIFF = (".tif", ".tiff")
_LARGE = 5_000_000  # cells from which a raster is read and filled in chunks


def open_raster(path: str | Path, variable: str | None = None, *, whole: bool = False) -> "xr.Dataset":
    """Open a raster file; a large one is read in chunks, where Dask is installed.

    Parameters
    ----------
    path : str or Path
        Ending in .nc (NetCDF), .zarr or .tif (GeoTIFF).
    variable : str, optional
        The one that is needed, whose size decides about chunks.
    whole : bool
        Without chunks, however large it is.

    Returns
    -------
    Dataset
    """
    import xarray as xr

    file = Path(path)
    if not file.exists():
        raise ValueError(f"{path} does not exist. Check the path.")
    kind = _kind(file)
    try:
        if kind == "tiff":
            return _open_tiff(file)
        options: dict[str, Any] = {"decode_coords": "all"}
        if kind == "netcdf":
            options["engine"] = _netcdf_engine()
        else:
            options |= {"engine": "zarr", "consolidated": (file / ".zmetadata").exists()}
        found = xr.open_dataset(file, **options)
        sizes = (
            [found[variable].size] if variable in found else [values.size for values in found.data_vars.values()]
        )
        if not whole and max(sizes, default=0) > _LARGE and importlib.util.find_spec("dask") is not None:
            found = found.chunk({})
        return found
    except ImportError:
        raise
    except Exception as error:  # the readers raise many kinds for a file of another format
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} cannot be read as {kind}: {reason}") from error


def _open_tiff(file: Path) -> "xr.Dataset":
    if importlib.util.find_spec("rioxarray") is None:
        raise ImportError("GeoTIFF files need rioxarray: pip install rioxarray.")
    import rioxarray
    import xarray as xr

    array = rioxarray.open_rasterio(file, masked=True)
    assert isinstance(array, xr.DataArray)
    bands = array.sizes.get("band", 1)
    if bands == 1:
        return array.squeeze("band", drop=True).to_dataset(name="band_1")
    return array.to_dataset("band").rename(
        {number: f"band_{number}" for number in array["band"].to_numpy().tolist()}
    )


def check_raster_file(path: str | Path, array: "xr.DataArray", **axes: Any) -> None:
    """Check that a file can hold layers on the cells of a raster: by its format, and by what that has a place for.

    Parameters
    ----------
    path : str or Path
    array : DataArray
        Whose cells the layers will have.
    **axes
        `x`, `y`, `time` and `sphere`, as for `fill`.
    """
    if _kind(Path(path)) != "tiff":
        return
    grid = grid_of(array, **axes)
    wrong = None
    if grid.time is not None:
        wrong = f"the time axis {grid.axes.time!r}"
    elif grid.x.ndim == 2:
        wrong = "a place of its own for every cell"
    elif not (is_even(grid.x) and is_even(grid.y)):
        wrong = "cells of several sizes"
    if wrong is not None:
        raise ValueError(f"the raster has {wrong}, for which a GeoTIFF has no room. Write to .nc or .zarr.")


def write_raster(
    found: "xr.Dataset",
    path: str | Path,
    *,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    verbose: bool = False,
) -> None:
    """Write layers to a file, whole or not at all; lazy layers are computed and written part by part.

    Parameters
    ----------
    found : Dataset
    path : str or Path
        Ending in .nc, .zarr or .tif; a GeoTIFF has a band for each layer, and no time.
    x, y, time : str, optional
        Names of the axes, if they are not found.
    verbose : bool
        Show a progress bar on a terminal, while lazy layers are computed.
    """
    axes = {"x": x, "y": y, "time": time}
    check_raster_file(path, found["mean"], **axes)
    file = Path(path)
    kind = _kind(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{uuid.uuid4().hex}-{file.name}")
    try:
        with _progress_of(found, verbose):
            if kind == "netcdf":
                _clean(found, zlib=True, complevel=1).to_netcdf(part, engine=_netcdf_engine())
            elif kind == "zarr":
                _clean(found).to_zarr(part, mode="w", consolidated=False)
            else:
                _write_tiff(found, part, find_axes(found["mean"], **axes))
        if file.is_dir():
            shutil.rmtree(file)
        os.replace(part, file)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        elif part.exists():
            part.unlink()


def _write_tiff(found: "xr.Dataset", part: Path, axes: Axes) -> None:
    if importlib.util.find_spec("rioxarray") is None:
        raise ImportError("GeoTIFF files need rioxarray: pip install rioxarray.")
    import rioxarray  # noqa: F401  (its import adds .rio)
    import xarray as xr

    layers = [("mean", found["mean"]), ("std", found["std"])]
    for name, axis in (("quantiles", "quantile"), ("exceedance", "threshold"), ("samples", "sample")):
        if name in found:
            layers += [(f"{axis} {value:g}", found[name].sel({axis: value})) for value in found[axis].to_numpy()]
    bands = xr.concat([layer.reset_coords(drop=True) for _, layer in layers], "band", combine_attrs="drop")
    bands = bands.assign_coords(band=range(1, len(layers) + 1))
    bands = bands.transpose("band", axes.y, axes.x).rio.set_spatial_dims(axes.x, axes.y)
    crs = found.rio.crs
    if crs is not None:
        bands = bands.rio.write_crs(crs)
    bands.attrs["long_name"] = tuple(name for name, _ in layers)
    bands.rio.to_raster(part, driver="GTiff")


@contextmanager
def _progress_of(found: "xr.Dataset", verbose: bool) -> Iterator[None]:
    """Show how many of the parts of lazy layers have been computed."""
    if found["mean"].chunks is None or not verbose:
        yield
        return
    from dask.callbacks import Callback

    with ProgressBar("filling") as bar:

        def tell(_: Any, __: Any, ___: Any, state: Any, ____: Any) -> None:
            done = len(state["finished"])
            bar(done, done + sum(len(state[name]) for name in ("ready", "waiting", "running")))

        with Callback(posttask=tell):
            yield


def open_layers(path: str | Path, axes: Axes) -> "xr.Dataset":
    """Mean and standard error from a file that `write_raster` wrote; to be closed.

    Parameters
    ----------
    path : str or Path
    axes : Axes
        Of the layers when they were written; a GeoTIFF does not keep their names.
    """
    data = open_raster(path)
    if _kind(Path(path)) != "tiff":
        return data[["mean", "std"]]
    return data.rename({"band_1": "mean", "band_2": "std", "y": axes.y, "x": axes.x})[["mean", "std"]]


def _clean(found: "xr.Dataset", **encoding: Any) -> "xr.Dataset":
    """A Dataset without how its coordinates were packed in the file that they come from, but with its grid mapping."""
    mappings = {name: layer.encoding.get("grid_mapping") for name, layer in found.data_vars.items()}
    plain = found.drop_encoding()
    for name, mapping in mappings.items():
        plain[name].encoding.update(encoding)
        if mapping is not None:
            plain[name].encoding["grid_mapping"] = mapping
    return plain


def _kind(file: Path) -> str:
    ending = file.suffix.lower()
    if ending in _NETCDF:
        return "netcdf"
    if ending == ".zarr":
        return "zarr"
    if ending in _TIFF:
        return "tiff"
    raise ValueError(f"{file} must end in .nc (NetCDF), .zarr or .tif (GeoTIFF), so that its format is known.")


def _netcdf_engine() -> str:
    for name, engine in (("netCDF4", "netcdf4"), ("h5netcdf", "h5netcdf")):
        if importlib.util.find_spec(name) is not None:
            return engine
    raise ImportError("NetCDF files need netCDF4 or h5netcdf: pip install 'compositegp[spatial]'.")
