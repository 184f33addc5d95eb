"""What a geostatistician looks at: variograms, scores beside simple methods, warnings, and the page about a map."""

import re

import numpy as np
import pandas as pd
import pytest
from browser import dump_probed_page
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, OnColumns, OnSphere, RotatedMatern, RotatedMaternOnSphere
from compositegp.analysis import directions_of, empirical_variogram, model_variogram, summarize_variogram
from compositegp.cli.app import main
from compositegp.kernels import gram
from compositegp.plotting import plot_validation, variogram
from compositegp.plotting import style as style
from compositegp.spatial import MapModel, cautions_about, learn_stations, score_map
from compositegp.spatial.baselines import _gaps, _single

KNOWN = ConstantKernel(1.0, "fixed") * Matern(2.0, "fixed", nu=1.5) + WhiteKernel(0.05, "fixed")


def stations(n=150, seed=0, kernel=KNOWN, width=10.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(0, width, size=(n, 2)), columns=["x", "y"])
    frame["zinc"] = 5 + np.linalg.cholesky(gram(kernel, frame.to_numpy())) @ rng.normal(size=n)
    return frame


class TestVariograms:
    def test_practical_range_is_where_five_percent_is_left(self):
        kernel = 2.0 * Matern([1.0, 3.0], nu=0.5) + WhiteKernel(0.5)
        found = summarize_variogram(kernel, directions_of(kernel, 2))
        assert found.nugget[0] == pytest.approx(0.5)
        assert found.sill[0] == pytest.approx(2.5)
        assert found.ranges["x"][0] == pytest.approx(-np.log(0.05))
        assert found.ranges["y"][0] == pytest.approx(-3 * np.log(0.05))
        gaussian = summarize_variogram(RBF(2.0), directions_of(RBF(2.0), 2))
        assert gaussian.ranges["x"][0] == pytest.approx(2 * np.sqrt(-2 * np.log(0.05)))

    def test_of_the_sphere_of_a_rotation_and_of_time(self):
        globe = OnColumns(OnSphere(Matern(500.0, nu=0.5)), [0, 1]) * OnColumns(Matern(3.0, nu=0.5), [2])
        found = summarize_variogram(globe, directions_of(globe, 3, sphere=True, has_time=True)).ranges
        assert found["any direction"][0] == pytest.approx(-500 * np.log(0.05))
        assert found["time"][0] == pytest.approx(-3 * np.log(0.05))
        turned = RotatedMatern.at_angle(30.0, 4.0, length_scale=2.0, nu=0.5)
        ranges = summarize_variogram(turned, directions_of(turned, 2)).ranges
        assert ranges["long axis (30°)"][0] == pytest.approx(-4 * np.log(0.05))
        assert ranges["short axis (120°)"][0] == pytest.approx(-np.log(0.05))
        region = RotatedMaternOnSphere.at_angle(30.0, 4.0, 20.0, nu=0.5, longitude=-94.0, latitude=35.0)
        ranges = summarize_variogram(region, directions_of(region, 2, sphere=True)).ranges
        assert ranges["long axis (30°)"][0] == pytest.approx(-40 * np.log(0.05), rel=1e-3)
        assert ranges["short axis (120°)"][0] == pytest.approx(-10 * np.log(0.05), rel=1e-3)

    def test_standard_errors_are_those_of_monte_carlo(self):
        kernel = 2.0 * Matern(1.5, nu=1.5) + WhiteKernel(0.5)
        root = np.array([[0.05, 0.0, 0.0], [0.02, 0.04, 0.0], [0.01, 0.0, 0.03]])
        found = summarize_variogram(kernel, directions_of(kernel, 2), root @ root.T)
        draws = kernel.theta + np.random.default_rng(0).normal(size=(2000, 3)) @ root.T
        amplitude, length, noise = np.exp(draws).T
        assert found.sill[1] == pytest.approx(np.std(amplitude + noise), rel=0.1)
        assert found.nugget[1] == pytest.approx(noise.std(), rel=0.1)
        assert found.ranges["x"][1] == pytest.approx(found.ranges["x"][0] / 1.5 * length.std(), rel=0.1)

    def test_empirical_variogram_is_half_the_mean_square_of_pairs(self, rng):
        X, y = rng.uniform(size=(60, 2)), rng.normal(size=60)
        found = empirical_variogram(RBF(), X, y, lambda A, B: np.hypot(*(A - B).T), 0.5, n_bins=1)
        apart, squares = pdist(X), 0.5 * pdist(y[:, None]) ** 2
        # Every near pair is there twice, and some far ones a third time.
        assert found.semivariances[0] == pytest.approx(squares[apart <= 0.5].mean(), rel=0.05)
        assert found.counts[0] >= 2 * (apart <= 0.5).sum()

    def test_of_a_simulated_field_is_that_of_its_kernel(self):
        kernel = 1.0 * Matern(0.5, nu=0.5) + WhiteKernel(0.1)
        frame = stations(1500, 3, kernel)
        X, y = frame[["x", "y"]].to_numpy(), frame.zinc.to_numpy()
        found = empirical_variogram(kernel, X, y, lambda A, B: np.hypot(*(A - B).T), 3.0)
        expected = model_variogram(kernel, directions_of(kernel, 2)[0], found.lags)
        np.testing.assert_allclose(found.semivariances, expected, rtol=0.3)

    def test_pairs_of_a_direction_on_the_sphere_are_those_of_the_field(self):
        """Of a field that is longer to the northeast: in each direction the data follow the model of that direction."""
        rng = np.random.default_rng(5)
        X = np.column_stack([rng.uniform(-95, -93, 1500), rng.uniform(34, 36, 1500)])
        kernel = RotatedMaternOnSphere.at_angle(40.0, 3.0, 10.0, nu=0.5, longitude=-94.0, latitude=35.0)
        kernel = kernel + WhiteKernel(0.01)
        y = np.linalg.cholesky(kernel(X)) @ rng.normal(size=1500)
        model = CompositeGPRegressor(kernel, learning=None).fit(X, y)
        axes = style.figure(size=(6, 4))[1]
        variogram(model, X, y, sphere=True, axes=axes)
        lines = [line for line in axes.lines if "axis" in str(line.get_label())]
        for dots, line in zip(axes.collections, lines, strict=True):
            lags, found = np.asarray(dots.get_offsets()).T
            expected = np.interp(lags, *line.get_data())
            # Pairs within 22.5° of an axis count, which are a little rougher than those along the long one.
            np.testing.assert_allclose(found[lags < 20], expected[lags < 20], rtol=0, atol=0.15)

    @pytest.mark.parametrize("sphere", [False, True])
    def test_is_drawn(self, sphere):
        frame = stations()
        kernel = OnSphere(Matern(300.0)) + WhiteKernel(0.1) if sphere else KNOWN
        model = CompositeGPRegressor(kernel, learning=None).fit(frame[["x", "y"]].to_numpy(), frame.zinc)
        axes = style.figure(size=(6, 4))[1]
        variogram(model, frame[["x", "y"]], frame.zinc, sphere=sphere, unit="mg", axes=axes)
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(labels) == (3 if sphere else 4)
        assert axes.get_ylabel() == "semivariance (mg²)"


