"""The examples of scikit-learn's gallery on Gaussian processes: they run, and agree with scikit-learn's answers.

Hyper-parameters are compared by their likelihood, predictions under the same hyper-parameters by their numbers.
"""

import numpy as np
import pytest
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

PLUG_IN = Nearest(n_neighbors=1000, theta_uncertainty=False)
ENOUGH = 0.05  # log likelihood by which two maxima may differ


def likelihood_of(kernel, X, y, alpha):
    """Log marginal likelihood of a kernel by scikit-learn."""
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=alpha).fit(X, y).log_marginal_likelihood_value_


def assert_same_predictions(kernel, X, y, Z, *, alpha, rtol=1e-5, atol=1e-5):
    ours = CompositeGPRegressor(kernel, learning=None, alpha=alpha, prediction=PLUG_IN).fit(X, y)
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=alpha).fit(X, y)
    scale = np.sqrt(np.max(kernel.diag(Z)))
    mean, std = ours.predict(Z, return_std=True)
    expected = theirs.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=rtol, atol=atol * scale)
    np.testing.assert_allclose(std, expected[1], rtol=rtol, atol=atol * scale)


@pytest.fixture
def noisy_targets():
    """plot_gpr_noisy_targets: x sin x at six points, seen at a thousand."""
    X = np.linspace(0, 10, 1000)[:, None]
    y = np.squeeze(X * np.sin(X))
    rows = np.random.RandomState(1).choice(np.arange(1000), size=6, replace=False)
    return X[rows], y[rows], X, y


def test_noisy_targets_without_noise(noisy_targets):
    X, y, Z, truth = noisy_targets
    kernel = 1 * RBF(1.0, (1e-2, 1e2))
    theirs = GaussianProcessRegressor(kernel, n_restarts_optimizer=9, random_state=0).fit(X, y)
    ours = CompositeGPRegressor(kernel, alpha=1e-10, prediction=PLUG_IN).fit(X, y)
    assert likelihood_of(ours.kernel_, X, y, 1e-10) > theirs.log_marginal_likelihood_value_ - ENOUGH
    assert_same_predictions(theirs.kernel_, X, y, Z, alpha=1e-10)
    mean, lower, upper = ours.predict(Z, return_interval=0.95)
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.8
    np.testing.assert_allclose(ours.predict(X), y, rtol=0, atol=1e-4)
    # The defaults, with no noise at all, and averaged over the hyper-parameters that six points allow.
    plain = CompositeGPRegressor(kernel).fit(X, y)
    mean, std = plain.predict(Z, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    np.testing.assert_allclose(plain.predict(X), y, rtol=0, atol=1e-4)


def test_noisy_targets_with_known_noise(noisy_targets):
    X, y, Z, _ = noisy_targets
    y = y + np.random.RandomState(2).normal(0, 0.75, size=6)
    kernel = 1 * RBF(1.0, (1e-2, 1e2))
    theirs = GaussianProcessRegressor(kernel, alpha=0.75**2, n_restarts_optimizer=9, random_state=0).fit(X, y)
    ours = CompositeGPRegressor(kernel, alpha=0.75**2, prediction=PLUG_IN).fit(X, y)
    assert likelihood_of(ours.kernel_, X, y, 0.75**2) > theirs.log_marginal_likelihood_value_ - ENOUGH
    assert_same_predictions(theirs.kernel_, X, y, Z, alpha=0.75**2, rtol=1e-8)


@pytest.fixture
def noisy():
    """plot_gpr_noisy: twenty points of a sine with noise of variance 0.75²."""
    rng = np.random.RandomState(0)
    X = rng.uniform(0, 5, size=20).reshape(-1, 1)
    y = 0.5 * np.sin(3 * X[:, 0]) + rng.normal(loc=0.0, scale=0.75, size=20)
    return X, y, np.linspace(0, 5, 80)[:, None]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of both, where noise explains it all
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * RBF(1e1, (1e-2, 1e3)) + WhiteKernel(1, (1e-5, 1e1)),
        1.0 * RBF(1e-1, (1e-2, 1e3)) + WhiteKernel(1e-2, (1e-10, 1e1)),
        1.0 * RBF(1e-1, (1e-2, 1e3)) + WhiteKernel(1e-5, (1e-10, 1e1)),
    ],
    ids=["smooth", "rough", "no noise"],
)
def test_noisy(noisy, kernel):
    """From either start the best maximum is found: as likely as the better of scikit-learn's two answers."""
    X, y, Z = noisy
    starts = [
        1.0 * RBF(1e1, (1e-2, 1e3)) + WhiteKernel(1, (1e-5, 1e1)),
        1.0 * RBF(1e-1, (1e-2, 1e3)) + WhiteKernel(1e-2, (1e-10, 1e1)),
    ]
    best = max(
        (GaussianProcessRegressor(start, alpha=0.0).fit(X, y) for start in starts),
        key=lambda model: model.log_marginal_likelihood_value_,
    )
    ours = CompositeGPRegressor(kernel, prediction=PLUG_IN).fit(X, y)
    assert likelihood_of(ours.kernel_, X, y, 0.0) > best.log_marginal_likelihood_value_ - ENOUGH
    assert_same_predictions(best.kernel_, X, y, Z, alpha=0.0, rtol=1e-8)


