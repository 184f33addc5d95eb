"""Targets that are missing, or modelled on another scale."""

import numpy as np
import pytest
from scipy.stats import lognorm
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from compositegp import CompositeGPRegressor, Nearest

KERNEL = 0.5 * RBF(1.0) + WhiteKernel(0.1)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 6, size=(200, 1))
    return X, np.exp(np.sin(X[:, 0]) + 0.3 * rng.normal(size=200)), np.linspace(-1, 7, 30)[:, None]


def test_missing_targets_are_left_out(data):
    X, y, Z = data
    holes = y.copy()
    holes[::3] = np.nan
    kept = ~np.isnan(holes)
    noise = np.linspace(0.1, 0.2, 200)
    labels = np.arange(200) % 4
    options = {"learning": None, "prediction": "composite", "conditioning_size": 0}
    with pytest.warns(UserWarning, match="NaN in 67 of 200 rows"):
        model = CompositeGPRegressor(KERNEL, **options).fit(X, holes, noise_variance=noise, groups=labels)
    other = CompositeGPRegressor(KERNEL, **options)
    other.fit(X[kept], y[kept], noise_variance=noise[kept], groups=labels[kept])
    np.testing.assert_array_equal(model.predict(Z, return_std=True), other.predict(Z, return_std=True))


def test_nothing_observed_is_an_error(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="NaN in every row"):
        CompositeGPRegressor().fit(X, np.full_like(y, np.nan))
    with pytest.raises(ValueError, match="infinity"):
        CompositeGPRegressor().fit(X, np.where(y > 2, np.inf, y))


def test_predictions_of_logs_are_log_normal(data):
    X, y, Z = data
    options = {"learning": None, "prediction": Nearest(calibration=None)}
    model = CompositeGPRegressor(KERNEL, target_transform="log", **options).fit(X, y)
    mu, sigma = CompositeGPRegressor(KERNEL, **options).fit(X, np.log(y)).predict(Z, return_std=True)
    oracle = lognorm(s=sigma, scale=np.exp(mu))
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, oracle.mean(), rtol=1e-10)
    np.testing.assert_allclose(std, oracle.std(), rtol=1e-10)
    np.testing.assert_allclose(model.predict_quantiles(Z, 0.5), oracle.median(), rtol=1e-10)
    quantiles = model.predict_quantiles(Z, [0.01, 0.3, 0.99])
    np.testing.assert_allclose(quantiles, np.stack([oracle.ppf(q) for q in (0.01, 0.3, 0.99)], axis=1), rtol=1e-8)
    np.testing.assert_allclose(model.predict_interval(Z, 0.8), oracle.interval(0.8), rtol=1e-8)
    assert quantiles.min() > 0
    joint_mean, cov = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), std, rtol=1e-6)
    samples = model.sample_y(Z, 100_000)
    assert samples.min() > 0
    np.testing.assert_allclose(samples.mean(axis=1), mean, rtol=0.02)
    np.testing.assert_allclose(np.cov(samples), cov, rtol=0, atol=0.08 * cov.max())


def test_log_of_what_is_not_positive_is_refused(data):
    X, y, _ = data
    y[[3, 7]] = -1.0, 0.0
    with pytest.raises(ValueError, match=r"2 value\(s\) that are not positive, the first -1 at index 3"):
        CompositeGPRegressor(target_transform="log").fit(X, y)


def test_a_transformer_that_is_the_log_gives_the_log(data):
    X, y, Z = data
    transformer = FunctionTransformer(np.log, np.exp)
    by_object = CompositeGPRegressor(KERNEL, learning=None, target_transform=transformer).fit(X, y)
    by_name = CompositeGPRegressor(KERNEL, learning=None, target_transform="log").fit(X, y)
    np.testing.assert_allclose(
        by_object.predict(Z, return_std=True), by_name.predict(Z, return_std=True), rtol=1e-6
    )
    np.testing.assert_allclose(by_object.predict_interval(Z), by_name.predict_interval(Z), rtol=1e-10)
    with pytest.raises(ValueError, match="sample_y"):
        by_object.predict(Z, return_cov=True)
    np.testing.assert_allclose(by_object.sample_y(Z, 5), by_name.sample_y(Z, 5), rtol=1e-10)


def test_a_falling_transformer_keeps_quantiles_in_order(data):
    X, y, Z = data
    transformer = FunctionTransformer(lambda v: -np.log(v), lambda v: np.exp(-v))
    falling = CompositeGPRegressor(KERNEL, learning=None, target_transform=transformer).fit(X, y)
    rising = CompositeGPRegressor(KERNEL, learning=None, target_transform="log").fit(X, y)
    levels = [0.05, 0.5, 0.9]
    np.testing.assert_allclose(
        falling.predict_quantiles(Z, levels), rising.predict_quantiles(Z, levels), rtol=1e-10
    )


