"""Data that break naive implementations: numbers come out, or an error that says what to do; never NaN."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Inducing, Nearest
from compositegp.learning import default_kernel

WAYS = [
    {},
    {"segment_size": 25, "conditioning_size": 10, "prediction": Nearest(n_neighbors=20)},
    {"prediction": "composite", "segment_size": 25, "conditioning_size": 0},
    {"prediction": "composite", "segment_size": 25, "conditioning_size": 10},
    {"prediction": "rbcm", "segment_size": 25},
    {"prediction": Inducing(15, "fitc")},
]


def table(rng, n=100):
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def duplicates(rng):
    X, y = table(rng, 50)
    return np.concatenate([X, X]), np.concatenate([y, y])


def conflicting_duplicates(rng):
    X, y = table(rng, 50)
    return np.concatenate([X, X]), np.concatenate([y, y + 1])


def all_the_same_point(rng):
    return np.ones((60, 2)), rng.normal(size=60)


def constant_column(rng):
    X, y = table(rng)
    X[:, 1] = 1e9
    return X, y


def collinear_columns(rng):
    X, y = table(rng)
    X[:, 1] = 2 * X[:, 0]
    X[:, 2] = X[:, 0] + X[:, 1]
    return X, y


def one_row(rng):
    return np.array([[1.0, 2.0]]), np.array([3.0])


def two_rows(rng):
    return np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([3.0, 4.0])


def huge_offsets(rng):
    X, y = table(rng)
    return X + 1e8, y + 1e8


def huge_numbers(rng):
    X, y = table(rng)
    return 1e100 * X, 1e100 * y


def tiny_numbers(rng):
    X, y = table(rng)
    return 1e-100 * X, 1e-100 * y


def columns_of_different_size(rng):
    X, y = table(rng)
    return X * [1e-8, 1.0, 1e8], y


def no_noise(rng):
    X, _ = table(rng)
    return X, X[:, 0] ** 2


def pure_noise(rng):
    return rng.normal(size=(100, 3)), rng.normal(size=100)


def binary(rng):
    X = rng.integers(0, 2, size=(100, 3)).astype(float)
    return X, X[:, 0]


def outlier(rng):
    X, y = table(rng)
    y[0], X[1] = 1e6, 1e6
    return X, y


CASES = [value for value in list(globals().values()) if callable(value) and value.__module__ == __name__][1:]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_default_kernel_gives_finite_sane_predictions(case, way, rng):
    X, y = case(rng)
    Z = np.concatenate([X[:5], X[:5] + X.std(), X[:1] * 1.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared = not way or isinstance(way["prediction"], Nearest)  # elsewhere Matérn 3/2 is learned alone
        options = {} if compared else {"kernel": default_kernel(X.shape[1]), "mean": "constant"}
        model = CompositeGPRegressor(**options, **way).fit(X, y)
        mean, std = model.predict(Z, return_std=True)
        inside = model.predict(X)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    scale = np.abs(y - y.mean()).max()
    if case is not outlier:
        assert np.abs(inside - y.mean()).max() <= 3 * scale + 1e-9 * np.abs(y).max()  # nothing wild


@pytest.mark.parametrize("noise", [1e-12, 1e-6])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_predictions_with_hardly_any_noise_are_the_data(way, noise, rng):
    X, y = table(rng)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, std = CompositeGPRegressor(kernel, learning=None, **way).fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    if not isinstance(way.get("prediction"), Inducing):  # fifteen values cannot tell a hundred
        assert np.abs(mean - y).max() < 10 * np.sqrt(noise)
        assert std.max() < 100 * np.sqrt(noise)


def test_default_on_huge_offsets_is_the_default_without(rng):
    X, y = table(rng, 200)
    Z = rng.normal(size=(30, 3))
    plain = CompositeGPRegressor().fit(X, y).predict(Z, return_std=True)
    moved = CompositeGPRegressor().fit(X + 1e6, y + 1e6).predict(Z + 1e6, return_std=True)
    np.testing.assert_allclose(moved[0] - 1e6, plain[0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(moved[1], plain[1], rtol=1e-3)


def test_the_default_does_not_depend_on_units(rng):
    X, y = table(rng, 200)
    Z = rng.normal(size=(30, 3))
    plain = CompositeGPRegressor().fit(X, y).predict(Z, return_std=True)
    scaled = (
        CompositeGPRegressor().fit(X * [1e-4, 10.0, 1e5], 1e3 * y).predict(Z * [1e-4, 10.0, 1e5], return_std=True)
    )
    np.testing.assert_allclose(np.array(scaled) / 1e3, plain, rtol=1e-5)


def test_conflicting_data_without_noise_give_a_warning(rng):
    X, y = conflicting_duplicates(rng)
    with pytest.warns(Warning, match="Add a WhiteKernel"):
        CompositeGPRegressor(Matern(1.0), learning=None).fit(X, y).predict(X)


def test_an_unsuitable_kernel_is_named(rng):
    X, y = table(rng)
    with pytest.raises(ValueError, match="Anisotropic|length scales"):
        CompositeGPRegressor(RBF([1.0, 2.0]), learning=None).fit(X, y)
