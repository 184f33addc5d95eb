"""Files that maps come from and go to: GeoTIFF, coastlines of cartopy, GeoJSON of GeoPandas, and files that are bad."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp.plotting import MapPicture, draw_map
from compositegp.plotting.coastlines import coastlines
from compositegp.spatial import fill, open_raster, write_raster


def known(length_scale, variance=1.0):
    """A kernel with nothing to learn."""
    radial = Matern(length_scale, nu=1.5, length_scale_bounds="fixed")
    return ConstantKernel(variance, "fixed") * radial + WhiteKernel(0.001 * variance, "fixed")


def wave(ny=14, nx=16):
    """A smooth raster with a gap, and which of its cells are missing."""
    rows, columns = np.mgrid[0:ny, 0:nx]
    missing = (rows - 6) ** 2 + (columns - 8) ** 2 < 9
    return np.sin(rows / 4) + np.cos(columns / 5), missing


def command(*arguments, cwd):
    """The installed command, as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "compositegp", *map(str, arguments)], capture_output=True, text=True, cwd=cwd
    )


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

    def test_through_the_command(self, tmp_path):
        values, missing = wave()
        self.write(tmp_path / "in.tif", np.where(missing, np.nan, values))
        done = command("fill", "in.tif", "--out", "out.tif", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["missing"] == missing.sum()
        assert not open_raster(tmp_path / "out.tif")["band_1"].isnull().any()


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
