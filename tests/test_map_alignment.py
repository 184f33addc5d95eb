"""Rasters that belong together are matched by their coordinates: masks, covariates, longitudes of either kind."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import OnColumns, OnSphere
from compositegp.spatial import fill, krige, learn_raster, learn_stations
from compositegp.spatial.grid import grid_of

FIXED = {"length_scale_bounds": "fixed"}
PLANE = ConstantKernel(1.0, "fixed") * Matern(3.0, nu=1.5, **FIXED) + WhiteKernel(0.05, "fixed")
GLOBE = ConstantKernel(1.0, "fixed") * OnSphere(Matern(900.0, nu=1.5, **FIXED)) + WhiteKernel(0.05, "fixed")


def raster(ny=7, nx=8, seed=0, names=("y", "x"), y=None, x=None):
    """Noise with a third of the cells missing."""
    rng = np.random.default_rng(seed)
    places = {names[0]: np.arange(ny) if y is None else y, names[1]: np.arange(nx) if x is None else x}
    values = xr.DataArray(rng.normal(size=(ny, nx)), dims=names, coords=places, name="height")
    return values.where(rng.uniform(size=(ny, nx)) < 0.65)


def turned(values, names=("y", "x")):
    """The same cells in another order of both axes."""
    return values.isel({name: slice(None, None, -1) for name in names})


class TestCells:
    """What is wanted, and covariates, lie on the raster's cells by coordinates, not by their order."""

    @pytest.mark.parametrize("order", [("y", "x"), ("x", "y")])
    def test_a_mask_in_another_order_is_the_same_mask(self, order):
        gappy = raster()
        wanted = ((gappy.y < 3) & (gappy.x < 5)).transpose(*order)
        expected = fill(gappy, kernel=PLANE, wanted=wanted)
        np.testing.assert_array_equal(expected["mean"].notnull(), gappy.notnull() | wanted.transpose("y", "x"))
        xr.testing.assert_identical(fill(gappy, kernel=PLANE, wanted=turned(wanted)), expected)
        larger = wanted.reindex(y=np.arange(-2, 12), x=np.arange(-1, 9), fill_value=True)
        xr.testing.assert_identical(fill(gappy, kernel=PLANE, wanted=larger), expected)

    def test_a_covariate_in_another_order_is_the_same_covariate(self):
        gappy, kernel = raster(), OnColumns(PLANE, [0, 1])
        soil = raster(seed=1).fillna(0.5)
        expected = fill(gappy, kernel=kernel, covariates={"soil": soil})
        xr.testing.assert_identical(fill(gappy, kernel=kernel, covariates={"soil": turned(soil)}), expected)

    def test_longitudes_are_the_same_whatever_turn_they_are_counted_in(self):
        gappy = raster(names=("lat", "lon"), y=np.linspace(40, 52, 7), x=np.arange(-10, 14, 3))
        wanted = gappy.lon * xr.ones_like(gappy.lat) < 0
        around = wanted.assign_coords(lon=wanted.lon % 360).sortby("lon")
        expected = fill(gappy, kernel=GLOBE, wanted=wanted)
        assert expected["mean"].isnull().any()
        xr.testing.assert_identical(fill(gappy, kernel=GLOBE, wanted=around), expected)

    def test_coordinates_of_single_precision_are_the_same(self):
        gappy = raster(y=np.linspace(0.1, 1.3, 7))
        wanted = (gappy.y < 0.6).assign_coords(y=gappy.y.astype(np.float32).to_numpy())
        found = fill(gappy, kernel=PLANE, wanted=wanted)
        np.testing.assert_array_equal(found["mean"].notnull(), gappy.notnull() | (gappy.y < 0.6))

    @pytest.mark.parametrize("numbers", [True, False])
    def test_what_is_missing_in_a_mask_is_not_wanted(self, numbers):
        gappy = raster()
        land = (gappy.x < 5).broadcast_like(gappy)
        marked = xr.where(land, 1.0, np.nan) if numbers else land.where(land)  # of objects
        xr.testing.assert_identical(
            fill(gappy, kernel=PLANE, wanted=marked), fill(gappy, kernel=PLANE, wanted=land)
        )

    def test_cells_that_are_not_there_end_in_one_sentence(self):
        gappy = raster()
        for values, message in (
            (gappy.assign_coords(y=gappy.y + 0.4), "has no cell at y = 0"),
            (gappy.isel(x=slice(0, 6)), "has no cell at x = 6"),
            (gappy.drop_vars("x").isel(x=slice(0, 6)), "has the axes {'y': 7, 'x': 6}"),
        ):
            with pytest.raises(ValueError, match=f"^wanted {message}"):
                fill(gappy, kernel=PLANE, wanted=values.notnull())
            with pytest.raises(ValueError, match=f"^covariate 'soil' {message}"):
                fill(gappy, kernel=PLANE, covariates={"soil": values})
        with pytest.raises(ValueError, match="wanted must be an xarray DataArray; found ndarray"):
            fill(gappy, kernel=PLANE, wanted=gappy.notnull().to_numpy())

    def test_places_of_every_cell_are_compared(self):
        lon, lat = np.meshgrid(np.linspace(10, 20, 8), np.linspace(40, 50, 7))
        places = {"lon": (("y", "x"), lon), "lat": (("y", "x"), lat)}
        gappy = raster().drop_vars(["x", "y"]).assign_coords(places)
        fill(gappy, kernel=GLOBE, wanted=gappy.notnull())
        with pytest.raises(ValueError, match="wanted has other places than the raster"):
            fill(gappy, kernel=GLOBE, wanted=gappy.assign_coords(lat=gappy.lat[::-1]).notnull())


