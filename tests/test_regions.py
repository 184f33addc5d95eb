"""Averages over regions: against dense algebra, and through the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp import Nearest
from compositegp.cli.app import main
from compositegp.spatial import learn_stations, read_regions, region_averages
from compositegp.spatial.regions import _inside, _nodes

SQUARE = np.array([[2.0, 2.0], [8.0, 2.0], [8.0, 8.0], [2.0, 8.0]])
HOLE = np.array([[4.0, 4.0], [6.0, 4.0], [6.0, 6.0], [4.0, 6.0]])
KERNEL = 1.0 * Matern([2.0, 2.0], nu=1.5) + WhiteKernel(0.05)


@pytest.fixture(scope="module")
def stations():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, size=(60, 2)), columns=["x", "y"])
    frame["rain"] = np.sin(frame.x) + np.cos(frame.y) + 0.2 * rng.normal(size=60)
    return frame


@pytest.fixture
def geojson(tmp_path):
    def feature(name, rings):
        coordinates = [[*ring.tolist(), ring[0].tolist()] for ring in rings]
        return {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": coordinates},
        }

    path = tmp_path / "regions.geojson"
    features = [feature("square", [SQUARE]), feature("ring", [SQUARE, HOLE])]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_mean_and_error_of_an_average_are_those_of_dense_algebra(stations):
    plain = Nearest(calibration=None, theta_uncertainty=False)
    model, _ = learn_stations(stations, target="rain", kernel=KERNEL, prediction=plain)
    table = region_averages(model, {"square": [SQUARE], "ring": [SQUARE, HOLE]})
    kernel, X = model.regressor.kernel_, stations[["x", "y"]].to_numpy()
    for name, rings in {"square": [SQUARE], "ring": [SQUARE, HOLE]}.items():
        nodes = _nodes(name, rings, False)
        k = kernel(X, nodes).mean(axis=1)
        constant = np.ones(60)
        information = constant @ np.linalg.solve(kernel(X), constant)
        beta = constant @ np.linalg.solve(kernel(X), stations.rain) / information
        left = 1 - constant @ np.linalg.solve(kernel(X), k)
        variance = kernel.k1(nodes).mean() - k @ np.linalg.solve(kernel(X), k) + left**2 / information
        mean = beta + k @ np.linalg.solve(kernel(X), stations.rain - beta)
        assert table.loc[name, "mean"] == pytest.approx(mean, rel=1e-4)
        assert table.loc[name, "std"] == pytest.approx(np.sqrt(variance), rel=1e-4)
    assert (table["q0.05"] < table["mean"]).all()
    assert (table["mean"] < table["q0.95"]).all()


def test_the_error_of_an_average_is_below_that_of_its_points(stations):
    model, _ = learn_stations(stations, target="rain", kernel=KERNEL)
    table = region_averages(model, {"square": [SQUARE]})
    single = model.regressor.predict(_nodes("square", [SQUARE], False), return_std=True, latent=True)[1]
    assert table["std"].iloc[0] < 0.7 * single.mean()


def test_a_hole_is_outside():
    points = np.array([[3.0, 3.0], [5.0, 5.0], [9.0, 5.0]])
    assert _inside(points, [SQUARE, HOLE]).tolist() == [True, False, False]


def test_areas_of_polygons_are_their_share_of_the_lattice():
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    points = np.random.default_rng(0).uniform(size=(20_000, 2))
    assert _inside(points, [triangle]).mean() == pytest.approx(0.5, abs=0.02)


def test_a_region_that_is_cut_at_the_date_line_is_one():
    """As RFC 7946 asks for it: the average is that of the same region with longitudes that go on."""
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(170, 190, size=120), rng.uniform(-20, -10, size=120)
    rain = np.sin(lon / 2) + lat / 5 + 0.1 * rng.normal(size=120)
    places = pd.DataFrame({"lon": np.where(lon > 180, lon - 360, lon), "lat": lat, "rain": rain})
    model, _ = learn_stations(places, target="rain")

    def box(west, south, east, north):
        return np.array([[west, south], [east, south], [east, north], [west, north]], dtype=float)

    parts = [box(175, -18, 180, -12), box(-180, -18, -175, -12)]
    table = region_averages(model, {"whole": [box(175, -18, 185, -12)], "cut": parts, "turned": parts[::-1]})
    np.testing.assert_allclose(table.loc["cut"], table.loc["whole"], rtol=1e-6)
    np.testing.assert_allclose(table.loc["turned"], table.loc["whole"], rtol=1e-6)


def test_a_hole_stays_in_its_ring():
    def box(west, south, east, north):
        return np.array([[west, south], [east, south], [east, north], [west, north]], dtype=float)

    rings = [box(-62, 15, -60, 17), box(100, -10, 130, 10), box(118, -5, 125, 5)]
    points = _nodes("islands", rings, True)
    longitudes = points[:, 0] % 360
    in_hole = (longitudes > 118) & (longitudes < 125) & (np.abs(points[:, 1]) < 5)
    assert len(points) >= 200
    assert not in_hole.any()


def test_small_parts_far_apart_have_their_points():
    islands = [np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) + shift for shift in (0.0, 99.0)]
    points = _nodes("islands", islands, False)
    assert len(points) >= 200
    assert (points < 1).all(axis=1).mean() == pytest.approx(0.5, abs=0.02)
    np.testing.assert_allclose(points[points[:, 0] < 1].mean(axis=0), 0.5, rtol=0, atol=0.03)


def test_on_the_command_line(stations, geojson, tmp_path):
    stations.to_csv(tmp_path / "rain.csv", index=False)
    arguments = ["map", str(tmp_path / "rain.csv"), "--target", "rain", "--grid", "1", "--jobs", "1"]
    main([*arguments, "--regions", str(geojson), "--out", str(tmp_path / "map")])
    table = pd.read_csv(tmp_path / "map" / "regions.csv", index_col="region")
    assert list(table.index) == ["square", "ring"]
    assert {"mean", "std", "q0.05", "q0.95"} <= set(table.columns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "cannot be read as GeoJSON"),
        ('{"type": "FeatureCollection", "features": []}', "has no feature"),
        ('{"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}}', "cannot be read as GeoJSON"),
    ],
)
def test_files_that_are_none_end_in_one_sentence(content, message, tmp_path):
    file = tmp_path / "regions.geojson"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_regions(file)


def test_a_logarithm_and_empty_regions_are_refused(stations):
    positive = stations.assign(rain=np.exp(stations.rain))
    model, _ = learn_stations(positive, target="rain", kernel=KERNEL, log=True)
    with pytest.raises(ValueError, match="do without log"):
        region_averages(model, {"square": [SQUARE]})
    plain, _ = learn_stations(stations, target="rain", kernel=KERNEL)
    with pytest.raises(ValueError, match="no region"):
        region_averages(plain, {})
    with pytest.raises(ValueError, match="no area"):
        region_averages(plain, {"line": [np.array([[0.0, 0.0], [1.0, 0.0]])]})
