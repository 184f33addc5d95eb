"""Calibration: the prefix identity, the fit, what it does on simulated data, and where it is kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Estimated, Nearest, nearest
from compositegp.composite import Composite, Observations, factor_stacks
from compositegp.means import NormalEquations, fit_random_effects
from compositegp.posteriors import NearestPredictor, Neighbors, Precision, predict_prefixes
from compositegp.posteriors.local_kriging import _Sharing
from compositegp.prediction.neighborhood_tuning import NeighborCurve, exact_held_out_predictions
from compositegp.predictive import Calibration
from compositegp.predictive.two_piece import two_piece_log_density
from compositegp.simulate import stationary_field

KERNEL = ConstantKernel(1.2) * Matern([1.0, 1.5], nu=1.5) + WhiteKernel(0.05)
LEVELS = [0.5, 0.8, 0.95, 0.99]


@pytest.mark.parametrize("mean", [None, "linear", Estimated("constant", [0.3], [[0.01]])], ids=str)
def test_every_prefix_of_one_factorisation_is_a_prediction(rng, mean):
    X = rng.uniform(0, 5, size=(300, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    data = Observations.checked(KERNEL, X, y, mean=mean, noise_variance=None)
    rows = np.arange(5)
    sets = NearestPredictor(data).around(rows, 0, Neighbors(60), None)
    for skip, found in zip((0, 8, 30), predict_prefixes(data, sets, rows, (0, 8, 30)), strict=True):
        for row in rows:
            kept = sets[row][: 60 - skip]  # the farthest first: the nearest are left out
            alone = nearest(KERNEL, X[kept], y[kept], X[row : row + 1], n_neighbors=60, mean=mean)
            assert found.mean[row] == pytest.approx(alone.mean[0], abs=1e-9)
            assert found.variance[row] == pytest.approx(alone.variance[0], abs=1e-9)


def test_held_out_sets_are_the_nearest_others_by_brute_force(rng):
    X = np.concatenate([rng.uniform(0, 5, size=(80, 2)), np.zeros((3, 2))])  # with duplicates
    data = Observations.checked(KERNEL, X, np.zeros(83), mean=None, noise_variance=None)
    rows = np.array([0, 7, 80, 81, 82])
    scaled = X / [1.0, 1.5]
    for skip, neighbors in ((0, Neighbors(20)), (5, Neighbors(20)), (0, Neighbors(6, 4)), (3, Neighbors(6, 4))):
        sets = NearestPredictor(data).around(rows, skip, neighbors, None)
        for row, found in zip(rows, sets, strict=True):
            assert row not in found
            distances = np.sqrt(((scaled - scaled[row]) ** 2).sum(axis=1))
            expected = np.sort(np.delete(distances, row))[skip + neighbors.ranks(82 - skip)]
            np.testing.assert_allclose(distances[found][::-1], expected, rtol=1e-12, atol=1e-12)


def test_a_neighborhood_shared_by_a_group_is_close_to_that_of_each_point(rng):
    X = rng.uniform(0, 5, size=(900, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] * rng.normal(size=900)
    data = Observations.checked(KERNEL, X, y, mean=None, noise_variance=None)
    Z = rng.uniform(1, 1.3, size=(16, 2))
    search = NearestPredictor(data)
    together, alone = (search.predict_surrounded(Z, Neighbors(256), size).surroundings for size in (16, 1))
    np.testing.assert_allclose(together.scales, alone.scales, rtol=0, atol=0.35)
    np.testing.assert_allclose(together.log_variance, alone.log_variance, rtol=0, atol=0.1)


def test_student_t_is_the_integral_over_an_unknown_scale():
    """y ~ N(0, s) with s ~ scaled inverse χ²(ν) is Student's t with ν degrees of freedom."""
    nu, y = 5.0, 1.7
    prior = stats.invgamma(nu / 2, scale=nu / 2)
    mixed, _ = integrate.quad(lambda s: stats.norm.pdf(y, scale=np.sqrt(s)) * prior.pdf(s), 0, np.inf)
    assert mixed == pytest.approx(stats.t(nu).pdf(y), rel=1e-6)


