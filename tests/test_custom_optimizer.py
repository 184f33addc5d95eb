"""An optimizer of one's own, as scikit-learn's Gaussian process takes it."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest, learn
from compositegp.learning import CustomOptimizer

KERNEL = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
PLUG_IN = Nearest(theta_uncertainty=False)


def by_gradient(objective, theta, bounds):
    found = minimize(
        objective, theta, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-9, "ftol": 1e-15}
    )
    return found.x, found.fun


def without_gradient(objective, theta, bounds):
    def number(values):
        return objective(np.clip(values, *bounds.T), eval_gradient=False)

    found = minimize(number, theta, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    return found.x, found.fun


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 10, size=(60, 1))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)


@pytest.mark.parametrize("optimizer", [by_gradient, without_gradient])
def test_it_ends_where_scikit_learn_ends_with_it(data, optimizer):
    theirs = GaussianProcessRegressor(KERNEL, alpha=0.0, optimizer=optimizer).fit(*data)
    ours = CompositeGPRegressor(KERNEL, learning=optimizer, prediction=PLUG_IN).fit(*data)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, rtol=0, atol=1e-3)
    assert ours.learning_result_.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)
    assert (ours.theta_standard_errors_ < 2).all()


def test_coefficients_of_the_mean_follow(data):
    """At the maximum no change of θ and β together is more likely: β is that of generalized least squares."""
    X, y = data
    y = y + 5 - 2 * X[:, 0]
    model = CompositeGPRegressor(KERNEL, mean="linear", learning=by_gradient, prediction=PLUG_IN).fit(X, y)
    K, F = model.kernel_(X), np.column_stack([np.ones(60), X])
    solved = np.linalg.solve(K, np.column_stack([F, y]))
    expected = np.linalg.solve(F.T @ solved[:, :2], F.T @ solved[:, 2])
    np.testing.assert_allclose(model.mean_coefficients_, expected, rtol=1e-6)

    def likelihood(theta):
        covariance = KERNEL.clone_with_theta(theta)(X)
        inverse = np.linalg.inv(covariance)
        beta = np.linalg.solve(F.T @ inverse @ F, F.T @ inverse @ y)
        rest = y - F @ beta
        return -0.5 * (rest @ inverse @ rest + np.linalg.slogdet(covariance)[1])

    for step in 1e-3 * np.eye(3):
        assert likelihood(model.kernel_.theta) > likelihood(model.kernel_.theta + step)
        assert likelihood(model.kernel_.theta) > likelihood(model.kernel_.theta - step)


def test_several_segments_and_the_function(rng):
    X = rng.uniform(0, 40, size=(300, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=300)
    segments = np.array_split(np.argsort(X[:, 0]), 4)
    found = learn(KERNEL, X, y, segments, learning=CustomOptimizer(by_gradient), conditioning_size=0)
    expected = learn(KERNEL, X, y, segments, conditioning_size=0)
    np.testing.assert_allclose(found.theta, expected.theta, rtol=0, atol=0.1)
    assert found.log_likelihood >= expected.log_likelihood - 1e-6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_where_the_covariance_fails_are_infinitely_bad(data):
    X, y = data

    def look(objective, theta, bounds):
        value, gradient = objective(np.array([750.0, 0.0]))
        assert value == np.inf
        assert (gradient == 0).all()
        return theta, objective(theta, eval_gradient=False)

    model = CompositeGPRegressor(1e-3 * Matern(1.0), learning=look, alpha=1e-3, prediction=PLUG_IN).fit(X, y)
    np.testing.assert_array_equal(model.kernel_.theta, (1e-3 * Matern(1.0)).theta)


def test_a_wrong_answer_is_named(data):
    with pytest.raises(ValueError, match="must return log hyper-parameters of shape"):
        CompositeGPRegressor(KERNEL, learning=lambda objective, theta, bounds: (theta[:1], 0.0)).fit(*data)


def test_a_function_is_not_saved(data, tmp_path):
    model = CompositeGPRegressor(KERNEL, learning=by_gradient).fit(*data)
    with pytest.raises(ValueError, match="learning"):
        model.save(tmp_path / "model.cgp")