class TestPlaces:
    """Which coordinates are the places, where a raster has longitudes and latitudes of all its cells."""

    def curved(self, **axes):
        lon, lat = np.meshgrid(np.linspace(100, 140, 8), np.linspace(20, 60, 7))
        return raster(**axes).assign_coords(lon=(("y", "x"), lon + 0.1 * lat), lat=(("y", "x"), lat))

    def test_they_are_the_places_beside_numbers_of_cells(self):
        gappy = self.curved()
        grid = grid_of(gappy)
        assert grid.sphere
        np.testing.assert_array_equal(grid.x, gappy.lon)
        np.testing.assert_array_equal(grid.y, gappy.lat)
        plain = fill(gappy.drop_vars(["x", "y"]), kernel=GLOBE)
        np.testing.assert_array_equal(fill(gappy, kernel=GLOBE)["mean"], plain["mean"])

    def test_they_are_not_beside_axes_in_meters(self):
        gappy = self.curved(x=5e5 + 1000.0 * np.arange(8), y=6e6 + 1000.0 * np.arange(7))
        grid = grid_of(gappy)
        assert not grid.sphere
        np.testing.assert_array_equal(grid.x, gappy.x)
        unit = self.curved()  # one kilometer from cell to cell
        for name in ("x", "y"):
            unit[name].attrs["units"] = "km"
        assert not grid_of(unit).sphere

    def test_a_reference_system_of_the_axes_is_not_about_them(self):
        gappy = self.curved().assign_coords(spatial_ref=xr.DataArray(0, attrs={"crs_wkt": 'PROJCRS["UTM 33N"]'}))
        assert grid_of(gappy).sphere

    @pytest.mark.parametrize(
        ("code", "geographic"),
        [(4326, True), ("4326+5773", True), (9518, True), (32633, False), ("32633+5773", False)],
    )
    def test_a_system_with_heights_is_what_it_is_without_them(self, code, geographic):
        pyproj = pytest.importorskip("pyproj")
        attributes = pyproj.CRS(f"EPSG:{code}").to_cf()
        values = raster(names=("lat", "lon"), y=np.linspace(70, 67, 7), x=np.linspace(10, 14, 8))
        described = values.assign_coords(spatial_ref=xr.DataArray(0, attrs=attributes))
        assert grid_of(described).sphere is geographic
        old = {"crs_wkt": pyproj.CRS(f"EPSG:{code}").to_wkt("WKT1_GDAL")}
        assert grid_of(values.assign_coords(spatial_ref=xr.DataArray(0, attrs=old))).sphere is geographic

    def test_places_in_meters_are_no_latitudes(self):
        with pytest.raises(ValueError, match="'y' is no latitude in degrees: it has 6e"):
            fill(raster(y=6e6 + np.arange(7)), kernel=GLOBE, sphere=True)


