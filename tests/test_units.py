"""Neither the origin of a column nor its unit changes a prediction, and coefficients are in the user's units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import PolynomialFeatures

from compositegp import Basis, Composite, CompositeGPRegressor, Estimated, Nearest, posterior, prior
from compositegp.composite import in_spreads, partition, segment
from compositegp.means import InUnitsOfData, as_mean, in_units_of

RNG = np.random.default_rng(0)
N = 120
X = RNG.uniform(-1.0, 1.0, (N, 2))
Y = 3.0 + 2.0 * X[:, 0] - X[:, 1] + np.sin(3 * X[:, 0]) * np.cos(4 * X[:, 1]) + 0.1 * RNG.normal(size=N)
Z = RNG.uniform(-1.5, 1.5, (7, 2))
METHODS = ["nearest", "composite", "fitc", "pitc", "grbcm"]

offsets = st.floats(-1e10, 1e10).map(lambda value: float(np.round(value, -3)))
scales = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)


def universal_kriging(kernel, X, y, Z, functions):
    """Textbook universal kriging by dense algebra, in the units given: mean, variance, coefficients."""
    K, k, prior_variance = kernel(X), kernel(X, Z), kernel.k1.diag(Z)
    F, f = functions(X), functions(Z)
    information = F.T @ np.linalg.solve(K, F)
    beta = np.linalg.solve(information, F.T @ np.linalg.solve(K, y))
    mean = f @ beta + k.T @ np.linalg.solve(K, y - F @ beta)
    left = f - k.T @ np.linalg.solve(K, F)
    variance = prior_variance - np.einsum("nm,nm->m", k, np.linalg.solve(K, k))
    return mean, variance + np.einsum("mq,mq->m", left, np.linalg.solve(information, left.T).T), beta


def linear(X):
    return np.concatenate([np.ones((len(X), 1)), X], axis=1)


def fitted(X, y, **options):
    return CompositeGPRegressor(mean="linear", segment_size=40, random_state=0, **options).fit(X, y)


class TestLinearMean:
    @pytest.mark.parametrize("offset", [0.0, 1.7e9, -1e10])
    def test_a_trend_is_found_however_far_from_zero(self, offset):
        times = np.linspace(0.0, 21600.0, 300)[:, None]
        kernel = 0.01 * Matern(600.0, nu=1.5) + WhiteKernel(0.01)
        y = times[:, 0] / 3600 + 0.1 * np.random.default_rng(1).normal(size=300)
        mean, variance, beta = universal_kriging(kernel, times, y, np.array([[43200.0]]), linear)
        uncalibrated = Nearest(calibration=None)
        model = CompositeGPRegressor(kernel, mean="linear", learning=None, prediction=uncalibrated)
        model.fit(times + offset, y)
        found, std = model.predict([[offset + 43200.0]], return_std=True, latent=True)
        assert found == pytest.approx(mean, rel=1e-6)
        assert std**2 == pytest.approx(variance, rel=1e-5)
        assert model.mean_coefficients_[1] == pytest.approx(beta[1], rel=1e-6)
        assert model.mean_coefficients_[0] == pytest.approx(beta[0] - offset * beta[1], rel=1e-6)

    @pytest.mark.parametrize("method", METHODS[:4])
    @pytest.mark.parametrize("unit", [1.0, 31557600.0, 1e-9])
    def test_the_error_of_coefficients_is_the_textbooks_in_every_unit(self, unit, method):
        t = np.linspace(-10.0, 10.0, 200)[:, None]
        y = 0.3 * t[:, 0] + np.random.default_rng(0).normal(size=200)
        mean, variance, beta = universal_kriging(
            0.01 * Matern(0.1, nu=0.5) + WhiteKernel(1.0), t, y, np.array([[90.0]]), linear
        )
        kernel = 0.01 * Matern(0.1 * unit, nu=0.5) + WhiteKernel(1.0)
        model = CompositeGPRegressor(kernel, mean="linear", learning=None, prediction=method, segment_size=500)
        model.fit(t * unit, y)
        found, std = model.predict([[90.0 * unit]], return_std=True, latent=True)
        assert found == pytest.approx(mean, rel=1e-3)
        assert std**2 == pytest.approx(variance, rel=1e-3)
        assert model.mean_coefficients_ * [1.0, unit] == pytest.approx(beta, rel=1e-6)

    def test_coefficients_and_errors_are_in_the_users_units(self):
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        _, _, beta = universal_kriging(kernel, X + 5.0, Y, Z, linear)
        F = linear(X + 5.0)
        covariance = np.linalg.inv(F.T @ np.linalg.solve(kernel(X), F))
        belief = posterior(kernel, X + 5.0, Y, Z, Composite.full(N), mean="linear")
        assert belief.coefficients == pytest.approx(beta, rel=1e-6)
        assert belief.coefficient_covariance == pytest.approx(covariance, rel=1e-6)
        model = CompositeGPRegressor(kernel, mean="linear", learning=None, segment_size=500).fit(X + 5.0, Y)
        assert model.mean_coefficients_ == pytest.approx(beta, rel=1e-8)
        assert model.mean_covariance_ == pytest.approx(covariance, rel=1e-8)

    def test_a_prior_and_an_estimate_mean_the_same_in_units_of_the_data(self):
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        beta, covariance = np.array([1.0, 0.5, -2.0]), np.diag([2.0, 0.3, 0.1])
        K, F, f, k = kernel(X), linear(X), linear(Z), kernel(X, Z)
        total = K + F @ covariance @ F.T
        mixed = k + F @ covariance @ f.T
        mean = f @ beta + mixed.T @ np.linalg.solve(total, Y - F @ beta)
        found = posterior(kernel, X, Y, Z, Composite.full(N), mean=Basis("linear", beta, covariance))
        assert found.mean == pytest.approx(mean, rel=1e-6)
        known = f @ beta + k.T @ np.linalg.solve(K, Y - F @ beta)
        given = posterior(kernel, X, Y, Z, Composite.full(N), mean=Estimated("linear", beta, covariance))
        assert given.mean == pytest.approx(known, rel=1e-6)

    def test_segments_of_a_recursion_share_the_units_that_it_began_with(self):
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        parts = segment(X, 40)
        belief = prior(kernel, Z + 1e6, mean="linear")
        for part in parts:
            belief = belief.update(X[part] + 1e6, Y[part])
        whole = posterior(kernel, X, Y, Z, Composite.marginal(parts), mean="linear")
        assert belief.mean == pytest.approx(whole.mean, rel=1e-4)
        assert belief.coefficients[1:] == pytest.approx(whole.coefficients[1:], rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
class TestInvariance:
    @settings(max_examples=8, deadline=None)
    @given(offset=offsets)
    def test_the_origin_of_the_columns_does_not_matter(self, method, offset):
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        if (
            method == "nearest"
        ):  # rounding decides which of two points at one distance is nearer, and so the calibration
            method = Nearest(calibration=None)
        at_zero = fitted(np.round(X, 3), Y, kernel=kernel, learning=None, prediction=method)
        shifted = fitted(np.round(X, 3) + offset, Y, kernel=kernel, learning=None, prediction=method)
        expected, std = at_zero.predict(Z, return_std=True)
        found, error = shifted.predict(Z + offset, return_std=True)
        # a coordinate at 1e10 is itself rounded to 2e-6
        tolerance = max(1e-6, 1e-15 * abs(offset) * 100)
        assert found == pytest.approx(expected, abs=tolerance)
        assert error == pytest.approx(std, rel=tolerance)

    @settings(max_examples=8, deadline=None)
    @given(first=scales, second=scales)
    def test_the_unit_of_a_column_does_not_matter(self, method, first, second):
        unit = np.array([first, second])
        expected, std = fitted(
            X, Y, kernel=1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1), learning=None, prediction=method
        ).predict(Z, return_std=True)
        found, error = fitted(
            X * unit,
            Y,
            kernel=1.0 * RBF(unit * [1.0, 2.0], (1e-20, 1e20)) + WhiteKernel(0.1),
            learning=None,
            prediction=method,
        ).predict(Z * unit, return_std=True)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert error == pytest.approx(std, rel=1e-6)

    @settings(max_examples=8, deadline=None)
    @given(scale=scales)
    def test_the_unit_of_the_target_does_not_matter(self, method, scale):
        variances = 1.0 * scale**2, 0.1 * scale**2
        wide = (1e-30, 1e30)
        expected, std = fitted(
            X, Y, kernel=1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1), learning=None, prediction=method
        ).predict(Z, return_std=True)
        kernel = ConstantKernel(variances[0], wide) * RBF([1.0, 2.0]) + WhiteKernel(variances[1], wide)
        found, error = fitted(X, Y * scale, kernel=kernel, learning=None, prediction=method).predict(
            Z, return_std=True
        )
        assert found / scale == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert error / scale == pytest.approx(std, rel=1e-6)


LEARNED = [
    {"random_state": 0},
    {"kernel": 1.0 * Matern([1.0, 1.0], nu=1.5) + WhiteKernel(), "mean": "linear", "random_state": 0},
]


@pytest.fixture(scope="module")
def learned_as_it_is():
    models = [CompositeGPRegressor(**options).fit(np.round(X, 3), Y) for options in LEARNED]
    return [model.predict(Z, return_std=True) for model in models]


@pytest.mark.parametrize(("offset", "unit"), [(1.7e9, 1.0), (0.0, 1e6), (0.0, 1e-9), (-4e5, 3600.0)])
@pytest.mark.parametrize("options", LEARNED)
def test_what_is_learned_does_not_depend_on_origin_and_unit(offset, unit, options, learned_as_it_is):
    points = np.round(X, 3)
    expected, std = learned_as_it_is[LEARNED.index(options)]
    model = CompositeGPRegressor(**options).fit(points * unit + offset, Y)
    found, error = model.predict(Z * unit + offset, return_std=True)
    assert found == pytest.approx(expected, abs=2e-3)
    assert error == pytest.approx(std, rel=5e-3)


@pytest.mark.parametrize("change", ["origin", "order"])
def test_few_rows_choose_and_learn_alike_from_any_origin_and_in_any_order(change):
    """Kernels that are nearly as likely as each other: chance or rounding must not decide between them."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        points, Z = (np.round(rng.uniform(-3, 3, size=(count, 4)) * 2**10) / 2**10 for count in (58, 9))
        y = np.sin(points).sum(axis=1) + 0.3 * rng.normal(size=58)
        order = rng.permutation(58) if change == "order" else np.arange(58)
        origin = 2.0 ** rng.integers(0, 34, size=4) if change == "origin" else 0.0  # it rounds no input
        one = CompositeGPRegressor(mean="linear").fit(points, y)
        other = CompositeGPRegressor(mean="linear").fit(points[order] + origin, y[order])
        assert one.kernel_comparison_.best.name == other.kernel_comparison_.best.name
        (expected, std), (found, error) = (
            model.predict(at, return_std=True) for model, at in ((one, Z), (other, Z + origin))
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.01 * std.min())
        np.testing.assert_allclose(error, std, rtol=0.01)


