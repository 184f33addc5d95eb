"""Prediction from the nearest observations: the exact GP given those."""

import joblib
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import exact_gp
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from test_means import linear, universal_kriging

from compositegp import Composite, Estimated, nearest, posterior
from compositegp.backend import fetch
from compositegp.composite import Observations
from compositegp.posteriors import NearestPredictor, Neighbors

KERNEL = 1.5 * Matern([0.5, 2.0], nu=1.5) + WhiteKernel(0.2)


@pytest.fixture
def problem(rng):
    X, Z = rng.uniform(0, 5, size=(150, 2)), rng.uniform(0, 5, size=(23, 2))
    return X, np.sin(X).sum(axis=1) + 0.4 * rng.normal(size=150), Z


@pytest.mark.parametrize("group_size", [1, 4, 23])
def test_all_observations_are_the_exact_gp(problem, group_size):
    X, y, Z = problem
    mean, covariance = exact_gp(KERNEL, X, y, Z)
    for size in (150, 1000):
        found = nearest(KERNEL, X, y, Z, group_size=group_size, n_neighbors=size)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=0, atol=1e-8)


def test_each_point_has_its_own_term(problem, rng):
    X, y, Z = problem
    noise = rng.uniform(0, 0.5, size=150)
    found = nearest(KERNEL, X, y, Z, noise_variance=noise, mean=1.0, n_neighbors=20)
    for z, mean, variance in zip(Z, found.mean, found.variance, strict=True):
        near = np.argsort((((X - z) / [0.5, 2.0]) ** 2).sum(axis=1))[:20]
        term = posterior(KERNEL, X, y, z[None], Composite([(near, 1.0)]), noise_variance=noise, mean=1.0)
        assert mean == pytest.approx(term.mean[0])
        assert variance == pytest.approx(term.variance[0])


def test_more_observations_are_never_less_certain(problem):
    X, y, Z = problem
    variances = [nearest(KERNEL, X, y, Z, n_neighbors=size).variance for size in (1, 5, 20, 150)]
    assert (np.diff(variances, axis=0) < 1e-12).all()
    grouped = nearest(KERNEL, X, y, Z, group_size=5, n_neighbors=40)
    assert (grouped.variance > variances[-1] - 1e-12).all()


def test_points_share_observations_only_where_that_costs_next_to_nothing(rng):
    """Cells of a lattice with a large gap and single ones missing: expected log score against each cell alone."""
    rows, columns = np.mgrid[0:45, 0:45]
    missing = (rng.uniform(size=rows.shape) < 0.05) | ((rows - 22) ** 2 + (columns - 20) ** 2 < 150)
    places = np.stack([columns, rows], axis=-1) * 0.1
    X, Z, kernel = places[~missing], places[missing], Matern(2.0, nu=0.5) + WhiteKernel(0.01)
    data = Observations.checked(kernel, X, np.sin(X).sum(axis=1), mean=None, noise_variance=None)
    predictor = NearestPredictor(data)
    alone, shared = (predictor.predict(Z, Neighbors(256), size).variance + 0.01 for size in (1, None))
    losses = 0.5 * np.log(shared / alone)
    assert losses.mean() < 2e-3
    assert losses.max() < 0.08
    tasks = predictor._tasks(Z, Neighbors(256), predictor._sharing(Z, Neighbors(256), None, None), None)
    groups = [group for some in tasks for own, _ in some for group in own]
    assert sorted(np.concatenate(groups)) == list(range(len(Z)))
    assert len(groups) < len(Z) / 8


@given(near=st.integers(0, 40), far=st.integers(0, 40), n=st.integers(1, 600))
def test_ranks_are_the_nearest_and_some_that_thin_out(near, far, n):
    assume(near + far > 0)
    ranks = Neighbors(near, far).ranks(n)
    assert len(ranks) == min(near + far, n)
    assert (np.diff(ranks) > 0).all()
    np.testing.assert_array_equal(ranks[: min(near, n)], np.arange(min(near, n)))
    assert ranks[-1] < min(n, max(8 * (near + far), 1))


