"""Joint draws of fields: the exact posterior where all is conditioned on, its marginals and dependence elsewhere."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest
from compositegp.kernels import gram
from compositegp.spatial import fill, krige

KERNEL = ConstantKernel(1.0, "fixed") * Matern(2.0, "fixed", nu=1.5) + WhiteKernel(0.05, "fixed")


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 8, size=(n, 2))
    return X, 3 + np.linalg.cholesky(gram(KERNEL, X)) @ rng.normal(size=n)


@pytest.mark.parametrize("mean", [None, "linear"])
def test_draws_have_the_mean_and_covariance_of_the_posterior(mean):
    """A hundred points in two groups, the second given all of the first."""
    X, y = data()
    Z = np.stack(np.meshgrid(np.linspace(0, 8, 10), np.linspace(0, 8, 10)), axis=-1).reshape(-1, 2)
    model = CompositeGPRegressor(KERNEL, mean=mean, learning=None).fit(X, y)
    draws = model.sample_field(Z, 6000, latent=True)
    expected, covariance = model.predict(Z, return_cov=True, latent=True)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((draws.mean(axis=1) - expected) / std, 0, rtol=0, atol=5 / np.sqrt(6000))
    np.testing.assert_allclose(
        np.cov(draws) / np.outer(std, std), covariance / np.outer(std, std), rtol=0, atol=0.09
    )


def test_draws_honor_the_data():
    """Without noise a draw at a station is what was observed."""
    X, y = data()
    model = CompositeGPRegressor(Matern(2.0, nu=1.5), mean="constant", learning=None).fit(X, y)
    np.testing.assert_allclose(model.sample_field(X, 3, latent=True), np.tile(y[:, None], 3), rtol=0, atol=1e-3)


def test_noise_of_new_observations_is_independent():
    X, y = data()
    model = CompositeGPRegressor(KERNEL, learning=None).fit(X, y)
    Z = np.array([[4.0, 4.0], [4.0 + 1e-6, 4.0]])
    draws = model.sample_field(Z, 4000)
    assert np.var(draws[0] - draws[1]) == pytest.approx(2 * 0.05, rel=0.1)


def test_many_points_keep_their_distribution_and_their_dependence():
    """More observations and points than a group is conditioned on: marginals as predicted, neighbors correlated."""
    X, y = data(700, 1)
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(64)).fit(X, y)
    Z = np.stack(np.meshgrid(np.linspace(0, 8, 25), np.linspace(0, 8, 25)), axis=-1).reshape(-1, 2)
    draws = model.sample_field(Z, 800, latent=True)
    predicted = model.predict_distribution(Z, latent=True)
    error = (draws.mean(axis=1) - predicted.mean) / (predicted.std / np.sqrt(800))
    assert np.abs(error).max() < 5.5
    np.testing.assert_allclose(draws.std(axis=1) / predicted.std, 1, rtol=0, atol=0.15)
    exact = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(1000)).fit(X, y)
    _, covariance = exact.predict(Z, return_cov=True, latent=True)
    right = np.array([number for number in range(624) if number % 25 != 24])
    std = np.sqrt(np.diag(covariance))
    correlation = covariance[right, right + 1] / (std[right] * std[right + 1])
    centered = (draws - draws.mean(axis=1, keepdims=True)) / draws.std(axis=1, keepdims=True)
    found = (centered[right] * centered[right + 1]).mean(axis=1)
    assert np.abs(found - correlation).mean() < 0.05


def test_points_far_from_each_other_keep_their_distribution_among_many_observations():
    """As in a raster of which few cells are missing: each is drawn given its own neighbors, not those of a group."""
    X, y = np.random.default_rng(4).uniform(0, 40, size=(3000, 2)), np.random.default_rng(5).normal(size=3000)
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(256)).fit(X, y)
    Z = np.stack(np.meshgrid(np.linspace(1, 39, 12), np.linspace(1, 39, 12)), axis=-1).reshape(-1, 2)
    draws = model.sample_field(Z, 800, latent=True)
    predicted = model.predict_distribution(Z, latent=True)
    error = (draws.mean(axis=1) - predicted.mean) / (predicted.std / np.sqrt(800))
    assert np.abs(error).max() < 5.5
    np.testing.assert_allclose(draws.std(axis=1) / predicted.std, 1, rtol=0, atol=0.15)


def test_logarithms_are_positive_and_several_outputs_are_refused():
    X, y = data()
    model = CompositeGPRegressor(KERNEL, target_transform="log", learning=None).fit(X, np.exp(y))
    assert (model.sample_field(X[:7], 4) > 0).all()
    with pytest.raises(ValueError, match="one output; the model has 2"):
        CompositeGPRegressor(KERNEL, learning=None).fit(X, np.column_stack([y, y])).sample_field(X)


def test_a_map_has_draws_that_depend_on_the_seed_alone():
    X, y = data()
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "zinc": y})
    options = {"target": "zinc", "grid": 0.5, "kernel": KERNEL, "samples": 4}
    field = krige(frame, **options)
    assert field["samples"].dims == ("sample", "y", "x")
    np.testing.assert_array_equal(field["samples"], krige(frame, **options, n_jobs=2)["samples"])
    assert not np.array_equal(field["samples"], krige(frame, **options, random_state=1)["samples"])
    assert float(abs(field["samples"].mean("sample") - field["mean"]).max()) < 2.5


def test_draws_of_a_raster_are_those_of_the_posterior_around_what_was_observed():
    rng = np.random.default_rng(5)
    rows, columns = np.mgrid[0:9, 0:10].astype(float)
    X = np.column_stack([columns.ravel(), rows.ravel()])
    values = (3 + np.linalg.cholesky(gram(KERNEL, X)) @ rng.normal(size=90)).reshape(9, 10)
    raster = xr.DataArray(values, dims=("y", "x"), name="zinc").where((rows + columns) % 3 > 0)
    wanted = raster.isnull() & (raster.x > 0)
    filled = fill(raster, kernel=KERNEL, samples=4000, latent=True, wanted=wanted)
    draws, gaps = filled["samples"].to_numpy(), wanted.to_numpy()
    observed = raster.notnull().to_numpy()
    assert (draws[:, observed] == values[observed]).all()
    assert np.isnan(draws[:, ~observed & ~gaps]).all()
    # Ordinary kriging by dense algebra: the mean is estimated.
    there, here = X[observed.ravel()], X[gaps.ravel()]
    K, k = KERNEL(there), gram(KERNEL, there, here)
    ones = np.ones(len(there))
    weights = np.linalg.solve(K, np.column_stack([ones, values[observed], k]))
    precision, left = ones @ weights[:, 0], 1 - ones @ weights[:, 2:]
    level = ones @ weights[:, 1] / precision
    expected = level + k.T @ (weights[:, 1] - level * weights[:, 0])
    covariance = gram(KERNEL, here, here) - k.T @ weights[:, 2:] + np.outer(left, left) / precision
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((draws[:, gaps].mean(axis=0) - expected) / std, 0, rtol=0, atol=5 / np.sqrt(4000))
    np.testing.assert_allclose(
        np.cov(draws[:, gaps].T) / np.outer(std, std), covariance / np.outer(std, std), rtol=0, atol=0.1
    )
    with pytest.raises(ValueError, match="Load it first"):
        fill(raster.chunk({"x": 5}), kernel=KERNEL, samples=2)