def test_equal_spreads_split_alike_from_every_origin():
    points = np.round(np.random.default_rng(0).uniform(-3, 3, size=(64, 4)) * 2**10) / 2**10
    expected = partition(in_spreads(points), 16)
    for origin in 2.0 ** np.array([[0, 33, 5, 20], [33, 30, 33, 0], [12, 1, 30, 33]]):
        found = partition(in_spreads(points + origin), 16)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_equal_spreads_split_alike_in_every_unit():
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 20), np.linspace(0, 1, 20)), axis=-1).reshape(-1, 2)
    expected = segment(grid, 50)
    for unit in (3.0, 1e6, 1 / 7, 1e-9):
        assert all(
            np.array_equal(one, other) for one, other in zip(segment(grid * unit, 50), expected, strict=True)
        )


class TestUnits:
    @given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), offsets, scales)
    def test_coefficients_go_to_units_of_the_data_and_back(self, beta, offset, scale):
        mean = in_units_of(as_mean("linear"), X * scale + offset)
        units = mean.functions
        assert isinstance(units, InUnitsOfData)
        assert units.map @ units.inverse_map == pytest.approx(np.eye(3), abs=1e-6 * (1 + abs(offset) / scale))
        working = units.inverse_map @ np.asarray(beta)
        values = linear(X * scale + offset) @ np.asarray(beta)
        size = np.abs(linear(X * scale + offset)) @ np.abs(beta) + 1e-300
        assert np.abs(mean.columns(X * scale + offset) @ working - values).max() <= 1e-9 * size.max()

    def test_columns_in_units_of_the_data_have_mean_zero_and_spread_one(self):
        columns = in_units_of(as_mean("linear"), 1e3 * X + 1e9).columns(1e3 * X + 1e9)
        assert columns[:, 0] == pytest.approx(1.0)
        assert columns[:, 1:].mean(axis=0) == pytest.approx(0.0, abs=1e-8)
        assert columns[:, 1:].std(axis=0) == pytest.approx(1.0)

    def test_a_column_that_does_not_vary_leaves_the_level_to_the_constant(self):
        flat = np.concatenate([X[:, :1], np.full((N, 1), 7.0)], axis=1)
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        model = CompositeGPRegressor(kernel, mean="linear", learning=None).fit(flat, Y)
        assert model.mean_coefficients_[2] == pytest.approx(0.0, abs=1e-12)
        assert np.isfinite(model.predict(flat)).all()

    def test_functions_without_a_constant_are_scaled_only(self):
        units = in_units_of(as_mean(Basis(lambda X: 1e6 * X)), X).functions
        assert isinstance(units, InUnitsOfData)
        assert units.constant == -1
        assert not np.asarray(units.centers).any()

    def test_a_transformers_functions_have_units_too(self):
        far = X + 1000.0
        kernel = 1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
        near = CompositeGPRegressor(kernel, mean=PolynomialFeatures(2), learning=None).fit(X, Y).predict(Z)
        found = (
            CompositeGPRegressor(kernel, mean=PolynomialFeatures(2), learning=None).fit(far, Y).predict(Z + 1000.0)
        )
        assert found == pytest.approx(near, abs=1e-3)


def test_a_model_with_units_is_saved_and_read(tmp_path):
    model = fitted(X + 1e9, Y, kernel=1.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1), learning=None)
    model.save(tmp_path / "model.cgp")
    again = CompositeGPRegressor.load(tmp_path / "model.cgp")
    assert np.array_equal(again.predict(Z + 1e9), model.predict(Z + 1e9))
    assert np.array_equal(again.mean_coefficients_, model.mean_coefficients_)