class TestFit:
    @pytest.fixture
    def sample(self, rng):
        m = 4000
        distance = np.repeat([0, 8, 64, 512], m // 4)
        delta = 0.5 * np.log1p(distance) + 0.2 * rng.normal(size=m)
        rho = -2 + 0.5 * delta + 0.3 * rng.normal(size=m)
        local = rng.normal(size=m)
        scales = local[:, None] + 0.2 * rng.normal(size=(m, 3))
        return distance, delta, rho, local, scales

    def test_recovers_scale_and_tails(self, sample, rng):
        distance, delta, rho, local, scales = sample
        z = np.exp(0.8 * local - 0.3) * rng.standard_t(4, size=len(local))
        found = Calibration.fit(z, rho, delta, scales, distance)
        factors, df = found.apply(rho, delta, scales[:, None])
        np.testing.assert_allclose(np.log(factors[:, 0]).mean(), (0.8 * local - 0.3).mean(), rtol=0, atol=0.1)
        assert np.corrcoef(np.log(factors[:, 0]), local)[0, 1] > 0.95
        assert 2.5 < np.median(df) < 6
        inside = np.abs(z) < factors[:, 0] * stats.t(df).ppf(0.9)
        assert inside.mean() == pytest.approx(0.8, abs=0.02)
        assert "nats" in repr(found)

    def test_slopes_fade_with_what_the_data_explain_where_nothing_is_known_of_them(self, rng):
        """Far points that hardly count: their slopes minimize the penalty, 4 (b₂ − r b₁)² + (b₁² + b₂²)/2 in b₂."""
        n = 4000
        scales = rng.normal(0, 0.5, size=(2 * n, 3))
        far = np.arange(2 * n) >= n
        rho, delta = np.where(far, -0.1, -2.0), np.where(far, 2.0, 0.0) + rng.normal(0, 1e-3, 2 * n)
        errors = np.exp(scales @ [0.2, 0.5, 0.3]) * rng.normal(size=2 * n)
        weights = np.where(far, 1e-9, 1.0)
        found = Calibration.fit(errors, rho, delta, scales, far.astype(int), weights=weights)
        r = (1 - np.exp(-0.1)) / (1 - np.exp(-2.0))
        np.testing.assert_allclose(found.slopes[:, 0], [0.2, 0.5, 0.3], rtol=0, atol=0.05)
        np.testing.assert_allclose(found.slopes[:, 1], found.slopes[:, 0] * 4 * r / 4.5, rtol=0.02)

    def test_keeps_the_gaussian_where_it_is_right(self, sample, rng):
        distance, delta, rho, _, scales = sample
        found = Calibration.fit(rng.normal(size=len(rho)), rho, delta, scales, distance)
        assert found.is_gaussian
        factors, df = found.apply(rho, delta, scales[:, None])
        assert (factors == 1).all()
        assert np.isinf(df).all()
        assert "none needed" in repr(found)

    def test_without_heavy_tails_errors_stay_normal(self, sample, rng):
        distance, delta, rho, local, scales = sample
        z = np.exp(local) * rng.standard_t(4, size=len(local))
        found = Calibration.fit(z, rho, delta, scales, distance, heavy_tails=False)
        assert not found.is_gaussian
        assert np.isinf(found.apply(rho, delta, scales[:, None])[1]).all()


def rough_and_smooth(rng, n=2500):
    """A series whose noise and roughness change from one half to the other, with heavy tails."""
    X = np.sort(rng.uniform(0, 100, size=(n, 1)), axis=0)
    size = np.where(X[:, 0] < 50, 0.05, 0.6)
    return X, np.sin(X[:, 0]) + size * rng.standard_t(3, size=n)


class TestOfTheEstimator:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        rng = np.random.default_rng(0)
        X, y = rough_and_smooth(rng)
        test = rng.uniform(size=len(X)) < 0.3
        kernel = ConstantKernel(1.0) * Matern(2.0, nu=1.5) + WhiteKernel(0.3)
        model = CompositeGPRegressor(kernel, prediction=Nearest(128)).fit(X[~test], y[~test])
        return model, X[test], y[test]

    def test_intervals_cover_where_the_gaussian_does_not(self, fitted):
        model, X, y = fitted
        found = model.predict_distribution(X)
        np.testing.assert_allclose(found.coverage(y, LEVELS), LEVELS, rtol=0, atol=0.045)
        plain = CompositeGPRegressor(model.kernel_, learning=None, prediction=Nearest(128, calibration=None))
        gaussian = plain.fit(model._model.X, model._model.y).predict_distribution(X)
        assert np.abs(gaussian.coverage(y, 0.5) - 0.5) > 0.15
        assert found.log_score(y).mean() < gaussian.log_score(y).mean() - 0.2
        np.testing.assert_allclose(found.mean, gaussian.mean, rtol=0, atol=0.05)

    def test_it_is_kept_in_files_and_through_updates(self, fitted, tmp_path):
        model, X, _ = fitted
        model.save(tmp_path / "m.cgp")
        again = CompositeGPRegressor.load(tmp_path / "m.cgp")
        assert repr(again.calibration_) == repr(model.calibration_)
        np.testing.assert_array_equal(again.predict_interval(X[:20], 0.8), model.predict_interval(X[:20], 0.8))
        again.set_params(learning=None).partial_fit([[200.0]], [0.0])
        assert repr(again.calibration_) == repr(model.calibration_)

    def test_joint_draws_are_of_a_multivariate_t(self, fitted):
        model, X, _ = fitted
        found = model.predict_distribution(X[:3], joint=True)
        mean, covariance = found.mean_and_covariance()
        draws = found.sample(40_000, random_state=0)
        np.testing.assert_allclose(draws.mean(axis=1), mean, rtol=0, atol=0.02)
        spread = np.sqrt(np.diagonal(covariance))
        # Quantiles, not moments: with few degrees of freedom a sample covariance hardly converges.
        for point in range(3):
            inside = np.mean(np.abs(draws[point] - mean[point]) < found.scale[point])
            assert inside == pytest.approx(2 * stats.t(found.family.df[0]).cdf(1) - 1, abs=0.01)
        assert (spread > found.scale).all()

    def test_validation_says_how_good_it_is_at_each_distance(self, fitted):
        model, X, y = fitted
        report = model.validate()
        table = report.table
        assert table["skipped"] == sorted(table["skipped"])
        assert (np.diff(table["distance"]) > 0).all()
        assert table["RMSE"][-1] > table["RMSE"][0]
        errors = np.sqrt(np.mean((model.predict(X) - y) ** 2))
        assert table["RMSE"][0] == pytest.approx(errors, rel=0.25)
        np.testing.assert_allclose(report.reliability(LEVELS), LEVELS, rtol=0, atol=0.04)
        assert "without" in repr(report)

    def test_a_transformed_target_keeps_its_mean(self):
        rng = np.random.default_rng(1)
        X, z = rough_and_smooth(rng, 1200)
        model = CompositeGPRegressor(target_transform="log", prediction=Nearest(64)).fit(X, np.exp(z))
        found = model.predict_distribution(X[:50])
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.std).all()
        assert type(found.family).__name__ == "Normal"