def test_the_landscape_of_the_likelihood(noisy):
    X, y, _ = noisy
    kernel = 1.0 * RBF(1e-1, (1e-2, 1e3)) + WhiteKernel(1e-2, (1e-10, 1e1))
    ours = CompositeGPRegressor(kernel, learning=None).fit(X, y)
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    for length_scale in np.logspace(-2, 4, 7):
        for noise_level in np.logspace(-2, 1, 4):
            theta = np.log([0.36, length_scale, noise_level])
            found, slope = ours.log_marginal_likelihood(theta, eval_gradient=True)
            expected, gradient = theirs.log_marginal_likelihood(theta, eval_gradient=True)
            assert found == pytest.approx(expected, rel=1e-9)
            np.testing.assert_allclose(slope, gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of both: four points say little
@pytest.mark.filterwarnings("ignore::compositegp.NumericalWarning")  # a polynomial has a singular covariance
@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")  # scikit-learn's
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * RBF(1.0, (1e-1, 10.0)),
        1.0 * RationalQuadratic(1.0, 0.1, alpha_bounds=(1e-5, 1e15)),
        1.0 * ExpSineSquared(1.0, 3.0, (0.1, 10.0), (1.0, 10.0)),
        ConstantKernel(0.1, (0.01, 10.0)) * (DotProduct(1.0, (0.1, 10.0)) ** 2),
        1.0 * Matern(1.0, (1e-1, 10.0), nu=1.5),
    ],
    ids=["RBF", "rational quadratic", "periodic", "polynomial", "Matern"],
)
def test_prior_and_posterior(kernel):
    rng = np.random.RandomState(4)
    X = rng.uniform(0, 5, 10).reshape(-1, 1)
    y = np.sin((X[:, 0] - 2.5) ** 2)
    Z = np.linspace(0, 5, 100)[:, None]
    theirs, ours = GaussianProcessRegressor(kernel, random_state=0), CompositeGPRegressor(kernel, alpha=1e-10)
    for option in ("return_std", "return_cov"):
        before, expected = ours.predict(Z, **{option: True}), theirs.predict(Z, **{option: True})
        np.testing.assert_allclose(before[0], expected[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(before[1], expected[1], rtol=1e-7, atol=1e-9)
    draws = ours.sample_y(Z, n_samples=2000, random_state=0)
    np.testing.assert_allclose(draws.std(axis=1), theirs.predict(Z, return_std=True)[1], rtol=0.1)
    theirs.fit(X, y)
    ours.set_params(prediction=PLUG_IN).fit(X, y)
    assert ours.sample_y(Z, n_samples=5).shape == (100, 5)
    if "DotProduct" in str(kernel):  # no parabola fits the data: the jitter of the covariance decides
        assert np.isfinite(ours.predict(Z)).all()
    else:
        found = likelihood_of(ours.kernel_, X, y, 1e-10)
        assert found > theirs.log_marginal_likelihood_value_ - ENOUGH
        assert_same_predictions(theirs.kernel_, X, y, Z, alpha=1e-10, atol=1e-4)


def test_compare_with_kernel_ridge_regression():
    """plot_compare_gpr_krr: the period of a sine from fifty noisy points, and its forecast."""
    data = np.linspace(0, 30, num=1_000).reshape(-1, 1)
    target = np.sin(data).ravel()
    rng = np.random.RandomState(0)
    rows = rng.choice(np.arange(0, 400), size=50, replace=False)
    X, y = data[rows], target[rows] + 0.5 * rng.randn(50)
    kernel = 1.0 * ExpSineSquared(1.0, 5.0, periodicity_bounds=(1e-2, 1e1)) + WhiteKernel(1e-1)
    theirs = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
    ours = CompositeGPRegressor(kernel, prediction=PLUG_IN).fit(X, y)
    # The likelihood has two maxima 0.22 apart, at periods of 6.33 and 6.42.
    assert likelihood_of(ours.kernel_, X, y, 0.0) > theirs.log_marginal_likelihood_value_ - ENOUGH
    period = ours.kernel_.k1.k2.periodicity
    assert period == pytest.approx(theirs.kernel_.k1.k2.periodicity, rel=0.01)
    assert period == pytest.approx(2 * np.pi, rel=0.05)
    assert_same_predictions(theirs.kernel_, X, y, data, alpha=0.0, rtol=1e-7)


def carbon_dioxide(months):
    """A series of the shape of Mauna Loa's: a rise that bends upward, a season that grows, and correlated noise."""
    rng = np.random.default_rng(0)
    years = 1958.2 + np.arange(months) / 12
    t = years - 1958.2
    season = (2.8 + 0.01 * t) * (np.sin(2 * np.pi * t + 0.5) + 0.3 * np.sin(4 * np.pi * t))
    drift = np.convolve(rng.normal(0, 0.12, size=months + 23), np.ones(24) / np.sqrt(24), mode="valid")
    return years[:, None], 315 + 0.8 * t + 0.012 * t**2 + season + drift + 0.2 * rng.normal(size=months)


def carbon_dioxide_kernel():
    long_term = 50.0**2 * RBF(length_scale=50.0)
    seasonal = 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
    irregular = 0.5**2 * RationalQuadratic(1.0, 1.0)
    noise = 0.1**2 * RBF(0.1) + WhiteKernel(0.1**2, (1e-5, 1e5))
    return long_term + seasonal + irregular + noise


def test_carbon_dioxide_under_the_same_hyperparameters():
    X, y = carbon_dioxide(521)
    Z = np.linspace(1958, 2024, 200)[:, None]
    assert_same_predictions(carbon_dioxide_kernel(), X, y - y.mean(), Z, alpha=0.0, rtol=1e-6)


@pytest.mark.slow  # scikit-learn's fit takes the better part of a minute
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_carbon_dioxide():
    X, y = carbon_dioxide(521)
    past, center = X[:, 0] < 1992, y[X[:, 0] < 1992].mean()
    theirs = GaussianProcessRegressor(carbon_dioxide_kernel(), alpha=0.0).fit(X[past], y[past] - center)
    ours = CompositeGPRegressor(carbon_dioxide_kernel(), prediction=PLUG_IN, segment_size=512)
    ours.fit(X[past], y[past] - center)
    found = likelihood_of(ours.kernel_, X[past], y[past] - center, 0.0)
    assert found > theirs.log_marginal_likelihood_value_ - 0.5
    (mean, std), (expected, claimed) = (model.predict(X[~past], return_std=True) for model in (ours, theirs))
    assert np.abs((mean - expected) / claimed).max() < 1.0
    np.testing.assert_allclose(std, claimed, rtol=0.5)
