"""Weights of observations divide their noise: as if an observation were an average of so many."""

import numpy as np
import pytest
import sklearn
from sklearn.gaussian_process.kernels import RBF, Exponentiation, Matern, WhiteKernel
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from compositegp import CompositeGPRegressor, CompositeLikelihood, CompositeSum, Inducing, Nearest
from compositegp.composite import Composite, Observations, total_score
from compositegp.kernels import noise_jacobian, noise_variance
from compositegp.means import as_mean
from compositegp.prediction import Committee

KERNEL = 2.0 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(0.3)
PRODUCT = (RBF(2.0) + WhiteKernel(0.2)) * (1.5 * Matern(1.0, nu=0.5) + WhiteKernel(0.1))


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 5, size=(60, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.5 * rng.normal(size=60), rng.integers(0, 4, size=60)


def fitted(X, y, *, mean=None, prediction="nearest", **options):
    model = CompositeGPRegressor(KERNEL, learning=None, mean=mean, prediction=prediction, segment_size=200)
    return model.fit(X, y, **options)


@pytest.mark.parametrize("mean", [None, "linear"])
@pytest.mark.parametrize("own_noise", [False, True])
@pytest.mark.parametrize(
    "prediction",
    [Nearest(), CompositeSum(), Committee("bcm"), Inducing(np.linspace(0, 5, 12).reshape(6, 2), "pitc")],
)
def test_a_weight_is_a_number_of_repetitions(data, rng, prediction, own_noise, mean):
    X, y, weights = data
    noise = rng.uniform(0.1, 1.0, size=60) if own_noise else None
    repeated = np.repeat(np.arange(60), weights)
    Z = rng.uniform(0, 5, size=(9, 2))
    weighted = fitted(X, y, prediction=prediction, mean=mean, sample_weight=weights, noise_variance=noise)
    twice = fitted(
        X[repeated],
        y[repeated],
        prediction=prediction,
        mean=mean,
        noise_variance=None if noise is None else noise[repeated],
    )
    np.testing.assert_allclose(
        weighted.predict(Z, return_std=True), twice.predict(Z, return_std=True), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(weighted.mean_coefficients_, twice.mean_coefficients_, rtol=1e-7, atol=1e-9)
    if not isinstance(prediction, Committee):
        np.testing.assert_allclose(
            weighted.predict(Z, return_cov=True)[1], twice.predict(Z, return_cov=True)[1], rtol=1e-6, atol=1e-9
        )


def test_a_weighted_observation_is_an_average(rng, device):
    """w measurements at one point, each with the kernel's noise, say what their average with weight w says."""
    X = rng.uniform(0, 5, size=(30, 2))
    values = np.sin(X[:, :1]) + 0.5 * rng.normal(size=(30, 4))
    each = fitted(np.repeat(X, 4, axis=0), values.ravel())
    average = fitted(X, values.mean(axis=1), sample_weight=np.full(30, 4.0))
    Z = rng.uniform(0, 5, size=(5, 2))
    np.testing.assert_allclose(each.predict(Z, return_std=True), average.predict(Z, return_std=True), rtol=1e-8)


@pytest.mark.parametrize("kernel", [KERNEL, PRODUCT, Exponentiation(RBF(2.0) + WhiteKernel(0.2), 2.0)], ids=str)
def test_the_gradient_of_the_weighted_likelihood(data, kernel, device):
    """Against central differences of the textbook's likelihood."""
    X, y, weights = data[0], data[1], data[2] + 0.5

    def likelihood(theta):
        found = kernel.clone_with_theta(theta)
        K = found(X) + np.diag(noise_variance(found, X) * (1 / weights - 1))
        _, log_determinant = np.linalg.slogdet(K)
        return -0.5 * (y @ np.linalg.solve(K, y) + log_determinant + len(y) * np.log(2 * np.pi))

    observations = Observations.of(kernel, as_mean(None), X, y, None, weights)
    for probes in (0, -1):
        score = total_score(observations, Composite.full(60), np.zeros((0, 1)), probes=probes)
        assert score.log_likelihood == pytest.approx(likelihood(kernel.theta), rel=1e-10)
        steps = 1e-5 * np.eye(len(kernel.theta))
        slopes = [(likelihood(kernel.theta + h) - likelihood(kernel.theta - h)) / 2e-5 for h in steps]
        np.testing.assert_allclose(score.gradient, slopes, rtol=1e-6, atol=1e-6)


def test_the_fisher_information_of_weighted_observations(data, device):
    """Slepian–Bangs: ½ tr(K⁻¹ ∂_iK K⁻¹ ∂_jK) with the textbook's derivatives."""
    X, y, weights = data[0], data[1], data[2] + 0.5
    signal, noise = KERNEL.k1, KERNEL.k2
    K = signal(X) + np.diag(noise.noise_level / weights)
    slopes = [*np.moveaxis(signal(X, eval_gradient=True)[1], -1, 0), np.diag(noise.noise_level / weights)]
    moved = [np.linalg.solve(K, slope) for slope in slopes]
    expected = [[0.5 * np.trace(one @ other) for one in moved] for other in moved]
    observations = Observations.of(KERNEL, as_mean(None), X, y, None, weights)
    exact = total_score(observations, Composite.full(60), np.zeros((0, 1)), probes=-1)
    np.testing.assert_allclose(exact.fisher, expected, rtol=1e-8)
    probed = total_score(observations, Composite.full(60), np.zeros((0, 1)), probes=4000)
    np.testing.assert_allclose(probed.fisher, expected, rtol=0.1, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", [KERNEL, PRODUCT, RBF() + WhiteKernel(0.5, "fixed"), RBF()], ids=str)
def test_the_derivative_of_the_noise(data, kernel):
    X, steps = data[0], 1e-6 * np.eye(len(kernel.theta))
    expected = [
        (
            noise_variance(kernel.clone_with_theta(kernel.theta + h), X)
            - noise_variance(kernel.clone_with_theta(kernel.theta - h), X)
        )
        / 2e-6
        for h in steps
    ]
    np.testing.assert_allclose(
        noise_jacobian(kernel, X), np.reshape(expected, (len(steps), 60)), rtol=1e-6, atol=1e-9
    )


def test_learning_sees_that_weighted_observations_are_less_noisy(rng):
    """Noise of variance 1 / w: the learned noise is that of an observation of weight one."""
    X = rng.uniform(0, 12, size=(240, 1))
    weights = rng.choice([0.25, 1.0, 16.0], size=240)
    y = np.sin(X[:, 0]) + rng.normal(size=240) / np.sqrt(weights)
    options = {"kernel": 1.0 * RBF() + WhiteKernel(), "prediction": Nearest(theta_uncertainty=False)}
    for learning in (CompositeLikelihood(n_restarts=0), "fisher_average"):
        model = CompositeGPRegressor(learning=learning, **options).fit(X, y, sample_weight=weights)
        assert model.kernel_.k2.noise_level == pytest.approx(1.0, rel=0.25)


def test_segments_with_weights_are_one_fit(data):
    X, y, weights = data[0], data[1], data[2] + 1.0
    whole = fitted(X, y, sample_weight=weights)
    parts = CompositeGPRegressor(KERNEL, learning=None)
    parts.partial_fit(X[:20], y[:20], sample_weight=weights[:20])
    parts.partial_fit(X[20:40], y[20:40], noise_variance=0.0, sample_weight=weights[20:40])
    parts.partial_fit(X[40:], y[40:], sample_weight=weights[40:])
    np.testing.assert_allclose(parts.predict(X, return_std=True), whole.predict(X, return_std=True), rtol=1e-8)
    mixed = CompositeGPRegressor(KERNEL, learning=None).partial_fit(X[:20], y[:20])
    mixed.partial_fit(X[20:], y[20:], sample_weight=weights[20:])
    expected = fitted(X, y, sample_weight=np.r_[np.ones(20), weights[20:]])
    np.testing.assert_allclose(mixed.predict(X, return_std=True), expected.predict(X, return_std=True), rtol=1e-8)


def test_watched_points_with_weights(data):
    X, y, weights = data[0], data[1], data[2] + 1.0
    watch = CompositeSum(watch=X[:4])
    labels = np.repeat([0, 1, 2], 20)
    watched = fitted(X, y, prediction=watch, sample_weight=weights, groups=labels).predict(X[:4], return_std=True)
    stream = CompositeGPRegressor(KERNEL, learning=None, prediction=watch)
    for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
        stream.partial_fit(X[part], y[part], sample_weight=weights[part])
    np.testing.assert_allclose(stream.predict(X[:4], return_std=True), watched, rtol=1e-8)


def test_a_saved_model_keeps_its_weights(data, tmp_path):
    X, y, weights = data[0], data[1], data[2] + 0.5
    model = fitted(X, y, sample_weight=weights)
    model.save(tmp_path / "model.cgp")
    loaded = CompositeGPRegressor.load(tmp_path / "model.cgp")
    np.testing.assert_array_equal(loaded.predict(X, return_std=True), model.predict(X, return_std=True))


def test_weights_of_one_change_nothing_and_unobserved_rows_lose_theirs(data):
    X, y, weights = data
    np.testing.assert_array_equal(fitted(X, y, sample_weight=np.ones(60)).predict(X), fitted(X, y).predict(X))
    y[5] = np.nan
    with pytest.warns(UserWarning, match="NaN in 1 of"):
        found = fitted(X, y, sample_weight=weights + 1.0)
    expected = fitted(np.delete(X, 5, 0), np.delete(y, 5), sample_weight=np.delete(weights, 5) + 1.0)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.zeros(60), "zero in every row"), (-np.ones(60), "[Nn]egative"), (np.ones(9), "sample_weight")],
)
def test_bad_weights_are_named(data, weights, message):
    with pytest.raises(ValueError, match=message):
        fitted(*data[:2], sample_weight=weights)


def test_analysis_without_weights(data):
    model = fitted(*data[:2], sample_weight=data[2] + 0.5, prediction=CompositeSum())
    with pytest.raises(ValueError, match="without sample_weight"):
        model.analyze(data[0][:3])


def test_weights_travel_by_metadata_routing(data):
    X, y, weights = data[0], data[1], data[2] + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        model = CompositeGPRegressor(KERNEL, learning=None).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weights)
        scores = cross_validate(model, X, y, cv=3, params={"sample_weight": weights})["test_score"]
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(pipeline.predict(X), fitted(scaled, y, sample_weight=weights).predict(scaled))
    first = np.arange(60) < 20
    own = fitted(X[~first], y[~first], sample_weight=weights[~first])
    assert scores[0] == pytest.approx(own.score(X[first], y[first], sample_weight=weights[first]))