@pytest.mark.parametrize("group_size", [1, 6, None])
def test_far_neighbors_are_taken_by_their_rank(device, rng, group_size):
    """Against the exact Gaussian process given the observations that brute force finds for each group."""
    X, Z = rng.uniform(0, 9, size=(700, 2)), rng.uniform(0, 9, size=(40, 2))
    y = np.sin(X).sum(axis=1)
    predictor = NearestPredictor(Observations.checked(KERNEL, X, y, mean=None, noise_variance=None))
    neighbors = Neighbors(30, 10)
    found = predictor.predict(Z, neighbors, group_size)
    scaled, tests = X / [0.5, 2.0], Z / [0.5, 2.0]
    tasks = predictor._tasks(Z, neighbors, predictor._sharing(Z, neighbors, group_size, None), None)
    largest = 0
    for own, sets in (task for some in tasks for task in some):
        for group, near in zip(own, fetch(sets), strict=True):
            largest = max(largest, len(group))
            distances = np.linalg.norm(scaled[:, None] - tests[group], axis=2).min(axis=1)
            assert set(near[-20:]) <= set(np.argsort(distances)[:30])  # the nearest of a group are among its own
            if len(group) == 1:
                np.testing.assert_array_equal(near[::-1], np.argsort(distances)[neighbors.ranks(700)])
            mean, covariance = exact_gp(KERNEL, X[near], y[near], Z[group])
            np.testing.assert_allclose(found.mean[group], mean, rtol=0, atol=1e-8)
            np.testing.assert_allclose(found.variance[group], np.diag(covariance), rtol=0, atol=1e-8)
    assert (largest > 1) == (group_size != 1)


def test_in_a_wide_gap_some_far_observations_say_more_than_as_many_near_ones(rng):
    """A field with a short and a long range, and a hole in the middle: expected log score."""
    X = rng.uniform(-30, 30, size=(6000, 2))
    X = X[np.linalg.norm(X, axis=1) > 10]
    kernel = 0.3 * Matern(1.0, nu=1.5) + Matern(60.0, nu=0.5) + WhiteKernel(0.01)
    predictor = NearestPredictor(Observations.checked(kernel, X, X[:, 0], mean=None, noise_variance=None))
    Z = rng.uniform(-5, 5, size=(30, 2))
    nearest_alone, spread, twice = (
        0.5 * np.log(predictor.predict(Z, neighbors, 1).variance).mean()
        for neighbors in (Neighbors(128), Neighbors.spread(128), Neighbors(256))
    )
    assert nearest_alone - spread > 0.7 * (nearest_alone - twice) > 0


def test_estimated_coefficients_are_universal_kriging(problem):
    X, y, Z = problem
    y = y + linear(X) @ [40.0, 2.0, -3.0]
    beta, covariance, mean, expected = universal_kriging(KERNEL, X, y, Z, linear)
    found = nearest(KERNEL, X, y, Z, group_size=6, mean=Estimated("linear", beta, covariance), n_neighbors=150)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.variance, np.diag(expected), rtol=0, atol=1e-8)


@pytest.mark.parametrize("mean", [None, 1.5, "linear", "estimated"])
@pytest.mark.parametrize("group_size", [1, 4, None])
def test_means_alone_are_the_means_of_marginals(problem, rng, mean, group_size):
    X, y, Z = problem
    targets = np.stack([y, y**2], axis=1)
    noise = rng.uniform(0, 0.5, size=150)
    if mean == "estimated":
        mean = Estimated("linear", rng.normal(size=(3, 2)), np.eye(3))
    predictor = NearestPredictor(Observations.checked(KERNEL, X, targets, mean=mean, noise_variance=noise))
    found = predictor.means(Z, Neighbors(20), group_size)
    np.testing.assert_allclose(found, predictor.predict(Z, Neighbors(20), group_size).mean, rtol=0, atol=1e-10)
    if mean is None:
        np.testing.assert_allclose(
            predictor.means(Z, Neighbors(150), group_size)[:, 0],
            exact_gp(KERNEL, X, y, Z, noise)[0],
            rtol=0,
            atol=1e-8,
        )


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.usefixtures("two_blas_threads")
def test_any_number_of_processes_or_threads_gives_the_same_bits(backend):
    rng = np.random.default_rng(0)
    X, y, Z = rng.uniform(0, 5, size=(1000, 2)), rng.normal(size=1000), rng.uniform(0, 5, size=(400, 2))
    one = nearest(KERNEL, X, y, Z, group_size=2, n_neighbors=200)
    for _ in range(3):  # threads are not the same every time
        with joblib.parallel_config(backend=backend):
            two = nearest(KERNEL, X, y, Z, group_size=2, n_jobs=2, n_neighbors=200)
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.variance, two.variance)


def test_bad_arguments_of_nearest_are_named(problem):
    X, y, Z = problem
    with pytest.raises(ValueError, match="n_neighbors must be"):
        nearest(KERNEL, X, y, Z, n_neighbors=0)
    with pytest.raises(ValueError, match="group_size must be"):
        nearest(KERNEL, X, y, Z, group_size=0)
    with pytest.raises(ValueError, match="Z has 1 column"):
        nearest(RBF(), X, y, Z[:, :1])
