"""Files that maps come from and go to: GeoTIFF, coastlines of cartopy, GeoJSON of GeoPandas, and files that are bad."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.image import imread
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import OnSphere
from compositegp.cli.app import main
from compositegp.plotting import MapPicture, draw_map
from compositegp.plotting.coastlines import coastlines
from compositegp.spatial import draw_filled, fill, open_raster, write_raster


def known(length_scale, variance=1.0):
    """A kernel with nothing to learn."""
    radial = Matern(length_scale, nu=1.5, length_scale_bounds="fixed")
    return ConstantKernel(variance, "fixed") * radial + WhiteKernel(0.001 * variance, "fixed")


def on_globe():
    """The same of longitude and latitude."""
    radial = OnSphere(Matern(900.0, nu=1.5, length_scale_bounds="fixed"))
    return ConstantKernel(1.0, "fixed") * radial + WhiteKernel(0.001, "fixed")


def wave(ny=14, nx=16):
    """A smooth raster with a gap, and which of its cells are missing."""
    rows, columns = np.mgrid[0:ny, 0:nx]
    missing = (rows - 6) ** 2 + (columns - 8) ** 2 < 9
    return np.sin(rows / 4) + np.cos(columns / 5), missing


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # of rasterio and rioxarray
class TestGeoTiff:
    def write(self, path, values, *, nodata=np.nan, dtype="float64", crs="EPSG:32633"):
        pytest.importorskip("rioxarray")
        ny, nx = values.shape[-2:]
        bands = values.reshape(-1, ny, nx)
        raster = xr.DataArray(
            np.where(np.isnan(bands), nodata, bands).astype(dtype),
            dims=("band", "y", "x"),
            coords={"y": 6.9e6 - 30.0 * np.arange(ny), "x": 5e5 + 30.0 * np.arange(nx)},
        )
        raster.rio.write_crs(crs).rio.write_nodata(nodata).rio.to_raster(path)
        return raster

    def test_layers_are_bands_with_names_and_the_crs(self, tmp_path):
        values, missing = wave()
        self.write(tmp_path / "in.tif", np.where(missing, np.nan, values))
        filled = fill(open_raster(tmp_path / "in.tif"), kernel=known(200.0), above=1.0)
        write_raster(filled, tmp_path / "out.tif")
        import rasterio

        with rasterio.open(tmp_path / "out.tif") as found:
            assert found.crs.to_epsg() == 32633
            assert found.descriptions == (
                "mean",
                "std",
                "quantile 0.05",
                "quantile 0.5",
                "quantile 0.95",
                "threshold 1",
            )
            assert found.transform.a == pytest.approx(30.0)
            np.testing.assert_allclose(found.read(1), filled["mean"], rtol=1e-12)
            np.testing.assert_allclose(found.read(2), filled["std"], rtol=1e-12)

    def test_integers_with_a_mark_for_missing(self, tmp_path):
        values, missing = wave()
        self.write(
            tmp_path / "in.tif", np.where(missing, np.nan, np.round(100 * values)), nodata=-9999, dtype="int16"
        )
        data = open_raster(tmp_path / "in.tif")
        assert int(data["band_1"].isnull().sum()) == missing.sum()
        filled = fill(data, kernel=known(200.0, 10_000.0))
        assert float(abs(filled["mean"] - 100 * values).max()) < 30

    def test_several_bands_are_variables(self, tmp_path):
        values, missing = wave()
        gappy = np.where(missing, np.nan, values)
        self.write(tmp_path / "in.tif", np.stack([gappy, 2 * gappy]))
        assert list(open_raster(tmp_path / "in.tif").data_vars) == ["band_1", "band_2"]

    def test_through_the_command(self, tmp_path, capsys):
        values, missing = wave()
        self.write(tmp_path / "in.tif", np.where(missing, np.nan, values))
        assert main(["fill", str(tmp_path / "in.tif"), "--out", str(tmp_path / "out.tif"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["missing"] == missing.sum()
        assert not open_raster(tmp_path / "out.tif")["band_1"].isnull().any()

    @pytest.mark.parametrize("order", [("lat", "lon"), ("lon", "lat")])
    def test_axes_need_no_attributes_and_no_order(self, order, tmp_path, monkeypatch):
        rasterio = pytest.importorskip("rasterio")
        filled = fill(small().transpose(*order), kernel=on_globe())
        write_raster(filled, tmp_path / "out.tif")
        with rasterio.open(tmp_path / "out.tif") as found:
            np.testing.assert_array_equal(found.read(1), filled["mean"].transpose("lat", "lon"))
            assert found.xy(2, 3) == (8.0, 52.0)  # the place of a cell, longitude first
        monkeypatch.setattr("compositegp.spatial.pictures.draw_map", lambda picture: picture._asdict())
        np.testing.assert_equal(draw_filled(small(), tmp_path / "out.tif"), draw_filled(small(), filled))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: in_time([0, 1, 5]), "the time axis 'time'"),
            (lambda: uneven(), "cells of several sizes"),
            (lambda: small(lon=[176.0, 177, 178, 179, -180, -179, -178]), "cells of several sizes"),
            (
                lambda: small().drop_vars(["lat", "lon"]).rename(lat="y", lon="x")
                .assign_coords(lon=(("y", "x"), np.ones((6, 1)) * np.arange(7)),
                               lat=(("y", "x"), np.arange(6)[:, None] * np.ones(7))),
                "a place of its own",
            ),
        ],
    )  # fmt: skip
    def test_what_it_has_no_room_for_is_told_before_the_work(self, make, message, tmp_path, monkeypatch, capsys):
        raster = make()
        with pytest.raises(ValueError, match=f"{message}.*has no room. Write to .nc or .zarr"):
            write_raster(xr.Dataset({"mean": raster, "std": raster}), tmp_path / "out.tif")
        raster.to_netcdf(tmp_path / "in.nc")
        monkeypatch.setattr("compositegp.spatial.learn_raster", None)
        assert main(["fill", str(tmp_path / "in.nc"), "--out", str(tmp_path / "out.tif")]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "out.tif").exists()


class TestCoastlines:
    @pytest.fixture
    def coast(self, tmp_path, monkeypatch):
        """A coast along the meridian of 175° east, as a file of Natural Earth."""
        cartopy = pytest.importorskip("cartopy")
        import shapefile

        folder = tmp_path / "shapefiles" / "natural_earth" / "physical"
        folder.mkdir(parents=True)
        with shapefile.Writer(str(folder / "ne_110m_coastline"), shapeType=shapefile.POLYLINE) as writer:
            writer.field("name", "C")
            writer.line([[[175.0, -80.0], [175.0, 80.0]]])
            writer.record("coast")
        monkeypatch.setitem(cartopy.config, "pre_existing_data_dir", str(tmp_path))
        monkeypatch.setitem(cartopy.config, "data_dir", str(tmp_path / "none"))

    def picture(self, west, sphere=True):
        x, y = west + np.arange(10.0), 40 + np.arange(8.0)
        ones = np.ones((8, 10))
        return draw_map(MapPicture(ones, ones, x, y, None, "rain", "mm", ("lon", "lat"), sphere), dpi=60)

    def test_lie_on_the_map_s_side_of_the_globe(self, coast):
        for west, meridian in ((170.0, 175.0), (-190.0, -185.0), (-5.0, None)):
            lines = coastlines((west, west + 9.0), (40.0, 47.0))
            assert [line[:, 0].tolist() for line in lines] == ([[meridian] * 2] if meridian else [])
        assert coastlines((170.0, 179.0), (85.0, 88.0)) == []

    def test_are_drawn_without_a_download_where_the_files_are(self, coast, monkeypatch):
        import cartopy
        from cartopy.io import Downloader

        def refuse(*_):
            raise AssertionError("a download")

        monkeypatch.setattr(Downloader, "_urlopen", refuse)
        drawn, in_meters = self.picture(170.0), self.picture(170.0, sphere=False)
        monkeypatch.setitem(cartopy.config, "pre_existing_data_dir", "")
        assert drawn != self.picture(170.0)
        assert in_meters == self.picture(170.0, sphere=False)


def small(**coordinates):
    """A raster of 42 cells, four of which are missing."""
    rows, columns = np.mgrid[0:6, 0:7]
    missing = (rows > 1) & (rows < 4) & (columns > 2) & (columns < 5)
    places = {"lat": 50.0 + np.arange(6), "lon": 5.0 + np.arange(7)} | coordinates
    values = np.sin(rows / 2) + np.cos(columns / 3)
    return xr.DataArray(values, dims=("lat", "lon"), coords=places, name="lst").where(~missing)


def in_time(hours):
    """The same at several times, whose values grow by one from time to time."""
    stamps = np.datetime64("2024-03-01T00", "ns") + np.array(hours) * np.timedelta64(1, "h")
    return xr.concat(
        [small().isel(lon=slice(0, 5)) + number for number in range(len(hours))], "time"
    ).assign_coords(time=stamps)


def uneven():
    return small(lon=5.0 + np.cumsum([0.0, 0.6, 1.7, 0.4, 1.1, 2.0, 0.5]))


RASTERS = {  # what is odd: the raster, further arguments, and the sentence, or None where it is filled
    "no such variable": (small, ["--variable", "rain"], "error: data has no variable 'rain'; it has lst."),
    "one observed": (lambda: small().where(small().lon + small().lat == 55.0), [], "has 1 observed value(s)"),
    "all missing": (lambda: small().where(False), [], "error: lst has no observed value"),
    "none missing": (lambda: small().fillna(1.0), [], "lst has no missing cell: there is nothing to fill."),
    "irregular": (uneven, [], None),
    "descending latitude": (lambda: small(lat=55.0 - np.arange(6)), [], None),
    "times with gaps": (lambda: in_time([0, 1, 5]), [], None),
    "0 to 360": (lambda: small(lon=357.0 + np.arange(7)), [], None),
    "across the date line": (lambda: small(lon=[176.0, 177, 178, 179, -180, -179, -178]), [], None),
}


def check_raster(kind, code, error, folder):
    """Nothing is written where a file is refused, and every cell is filled where it is not."""
    make, _, message = RASTERS[kind]
    if message is not None:
        assert message in error
        assert len(error.splitlines()) == 1
        assert code == (0 if kind == "none missing" else 1)
    if code:
        assert not (folder / "out.nc").exists()
        return
    assert code == 0, error
    with xr.open_dataset(folder / "out.nc") as filled:
        given = make()
        assert not filled["mean"].isnull().any()
        for name in given.dims:
            np.testing.assert_array_equal(filled[name], given[name])
        np.testing.assert_array_equal(filled["mean"].where(given.notnull()), given)
        # Smooth values between their neighbors: a filled cell is near to what was there.
        if kind != "none missing":
            whole = np.sin(np.arange(6) / 2)[:, None] + np.cos(np.arange(7) / 3)
            whole = whole[:, : given.sizes["lon"]]
            if "time" in given.dims:
                whole = whole + np.arange(given.sizes["time"])[:, None, None]
            assert float(abs(filled["mean"] - whole).max()) < 0.35


@pytest.mark.parametrize("kind", RASTERS)
def test_odd_rasters_end_in_one_sentence_or_are_filled(kind, tmp_path, capsys):
    make, arguments, _ = RASTERS[kind]
    make().to_netcdf(tmp_path / "in.nc")
    code = main(["fill", str(tmp_path / "in.nc"), "--out", str(tmp_path / "out.nc"), "--jobs", "1", *arguments])
    check_raster(kind, code, capsys.readouterr().err, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RASTERS)
def test_odd_rasters_by_the_installed_command(kind, tmp_path):
    installed = shutil.which("compositegp", path=str(Path(sys.executable).parent)) or pytest.skip("not installed")
    make, arguments, _ = RASTERS[kind]
    make().to_netcdf(tmp_path / "in.nc")
    done = subprocess.run(
        [installed, "fill", "in.nc", "--out", "out.nc", "--jobs", "1", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    check_raster(kind, done.returncode, done.stderr, tmp_path)


def test_longitudes_from_0_to_360_are_those_from_minus_180_to_180():
    one = fill(small(lon=-3.0 + np.arange(7)), kernel=on_globe())
    other = fill(small(lon=(-3.0 + np.arange(7)) % 360), kernel=on_globe())
    np.testing.assert_allclose(other["mean"], one["mean"], rtol=1e-9)
    np.testing.assert_allclose(other["std"], one["std"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "geojson"])
def test_duplicate_stations_are_mapped_and_told(ending, tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lon": rng.uniform(5, 9, 30), "lat": rng.uniform(50, 54, 30)})
    frame["rain"] = np.sin(frame.lon) + frame.lat / 10
    frame = pd.concat([frame, frame.iloc[[3, 7]].assign(rain=lambda rows: rows.rain + 0.01)])
    path = tmp_path / f"rain.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        geopandas = pytest.importorskip("geopandas")
        points = geopandas.points_from_xy(frame.lon, frame.lat)
        geopandas.GeoDataFrame(frame[["rain"]], geometry=points, crs="EPSG:4326").to_file(path, driver="GeoJSON")
    arguments = ["map", path, "--target", "rain", "--grid", "1", "--out", tmp_path / "map", "--jobs", "1"]
    assert main([str(one) for one in arguments]) == 0
    assert "2 rows share their place" in capsys.readouterr().err
    with xr.open_dataset(tmp_path / "map" / "map.nc") as found:
        assert not found["mean"].isnull().any()


def test_names_and_units_are_no_formulas():
    """A text between two signs of dollar would be one to Matplotlib, and an error if it is wrong."""
    ones = np.ones((4, 5))
    picture = MapPicture(
        ones, ones, np.arange(5.0), np.arange(4.0), None, "rent, $ \\frac $", "$/m$", ("$a_$", "y"), False
    )
    assert draw_map(picture, dpi=40)[:4] == b"\x89PNG"


@pytest.mark.parametrize("height", [1e-3, 1e3])
@pytest.mark.parametrize("stations", [True, False])
def test_a_map_of_two_units_is_no_sliver(height, stations):
    """Such as a depth in meters along kilometers: the panels fill a good part of the picture."""
    x, y, values = np.arange(12.0), height * np.arange(10.0), np.add.outer(np.arange(10.0), np.arange(12.0))
    observed = np.column_stack([x[:10], y, np.ones(10)]) if stations else values
    png = draw_map(MapPicture(values, values, x, y, observed, "salt", "", ("km", "m")), dpi=50)
    pixels = imread(io.BytesIO(png))[..., :3]
    assert (pixels.min(axis=2) < 0.9).mean() > 0.3
