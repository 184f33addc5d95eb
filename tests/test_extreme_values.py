"""Values at the ends of what double precision can hold: a right result or a clear error, never NaN or an overflow."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeLikelihood, Nearest, learn, nearest

KERNEL = 1.0 * Matern([1.0, 1.0], nu=1.5) + WhiteKernel()
WHITE = WhiteKernel(noise_level_bounds=(-np.inf, np.inf))


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 10, size=(60, 2))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=60)


@pytest.mark.parametrize("size", [1e-150, 1e-100, 1e100, 1e149])
def test_very_large_and_very_small_targets_scale_the_predictions(data, size):
    X, y = data
    expected = np.array(CompositeGPRegressor(KERNEL).fit(X, y).predict(X[:5], return_std=True))
    found = np.array(CompositeGPRegressor(KERNEL).fit(X, size * y).predict(X[:5], return_std=True))
    np.testing.assert_allclose(found / size, expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", [None, KERNEL])
@pytest.mark.parametrize(
    ("size", "remedy"), [(1e160, "Divide y"), (1e200, "Divide y"), (1e307, "Divide y"), (1e-160, "Multiply y")]
)
def test_targets_beyond_double_precision_are_refused(data, kernel, size, remedy):
    X, y = data
    with pytest.raises(ValueError, match=f"y .*beyond double precision. {remedy}"):
        CompositeGPRegressor(kernel).fit(X, size * y)


def test_one_target_that_is_too_large_is_named(data):
    X, y = data
    y[17] = -3e200
    with pytest.raises(ValueError, match="y has the value -3e\\+200 at index 17"):
        CompositeGPRegressor(KERNEL).fit(X, y)
    with pytest.raises(ValueError, match="y has the value -3e\\+200 at index 17"):
        nearest(KERNEL, X, y, X[:2])


def test_logarithms_of_large_targets_are_small(data):
    X, y = data
    plain = CompositeGPRegressor(KERNEL, mean="constant", target_transform="log").fit(X, np.exp(y))
    large = CompositeGPRegressor(KERNEL, mean="constant", target_transform="log").fit(X, 1e250 * np.exp(y))
    np.testing.assert_allclose(large.predict(X[:5]) / 1e250, plain.predict(X[:5]), rtol=1e-6)


def test_infinite_bounds_are_no_bounds(data):
    """White noise has its maximum likelihood estimate at the mean square, whatever the bounds."""
    X, y = data
    for learning in ("composite_likelihood", "fisher_average", CompositeLikelihood(start="kernel")):
        model = CompositeGPRegressor(WHITE, learning=learning).fit(X, y)
        assert model.kernel_.noise_level == pytest.approx(np.mean(y**2), rel=0.05)
    assert CompositeGPRegressor(WHITE).partial_fit(X, y).kernel_.noise_level == pytest.approx(
        np.mean(y**2), rel=0.05
    )
    assert learn(WHITE, X, y, [np.arange(60)]).kernel.noise_level == pytest.approx(np.mean(y**2), rel=0.05)


def test_infinite_bounds_learn_what_wide_bounds_do(data):
    X, y = data
    kernel = ConstantKernel(1.0, (0, np.inf)) * RBF([1.0, 1.0], [(0, np.inf), (1e-3, np.inf)]) + WHITE
    wide = ConstantKernel(1.0, (1e-9, 1e9)) * RBF([1.0, 1.0], (1e-9, 1e9)) + WhiteKernel(1.0, (1e-9, 1e9))
    theirs = GaussianProcessRegressor(wide, alpha=0).fit(X, y)
    for given in (kernel, [kernel]):
        ours = CompositeGPRegressor(given, learning=CompositeLikelihood(start="kernel")).fit(X, y)
        likelihood = theirs.log_marginal_likelihood(ours.kernel_.theta)
        assert likelihood > theirs.log_marginal_likelihood_value_ - 0.02


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::compositegp.NumericalWarning")
@pytest.mark.parametrize("option", [{}, {"return_std": True}, {"return_cov": True}], ids=["mean", "std", "cov"])
@pytest.mark.parametrize("prediction", ["nearest", Nearest(10), "composite", "fitc", "rbcm"])
@pytest.mark.parametrize(
    ("kernel", "unit", "Z"),
    [
        (DotProduct() + WhiteKernel(), 1e148, [[1e160, 1e160]]),
        (Matern(nu=3.5) + WhiteKernel(), 1.0, [[0.0, 1e-120]]),
    ],
    ids=["dot product", "Matern 3.5"],
)
def test_covariances_that_are_not_finite_are_an_error(data, kernel, unit, Z, prediction, option):
    X, y = data
    X[0] = 0.0  # so that a test point may be next to nothing away from it
    model = CompositeGPRegressor(kernel, learning=None, prediction=prediction).fit(unit * X, y)
    if prediction == "rbcm" and "return_cov" in option:
        pytest.skip("a committee has no joint predictions")
    with pytest.raises(LinAlgError, match="not finite|beyond double precision"):
        model.predict(Z, **option)