def test_simulated_fields_stay_gaussian():
    kernel = ConstantKernel(1.0) * Matern(6.0, nu=0.5) + WhiteKernel(0.05)
    points = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0), indexing="ij"), axis=-1).reshape(-1, 2)
    for seed in range(3):
        values = stationary_field(kernel, (60, 60), random_state=seed)[0].ravel()
        model = CompositeGPRegressor(kernel, learning=None, prediction=Nearest(64)).fit(points, values)
        assert model.calibration_.is_gaussian


def test_simulated_tables_stay_gaussian():
    kernel = ConstantKernel(1.0) * Matern(1.5, nu=1.5) + WhiteKernel(0.1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 2, size=(600, 4))
        y = np.linalg.cholesky(kernel(X)) @ rng.normal(size=600)
        model = CompositeGPRegressor(kernel, learning=None, prediction=Nearest(64)).fit(X, y)
        assert model.calibration_.is_gaussian


def test_the_number_of_neighbors_is_the_data_s_business():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 400, size=(4000, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=4000)
    markov = CompositeGPRegressor(Matern(1.0, nu=0.5) + WhiteKernel(1e-4), learning=None).fit(X, y)
    assert markov.neighbor_curve_.smallest() == 64  # a Markov process hardly looks beyond its nearest
    assert markov.neighbor_curve_.skipped.tolist() == [0, 64, 512, 2048]  # in few columns gaps may be wide
    X = rng.uniform(size=(3000, 6))
    smooth = CompositeGPRegressor(Matern(np.full(6, 3.0), nu=2.5) + WhiteKernel(0.1), learning=None)
    smooth.fit(X, X.sum(axis=1) + 0.3 * rng.normal(size=3000))
    assert smooth.neighbor_curve_.smallest() >= 512
    assert smooth.neighbor_curve_.skipped.tolist() == [0, 64]
    assert (np.diff(smooth.neighbor_curve_.loss, axis=1) <= 1e-9).all()  # more neighbors never lose under the model


