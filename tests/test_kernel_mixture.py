"""Predictions of several kernels mixed: weights, moments, draws and files, against each kernel by itself."""

from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest
from compositegp.composite import Observations
from compositegp.functionals import OnFunctionals, at, average, derivative
from compositegp.learning import CompositeLikelihood, LocalSegments, choose_kernel, learn_compared
from compositegp.posteriors import NearestPredictor, Neighbors
from compositegp.prediction import KernelShare
from compositegp.prediction.kernel_mixture import learn_shares
from compositegp.prediction.kernel_shares import stacking_weights
from compositegp.prediction.neighborhood_tuning import calibrate_by, gap_predictions, gap_sets
from compositegp.simulate import stationary_field
from compositegp.spatial import fill, learn_raster

FIXED = {"length_scale_bounds": "fixed"}
ROUGH = ConstantKernel(1.0, "fixed") * Matern(8.0, nu=0.5, **FIXED) + WhiteKernel(0.04, "fixed")
SMOOTH = ConstantKernel(2.0, "fixed") * Matern(5.0, nu=1.5, **FIXED) + WhiteKernel(0.25, "fixed")
FREE = ConstantKernel(1.0) * Matern(8.0, nu=0.5) + WhiteKernel(0.01)
WEIGHTS = np.array([0.3, 0.7])


class TestWeights:
    @pytest.mark.parametrize("seed", range(5))
    def test_they_maximize_the_log_score_of_the_mixture(self, seed):
        rng = np.random.default_rng(seed)
        y = rng.standard_t(4, size=400)
        centers, scales = rng.normal(size=(3, 1)), rng.uniform(0.5, 2.0, size=(3, 1))
        log_densities = -0.5 * ((y - centers) / scales) ** 2 - np.log(scales)

        def loss(weights):
            return -np.log(weights @ np.exp(log_densities)).mean()

        best = minimize(
            loss,
            np.full(3, 1 / 3),
            method="SLSQP",
            bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
            options={"ftol": 1e-12},
        )
        found = stacking_weights(log_densities)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert loss(found) <= best.fun + 1e-6
        np.testing.assert_allclose(found, best.x, rtol=0, atol=0.01)

    def test_densities_too_small_for_a_number_count(self):
        log_densities = np.array([[-900.0, -2000.0], [-2000.0, -900.0], [-5000.0, -5000.0]])
        np.testing.assert_allclose(stacking_weights(log_densities), [0.5, 0.5, 0.0], rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 40, size=(2500, 2))
    y = np.sin(X[:, 0] / 4) + np.cos(X[:, 1] / 6) + rng.standard_t(4, size=2500) * 0.2
    return X, y, rng.uniform(0, 40, size=(60, 2))


def alone(kernel, table, calibration="local", **options):
    X, y, _ = table
    prediction = Nearest(40, calibration=calibration)
    return CompositeGPRegressor(kernel, learning=None, mean=None, prediction=prediction, **options).fit(X, y)


def mixed(table, chosen=ROUGH, other=SMOOTH, **options):
    """The rough kernel and the smooth one in a mixture, and each alone."""
    members = [alone(kernel, table, **options) for kernel in (chosen, other)]
    found = alone(chosen, table, **options)
    share = KernelShare("smooth", other, float(WEIGHTS[1]), members[1].calibration_)
    model = found._model
    found._model = replace(model, tuning=replace(model.tuning, others=(share,)))
    return found, members


@pytest.fixture(scope="module", params=["local", None])
def three(request, table):
    return mixed(table, calibration=request.param)


def moments(found):
    """Mean and variance of the mixture of predictions."""
    mean = WEIGHTS @ np.array([one.mean for one in found])
    variance = WEIGHTS @ np.array([one.variance + (one.mean - mean) ** 2 for one in found])
    return mean, variance


