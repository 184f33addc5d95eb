"""Stations mapped to a grid: against dense algebra, from every kind of table and file, on every kind of grid."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest, OnColumns, OnSphere
from compositegp.cli.app import main
from compositegp.kernels import gram
from compositegp.spatial import krige, learn_stations, open_raster, read_station_file, write_raster

FIXED = {"length_scale_bounds": "fixed"}
PLANE = ConstantKernel(1.0, "fixed") * Matern(2.0, nu=1.5, **FIXED) + WhiteKernel(0.05, "fixed")
GAUSSIAN = Nearest(calibration=None)
GLOBE = ConstantKernel(1.0, "fixed") * OnSphere(Matern(900.0, nu=1.5, **FIXED)) + WhiteKernel(0.05, "fixed")


@pytest.fixture
def stations():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, size=(120, 2)), columns=["x", "y"])
    frame["soil"] = rng.normal(size=120)
    frame["error"] = rng.uniform(0.01, 0.4, 120)
    frame["zinc"] = np.sin(frame.x) + frame.y / 3 + 2 * frame.soil + 0.2 * rng.normal(size=120)
    return frame


def universal_kriging(kernel, X, F, y, Z, G, noise=0.0, weights=None):
    """Mean and variance of the latent field with a drift, by the kriging system of the textbooks (Cressie 1993).

    Z may be the quadrature points of a block (a, d), with weights (a,).
    """
    weights = np.eye(len(Z)) if weights is None else np.atleast_2d(weights)
    K = kernel(X) + np.diag(np.broadcast_to(noise, len(X)))
    q = F.shape[1]
    system = np.block([[K, F], [F.T, np.zeros((q, q))]])
    right = np.concatenate([weights @ kernel(Z, X), weights @ G], axis=1).T
    solution = np.linalg.solve(system, right)
    mean = solution[: len(X)].T @ y
    prior = np.einsum("ma,ab,mb->m", weights, kernel(Z, Z), weights)
    return mean, prior - (solution * right).sum(axis=0)


def cells(field):
    x, y = np.meshgrid(field["x"], field["y"])
    return np.column_stack([x.ravel(), y.ravel()])


class TestPredictions:
    def test_points_are_ordinary_kriging(self, stations):
        field = krige(stations, target="zinc", grid=(1.0, 2.0), kernel=PLANE, prediction=GAUSSIAN, latent=True)
        np.testing.assert_array_equal(field["x"], np.arange(0.0, 11.0))
        np.testing.assert_array_equal(field["y"], np.arange(0.0, 11.0, 2.0))
        X, Z = stations[["x", "y"]].to_numpy(), cells(field)
        ones = np.ones((120, 1)), np.ones((len(Z), 1))
        mean, variance = universal_kriging(PLANE, X, ones[0], stations.zinc, Z, ones[1])
        np.testing.assert_allclose(field["mean"].to_numpy().ravel(), mean, rtol=0, atol=1e-5)
        np.testing.assert_allclose(field["std"].to_numpy().ravel() ** 2, variance, rtol=0, atol=1e-5)

    def test_covariates_are_an_external_drift(self, stations):
        axis = np.linspace(0, 10, 8)
        grid = xr.Dataset(
            {"soil": (("y", "x"), np.random.default_rng(1).normal(size=(8, 8)))}, {"x": axis, "y": axis}
        )
        kernel = OnColumns(PLANE, [0, 1])
        field = krige(
            stations,
            target="zinc",
            grid=grid,
            covariates=["soil"],
            kernel=kernel,
            prediction=GAUSSIAN,
            noise_variance="error",
            latent=True,
        )
        X, Z = stations[["x", "y"]].to_numpy(), cells(field)
        F = np.column_stack([np.ones(120), stations.soil])
        G = np.column_stack([np.ones(len(Z)), grid["soil"].to_numpy().ravel()])
        mean, variance = universal_kriging(PLANE, X, F, stations.zinc, Z, G, stations.error)
        np.testing.assert_allclose(field["mean"].to_numpy().ravel(), mean, rtol=0, atol=1e-4)
        np.testing.assert_allclose(field["std"].to_numpy().ravel() ** 2, variance, rtol=0, atol=1e-4)

    def test_cells_are_block_kriging(self, stations):
        """Averages over cells, against averages over many points by dense algebra."""
        field = krige(stations, target="zinc", grid=2.5, kernel=PLANE, prediction=GAUSSIAN, support="cell")
        X, Z = stations[["x", "y"]].to_numpy(), cells(field)
        steps = 2.5 * (np.arange(30) + 0.5) / 30 - 1.25
        fine = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
        for number in (0, 7, len(Z) - 1):
            points = Z[number] + fine
            mean, variance = universal_kriging(
                PLANE,
                X,
                np.ones((120, 1)),
                stations.zinc,
                points,
                np.ones((len(fine), 1)),
                weights=np.full(len(fine), 1 / len(fine)),
            )
            assert field["mean"].to_numpy().ravel()[number] == pytest.approx(mean[0], abs=5e-3)
            assert field["std"].to_numpy().ravel()[number] ** 2 == pytest.approx(variance[0], rel=0.02)
        points = krige(stations, target="zinc", grid=2.5, kernel=PLANE, prediction=GAUSSIAN, latent=True)
        assert bool((field["std"] < points["std"]).mean() > 0.95)

    def test_cells_of_several_sizes_are_refused(self, stations):
        uneven = xr.DataArray(np.zeros((3, 4)), {"y": [1.0, 2, 3], "x": [1.0, 2, 3, 8]}, ("y", "x"))
        with pytest.raises(ValueError, match="needs rows and columns that are evenly spaced"):
            krige(stations, target="zinc", grid=uneven, kernel=PLANE, support="cell")

    def test_longitude_and_latitude(self):
        """On the sphere, and across the date line: the grid is on the side where the stations are."""
        rng = np.random.default_rng(4)
        frame = pd.DataFrame({"lon": rng.uniform(170, 190, 90), "lat": rng.uniform(-30, -10, 90)})
        frame["sst"] = np.sin(frame.lon / 5) + frame.lat / 9
        frame["lon"] = (frame.lon + 180) % 360 - 180
        field = krige(frame, target="sst", grid=2.0, kernel=GLOBE, latent=True)
        assert float(field["lon"].min()) >= 168
        assert float(field["lon"].max()) <= 192
        assert field["lon"].attrs["units"] == "degrees_east"
        lon, lat = np.meshgrid(field["lon"], field["lat"])
        Z, X = np.column_stack([lon.ravel(), lat.ravel()]), frame[["lon", "lat"]].to_numpy()
        mean, _ = universal_kriging(GLOBE, X, np.ones((90, 1)), frame.sst, Z, np.ones((len(Z), 1)))
        np.testing.assert_allclose(field["mean"].to_numpy().ravel(), mean, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("west", [200.0, -160.0, 355.0])
    def test_longitudes_stay_as_they_are_counted(self, west):
        rng = np.random.default_rng(4)
        frame = pd.DataFrame({"lon": rng.uniform(west, west + 10, 30), "lat": rng.uniform(0, 10, 30)})
        field = krige(frame.assign(sst=rng.normal(size=30)), target="sst", grid=5.0, kernel=GLOBE)
        np.testing.assert_array_equal(field["lon"], [west, west + 5, west + 10])

    def test_layers_unit_and_logarithm(self, stations):
        stations["zinc"] = np.exp(stations.zinc)
        stations.attrs["units"] = {"zinc": "mg/kg"}
        field = krige(stations, target="zinc", count=12, kernel=PLANE, log=True, above=3.0)
        assert field["mean"].attrs["units"] == field["std"].attrs["units"] == "mg/kg"
        assert max(field["mean"].shape) == 12
        assert float(field["mean"].min()) > 0
        assert 0 <= float(field["exceedance"].min()) <= float(field["exceedance"].max()) <= 1

    def test_cells_that_are_not_wanted_are_missing(self, stations):
        grid = xr.DataArray(np.zeros((5, 6)), dims=("y", "x"), coords={"y": np.arange(5.0), "x": np.arange(6.0)})
        field = krige(stations, target="zinc", grid=grid, kernel=PLANE, wanted=grid.x < 3)
        np.testing.assert_array_equal(field["mean"].notnull(), (grid.x < 3).broadcast_like(grid))

    def test_the_model_is_learned_once(self, stations):
        model, read = learn_stations(stations, target="zinc", kernel=PLANE)
        assert model.n_observed == len(read.values) == 120
        again = krige(stations, target="zinc", grid=2.0, model=model)
        xr.testing.assert_allclose(again, krige(stations, target="zinc", grid=2.0, kernel=PLANE))

    def test_models_with_a_drift_are_saved(self, stations, tmp_path):
        model, read = learn_stations(stations, target="zinc", kernel=OnColumns(PLANE, [0, 1]), covariates=["soil"])
        model.regressor.save(tmp_path / "zinc.cgp")
        loaded = CompositeGPRegressor.load(tmp_path / "zinc.cgp")
        np.testing.assert_array_equal(loaded.predict(read.points), model.regressor.predict(read.points))


class TestDrift:
    def test_coefficients_are_told_in_words(self):
        rng = np.random.default_rng(7)
        frame = pd.DataFrame(
            {"x": rng.uniform(0, 10, 300), "y": rng.uniform(0, 10, 300), "dem": rng.normal(size=300)}
        )
        frame["t"] = (
            np.linalg.cholesky(gram(PLANE, frame[["x", "y"]].to_numpy())) @ rng.normal(size=300) - 3 * frame.dem
        )
        model, _ = learn_stations(frame, target="t", kernel=OnColumns(PLANE, [0, 1]), covariates=["dem"])
        (line,) = [line for line in model.describe() if line.startswith("Drift")]
        value, error = (float(word) for word in line.split()[2:5:2])
        assert abs(value + 3) < 4 * error < 0.5


class TestTables:
    def test_geopandas_points_with_their_crs(self, stations):
        geopandas = pytest.importorskip("geopandas")
        for crs, sphere in (("EPSG:4326", True), ("EPSG:3857", False)):
            points = geopandas.points_from_xy(stations.x, stations.y)
            frame = geopandas.GeoDataFrame(stations[["zinc"]], geometry=points, crs=crs)
            model, read = learn_stations(frame, target="zinc", kernel=GLOBE if sphere else PLANE)
            assert model.sphere is sphere
            np.testing.assert_allclose(read.places, stations[["x", "y"]])

    @pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # of rasterio and rioxarray
    def test_the_reference_system_stays(self, stations, tmp_path):
        geopandas = pytest.importorskip("geopandas")
        pytest.importorskip("rioxarray")
        points = geopandas.points_from_xy(5e5 + 100 * stations.x, 6e6 + 100 * stations.y)
        frame = geopandas.GeoDataFrame(stations[["zinc"]], geometry=points, crs="EPSG:32633")
        field = krige(frame, target="zinc", count=5, kernel=PLANE)
        assert field["mean"].rio.crs.to_epsg() == 32633
        write_raster(field, tmp_path / "zinc.nc")
        read = open_raster(tmp_path / "zinc.nc")
        assert read["mean"].rio.crs.to_epsg() == 32633
        again = krige(frame, target="zinc", grid=read, kernel=PLANE)
        assert again["std"].rio.crs.to_epsg() == 32633

    def test_a_grid_in_another_reference_system_is_told(self, stations):
        geopandas = pytest.importorskip("geopandas")
        points = geopandas.points_from_xy(9 + stations.x / 100, 49 + stations.y / 100)
        frame = geopandas.GeoDataFrame(stations[["zinc"]], geometry=points, crs="EPSG:4326")
        field = krige(frame.to_crs("EPSG:32632"), target="zinc", count=4, kernel=PLANE)
        with pytest.warns(UserWarning, match="Do both have the same coordinate reference system"):
            krige(frame.to_crs("EPSG:3035"), target="zinc", grid=field, kernel=PLANE)

    def test_a_grid_far_from_all_stations_is_told(self, stations):
        away = xr.DataArray(np.zeros((3, 3)), {"y": 5e6 + np.arange(3.0), "x": 4e5 + np.arange(3.0)}, ("y", "x"))
        with pytest.warns(UserWarning, match="No cell of the grid is near a station: x is from 400000 to 400002"):
            krige(stations, target="zinc", grid=away, kernel=PLANE)

    @pytest.mark.parametrize("ending", ["csv", "parquet", "geojson", "csv.gz"])
    def test_files(self, stations, ending, tmp_path):
        path = tmp_path / f"zinc.{ending}"
        if ending == "geojson":
            features = [
                {"type": "Feature", "geometry": {"type": "Point", "coordinates": [row.x, row.y]},
                 "properties": {"zinc": row.zinc}}
                for row in stations.itertuples()
            ]  # fmt: skip
            path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        else:
            stations.to_parquet(path) if ending == "parquet" else stations.to_csv(path, index=False)
        np.testing.assert_allclose(read_station_file(path)["zinc"], stations.zinc)

    def test_rows_that_lack_something_are_left_out_and_told(self, stations):
        stations.loc[3, "zinc"] = np.nan
        stations.loc[5, "x"] = np.nan
        stations = pd.concat([stations, stations.iloc[[10, 11]]])
        model, read = learn_stations(stations, target="zinc", kernel=PLANE)
        assert len(read.values) == 120
        assert model.notes[0].startswith("2 of 122 rows lack")
        assert model.notes[1].startswith("2 rows share their place")

    @pytest.mark.parametrize(
        ("change", "options", "message"),
        [
            (lambda f: f, {"target": "lead"}, "no column 'lead'; there are x, y, soil"),
            (lambda f: f, {"x": "east", "y": "y"}, "no column 'east'"),
            (lambda f: f.drop(columns="x"), {}, "columns of x and y are not found"),
            (lambda f: f.assign(zinc="much"), {}, "has text where numbers should be: 'much' in row 1"),
            (lambda f: f.assign(zinc=np.nan), {}, "column 'zinc' has no observed value"),
            (lambda f: f.assign(zinc=2.0), {}, "'zinc' is 2 wherever it is observed"),
            (lambda f: f.assign(error=-1.0), {"noise_variance": "error"}, "has negative variances"),
            (lambda f: f, {"covariates": ["soil"]}, "covariate 'soil' has no values on the grid"),
            (lambda f: f, {"covariates": ["rock"]}, "no column 'rock' for the covariate"),
            (lambda f: f, {"grid": -1.0}, "grid must be a positive step"),
            (lambda f: f, {"grid": 1e-9}, "Give a larger step"),
            (lambda f: f, {"grid": None}, "give one of them"),
            (lambda f: f, {"support": "disc"}, 'support must be "cell"'),
            (lambda f: f.assign(zinc=np.exp(f.zinc)), {"support": "cell", "log": True}, "do without log"),
            (lambda f: f.to_numpy(), {}, "frame must be a data frame"),
        ],
    )  # fmt: skip
    def test_bad_tables_end_in_one_sentence(self, stations, change, options, message):
        with pytest.raises(ValueError, match=message):
            krige(change(stations), **({"target": "zinc", "grid": 1.0, "kernel": PLANE} | options))


class TestCommand:
    def test_the_installed_command_maps_a_file(self, stations, tmp_path):
        stations.to_csv(tmp_path / "zinc.csv", index=False)
        arguments = [
            "map",
            "zinc.csv",
            "--target",
            "zinc",
            "--x",
            "x",
            "--y",
            "y",
            "--grid",
            "0.5",
            "--unit",
            "mg/kg",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "compositegp", *arguments, "--above", "3", "--json", "--out", "found"],
            capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["stations"] == 120
        field = xr.open_dataset(tmp_path / "found" / "map.nc")
        assert field["mean"].attrs["units"] == "mg/kg"
        assert told["cells"] == field["mean"].size
        assert (tmp_path / "found" / "map.png").read_bytes()[:4] == b"\x89PNG"

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["none.csv", "--target", "zinc", "--grid", "1"], 1, "does not exist"),
            (["zinc.csv", "--target", "lead", "--grid", "1"], 1, "no column 'lead'"),
            (["zinc.csv", "--target", "zinc"], 2, "one of --grid, --count and --template"),
            (
                ["zinc.csv", "--target", "zinc", "--grid", "1", "--covariate", "soil"],
                2,
                "--covariate needs --template",
            ),
            (["bad.geojson", "--target", "zinc", "--grid", "1"], 1, "cannot be read as CSV, Parquet or GeoJSON"),
        ],
    )
    def test_bad_calls_end_in_one_sentence(self, stations, arguments, code, message, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        stations.to_csv("zinc.csv", index=False)
        (tmp_path / "bad.geojson").write_text("{}")
        assert main(["map", *arguments]) == code
        assert message in capsys.readouterr().err