class TestScores:
    def test_the_map_is_better_than_simple_methods_on_a_field_of_its_kind(self):
        model, _ = learn_stations(stations(400), target="zinc", kernel=KNOWN)
        scores = pd.DataFrame(*(lambda s: (s.table, s.methods))(score_map(model)))
        for column in ("RMSE, single", "RMSE, gaps", "CRPS, single", "CRPS, gaps"):
            assert scores[column].idxmin() == "this map"
        assert scores.loc["this map", "in 95 %, single"] > 0.8

    def test_simple_methods_are_what_they_say(self):
        frame = pd.DataFrame({"x": np.arange(40.0), "y": np.zeros(40), "zinc": np.arange(40.0) % 7})
        model, _ = learn_stations(frame, target="zinc", kernel=KNOWN)
        table = score_map(model).table
        held = np.sort(np.random.default_rng(0).permutation(40)[:4])
        rest = np.setdiff1d(np.arange(40), held)
        distances = np.abs(held[:, None] - rest[None])
        order = np.argsort(distances, axis=1, kind="stable")[:, :12]
        weights = np.take_along_axis(distances, order, 1) ** -2.0
        expected = (weights * (rest % 7)[order]).sum(1) / weights.sum(1)
        # Ties among the twelve nearest may be taken either way.
        assert table["RMSE, single"][1] == pytest.approx(np.sqrt(np.mean((expected - held % 7) ** 2)), rel=0.05)

    @pytest.mark.parametrize("n", [3, 10, 12, 40])
    def test_a_tenth_of_few_places_is_held_out(self, n):
        frame = stations(n)
        model, _ = learn_stations(frame, target="zinc", kernel=KNOWN)
        held = [_single(n, np.random.default_rng(0)), _gaps(model.X, np.random.default_rng(0))]
        assert [int(each.sum()) for each in held] == [max(1, n // 10)] * 2
        table = score_map(model).table
        assert np.isfinite([table["RMSE, single"], table["RMSE, gaps"]]).all()

    def test_warnings(self):
        frame = stations()
        plain, _ = learn_stations(frame, target="zinc", kernel=KNOWN)
        assert cautions_about(plain) == []
        tilted, _ = learn_stations(frame.assign(zinc=frame.zinc + 3 * frame.x), target="zinc", kernel=KNOWN)
        assert "there is a trend" in " ".join(cautions_about(tilted))
        frame.loc[:139, ["x", "y"]] = frame.loc[:139, ["x", "y"]] / 50
        odd, _ = learn_stations(frame, target="zinc", kernel=KNOWN)
        assert "Places are in clusters" in " ".join(cautions_about(odd))

    def test_the_date_line_makes_no_clusters_and_no_trend(self):
        frame = stations().assign(lon=lambda f: f.x + 175, lat=lambda f: f.y)
        kernel = ConstantKernel(1.0, "fixed") * OnSphere(Matern(200.0, "fixed")) + WhiteKernel(0.05, "fixed")
        for turns in (frame.lon, (frame.lon + 180) % 360 - 180):
            for slope in (0, 3):
                table = frame.assign(lon=turns, zinc=frame.zinc + slope * frame.x)
                model, _ = learn_stations(table, x="lon", y="lat", target="zinc", kernel=kernel)
                found = " ".join(cautions_about(model))
                assert "clusters" not in found
                assert ("there is a trend" in found) == (slope > 0)


class TestValidation:
    """Distances are in length scales, and the model tells how long these are."""

    @pytest.mark.parametrize(
        ("kernel", "sphere", "lengths"),
        [
            (KNOWN, False, {"x": "2", "y": "2"}),
            (Matern([2.0, 0.5]) + WhiteKernel(0.1), False, {"x": "2", "y": "0.5"}),
            (OnSphere(Matern(300.0)) + WhiteKernel(0.1), True, {"any direction": "300 km"}),
            (
                RotatedMatern.at_angle(30.0, 4.0, length_scale=2.0) + WhiteKernel(0.1),
                False,
                {"long axis (30°)": "4", "short axis (120°)": "1"},
            ),
        ],
    )
    def test_length_scales_are_those_of_the_kernel(self, kernel, sphere, lengths):
        frame = stations(30)
        X, y = frame[["x", "y"]].to_numpy(), frame.zinc.to_numpy()
        model = MapModel(
            CompositeGPRegressor(kernel, learning=None).fit(X, y), sphere, False, (), "zinc", "", 30, X, y
        )
        assert model.length_scales == lengths

    def test_a_model_is_validated_and_drawn(self):
        model, _ = learn_stations(stations(60), target="zinc", kernel=KNOWN)
        report = model.validate(random_state=3)
        assert report.table == model.regressor.validate(random_state=3).table
        figure = plot_validation(report, "length scales of 2 km")
        assert figure.axes[0].get_xlabel() == "distance to the nearest data (length scales of 2 km)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    stations(120).to_csv(folder / "zinc.csv", index=False)
    arguments = [folder / "zinc.csv", "--target", "zinc", "--count", "12", "--out", folder / "map", "--report"]
    assert main(["map", *map(str, arguments), "--jobs", "1"]) == 0
    return folder / "map" / "report.html"


class TestPage:
    def test_has_everything_and_refers_to_nothing_outside(self, page):
        text = page.read_text()
        assert len(re.findall(r'<img alt="\w+" src="data:image/png;base64,', text)) == 3
        assert not re.findall(r'(?:src|href)="(?!data:)', text)
        for part in (
            "Nugget",
            "Practical range",
            "inverse distances",
            "nearest neighbor",
            "What to be careful about",
        ):
            assert part in text

    def test_opens_in_a_browser(self, page, tmp_path):
        # The page itself tells, once loaded, whether its pictures are there and how large they are drawn.
        probe = (
            "window.onload = () => {"
            "document.body.dataset.seen = [...document.querySelectorAll('img')].map("
            "i => i.complete && i.naturalWidth > 500 && i.getBoundingClientRect().height > 100).join(' ') }"
        )
        found = dump_probed_page(page.read_text(), probe, tmp_path)
        assert found.split('data-seen="')[1].split('"')[0] == "true true true"