class TestPredictions:
    @pytest.mark.parametrize("latent", [False, True])
    def test_moments_are_those_of_the_mixture(self, three, table, latent):
        mixture, members = three
        Z = table[2]
        found = mixture.predict_distribution(Z, latent=latent)
        mean, variance = moments([one.predict_distribution(Z, latent=latent) for one in members])
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mixture.predict(Z), mean, rtol=0, atol=1e-10)
        if latent and members[0].calibration_ is not None:  # errors of observations tell the scale of both
            assert (found.variance > 0).all()
        else:
            np.testing.assert_allclose(found.variance, variance, rtol=1e-10)

    def test_noise_of_new_observations_is_added_to_each(self, three, table):
        mixture, members = three
        Z = table[2][:5]
        found = mixture.predict_distribution(Z, noise_variance=0.5)
        _, variance = moments([one.predict_distribution(Z, noise_variance=0.5) for one in members])
        np.testing.assert_allclose(found.variance, variance, rtol=1e-10)

    def test_the_shape_is_that_of_the_largest_share(self, three, table):
        mixture, members = three
        found, largest = (one.predict_distribution(table[2]).family for one in (mixture, members[1]))
        assert type(found) is type(largest)
        np.testing.assert_allclose(found.std, largest.std, rtol=1e-12)

    def test_joint_covariances_have_what_kernels_disagree_about(self, three, table):
        mixture, members = three
        Z = table[2][:6]
        beliefs = [one._model.predictor.joint(Z) for one in members]
        found = mixture._model.predictor.joint(Z)
        mean = WEIGHTS @ np.array([one.mean for one in beliefs])
        apart = np.array([one.mean - mean for one in beliefs])
        expected = np.einsum("k,kij->ij", WEIGHTS, [one.covariance for one in beliefs])
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            found.covariance, expected + np.einsum("k,ki,kj->ij", WEIGHTS, apart, apart), rtol=0, atol=1e-9
        )

    def test_training_points_are_left_out_under_every_kernel(self, three):
        mixture, members = three
        found = mixture.predict_leave_one_out()
        mean, variance = moments([one.predict_leave_one_out() for one in members])
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-9)

    def test_validation_is_of_the_mixture(self, three):
        mixture, members = three
        parts = [one.validate(random_state=2).parts for one in members]
        for part, *others in zip(mixture.validate(random_state=2).parts, *parts, strict=True):
            mean, variance = moments([other.predicted for other in others])
            np.testing.assert_allclose(part.predicted.mean, mean, rtol=0, atol=1e-10)
            np.testing.assert_allclose(part.predicted.variance, variance, rtol=1e-9)

    @pytest.mark.parametrize("latent", [False, True])
    def test_averages_are_mixed_too(self, table, latent):
        mixture, members = mixed(table, calibration=None)
        asked = average([table[2][:6], table[2][20:23]])
        found = mixture.predict_distribution(asked, latent=latent)
        mean, variance = moments([one.predict_distribution(asked, latent=latent) for one in members])
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-8)

    def test_slopes_and_parts_are_those_of_the_chosen_kernel(self, table):
        mixture, members = mixed(table, chosen=SMOOTH, other=ROUGH)
        slopes = derivative(table[2][:4], column=0)
        found, expected = (one.predict_distribution(slopes) for one in (mixture, members[0]))
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.std, expected.std)
        parts, own = mixture.parts(table[2][:4]), members[0].parts(table[2][:4])
        assert list(parts) == list(own)
        for name, one in parts.items():
            np.testing.assert_array_equal(one.mean, own[name].mean)
        effects = [one.importances().effects for one in (mixture, members[0])]
        np.testing.assert_array_equal(*effects)

    def test_few_observations_are_exact_under_every_kernel(self, three, table):
        mixture, members = three
        X, y, Z = table
        few, alike = mixture.with_data(X[:30], y[:30]), [one.with_data(X[:30], y[:30]) for one in members]
        found = few.predict_distribution(Z)
        mean, variance = moments([one.predict_distribution(Z) for one in alike])
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-8)

    def test_outputs_share_what_kernels_disagree_about(self, table):
        X, y, Z = table
        both = np.column_stack([y, np.cos(X[:, 0]) + 0.1 * y])
        for latent in (False, True):
            mixture, members = mixed((X, both, Z), calibration=None)
            found = mixture.predict_distribution(Z, latent=latent)
            each = [one.predict_distribution(Z, latent=latent) for one in members]
            mean = np.tensordot(WEIGHTS, [one.mean for one in each], axes=1)
            apart = np.array([((one.mean - mean) ** 2).mean(axis=1) for one in each])
            variance = WEIGHTS @ (np.array([one.variance[:, 0] for one in each]) + apart)
            np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-10)
            np.testing.assert_allclose(found.variance, np.repeat(variance[:, None], 2, axis=1), rtol=1e-9)

    def test_logarithms_are_mixed_on_their_scale(self, table):
        X, y, Z = table
        mixture, members = mixed((X, np.exp(y), Z), target_transform="log")
        found, each = mixture.predict_distribution(Z), [one.predict_distribution(Z) for one in members]
        median = np.exp(WEIGHTS @ np.log([one.median for one in each]))
        np.testing.assert_allclose(found.median, median, rtol=1e-9)

    def test_observed_points_without_noise_have_no_error(self, table):
        X, _, _ = table
        smooth, rough = (ConstantKernel(1.0, "fixed") * Matern(6.0, nu=nu, **FIXED) for nu in (1.5, 0.5))
        for calibration in ("local", None):
            exact, _ = mixed((X, np.sin(X[:, 0] / 4), X), chosen=smooth, other=rough, calibration=calibration)
            mean, std = exact.predict(X[:6], return_std=True)
            np.testing.assert_allclose(mean, np.sin(X[:6, 0] / 4), rtol=0, atol=1e-6)
            assert (std < 1e-3).all()

    def test_files_keep_the_shares(self, three, table, tmp_path):
        mixture, _ = three
        mixture.save(tmp_path / "mixture.cgp")
        loaded = CompositeGPRegressor.load(tmp_path / "mixture.cgp")
        assert loaded.kernel_weights_ == mixture.kernel_weights_ == pytest.approx({"smooth": 0.7, "kernel_": 0.3})
        for one, other in zip(
            *(model.predict(table[2], return_std=True) for model in (loaded, mixture)), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    def test_shares_of_a_file_are_checked(self, three, tmp_path):
        mixture, _ = three
        model = mixture._model
        (share,) = model.tuning.others
        for wrong, message in (
            (replace(share, weight=1.5), "a weight between 0 and 1"),
            ("smooth", "the other kernels of a tuning must be a tuple of up to 16 KernelShare"),
            (replace(share, kernel=OnFunctionals(SMOOTH, at(np.zeros((1, 2))))), "is not of the same points"),
        ):
            mixture._model = replace(model, tuning=replace(model.tuning, others=(wrong,)))
            mixture.save(tmp_path / "wrong.cgp")
            with pytest.raises(ValueError, match=message):
                CompositeGPRegressor.load(tmp_path / "wrong.cgp")
        mixture._model = replace(model, tuning=replace(model.tuning, others=(share, share)))
        mixture.save(tmp_path / "wrong.cgp")
        with pytest.raises(ValueError, match="leave nothing for the first"):
            CompositeGPRegressor.load(tmp_path / "wrong.cgp")
        mixture._model = model


def test_nearness_stays_that_of_the_first_kernel(rng):
    X, Z = rng.uniform(size=(300, 2)), rng.uniform(size=(4, 2))
    y = rng.normal(size=300)
    first, other = (ConstantKernel(1.0) * RBF(scales) + WhiteKernel(0.1) for scales in ([1.0, 1.0], [9.0, 0.1]))
    data = Observations.checked(first, X, y, mean=None, noise_variance=None)
    found = NearestPredictor(data).with_data(data.with_kernel(other)).predict(Z, Neighbors(20), 1).mean
    for z, mean in zip(Z, found, strict=True):
        near = np.argsort(np.linalg.norm(X - z, axis=1))[:20]
        assert mean == pytest.approx(other(z[None], X[near]) @ np.linalg.solve(other(X[near]), y[near]))


def test_equal_kernels_have_equal_shares_and_a_wrong_one_none(rng):
    X = rng.uniform(0, 40, size=(1500, 2))
    y = np.linalg.cholesky(ROUGH(X)) @ rng.normal(size=1500)

    class Discs:
        def hides(self, rows, near):
            return np.linalg.norm(X[near] - X[rows][:, None], axis=2) < 2.0

    search = NearestPredictor(Observations.checked(ROUGH, X, y, mean=None, noise_variance=None))
    held = gap_sets(search, Discs(), Neighbors(64), None)
    parts = gap_predictions(search, held, None)
    calibration = calibrate_by(search.data, parts, True)
    wrong = ConstantKernel(0.01, "fixed") * RBF(0.1, **FIXED) + WhiteKernel(3.0, "fixed")
    kernels = {"again": ROUGH, "wrong": wrong}
    (share,) = learn_shares(search, held, parts, calibration, kernels, True, None)
    assert share.name == "again"
    assert share.weight == pytest.approx(0.5, abs=1e-6)
    assert share.kernel is ROUGH
    np.testing.assert_array_equal(share.calibration.level, calibration.level)


def test_learning_with_a_compared_kernel_is_learning_with_the_chosen_one(rng):
    X = rng.uniform(0, 30, size=(1200, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=1200)
    data = Observations.checked(FREE, X, y, mean=None, noise_variance=None)
    source = LocalSegments(data, [np.arange(i, 1200, 12) for i in range(12)], 32)
    kernels, method = (
        {"rough": FREE, "smooth": ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)},
        CompositeLikelihood(),
    )
    result, comparison = choose_kernel(kernels, data, source, method, random_state=4)
    again = learn_compared(comparison.best, data, source, method, random_state=4)
    np.testing.assert_array_equal(again.theta, result.theta)
    assert [row.name for row in comparison.close(np.inf)] == [row.name for row in comparison if not row.chosen]
    assert comparison.close(0.0) == []


def cloudy(shape=(64, 64), seed=0):
    """A rough field with a wide gap and many small ones."""
    values = stationary_field(Matern(8.0, nu=0.5), shape, random_state=seed)[0]
    values = values + 0.1 * np.random.default_rng(seed).normal(size=shape)
    rows, columns = np.indices(shape)
    hidden = ((rows - 30) ** 2 + (columns - 25) ** 2 < 100) | (np.random.default_rng(1).uniform(size=shape) < 0.15)
    return xr.DataArray(np.where(hidden, np.nan, values), dims=("y", "x"), name="height")


@pytest.fixture(scope="module")
def learned():
    gappy = cloudy()
    return gappy, learn_raster(
        gappy, kernel={"rough": FREE, "sum": ConstantKernel(0.1) * RBF(2.0) + FREE}, n_jobs=1
    )


class TestRasters:
    def test_close_kernels_are_mixed_and_told(self, learned):
        weights = learned[1].regressor.kernel_weights_
        assert set(weights) == {"rough", "sum"}
        assert sum(weights.values()) == pytest.approx(1.0)
        assert all(one.weight >= 0.05 for one in learned[1].regressor._model.tuning.others)
        assert list(weights.values()) == sorted(weights.values(), reverse=True)
        assert "Predictions mix kernels" in learned[1].describe()[-1]

    def test_layers_do_not_depend_on_chunks(self, learned):
        gappy, model = learned
        chunked = gappy.copy(data=da.from_array(gappy.to_numpy(), chunks=(25, 40)))
        at_once, lazily = fill(gappy, model=model), fill(chunked, model=model).compute()
        for name in at_once:
            np.testing.assert_array_equal(at_once[name], lazily[name])

    def test_draws_have_the_distribution_of_the_map(self, learned):
        gappy, model = learned
        filled = fill(gappy, model=model, samples=400)
        missing = gappy.isnull().to_numpy()
        draws = filled["samples"].to_numpy()[:, missing]
        mean, std = filled["mean"].to_numpy()[missing], filled["std"].to_numpy()[missing]
        assert np.abs((draws.mean(axis=0) - mean) / std).mean() < 0.1
        assert np.mean(draws.std(axis=0) / std) == pytest.approx(1.0, abs=0.05)

    def test_a_kernel_that_is_given_is_alone(self):
        model = learn_raster(cloudy(), kernel=FREE, n_jobs=1)
        assert model.regressor.kernel_weights_ == {}
        assert model.regressor.theta_standard_errors_ is not None

    def test_small_rasters_are_the_exact_process_of_one_kernel(self):
        assert learn_raster(cloudy((20, 24)), n_jobs=1).regressor.kernel_weights_ == {}

    def test_far_kernels_have_no_say(self):
        smooth = ConstantKernel(1.0) * RBF(6.0) + WhiteKernel(0.01, "fixed")
        model = learn_raster(cloudy(), kernel={"rough": FREE, "smooth": smooth}, n_jobs=1)
        assert model.regressor.kernel_weights_ == {}
        assert model.regressor.kernel_comparison_.best.name == "rough"
