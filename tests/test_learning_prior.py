"""A weak prior of log θ: by finite differences, where it matters and where it does not."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeLikelihood, learn, segment
from compositegp.composite import Composite, Observations, total_score
from compositegp.learning.prior import LogScalePrior


def test_the_posterior_adds_the_log_density_of_the_prior_with_its_derivatives(rng):
    X, y = rng.uniform(0, 5, size=(30, 1)), rng.normal(size=30)
    kernel, prior = 2.0 * RBF(0.7) + WhiteKernel(0.3), LogScalePrior(np.array([0.1, -0.4, 0.6]), 1.7)

    def at(theta):
        data = Observations.checked(kernel.clone_with_theta(theta), X, y, mean=None, noise_variance=None)
        plain = total_score(data, Composite.full(30), np.zeros((0, 1)), probes=-1)
        return plain, prior.applied(plain, theta)

    plain, found = at(kernel.theta)
    expected = -0.5 * (((kernel.theta - prior.center) / 1.7) ** 2).sum()
    assert found.log_likelihood - plain.log_likelihood == pytest.approx(expected)
    np.testing.assert_allclose(found.fisher - plain.fisher, np.eye(3) / 1.7**2, rtol=0, atol=1e-10)
    again = prior.removed(found, kernel.theta)
    assert again.log_likelihood == pytest.approx(plain.log_likelihood)
    np.testing.assert_allclose(again.gradient, plain.gradient, rtol=0, atol=1e-9)
    np.testing.assert_allclose(again.fisher, plain.fisher, rtol=0, atol=1e-9)
    for number in range(3):
        step = 1e-5 * np.eye(3)[number]
        slope = (at(kernel.theta + step)[1].log_likelihood - at(kernel.theta - step)[1].log_likelihood) / 2e-5
        assert found.gradient[number] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def noisy_line(rng, n=1500):
    """A target with one column that matters and one that does not."""
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_it_holds_an_irrelevant_length_scale_and_leaves_the_others(rng):
    X, y = noisy_line(rng)
    kernel = ConstantKernel(1.0) * Matern([1.0, 1.0], nu=2.5) + WhiteKernel(1.0)
    free, held = (
        learn(kernel, X, y, segment(X, 300), learning=CompositeLikelihood(prior=spread), warn=False)
        for spread in (None, 3.0)
    )
    assert held.kernel.k1.k2.length_scale[1] < 0.5 * free.kernel.k1.k2.length_scale[1]
    assert held.kernel.k1.k2.length_scale[1] > 5
    assert held.kernel.k2.noise_level == pytest.approx(free.kernel.k2.noise_level, rel=0.01)
    assert held.kernel.k1.k2.length_scale[0] == pytest.approx(free.kernel.k1.k2.length_scale[0], rel=0.5)
    assert held.log_likelihood == pytest.approx(free.log_likelihood, abs=4)


def test_far_from_the_data_the_default_predicts_what_the_data_are_like(rng):
    """A slow trend leaves its mean open: a flat prior of the constant could put it anywhere."""
    X = rng.uniform(-1, 1, size=(800, 3))
    y = 2 * X[:, 0] - X[:, 1] + 0.05 * rng.normal(size=800)
    model = CompositeGPRegressor().fit(X, y)
    mean, std = model.predict([[1e6, 1e6, 1e6]], return_std=True)
    assert abs(mean[0] - y.mean()) < 2 * y.std()
    assert std[0] < 100 * y.std()


def test_an_estimator_knows_the_parameter_and_refuses_nonsense(rng):
    X, y = noisy_line(rng, 60)
    for wrong in (0.0, -1.0, "strong", True):
        with pytest.raises(ValueError, match="prior must be a positive number"):
            CompositeGPRegressor(learning=CompositeLikelihood(prior=wrong)).fit(X, y)
