"""With one segment and no learning the regressor is scikit-learn's; then scikit-learn's own tests, where they apply."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from compositegp import CompositeGPRegressor, Nearest

KERNELS = [
    RBF(0.8) + WhiteKernel(0.01),
    ConstantKernel(2.0) * Matern([0.5, 2.0], nu=1.5) + WhiteKernel(0.1),
    RationalQuadratic(0.7, 2.0) + 0.5 * DotProduct(1.0) + WhiteKernel(0.2),
    ConstantKernel(0.5) * RBF(2.0) * Matern(1.0, nu=0.5) + WhiteKernel(0.05),
]
WAYS = [
    {"prediction": "nearest"},
    {"prediction": "composite", "segment_size": 1000},
    {"prediction": "bcm", "segment_size": 1000},
    {"segment_size": 7, "prediction": Nearest(n_neighbors=90, group_size=3)},
]


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 5, size=(90, 2))
    return X, np.sin(X[:, 0]) - 0.3 * X[:, 1] + 0.1 * rng.normal(size=90), rng.uniform(0, 5, size=(40, 2))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_equals_scikit_learn(kernel, way, data):
    X, y, Z = data
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    model = CompositeGPRegressor(kernel, learning=None, **way).fit(X, y)
    mean, std = theirs.predict(Z, return_std=True)
    for found, expected in zip(model.predict(Z, return_std=True), (mean, std), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.predict(Z), mean, rtol=1e-8, atol=1e-8)
    if way["prediction"] != "bcm":
        for found, expected in zip(
            model.predict(Z, return_cov=True), theirs.predict(Z, return_cov=True), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_log_likelihood_equals_scikit_learn(kernel, data):
    X, y, _ = data
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    model = CompositeGPRegressor(kernel, learning=None).fit(X, y)
    np.testing.assert_allclose(
        model.log_marginal_likelihood_value_, theirs.log_marginal_likelihood_value_, rtol=1e-8
    )
    theta = kernel.theta + 0.3
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    expected, expected_gradient = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    np.testing.assert_allclose(value, expected, rtol=1e-8)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-6)


def test_noise_of_each_sample_is_scikit_learns_alpha(data, rng):
    X, y, Z = data
    alpha = rng.uniform(0.01, 0.5, size=len(y))
    theirs = GaussianProcessRegressor(RBF(), alpha=alpha, optimizer=None).fit(X, y).predict(Z, return_std=True)
    model = CompositeGPRegressor(RBF(), learning=None).fit(X, y, noise_variance=alpha)
    np.testing.assert_allclose(model.predict(Z, return_std=True), theirs, rtol=1e-8)
    with_noise = model.predict(Z, return_std=True, noise_variance=0.25)[1]
    np.testing.assert_allclose(with_noise**2, theirs[1] ** 2 + 0.25, rtol=1e-8)


def test_the_switch_between_latent_and_observation(data):
    X, y, Z = data
    model = CompositeGPRegressor(RBF() + WhiteKernel(0.3), learning=None).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    latent_mean, latent_std = model.predict(Z, return_std=True, latent=True)
    np.testing.assert_array_equal(mean, latent_mean)
    np.testing.assert_allclose(std**2 - latent_std**2, 0.3, rtol=1e-10)
    covariance = model.predict(Z, return_cov=True, latent=True)[1]
    np.testing.assert_allclose(np.diagonal(covariance), latent_std**2, rtol=1e-8, atol=1e-12)


# The rest follows sklearn/gaussian_process/tests/test_gpr.py.

X1 = np.atleast_2d([1.0, 3.0, 5.0, 6.0, 7.0, 8.0]).T
X2 = np.atleast_2d([2.0, 4.0, 5.5, 6.5, 7.5]).T
Y1 = X1.ravel() * np.sin(X1.ravel())
THEIR_KERNELS = [
    RBF(length_scale=1.0),
    RBF(length_scale=1.0, length_scale_bounds=(1e-3, 1e3)),
    ConstantKernel(1.0, (1e-2, 1e2)) * RBF(1.0, (1e-3, 1e3)),
    ConstantKernel(1.0, (1e-2, 1e2)) * RBF(1.0, (1e-3, 1e3)) + ConstantKernel(1e-5, (1e-5, 1e2)),
    ConstantKernel(0.1, (1e-2, 1e2)) * RBF(1.0, (1e-3, 1e3)) + ConstantKernel(1e-5, (1e-5, 1e2)),
]
NON_FIXED = THEIR_KERNELS[1:]
quietly = pytest.mark.filterwarnings("ignore")  # six points hardly determine the hyper-parameters


@quietly
@pytest.mark.parametrize("kernel", THEIR_KERNELS, ids=str)
def test_data_without_noise_are_interpolated(kernel):
    model = CompositeGPRegressor(kernel, learning=None).fit(X1, Y1)
    mean, cov = model.predict(X1, return_cov=True)
    np.testing.assert_allclose(mean, Y1, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.diagonal(cov), 0.0, rtol=0, atol=1e-6)


@quietly
@pytest.mark.parametrize("kernel", NON_FIXED, ids=str)
def test_likelihood_rises_with_fit(kernel):
    model = CompositeGPRegressor(kernel).fit(X1, Y1)
    assert model.log_marginal_likelihood(model.kernel_.theta) > model.log_marginal_likelihood(kernel.theta)


@quietly
@pytest.mark.parametrize("kernel", NON_FIXED, ids=str)
def test_converges_to_a_local_maximum(kernel):
    model = CompositeGPRegressor(kernel).fit(X1, Y1)
    bounds = model.kernel_.bounds
    best = minimize(
        lambda theta: -model.log_marginal_likelihood(theta),
        model.kernel_.theta,
        method="Nelder-Mead",
        bounds=bounds,
    )
    # Learning ends when a step promises no more than a hundredth.
    assert -best.fun - model.log_marginal_likelihood() < 0.02


@quietly
@pytest.mark.parametrize("kernel", NON_FIXED, ids=str)
def test_solution_is_inside_the_bounds(kernel):
    model = CompositeGPRegressor(kernel).fit(X1, Y1)
    theta, bounds = model.kernel_.theta, model.kernel_.bounds
    assert np.all(theta >= bounds[:, 0] - 1e-9)
    assert np.all(theta <= bounds[:, 1] + 1e-9)


@pytest.mark.parametrize("kernel", NON_FIXED, ids=str)
def test_the_gradient_of_the_likelihood_is_its_slope(kernel):
    model = CompositeGPRegressor(kernel, learning=None).fit(X1, Y1, noise_variance=1e-2)
    gradient = model.log_marginal_likelihood(kernel.theta, eval_gradient=True)[1]
    for position in range(len(kernel.theta)):
        step = 1e-5 * np.eye(len(kernel.theta))[position]
        slope = (
            model.log_marginal_likelihood(kernel.theta + step) - model.log_marginal_likelihood(kernel.theta - step)
        ) / 2e-5
        np.testing.assert_allclose(gradient[position], slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", THEIR_KERNELS, ids=str)
def test_predictions_before_fit_are_the_prior(kernel):
    model = CompositeGPRegressor(kernel)
    mean, cov = model.predict(X1, return_cov=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(cov, kernel(X1), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X1, return_std=True)[1], np.sqrt(kernel.diag(X1)))
    assert model.sample_y(X1, 3).shape == (6, 3)


@quietly
@pytest.mark.parametrize("kernel", THEIR_KERNELS, ids=str)
def test_statistics_of_samples_are_those_of_the_prediction(kernel):
    model = CompositeGPRegressor(kernel, learning=None).fit(X1, Y1)
    mean, cov = model.predict(X2, return_cov=True)
    samples = model.sample_y(X2, 300_000)
    np.testing.assert_allclose(samples.mean(axis=1), mean, rtol=0, atol=0.01)
    np.testing.assert_allclose(samples.var(axis=1), np.diagonal(cov), rtol=0.02, atol=1e-3)


@quietly
@pytest.mark.parametrize("kernel", THEIR_KERNELS, ids=str)
def test_std_is_the_root_of_the_diagonal_of_cov(kernel):
    model = CompositeGPRegressor(kernel, learning=None).fit(X1, Y1)
    np.testing.assert_allclose(
        model.predict(X2, return_std=True)[1],
        np.sqrt(np.diagonal(model.predict(X2, return_cov=True)[1])),
        rtol=1e-5,
    )


@quietly
def test_anisotropic_kernel_is_more_likely(rng):
    X = rng.uniform(-1, 1, (50, 2))
    y = X[:, 0] + 0.1 * X[:, 1]
    one = CompositeGPRegressor(RBF(1.0, (1e-3, 1e3)) + WhiteKernel(1e-4)).fit(X, y)
    each = CompositeGPRegressor(RBF([1.0, 1.0], (1e-3, 1e3)) + WhiteKernel(1e-4)).fit(X, y)
    assert each.log_marginal_likelihood_value_ > one.log_marginal_likelihood_value_


@quietly
def test_large_variance_of_the_target():
    expected = CompositeGPRegressor().fit(X1, Y1).predict(X1, return_std=True)
    found = CompositeGPRegressor().fit(X1, 1e6 * Y1).predict(X1, return_std=True)
    np.testing.assert_allclose(found, 1e6 * np.array(expected), rtol=1e-5)


@pytest.mark.parametrize("kernel", THEIR_KERNELS, ids=str)
def test_duplicate_inputs_give_the_predictions_of_scikit_learn(kernel):
    X_twice = np.vstack([X1, X1[:2] + 1e-15])
    y_twice = np.concatenate([Y1, Y1[:2]])
    noise = 1e-2
    exact = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X_twice, y_twice)
    model = CompositeGPRegressor(kernel, learning=None).fit(X_twice, y_twice, noise_variance=noise)
    Z = np.linspace(0, 10, 100)[:, None]
    np.testing.assert_allclose(
        model.predict(Z, return_std=True), exact.predict(Z, return_std=True), rtol=0, atol=1e-7
    )


def test_a_constant_target_is_predicted_with_a_warning():
    y = np.full(len(X1), 2.0)
    with pytest.warns(Warning, match="constant target"):
        model = CompositeGPRegressor(RBF(), mean="constant").fit(X1, y)
    mean, cov = model.predict(X1, return_cov=True)
    np.testing.assert_allclose(mean, 2.0)
    np.testing.assert_allclose(np.diagonal(cov), 0.0, rtol=0, atol=1e-7)


def test_inputs_are_not_modified(data):
    X, y, Z = data
    before = X.copy(), y.copy(), Z.copy()
    model = CompositeGPRegressor(learning=None).fit(X, y)
    model.predict(Z, return_cov=True)
    for now, then in zip((X, y, Z), before, strict=True):
        np.testing.assert_array_equal(now, then)
    X[:] = 0.0  # nor kept by reference
    np.testing.assert_allclose(model.predict(Z), CompositeGPRegressor(learning=None).fit(before[0], y).predict(Z))


@quietly
def test_periodic_kernel_extrapolates(rng):
    X = np.linspace(0, 10, 300)[:, None]
    kernel = 1.0 * ExpSineSquared(1.0, 2.0, periodicity_bounds="fixed") + WhiteKernel(0.1)
    model = CompositeGPRegressor(kernel).fit(X, np.sin(np.pi * X[:, 0]) + 0.1 * rng.normal(size=300))
    Z = np.linspace(20, 22, 50)[:, None]
    np.testing.assert_allclose(model.predict(Z), np.sin(np.pi * Z[:, 0]), rtol=0, atol=0.15)


def test_std_and_cov_at_once_are_refused(data):
    X, y, _ = data
    with pytest.raises(RuntimeError, match="At most one"):
        CompositeGPRegressor(RBF() + WhiteKernel(), learning=None).fit(X, y).predict(X, True, True)