@pytest.mark.parametrize(
    "transformer",
    [PowerTransformer(), QuantileTransformer(n_quantiles=50, output_distribution="normal")],
    ids=lambda transformer: type(transformer).__name__,
)
def test_intervals_by_transformers_of_scikit_learn_cover(data, transformer):
    X, y, Z = data
    model = CompositeGPRegressor(target_transform=transformer).fit(X, y)
    lower, upper = model.predict_interval(X, 0.9)
    assert 0.82 < np.mean((lower < y) & (y < upper)) < 0.99  # of the training data themselves
    assert np.isfinite(model.predict(Z, return_std=True)).all()
    assert not hasattr(transformer, "lambdas_")  # the user's object is left alone
    assert not hasattr(transformer, "quantiles_")


def test_a_transformer_without_an_inverse_in_the_tails_says_so(data):
    X, y, _ = data
    transformer = FunctionTransformer(lambda v: v, lambda v: np.where(v < 100, v, np.nan))
    model = CompositeGPRegressor(1e6 * RBF() + WhiteKernel(), learning=None, target_transform=transformer).fit(X, y)
    with pytest.raises(ValueError, match="has no inverse"):
        model.predict_quantiles([[1e6]], 0.99)


def test_quantiles_and_intervals_of_a_gaussian(data):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(calibration=None)).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    lower, upper = model.predict_interval(Z, 0.95)
    np.testing.assert_allclose(upper - mean, 1.959963984540054 * std, rtol=1e-10)
    np.testing.assert_allclose(mean - lower, 1.959963984540054 * std, rtol=1e-10)
    assert model.predict_quantiles(Z).shape == (30, 3)
    assert model.predict_quantiles(Z, 0.1).shape == (30,)
    narrow = model.predict_interval(Z, 0.95, latent=True)
    assert (narrow[1] - narrow[0] < upper - lower).all()


def test_log_normal_predictions_stay_numbers(data):
    X, y, _ = data
    model = CompositeGPRegressor(1500.0 * RBF() + WhiteKernel(0.1), learning=None, target_transform="log").fit(X, y)
    far = [[1e3], [2e3]]
    for values in (*model.predict(far, return_std=True), *model.predict(far, return_cov=True)):
        assert np.isfinite(values).all()
    near = model.predict(X[:5], return_cov=True)
    assert np.isfinite(near[1]).all()


def test_negative_covariances_of_logs_are_transformed_exactly():
    X = np.array([[0.0], [1.0], [2.0]])
    y = np.array([1.0, 2.0, 1.5])
    model = CompositeGPRegressor(RBF(2.0), learning=None, target_transform="log").fit(X, y)
    Z = np.array([[0.5], [1.5], [3.0]])
    log_mean, log_cov = CompositeGPRegressor(RBF(2.0), learning=None).fit(X, np.log(y)).predict(Z, return_cov=True)
    assert log_cov.min() < 0
    expected = np.exp(log_mean + np.diagonal(log_cov) / 2)
    found = model.predict(Z, return_cov=True)
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], np.outer(expected, expected) * np.expm1(log_cov), rtol=1e-6)


def test_tails_without_an_inverse_do_not_spoil_the_mean(rng):
    X = rng.uniform(0, 6, size=(200, 1))
    y = np.exp(np.sin(X[:, 0]) + 0.6 * rng.normal(size=200))
    mean, std = CompositeGPRegressor(target_transform=PowerTransformer()).fit(X, y).predict(X, return_std=True)
    expected = np.exp(np.sin(X[:, 0]) + 0.6**2 / 2)  # log-normal
    np.testing.assert_allclose(mean, expected, rtol=0.35)
    ratio = std / (expected * np.sqrt(np.expm1(0.6**2)))
    assert ratio.min() > 0.5
    assert ratio.max() < 2


def test_masked_targets_are_missing(data):
    X, y, Z = data
    masked = np.ma.masked_array(np.where(y > 2, -999.0, y), y > 2)
    with pytest.warns(UserWarning, match="not observed"):
        model = CompositeGPRegressor(KERNEL, learning=None).fit(X, masked)
    other = CompositeGPRegressor(KERNEL, learning=None).fit(X[y <= 2], y[y <= 2])
    np.testing.assert_array_equal(model.predict(Z), other.predict(Z))
