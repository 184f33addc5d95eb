"""Choices made in gaps like those to be predicted: against dense algebra, and by mirrors of a whole mask."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest
from compositegp.composite import Observations
from compositegp.means import Estimated, as_mean
from compositegp.posteriors import predict_gaps, rows_in_gaps
from compositegp.spatial import learn_raster
from compositegp.spatial.grid import grid_of
from compositegp.spatial.mirrored_gaps import is_useful, mirrored_gaps


def noisy(nu, length_scale=3.0):
    radial = Matern(length_scale, "fixed", nu=nu)
    return ConstantKernel(1.0, (1e-3, 1e3)) * radial + WhiteKernel(0.05, "fixed")


def field(n=220, nu=0.5, seed=0):
    """Places, values, and which of them are in a strip that is held out."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 2))
    y = 2 + np.linalg.cholesky(noisy(nu)(X)) @ rng.normal(size=n)
    return X, y, (X[:, 0] > 4) & (X[:, 0] < 6)


def dense(kernel, X, y, Z, level):
    """Gaussian process with a known level: mean, and standard deviation of new observations."""
    K, k = kernel(X), kernel(X, Z)
    weights = np.linalg.solve(K, np.column_stack([y - level, k]))
    return level + k.T @ weights[:, 0], np.sqrt(np.diag(kernel(Z)) - (k * weights[:, 1:]).sum(axis=0))


def crps(y, mean, std):
    z = (y - mean) / std
    return std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_held_out_observations_are_predicted_from_the_others():
    X, y, held = field()
    kernel = noisy(0.5)
    data = Observations.of(kernel, as_mean(Estimated("constant", [2.0], [[0.0]])), X, y, None)
    rows = rows_in_gaps(data, held)
    assert held[rows].all()
    assert len(rows) == held.sum()  # fewer than are asked for: all of them
    found = predict_gaps(data, held, rows, 256, None)
    mean, std = dense(kernel, X[~held], y[~held], X[rows], 2.0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(found.variance + 0.05), std, rtol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_the_kernel_is_the_one_with_the_least_crps_in_the_gap(nu):
    X, y, held = field(nu=nu)
    kernels = {"rough": noisy(0.5), "middle": noisy(1.5), "smooth": noisy(2.5)}
    model = CompositeGPRegressor(kernels, mean="constant", learning="composite_likelihood").fit(X, y, held_out=held)
    scores = {}
    for row in model.kernel_comparison_:
        if row.difference >= -0.1:
            found = dense(row.kernel, X[~held], y[~held], X[held], float(row.mean_coefficients[0, 0]))
            scores[row.name] = crps(y[held], *found).mean()
    assert model.kernel_comparison_.best.name == min(scores, key=scores.get)
    assert model.kernel_comparison_[0].chosen


@pytest.mark.parametrize("level", [0.0, 30.0])
def test_the_mean_is_that_of_a_neighborhood_where_that_predicts_gaps_better(level):
    """Halves of a field with different levels: one mean for all is wrong in both."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 40, size=(900, 2))
    y = np.linalg.cholesky(noisy(1.5, 1.0)(X)) @ rng.normal(size=len(X)) + level * (X[:, 0] > 20)
    held = ((X - 4 * np.floor(X / 4) - 2) ** 2).sum(axis=1) < 1.5**2
    model = CompositeGPRegressor(noisy(1.5, 1.0), mean="constant", prediction=Nearest(64), learning=None)
    model.fit(X, y, held_out=held)
    scores = {}
    for local in (False, True):
        given = CompositeGPRegressor(
            noisy(1.5, 1.0), mean="constant", prediction=Nearest(64, local_mean=local), learning=None
        ).fit(X, y)
        scores[local] = given.predict(X[:50] + 0.2)
    assert level == 0 or np.abs(scores[True] - scores[False]).max() > 0.5
    np.testing.assert_allclose(model.predict(X[:50] + 0.2), scores[level > 0], rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("held", "message"),
    [(np.zeros(5, dtype=bool), "each of 220 observations"), (np.zeros(220), "found an array of float64")],
)
def test_bad_masks_end_in_one_sentence(held, message):
    X, y, _ = field()
    with pytest.raises(ValueError, match=message):
        CompositeGPRegressor(noisy(0.5), learning=None).fit(X, y, held_out=held)


def test_a_mask_of_none_or_all_changes_nothing():
    X, y, _ = field()
    plain = CompositeGPRegressor(noisy(0.5), learning=None).fit(X, y)
    for held in (np.zeros(len(y), dtype=bool), np.ones(len(y), dtype=bool)):
        model = CompositeGPRegressor(noisy(0.5), learning=None).fit(X, y, held_out=held)
        np.testing.assert_array_equal(model.predict(X + 0.1), plain.predict(X + 0.1))


@pytest.mark.parametrize("mirror", [(True, True), (False, True), (True, False)])
def test_mirrored_gaps_of_windows_are_those_of_the_whole(mirror):
    rng = np.random.default_rng(0)
    values = np.where(rng.uniform(size=(3, 21, 30)) < 0.3, np.nan, 1.0)
    grid = grid_of(xr.DataArray(values, dims=("time", "y", "x"), coords={"time": [0.0, 1.0, 2.0]}))
    expected = np.isnan(values)[:, :: -1 if mirror[0] else 1, :: -1 if mirror[1] else 1]
    for window in ((slice(0, 2), slice(0, 16), slice(10, 30)), (slice(1, 3), slice(16, 21), slice(3, 4))):
        np.testing.assert_array_equal(mirrored_gaps(values, True, grid, window, mirror), expected[window])
    wanted = np.zeros(values.shape, dtype=bool)
    assert not mirrored_gaps(values, wanted, grid, grid.everything, mirror).any()
    assert not is_useful(np.zeros(900, dtype=bool))
    assert not is_useful(np.ones(900, dtype=bool))
    assert is_useful(np.arange(900) < 300)


def test_rasters_are_learned_with_their_mirrored_gaps(monkeypatch):
    rows, columns = np.mgrid[0:40, 0:150]
    values = np.where((rows < 12) & (columns < 60), np.nan, np.sin(rows / 7) + np.cos(columns / 9))
    seen = {}

    def fit(self, X, y, noise_variance=None, held_out=None):
        seen.update(X=X, held=held_out)

    monkeypatch.setattr(CompositeGPRegressor, "fit", fit)
    learn_raster(xr.DataArray(values, dims=("y", "x")))
    x, y = seen["X"].T
    np.testing.assert_array_equal(seen["held"], (y > 27) & (x > 89))