class TestTime:
    def deep(self, **along):
        gappy = raster()
        return xr.concat([gappy, gappy + 0.1, gappy - 0.2], "depth").assign_coords(along)

    @pytest.mark.parametrize("along", [{}, {"depth": [0.0, 10.0, 30.0]}])
    def test_a_third_axis_is_time_only_where_it_is_said(self, along):
        gappy = self.deep(**along)
        with pytest.raises(ValueError, match="'depth' is not known to be time.*isel.depth=0.*time='depth'"):
            fill(gappy)
        assert grid_of(gappy, time="depth").axes.dims == ("depth", "y", "x")

    @pytest.mark.parametrize(
        ("along", "attributes", "unit"),
        [
            ([0.0, 10.0, 30.0], {}, ""),
            ([0.0, 10.0, 30.0], {"units": "m"}, "m"),
            ([0.0, 10.0, 30.0], {"units": "days since 2000-01-01"}, "days"),
            (pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"]), {}, "h"),
            (np.array([0, 24, 72]).astype("timedelta64[h]").astype("timedelta64[ns]"), {}, "h"),
        ],
    )
    def test_its_range_is_told_in_its_own_unit(self, along, attributes, unit):
        gappy = self.deep(depth=along)
        gappy["depth"].attrs |= attributes
        kernel = OnColumns(PLANE.k1.k2, [0, 1]) * OnColumns(Matern(20.0, nu=0.5, **FIXED), [2])
        model = learn_raster(gappy, time="depth", kernel=kernel + PLANE.k2)
        (line,) = [line for line in model.describe() if "left), time" in line]
        assert line.endswith(f"time: 59.9 {unit}".strip() + ".")  # −20 log 0.05


@pytest.fixture
def stations():
    """Around the globe, with a covariate that is a wave of longitude and latitude."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"lon": rng.uniform(-180, 180, 60), "lat": rng.uniform(-55, 55, 60)})
    return frame.assign(rain=rng.normal(size=60) + 2 * wave(frame.lon, frame.lat))


def wave(lon, lat):
    return np.cos(np.radians(lon)) + lat / 50


def covariate(lon, lat=None):
    places = xr.Dataset(coords={"lat": np.arange(-60.0, 61.0, 2.0) if lat is None else lat, "lon": lon})
    return wave(places.lon, places.lat)


class TestCovariatesOfStations:
    """A covariate is read from its raster between cells, wherever its longitudes begin."""

    @pytest.mark.parametrize("west", [0, -180, -20])
    def test_on_the_grid_and_at_the_stations(self, stations, west):
        rain = covariate(west + np.arange(0.0, 360.0, 2.0))
        field = {"target": "rain", "grid": 15.0, "kernel": OnColumns(GLOBE, [0, 1])}
        read = krige(stations, covariates={"wave": rain}, **field)
        assert not read["mean"].isnull().any()
        known = stations.assign(wave=wave(stations.lon, stations.lat))
        expected = krige(known, covariates={"wave": covariate(read.lon.to_numpy(), read.lat.to_numpy())}, **field)
        np.testing.assert_allclose(read["mean"], expected["mean"], rtol=0, atol=2e-3)  # of a wave between cells

    def test_cells_that_it_does_not_reach_are_told(self, stations):
        rain = covariate(np.arange(-180.0, 60.0, 2.0))
        known = stations.assign(wave=wave(stations.lon, stations.lat))
        with pytest.warns(UserWarning, match="'wave' does not reach 32% of the map's cells.*lon from -180 to 58"):
            field = krige(
                known, target="rain", grid=15.0, covariates={"wave": rain}, kernel=OnColumns(GLOBE, [0, 1])
            )
        beyond = field.lon[field["mean"].isnull().all("lat")]
        assert beyond.to_numpy().tolist() == np.arange(60.0, 166.0, 15.0).tolist()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda r: r.assign_coords(lat=r.lat + 300), "reaches none of the stations: it has .*lat from 240"),
            (lambda r: r.drop_vars("lon"), "'wave' has no coordinates along lon"),
            (lambda r: r.expand_dims(time=2), "'wave' has the time axis 'time'"),
            (lambda r: r.to_numpy(), "'wave' must be an xarray DataArray; found ndarray"),
            (lambda r: r.where(False), "'wave' has no value at any station that has a value of 'rain'"),
        ],
    )  # fmt: skip
    def test_rasters_that_cannot_be_read_end_in_one_sentence(self, stations, change, message):
        with pytest.raises(ValueError, match=message):
            krige(stations, target="rain", grid=15.0, covariates={"wave": change(covariate(np.arange(360.0)))})


class TestTheRasterOfADataset:
    @pytest.mark.parametrize("named", [True, False])
    def test_is_not_the_bounds_of_its_cells(self, stations, named):
        lat, lon = np.arange(-40.0, 41.0, 20.0), np.arange(-60.0, 61.0, 30.0)
        bounds = np.stack([lat - 10, lat + 10], axis=1)
        grid = xr.Dataset(
            {"lat_bnds": (("lat", "bnds"), bounds), "soil": (("lat", "lon"), np.zeros((5, 5)))},
            {"lat": lat, "lon": lon},
        )
        if named:
            grid["lat"].attrs["bounds"] = "lat_bnds"
        field = krige(stations, target="rain", grid=grid, kernel=GLOBE)
        assert dict(field["mean"].sizes) == {"lat": 5, "lon": 5}
        model, _ = learn_stations(stations, target="rain", kernel=GLOBE)
        filled = fill(grid.where(grid.lon != 0).assign(lat_bnds=grid.lat_bnds), model=model)  # the only raster
        assert filled["mean"].dims == ("lat", "lon")