def test_more_neighbors_than_usual_are_for_where_test_points_will_be():
    numbers, loss = np.array([256, 512, 1024]), np.array([[0.02, 0.01, 0.0], [0.09, 0.03, 0.0]])
    table = NeighborCurve(numbers, np.array([0, 64]), loss)  # whose new rows are as near to others as these are
    assert table.smallest() == 512
    field = NeighborCurve(numbers, np.array([0, 512]), loss)  # with gaps to fill
    assert field.smallest() == 1024
    assert NeighborCurve(numbers, np.array([0, 64]), 3 * loss).smallest() == 1024


def test_between_the_numbers_that_were_tried_the_loss_is_a_straight_line():
    numbers, skipped = np.array([64, 128, 256, 512, 1024]), np.array([0, 512])
    loss = np.array([[0.0, 0.0, 0.0, 0.0, 0.0], [0.006, 0.003, 0.001, 0.0002, 0.0]])
    found = NeighborCurve(numbers, skipped, loss).smallest()
    assert found == 416  # 256 + 256 · (0.001 − 0.0005) / (0.001 − 0.0002), a multiple of 16
    assert np.interp(found, numbers, loss.max(axis=0)) <= 0.0005 < np.interp(found - 16, numbers, loss.max(axis=0))
    assert NeighborCurve(numbers, skipped, loss / 100).smallest() == 64
    flat = np.where(numbers < 256, 0.01, 0.0)[None]
    assert 128 < NeighborCurve(numbers, skipped[:1], flat).smallest() <= 256


class TestAMeanThatVaries:
    def test_em_recovers_the_spread_of_simulated_coefficients(self, rng):
        q, blocks = 2, 3000
        spread = np.array([[2.0, 0.6], [0.6, 0.5]])
        beta = np.array([1.0, -3.0])
        roots = rng.normal(size=(blocks, 6, q))
        information = np.swapaxes(roots, 1, 2) @ roots
        own = rng.multivariate_normal(beta, spread, size=blocks)
        noise = np.einsum("bij,bj->bi", np.swapaxes(roots, 1, 2), rng.normal(size=(blocks, 6)))
        moment = (np.einsum("bij,bj->bi", information, own) + noise)[..., None]
        found_beta, found_spread = fit_random_effects(NormalEquations(information, moment))
        np.testing.assert_allclose(found_beta[:, 0], beta, rtol=0, atol=0.1)
        np.testing.assert_allclose(found_spread, spread, rtol=0, atol=0.15)

    def test_units_do_not_matter(self, rng):
        roots = rng.normal(size=(50, 9, 2))
        information = np.swapaxes(roots, 1, 2) @ roots
        moment = rng.normal(size=(50, 2, 1)) * 4
        units = np.array([1e6, 1e-7])
        beta, spread = fit_random_effects(NormalEquations(information, moment))
        other = NormalEquations(information * np.outer(units, units), moment * units[:, None])
        other_beta, other_spread = fit_random_effects(other)
        np.testing.assert_allclose(other_beta * units[:, None], beta, rtol=1e-6, atol=0)
        np.testing.assert_allclose(other_spread * np.outer(units, units), spread, rtol=1e-6, atol=0)

    def test_a_trend_that_is_the_same_everywhere_stays_global(self, rng):
        X = rng.uniform(0, 40, size=(2000, 2))
        y = 3 + X @ [0.5, -0.2] + 0.3 * rng.normal(size=2000)
        kernel = ConstantKernel(0.1) * Matern(1.0, nu=1.5) + WhiteKernel(0.1)
        model = CompositeGPRegressor(kernel, learning=None, mean="linear", prediction=Nearest(128)).fit(X, y)
        assert model._model.tuning.spread is None

    def test_a_trend_that_changes_is_followed(self, rng):
        X = rng.uniform(0, 40, size=(2500, 1))
        y = np.where(X[:, 0] < 20, 2 * X[:, 0], 80 - 2 * X[:, 0]) + 0.3 * rng.normal(size=2500)
        kernel = ConstantKernel(0.05) * Matern(0.5, nu=1.5) + WhiteKernel(0.1)
        model = CompositeGPRegressor(kernel, learning=None, mean="linear", prediction=Nearest(128)).fit(X, y)
        assert model._model.tuning.spread is not None
        inside = np.array([[5.0], [35.0]])
        np.testing.assert_allclose(model.predict(inside), [10.0, 10.0], rtol=0, atol=0.5)


