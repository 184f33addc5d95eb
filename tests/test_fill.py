"""Gaps in rasters: predictions against dense algebra, any chunking, files, and every kind of raster that is odd."""

import json
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest, OnColumns, OnSphere
from compositegp.cli.app import main
from compositegp.spatial import fill, learn_raster, open_raster, tile_filling, write_raster
from compositegp.spatial.grid import grid_of
from compositegp.spatial.tiles import Blocks, blocks_of, bounding_window, cells_in, count_observed, tiles_of

FIXED = {"length_scale_bounds": "fixed"}
KNOWN = ConstantKernel(1.0, "fixed") * Matern(6.0, nu=1.5, **FIXED) + WhiteKernel(0.01, "fixed")
GAUSSIAN = Nearest(calibration=None)
GLOBE = ConstantKernel(1.0, "fixed") * OnSphere(Matern(900.0, nu=1.5, **FIXED)) + WhiteKernel(0.01, "fixed")


def field(ny=20, nx=24, seed=0, **coordinates):
    """A smooth raster, and the same with gaps."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:ny, 0:nx]
    values = np.sin(rows / 5) + np.cos(columns / 6) + 0.05 * rng.normal(size=(ny, nx))
    whole = xr.DataArray(values, dims=("y", "x"), coords=coordinates, name="height", attrs={"units": "m"})
    gaps = (rng.uniform(size=(ny, nx)) < 0.3) | ((rows > 6) & (rows < 12) & (columns > 8) & (columns < 15))
    return whole, whole.where(~gaps)


def exact(kernel, X, y, Z):
    """Ordinary kriging by dense algebra: mean and standard deviation of new observations."""
    K, k = kernel(X), kernel(X, Z)
    ones = np.ones(len(X))
    weights = np.linalg.solve(K, np.column_stack([ones, y, k]))
    level = ones @ weights[:, 1] / (ones @ weights[:, 0])
    missing = 1 - ones @ weights[:, 2:]
    mean = level + k.T @ (weights[:, 1] - level * weights[:, 0])
    variance = np.diag(kernel(Z)) - (k * weights[:, 2:]).sum(0) + missing**2 / (ones @ weights[:, 0])
    return mean, np.sqrt(variance)


def places(array, *names):
    grids = np.meshgrid(*(array[name] for name in reversed(names)))
    return np.column_stack([grid.ravel() for grid in grids])


class TestPredictions:
    def test_small_rasters_are_ordinary_kriging(self):
        _, gappy = field(y=np.linspace(40.0, 2.0, 20), x=np.linspace(0.0, 23.0, 24))  # y descends
        filled = fill(gappy, kernel=KNOWN, prediction=GAUSSIAN)
        observed = gappy.notnull().to_numpy()
        X = places(gappy, "y", "x")
        mean, std = exact(KNOWN, X[observed.ravel()], gappy.to_numpy()[observed], X[~observed.ravel()])
        np.testing.assert_allclose(filled["mean"].to_numpy()[~observed], mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(filled["std"].to_numpy()[~observed], std, rtol=1e-4)
        np.testing.assert_array_equal(filled["mean"].to_numpy()[observed], gappy.to_numpy()[observed])
        assert (filled["std"].to_numpy()[observed] == 0).all()

    def test_longitude_and_latitude_are_kriged_on_the_sphere(self):
        _, gappy = field(y=np.linspace(-40.0, 40.0, 20), x=np.linspace(150.0, 210.0, 24))
        gappy = gappy.rename(y="lat", x="lon")
        filled = fill(gappy, kernel=GLOBE, prediction=GAUSSIAN)
        observed = gappy.notnull().to_numpy()
        X = places(gappy, "lat", "lon")
        mean, std = exact(GLOBE, X[observed.ravel()], gappy.to_numpy()[observed], X[~observed.ravel()])
        np.testing.assert_allclose(filled["mean"].to_numpy()[~observed], mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(filled["std"].to_numpy()[~observed], std, rtol=1e-4)
        moved = gappy.assign_coords(lon=(gappy.lon + 180) % 360 - 180)  # −180…180 in the place of 0…360
        np.testing.assert_allclose(fill(moved, kernel=GLOBE)["mean"], filled["mean"], rtol=0, atol=1e-9)

    def test_time_is_a_product_of_kernels(self):
        rng = np.random.default_rng(2)
        times = pd.to_datetime(["2024-01-01 00:00", "2024-01-01 06:00", "2024-01-02 00:00"])  # with a gap
        values = rng.normal(size=(3, 6, 7))
        raster = xr.DataArray(values, dims=("time", "y", "x"), coords={"time": times}, name="rain")
        gappy = raster.where(rng.uniform(size=values.shape) < 0.7)
        kernel = OnColumns(Matern(3.0, nu=1.5, **FIXED), [0, 1]) * OnColumns(Matern(9.0, nu=0.5, **FIXED), [2])
        kernel = ConstantKernel(1.0, "fixed") * kernel + WhiteKernel(0.1, "fixed")
        filled = fill(gappy.transpose("x", "time", "y"), kernel=kernel)
        hours, rows, columns = np.meshgrid([0.0, 6.0, 24.0], np.arange(6.0), np.arange(7.0), indexing="ij")
        X = np.column_stack([columns.ravel(), rows.ravel(), hours.ravel()])
        observed = gappy.notnull().to_numpy().ravel()
        mean, _ = exact(kernel, X[observed], gappy.to_numpy().ravel()[observed], X[~observed])
        found = filled["mean"].transpose("time", "y", "x").to_numpy().ravel()[~observed]
        np.testing.assert_allclose(found, mean, rtol=0, atol=1e-6)
        assert filled["mean"].dims == ("x", "time", "y")

    def test_covariates_are_a_drift(self):
        whole, gappy = field()
        height = xr.DataArray(np.random.default_rng(5).normal(size=whole.shape), dims=("y", "x"))
        data = xr.Dataset({"height": gappy + 3 * height, "soil": height})
        filled = fill(data, "height", kernel=OnColumns(KNOWN, [0, 1]), covariates=["soil"])
        plain = fill(gappy, kernel=KNOWN)
        missing = gappy.isnull()
        error = (filled["mean"] - (whole + 3 * height)).where(missing)
        assert float((error**2).mean()) < 1.3 * float(((plain["mean"] - whole).where(missing) ** 2).mean())

    def test_layers(self):
        whole, gappy = field()
        filled = fill(gappy, kernel=KNOWN, quantiles=(0.9, 0.1), above=[0.0, 1.0])
        low, high = filled["quantiles"].sel(quantile=0.1), filled["quantiles"].sel(quantile=0.9)
        assert bool((low <= filled["mean"] + 1e-12).all() and (filled["mean"] <= high + 1e-12).all())
        share = filled["exceedance"].sel(threshold=1.0)
        assert bool((share <= filled["exceedance"].sel(threshold=0.0)).all())
        observed = gappy.notnull()
        assert bool((share.where(observed) == (gappy > 1).where(observed)).where(observed, True).all())
        missing = gappy.isnull()
        inside = (whole > low) & (whole < high)
        assert 0.6 < float(inside.where(missing).mean()) <= 1.0

    def test_cells_that_are_not_wanted_stay_missing(self):
        _, gappy = field()
        land = xr.DataArray(np.arange(24) < 12, dims="x")
        filled = fill(gappy, kernel=KNOWN, wanted=land)
        assert bool(filled["mean"].isel(x=slice(0, 12)).notnull().all())
        np.testing.assert_array_equal(filled["mean"].isel(x=slice(12, 24)), gappy.isel(x=slice(12, 24)))

    def test_logarithms(self):
        _, gappy = field()
        filled = fill(np.exp(gappy), kernel=KNOWN, log=True)
        assert float(filled["mean"].min()) > 0
        np.testing.assert_allclose(
            filled["quantiles"].sel(quantile=0.5).where(gappy.isnull()),
            np.exp(fill(gappy, kernel=KNOWN)["mean"]).where(gappy.isnull()),
            rtol=1e-6,
        )


@pytest.fixture(scope="module")
def large():
    whole, gappy = field(70, 90, x=np.linspace(0.0, 83.3, 90) ** 1.013, y=np.linspace(0.0, 69.1, 70) ** 1.01)
    return whole, gappy, learn_raster(gappy, kernel=KNOWN, prediction=Nearest(32, group_size=1, calibration=None))


class TestTiles:
    """More observations than an exact process takes: tiles, windows, chunks."""

    def test_is_close_to_all_the_data_at_once(self, large):
        """A tile with its window is predicted as from all the observations."""
        _, gappy, model = large
        filled = fill(gappy, model=model)
        missing = gappy.isnull().to_numpy()
        X = places(gappy, "y", "x")
        at_once = model.regressor.predict(X[missing.ravel()])
        np.testing.assert_allclose(filled["mean"].to_numpy()[missing], at_once, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("chunks", [{"y": 7, "x": 90}, {"y": 70, "x": 31}, {"y": 64, "x": 64}])
    def test_any_chunking_gives_the_same_bits(self, large, chunks):
        _, gappy, model = large
        lazy = fill(gappy.chunk(chunks), model=model)
        assert lazy["mean"].chunks is not None
        xr.testing.assert_identical(lazy.compute(scheduler="synchronous"), fill(gappy, model=model))

    @pytest.mark.usefixtures("two_blas_threads")
    def test_any_number_of_processes_and_threads_gives_the_same_bits(self, large):
        _, gappy, model = large
        one_by_one = fill(gappy, model=model, n_jobs=1)
        xr.testing.assert_identical(fill(gappy, model=model, n_jobs=2), one_by_one)
        xr.testing.assert_identical(fill(gappy, model=model), one_by_one)
        with joblib.parallel_config("threading", n_jobs=2):
            xr.testing.assert_identical(fill(gappy, model=model), one_by_one)

    @pytest.mark.usefixtures("two_blas_threads")
    def test_an_error_on_a_thread_is_raised(self, large, monkeypatch):
        _, gappy, model = large
        monkeypatch.setattr(tile_filling, "_predict", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fill(gappy, model=model)

    def test_windows_hold_the_nearest_observations(self):
        """Of every cell of a tile; on the sphere also across the date line and around a pole."""
        rng = np.random.default_rng(1)
        raster = xr.DataArray(
            np.where(rng.uniform(size=(60, 120)) < 0.4, 1.0, np.nan),
            dims=("lat", "lon"),
            coords={"lat": np.linspace(-88.5, 88.5, 60), "lon": np.linspace(-178.5, 178.5, 120)},
        )
        grid, kernel = grid_of(raster), OnSphere(Matern(500.0))
        assert grid.sphere
        counts = count_observed(raster.to_numpy(), grid)
        assert counts.sum() == np.isfinite(raster.to_numpy()).sum()
        blocks = Blocks(grid, counts, kernel)
        everything = grid.points(grid.everything)
        observed = np.flatnonzero(np.isfinite(raster.to_numpy().ravel()))
        numbers = np.arange(raster.size).reshape(raster.shape)
        for tile in tiles_of(grid):
            near = np.zeros(counts.shape, dtype=bool)
            near[blocks_of(tile, grid)] = True
            chosen = blocks.near(near, 50)
            window = bounding_window(chosen, grid)
            held = set(numbers[window][cells_in(chosen, window, grid)].tolist())
            for cell in rng.choice(numbers[tile].ravel(), 5):
                order = np.argsort(-kernel(everything[[cell]], everything[observed])[0], kind="stable")
                assert set(observed[order[:45]].tolist()) <= held

    def test_many_cells_are_learned_from_regions(self, monkeypatch):
        monkeypatch.setattr("compositegp.spatial.raster_learning.LEARNED", 300)
        monkeypatch.setattr("compositegp.spatial.raster_learning._REGION", {2: (16, 16)})
        _, gappy = field(40, 40)
        model = learn_raster(gappy, kernel=KNOWN, prediction=Nearest(32, calibration=None))
        assert 300 <= len(model.y) < model.n_observed == int(gappy.notnull().sum())
        assert "whole regions" in model.notes[0]
        assert float(fill(gappy, model=model)["std"].max()) < 1


class TestFiles:
    @pytest.mark.parametrize("ending", ["nc", "zarr"])
    def test_round_trip_keeps_coordinates_attributes_and_crs(self, ending, tmp_path):
        _, gappy = field(x=np.linspace(5e5, 6e5, 24), y=np.linspace(7e6, 6.9e6, 20))
        gappy.attrs |= {"long_name": "height of the soil", "grid_mapping": "utm"}
        gappy.x.attrs |= {"units": "m", "standard_name": "projection_x_coordinate"}
        gappy = gappy.assign_coords(utm=xr.DataArray(0, attrs={"crs_wkt": 'PROJCRS["UTM 33N"]'}))
        source = tmp_path / f"soil.{ending}"
        gappy.to_dataset().to_netcdf(source) if ending == "nc" else gappy.to_dataset().to_zarr(
            source, consolidated=False
        )
        data = open_raster(source)
        write_raster(fill(data, kernel=KNOWN), tmp_path / f"filled.{ending}")
        found = open_raster(tmp_path / f"filled.{ending}")
        np.testing.assert_array_equal(found["x"], gappy["x"])
        assert found["x"].attrs["units"] == "m"
        assert found["mean"].attrs["units"] == found["std"].attrs["units"] == "m"
        assert found["mean"].attrs["long_name"] == "height of the soil, mean"
        assert found["utm"].attrs["crs_wkt"] == 'PROJCRS["UTM 33N"]'
        assert found["mean"].encoding["grid_mapping"] == "utm"
        assert not found["mean"].isnull().any()
        assert not list(tmp_path.glob(".*"))

    def test_the_installed_command_fills_a_file(self, tmp_path):
        whole, gappy = field(14, 16)
        gappy.to_dataset().to_netcdf(tmp_path / "soil.nc")
        arguments = [
            "fill",
            tmp_path / "soil.nc",
            "--out",
            tmp_path / "filled.nc",
            "--picture",
            tmp_path / "map.png",
            "--report",
            tmp_path / "report.html",
            "--samples",
            "2",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "compositegp", *arguments, "--json", "--above", "1"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["missing"] == int(gappy.isnull().sum())
        assert told["sphere"] is False
        assert any("Practical range" in line for line in told["model"])
        found = xr.open_dataset(tmp_path / "filled.nc")
        assert float(np.sqrt(((found["mean"] - whole) ** 2).mean())) < 0.1
        assert (tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"
        assert found["samples"].sizes["sample"] == 2
        assert (found["samples"] == gappy).where(gappy.notnull(), True).all()
        assert "nearest neighbor" in (tmp_path / "report.html").read_text()


class TestOddRasters:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda a: a.where(False), "height has no observed value"),
            (lambda a: a.where((a.x == 3) & (a.y == 2)), "height has . observed value"),
            (lambda a: a.where(a.isnull(), 4.0), "height is 4 wherever it is observed"),
            (lambda a: a.expand_dims(band=2, level=2), "found 4: band, level, y, x"),
            (lambda a: a.isel(y=0), "found 1: x"),
            (lambda a: a.assign_coords(x=np.r_[np.nan, np.arange(23.0)]), "axis 'x' has 1 coordinate.* not finite"),
            (lambda a: a.assign_coords(x=np.zeros(24)), "axis 'x' has coordinates that occur more than once"),
            (lambda a: a.assign_coords(x=[f"c{i}" for i in range(24)]), "axis 'x' must have numbers"),
            (lambda a: a.astype(str), "height must have numbers"),
            (lambda a: a.to_numpy(), "data must be an xarray DataArray or Dataset; found ndarray"),
            (lambda a: a.where(a.isnull() | (a.x > 0), np.inf), "infinite value"),
        ],
    )
    def test_end_in_one_sentence(self, change, message):
        _, gappy = field()
        gappy = gappy.assign_coords(x=np.arange(24.0), y=np.arange(20.0))
        with pytest.raises(ValueError, match=message):
            fill(change(gappy), kernel=KNOWN)

    def test_arguments_that_do_not_fit(self):
        _, gappy = field()
        data = xr.Dataset({"height": gappy, "other": gappy})
        with pytest.raises(ValueError, match="data has 2 rasters: height, other"):
            fill(data)
        with pytest.raises(ValueError, match="no variable 'rain'; it has height, other"):
            fill(data, "rain")
        with pytest.raises(ValueError, match="x='lon' is no axis of the raster; it has y, x"):
            fill(gappy, x="lon")
        with pytest.raises(ValueError, match="sphere must be True, False"):
            fill(gappy, sphere="flat")
        with pytest.raises(ValueError, match="wanted has the axes"):
            fill(gappy, wanted=xr.DataArray(np.ones(5), dims="x"))
        with pytest.raises(ValueError, match="quantiles must be between 0 and 1"):
            fill(gappy, quantiles=[1.5])
        with pytest.raises(ValueError, match="not positive"):
            fill(gappy, log=True, kernel=KNOWN)
        with pytest.raises(ValueError, match="another kind"):
            fill(gappy, sphere=True, model=learn_raster(gappy, kernel=KNOWN))

    def test_nothing_missing_is_said(self):
        whole, _ = field()
        with pytest.warns(UserWarning, match="no missing cell"):
            filled = fill(whole)
        np.testing.assert_array_equal(filled["mean"], whole)

    def test_irregular_and_curvilinear_coordinates_are_places(self):
        _, gappy = field()
        x = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 24))
        flat = fill(gappy.assign_coords(x=x, y=np.arange(20.0)), kernel=KNOWN)
        lon, lat = np.meshgrid(x, np.arange(20.0))
        curved = gappy.assign_coords(lon=(("y", "x"), lon), lat=(("y", "x"), lat))
        np.testing.assert_allclose(
            fill(curved, kernel=KNOWN, sphere=False)["mean"], flat["mean"], rtol=0, atol=1e-10
        )
        assert grid_of(curved).sphere

    @pytest.mark.parametrize(
        ("names", "attributes", "crs", "sphere"),
        [
            (("lat", "lon"), {}, None, True),
            (("Latitude", "Longitude"), {}, None, True),
            (("y", "x"), {}, None, False),
            (("a", "b"), {"a": {"units": "degrees_north"}, "b": {"units": "degrees_east"}}, None, True),
            (("y", "x"), {}, 'GEOGCRS["WGS 84"]', True),
            (("lat", "lon"), {}, 'PROJCRS["UTM"]', False),
        ],
    )
    def test_longitude_and_latitude_are_found(self, names, attributes, crs, sphere):
        raster = xr.DataArray(
            np.zeros((2, 3)), dims=names, coords={names[0]: [1.0, 2.0], names[1]: [1.0, 2.0, 3.0]}
        )
        for name, found in attributes.items():
            raster[name].attrs = found
        if crs is not None:
            raster = raster.assign_coords(spatial_ref=xr.DataArray(0, attrs={"crs_wkt": crs}))
        grid = grid_of(raster)
        assert grid.sphere is sphere
        assert grid.axes.dims == names

    def test_bad_files_end_in_one_sentence(self, tmp_path, capsys):
        (tmp_path / "no.nc").write_text("not a raster")
        for name, message in (
            ("none.nc", "does not exist"),
            ("no.nc", "cannot be read as netcdf"),
            ("no.xyz", "must end in .nc"),
        ):
            (tmp_path / "no.xyz").touch()
            assert main(["fill", str(tmp_path / name), "--out", str(tmp_path / "out.nc")]) == 1
            (line,) = capsys.readouterr().err.splitlines()
            assert message in line
        assert not (tmp_path / "out.nc").exists()


def test_with_data_predicts_from_other_observations(rng):
    X, y = rng.uniform(0, 10, size=(80, 2)), rng.normal(size=80)
    kernel = Matern(2.0) + WhiteKernel(0.1)
    model = CompositeGPRegressor(kernel, learning=None).fit(X[:40], y[:40])
    other = model.with_data(X[40:], y[40:], np.full(40, 0.2))
    alpha = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.2).fit(X[40:], y[40:])
    np.testing.assert_allclose(other.predict(X[:5]), alpha.predict(X[:5]), rtol=0, atol=1e-8)
    first = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.predict(X[:5]), first.predict(X[:5]), rtol=0, atol=1e-8)
