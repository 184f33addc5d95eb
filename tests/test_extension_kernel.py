"""A new fast kernel costs one file: all that the library asks of it is registered here, outside the package."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
    WhiteKernel,
)

from compositegp import CompositeGPRegressor, learn, nearest, segment
from compositegp.kernels import (
    Boxes,
    DataScale,
    Linearized,
    covariance_bounds,
    diagonal,
    free_hyperparameters,
    gram,
    in_length_scales,
    largest_covariance,
    linearize,
    metric,
    noise_variance,
    register_storable,
    rule,
    storable_class,
    typical_values,
)
from compositegp.learning.composite_likelihood import CompositeLikelihood
from compositegp.storage import read_archive, write_archive


@register_storable
class Wendland(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Wendland's kernel (1 − r)₊⁴ (4 r + 1), r = |x − x′| / support: exactly zero beyond its support."""

    def __init__(self, support=1.0, support_bounds=(1e-5, 1e5)):
        self.support = support
        self.support_bounds = support_bounds

    @property
    def hyperparameter_support(self):
        return Hyperparameter("support", "numeric", self.support_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        r = np.minimum(cdist(X, X if Y is None else Y) / self.support, 1.0)
        K = (1 - r) ** 4 * (4 * r + 1)
        if not eval_gradient:
            return K
        p = len(free_hyperparameters(self, "support"))
        return K, (20 * r**2 * (1 - r) ** 3)[:, :, None][:, :, :p]


@rule(gram, Wendland)
def _gram(kernel, X, Y=None):
    r = _distances(kernel, X, X if Y is None else Y)
    return (1 - r) ** 4 * (4 * r + 1)


@rule(diagonal, Wendland)
def _diagonal(kernel, X, *, noise=True):
    return np.ones(X.shape[:-1])


@rule(noise_variance, Wendland)
def _noise_variance(kernel, X):
    return np.zeros(X.shape[:-1])


@rule(linearize, Wendland)
def _linearize(kernel, X):
    r = _distances(kernel, X, X)
    derivatives = {"support": lambda: 20 * r**2 * (1 - r) ** 3}
    free = [derivatives[name] for name in free_hyperparameters(kernel, "support")]
    return Linearized.of_matrices((1 - r) ** 4 * (4 * r + 1), free)


@rule(metric, Wendland)
def _metric(kernel, d):
    return 1.0, np.full(d, kernel.support**-2.0)


@rule(largest_covariance, Wendland)
def _largest_covariance(kernel, gaps):
    return gram(kernel, gaps[:, None, :], np.zeros_like(gaps)[:, None, :])[:, 0, 0]


@rule(typical_values, Wendland)
def _typical_values(kernel, scale):
    return {"support": 2 * scale.length_scale(1)}


def _distances(kernel, X, Y):
    squares = ((X[..., :, None, :] - Y[..., None, :, :]) ** 2).sum(axis=-1)
    return np.minimum(np.sqrt(squares) / kernel.support, 1.0)


KERNELS = [
    Wendland(1.3),
    Wendland(1.3, "fixed"),
    2.0 * Wendland(0.7) + WhiteKernel(0.1),
    Wendland(0.7) * Wendland(2.0) + WhiteKernel(0.1),
    Wendland(0.7) ** 2,
]
TRUTH = 2.0 * Wendland(1.5) + WhiteKernel(0.1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, size=(900, 2))
    return X, np.linalg.cholesky(TRUTH(X)) @ rng.normal(size=900), segment(X, 300)


@pytest.fixture
def no_slow_path(monkeypatch):
    """The kernel's own __call__, by which a kernel without rules is evaluated, must not be needed."""

    def refuse(*_, **__):
        raise AssertionError("the kernel was evaluated by its __call__")

    monkeypatch.setattr(Wendland, "__call__", refuse)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_the_kernels_own_call(kernel, rng):
    X, Y = rng.uniform(0, 2, size=(3, 9, 2)), rng.uniform(0, 2, size=(5, 2))
    for x, K, cross in zip(X, gram(kernel, X), gram(kernel, X, Y), strict=True):
        np.testing.assert_allclose(K, kernel(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(cross, kernel(x, Y), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(diagonal(kernel, X[0]), np.diag(kernel(X[0])), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_derivative_equals_finite_differences(kernel, rng):
    X = rng.uniform(0, 2, size=(2, 6, 2))
    found = linearize(kernel, X)
    np.testing.assert_allclose(found.value, gram(kernel, X), rtol=1e-12, atol=1e-12)
    assert found.jacobian().shape == (2, len(kernel.theta), 6, 6)
    cotangent = rng.normal(size=(2, 6, 6))
    for number, step in enumerate(1e-6 * np.eye(len(kernel.theta))):
        up, down = (gram(kernel.clone_with_theta(kernel.theta + s), X) for s in (step, -step))
        derivative = (up - down) / 2e-6
        np.testing.assert_allclose(found.jacobian()[:, number], derivative, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(
            found.pullback(cotangent)[:, number], (cotangent * derivative).sum(axis=(1, 2)), rtol=1e-6, atol=1e-7
        )


def test_hyperparameters_are_learned_by_the_rules_alone(data, no_slow_path):
    X, y, segments = data
    result = learn(
        1.0 * Wendland() + WhiteKernel(), X, y, segments, learning=CompositeLikelihood(None), conditioning_size=0
    )
    assert result.converged
    assert (np.abs(result.theta - TRUTH.theta) < 3.5 * result.theta_standard_errors).all()


def test_learning_begins_at_the_scale_of_the_data(data):
    X, y, segments = data
    scale = DataScale(np.array([3.0, 4.0]), 2.0)
    assert typical_values(2.0 * Wendland(), scale)["k2__support"] == 10.0
    near, far = (
        learn(
            1.0 * Wendland() + WhiteKernel(),
            unit * X,
            y,
            segments,
            learning=CompositeLikelihood(None),
            conditioning_size=0,
        )
        for unit in (1.0, 1e7)
    )
    change = far.theta - near.theta - np.log([1.0, 1e7, 1.0])
    assert (np.abs(change) < 0.3 * near.theta_standard_errors).all()


def test_nearness_is_in_its_own_length_scale(data):
    X, y, _ = data
    np.testing.assert_allclose(in_length_scales(2.0 * Wendland(0.5), X), 2 * X, rtol=1e-12)
    found = nearest(TRUTH, X, y, X[:5] + 0.01, n_neighbors=50)
    assert np.isfinite(found.mean).all()


def test_covariances_beyond_the_support_are_known_to_be_zero():
    box = Boxes(np.zeros((1, 2)), np.ones((1, 2)))
    others = Boxes(np.array([[1.5, 0.0], [4.0, 0.0]]), np.array([[2.0, 1.0], [5.0, 1.0]]))
    near, far = covariance_bounds(TRUTH, others, box)
    assert near == pytest.approx(gram(2.0 * Wendland(1.5), np.array([[0.5, 0.0]]), np.zeros((1, 2)))[0, 0])
    assert far == 0


def test_models_with_it_are_saved_and_loaded(data, tmp_path):
    kernel = Wendland(0.7, (0.1, 10.0)) * 3.0 + WhiteKernel(0.2, "fixed")
    write_archive(tmp_path / "kernel", "test", 1, {"kernel": kernel})
    again = read_archive(tmp_path / "kernel", "test", 1)["kernel"]
    assert again == kernel
    np.testing.assert_array_equal(again.bounds, kernel.bounds)
    X, y, _ = data
    model = CompositeGPRegressor(TRUTH, learning=None).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        CompositeGPRegressor.load(tmp_path / "model").predict(X[:3]), model.predict(X[:3])
    )


def test_what_cannot_be_registered_is_named():
    with pytest.raises(ValueError, match="subclass of scikit-learn's Kernel; found <class 'int'>"):
        register_storable(int)
    with pytest.raises(ValueError, match="a kernel class named Wendland is registered already"):
        register_storable(type("Wendland", (Wendland,), {"__module__": "elsewhere"}))
    assert storable_class("Wendland") is Wendland
    with pytest.raises(ValueError, match="kernels of class Nowhere are not known here: import the module"):
        storable_class("Nowhere")