@pytest.mark.parametrize("mean", [None, "linear", Estimated("constant", [0.3], [[0.01]])], ids=str)
def test_the_inverse_of_one_covariance_leaves_out_any_number_of_neighbors(rng, mean):
    """Against the same predictions from a factorisation of their own, and a neighborhood of all the data."""
    X = rng.uniform(0, 5, size=(200, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    noise = rng.uniform(0.01, 0.1, size=200)
    data = Observations.checked(KERNEL, X, y, mean=mean, noise_variance=noise)
    (factored,) = factor_stacks(data, Composite.full(200))
    precision = Precision.of(data, factored)
    rows, search = np.arange(5), NearestPredictor(data)
    sets = search.around(rows, 0, Neighbors(199), None)
    if (
        mean != "linear"
    ):  # whose coefficients are learned from all the data by the one, without the point by the other
        found = precision.without(rows, sets[:, ::-1], (0, 8, 30))
        for one, other in zip(found, predict_prefixes(data, sets, rows, (0, 8, 30)), strict=True):
            np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-9)
            np.testing.assert_allclose(one.variance, other.variance, rtol=0, atol=1e-9)
            np.testing.assert_allclose(one.surroundings.scales, other.surroundings.scales, rtol=0, atol=1e-9)
    Z = rng.uniform(0, 5, size=(4, 2))
    around = search.predict_surrounded(Z, Neighbors(200), 1).surroundings
    np.testing.assert_allclose(
        precision.around(search.nearest(Z, 128, None)).scales, around.scales, rtol=0, atol=1e-9
    )


def test_errors_of_the_exact_gaussian_process_are_calibrated(rng):
    X, y = rough_and_smooth(rng, 1600)
    test = rng.uniform(size=len(X)) < 0.3
    kernel = ConstantKernel(1.0) * Matern(2.0, nu=1.5) + WhiteKernel(0.3)
    model = CompositeGPRegressor(kernel).fit(X[~test], y[~test])
    found = model.predict_distribution(X[test])
    np.testing.assert_allclose(found.coverage(y[test], LEVELS), LEVELS, rtol=0, atol=0.06)
    np.testing.assert_allclose(model.predict(X[test]), found.mean, rtol=0, atol=1e-9)  # with no variance on the way


@pytest.mark.parametrize("n", [120, 600, 3000])
@pytest.mark.filterwarnings("ignore:There is a constant target")
def test_a_constant_target_needs_no_calibration(n, rng):
    model = CompositeGPRegressor().fit(rng.uniform(0, 10, size=(n, 1)), np.ones(n))
    assert np.isfinite(model.predict([[1.0], [50.0]], return_std=True)).all()
    assert model.calibration_.is_gaussian


def test_in_many_columns_neighbors_are_shared_where_that_costs_little(rng):
    X = rng.uniform(size=(3000, 6))
    y = np.sin(3 * X).sum(axis=1) + 0.3 * rng.normal(size=3000)
    data = Observations.checked(
        Matern(np.full(6, 2.0), nu=2.5) + WhiteKernel(0.1), X, y, mean=None, noise_variance=None
    )
    search = NearestPredictor(data)
    near = rng.uniform(0.45, 0.55, size=(300, 6))
    assert search.shared(near, 128)[0] > 1
    assert search.shared(near[:50], 128) == (1, 128)  # too few to try
    rough = NearestPredictor(data.with_kernel(Matern(np.full(6, 0.05), nu=0.5) + WhiteKernel(1e-6)))
    assert rough.shared(X[:400], 32) == (1, 32)
    alone, shared = (search.predict(near, Neighbors(128), size) for size in (1, None))
    np.testing.assert_allclose(shared.mean, alone.mean, rtol=0, atol=0.05)


def test_a_test_point_whose_own_neighbors_its_group_lacks_is_predicted_alone(rng):
    X = rng.normal(size=(2000, 10))
    y = X[:, 0] + 0.01 * rng.normal(size=2000)
    data = Observations.checked(Matern(np.full(10, 3.0), nu=1.5), X, y, mean=None, noise_variance=1e-4)
    search = NearestPredictor(data)
    Z = X[:300] + 1e-3  # a group of these lies far apart, and each has a neighbor of its own
    few = Neighbors(64)
    alone, shared = (search._predict(Z, few, _Sharing(size, few, np.inf), None, False) for size in (1, 8))
    np.testing.assert_allclose(shared.mean, alone.mean, rtol=0, atol=0.02)


def test_a_group_of_many_columns_is_predicted_from_the_observations_nearest_to_it(rng):
    X, Z = rng.uniform(size=(600, 6)), rng.uniform(size=(40, 6))
    y = np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=600)
    kernel = Matern(np.full(6, 1.5), nu=2.5)
    data = Observations.checked(kernel + WhiteKernel(0.01), X, y, mean=None, noise_variance=None)
    sharing = _Sharing(8, Neighbors(90), np.inf)
    search = NearestPredictor(data)
    found = search._predict(Z, Neighbors(60), sharing, None, False)
    rows = []
    for tasks in search._tasks(Z, Neighbors(60), sharing, None):
        for own, sets in tasks:
            assert sets.shape[1] == (60 if own.shape[1] == 1 else 90)
            for group, near in zip(own, sets, strict=True):
                K, k = kernel(X[near]) + 0.01 * np.eye(len(near)), kernel(X[near], Z[group])
                np.testing.assert_allclose(found.mean[group], k.T @ np.linalg.solve(K, y[near]), rtol=0, atol=1e-8)
                left = 1 - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
                np.testing.assert_allclose(found.variance[group], left, rtol=0, atol=1e-8)
                rows += list(group)
    assert sorted(rows) == list(range(40))


