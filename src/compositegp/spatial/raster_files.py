"""Rasters from files and into files: NetCDF, Zarr and, where rioxarray is installed, GeoTIFF."""

import importlib.util
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

_NETCDF = (".nc", ".nc4", ".cdf", ".h5", ".netcdf")
_TIFF = (".tif", ".tiff")
_LARGE = 5_000_000  # cells from which a raster is read and filled in chunks


def open_raster(path: str | Path, variable: str | None = None) -> "xr.Dataset":
    """Open a raster file; a large one is read in chunks, where Dask is installed.

    Parameters
    ----------
    path : str or Path
        Ending in .nc (NetCDF), .zarr or .tif (GeoTIFF).
    variable : str, optional
        The one that is needed, whose size decides about chunks.

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
        if max(sizes, default=0) > _LARGE and importlib.util.find_spec("dask") is not None:
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


def write_raster(found: "xr.Dataset", path: str | Path) -> None:
    """Write layers to a file, whole or not at all; lazy layers are computed and written part by part.

    Parameters
    ----------
    found : Dataset
    path : str or Path
        Ending in .nc, .zarr or .tif; a GeoTIFF has a band for each layer.
    """
    file = Path(path)
    kind = _kind(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{uuid.uuid4().hex}-{file.name}")
    try:
        if kind == "netcdf":
            _clean(found, zlib=True, complevel=1).to_netcdf(part, engine=_netcdf_engine())
        elif kind == "zarr":
            _clean(found).to_zarr(part, mode="w", consolidated=False)
        else:
            _write_tiff(found, part)
        if file.is_dir():
            shutil.rmtree(file)
        os.replace(part, file)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        elif part.exists():
            part.unlink()


def _write_tiff(found: "xr.Dataset", part: Path) -> None:
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
    crs = found.rio.crs
    if crs is not None:
        bands = bands.rio.write_crs(crs)
    bands.attrs["long_name"] = tuple(name for name, _ in layers)
    bands.rio.to_raster(part, driver="GTiff")


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