def test_thinned_predictions_are_some_of_the_others(rng):
    """At larger distances there are fewer points; near the data there are as many."""
    n = 400
    X = rng.uniform(size=(n, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=n)
    data = Observations.checked(KERNEL, X, y, mean=None, noise_variance=None)
    (factored,) = factor_stacks(data, Composite.full(n))
    precision, search = Precision.of(data, factored), NearestPredictor(data)
    whole, thinned = (exact_held_out_predictions(precision, search, None, thinned=thin) for thin in (False, True))
    assert [part.n_skipped for part in thinned] == [part.n_skipped for part in whole]
    for some, every in zip(thinned, whole, strict=True):
        assert len(some.rows) <= max(32, 8 * n // max(some.n_skipped, 1))
        assert set(some.rows) <= set(every.rows)
        where = np.searchsorted(every.rows, some.rows)
        np.testing.assert_allclose(some.predicted.mean, every.predicted.mean[where], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(some.predicted.variance, every.predicted.variance[where], rtol=1e-7, atol=1e-12)
    assert len(thinned[0].rows) == len(whole[0].rows)


@pytest.mark.parametrize(("log_df", "is_right"), [(2.0, True), (np.inf, True), (10**30, True), (10**400, False)])
def test_whole_numbers_of_any_size_in_a_file_are_numbers_or_refused(log_df, is_right):
    """A file may say 1000…0 where a fit wrote 2.5: NumPy has no answer to whether that is infinite."""
    found = Calibration(np.zeros(1), np.ones(1), np.zeros((3, 1)), 0.0, log_df, 0.0, np.array([-1.0, 1.0, 0.0]))
    if not is_right:
        with pytest.raises(ValueError, match="double precision"):
            found.check()
        return
    found.check()
    factors, df = found.apply(np.zeros(2), np.zeros(2), np.zeros((2, 1, 3)))
    np.testing.assert_allclose(factors, np.e)
    np.testing.assert_allclose(df, np.exp(2.0) if log_df == 2.0 else np.inf)
    assert not found.is_gaussian
    for name in ("trend", "gain", "log_skew", "log_df"):  # single numbers
        for wrong in ([1.0, 2.0], [], np.ones(2), "1"):
            with pytest.raises(ValueError, match="must be finite"):
                replace(found, **{name: wrong}).check()


class TestTargetsWithOneValueInPlenty:
    """A density is as high as it likes beside a value that many targets have, and its intervals may miss it."""

    def test_intervals_hold_the_zeros(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, size=(3000, 2))
        y = np.where(rng.uniform(size=3000) < 0.8, 0.0, rng.exponential(size=3000))
        model = CompositeGPRegressor().fit(X[:1000], y[:1000])
        found = model.predict_distribution(X[1000:])
        assert found.coverage(y[1000:], 0.8) == pytest.approx(0.8, abs=0.12)  # it was 0.1
        assert found.coverage(y[1000:], 0.95) == pytest.approx(0.95, abs=0.05)

    def test_errors_far_beyond_their_scale_give_numbers(self):
        errors = np.array([1e-300, 1.0, 1e200, -1e250])
        found = two_piece_log_density(errors, np.zeros(4), np.full(4, np.log(2.1)), 0.4)
        assert all(np.isfinite(one).all() for one in found)
        step = 1e-6
        ahead, back = (two_piece_log_density(errors[:2], at, np.full(2, 1.0), 0.4)[0] for at in (step, -step))
        slope = two_piece_log_density(errors[:2], np.zeros(2), np.full(2, 1.0), 0.4)[1]
        np.testing.assert_allclose((ahead - back) / (2 * step), slope, rtol=1e-6)


def test_slopes_that_a_file_cannot_have_are_refused():
    found = Calibration.gaussian()
    found.check()
    with pytest.raises(ValueError, match="must be at most 1e"):
        replace(found, slopes=np.array([[0.0], [0.0], [1e308]])).check()
    large = replace(found, slopes=np.full((3, 1), 1e5))
    factors, _ = large.apply(
        np.zeros(4), np.zeros(4), np.array([-9.0, 0.0, 2.0, 9.0])[:, None, None] * np.ones((1, 1, 3))
    )
    assert np.isfinite(factors).all()
    assert (factors > 0).all()


@pytest.mark.parametrize("asked", [(), (8,), (8, 32), (128,)])
def test_only_observations_that_a_calibration_asks_about_are_read(rng, asked):
    """Errors and variances of the nearest do not depend on how many farther ones are looked at."""
    X = rng.uniform(0, 5, size=(400, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, size=400)
    data = Observations.checked(KERNEL, X, y, mean="constant", noise_variance=None)
    precision = Precision.of(data, next(iter(factor_stacks(data, Composite.full(400)))))
    near = NearestPredictor(data).nearest(rng.uniform(0, 5, size=(20, 2)), 128, None)
    slopes = np.array([[0.3] if window in asked else [0.0] for window in (8, 32, 128)])
    told = replace(Calibration.gaussian(), slopes=slopes)
    assert told.reach == max(32, *asked, 0)
    whole, found = (precision.around(some) for some in (near, near[:, : told.reach]))
    np.testing.assert_allclose(found.log_variance, whole.log_variance, rtol=1e-10)
    factors = [told.apply(np.zeros(20), around.log_variance, around.scales)[0] for around in (whole, found)]
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-9)
    assert (factors[0] != 1).all() == bool(asked)


@pytest.mark.parametrize("n", [150, 700])
def test_the_order_of_rows_does_not_matter(rng, n):
    """Of few data some are chosen to be predicted far from the others: the same ones in any order."""
    X = np.round(rng.uniform(0, 10, size=(n, 2)), 2)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_t(2.5, size=n)
    order, Z = rng.permutation(n), rng.uniform(0, 10, size=(30, 2))
    kernel = 1.0 * Matern(2.0, nu=1.5) + WhiteKernel(0.01)
    one, other = (
        CompositeGPRegressor(kernel, learning=None).fit(X[rows], y[rows]) for rows in (np.arange(n), order)
    )
    assert not one.calibration_.is_gaussian
    np.testing.assert_array_equal(one.calibration_.level, other.calibration_.level)
    for found, again in zip(*(model.predict(Z, return_std=True) for model in (one, other)), strict=True):
        np.testing.assert_array_equal(found, again)  # to the last digit: the data are taken in an order of places
    for found, again in zip(*(model.validate().parts for model in (one, other)), strict=True):
        np.testing.assert_array_equal(np.sort(found.y), np.sort(again.y))
        np.testing.assert_array_equal(np.sort(found.predicted.std), np.sort(again.predicted.std))
    alone, again = (model.predict_leave_one_out() for model in (one, other))
    np.testing.assert_array_equal(alone.mean[order], again.mean)
    np.testing.assert_array_equal(alone.std[order], again.std)
    gross = [model._model.tuning.gross for model in (one, other)]
    np.testing.assert_array_equal(gross[0], order[gross[1]])
