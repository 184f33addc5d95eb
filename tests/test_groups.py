"""Prediction in groups, and the bound by which far-away segments are skipped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from strategies import seeds

from compositegp import Composite, OnColumns, conditioning_sets, factorize, posterior, segment
from compositegp.composite import Influence, Latent, Observations, factor_stacks, loadings
from compositegp.kernels import Boxes, covariance_bounds
from compositegp.means import as_mean
from compositegp.posteriors import gather, groups, predict_groups

FALLING = [
    RBF([0.5, 2.0]),
    Matern(0.7, nu=0.5),
    2.5 * Matern([1.0, 0.2], nu=2.5) + WhiteKernel(0.1),
    RationalQuadratic(0.5, 1.5) * RBF(3.0) + WhiteKernel(1.0),
    OnColumns(RBF(0.3), 1) * OnColumns(Matern(2.0), 0),
    OnColumns(ExpSineSquared(1.0, 2.0), 0) * RBF(1.5) + 0.2 * RBF(9.0),
    RBF(2.0) ** 3 + ConstantKernel(0.5),
]


@given(st.sampled_from(FALLING), seeds)
def test_no_covariance_between_boxes_exceeds_its_bound(kernel, seed):
    rng = np.random.default_rng(seed)
    sets = rng.normal(size=(4, 9, 2)) * rng.uniform(0.1, 2) + rng.normal(size=(4, 1, 2)) * rng.uniform(0, 8)
    other = rng.normal(size=(1, 7, 2))
    bounds = covariance_bounds(kernel, Boxes.around(sets), Boxes.around(other))
    for points, bound in zip(sets, bounds, strict=True):
        assert np.abs(kernel(points, other[0])).max() <= bound * (1 + 1e-12)


class Hill(RBF):
    """A kernel of a user's own, which no rule knows."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 1 + super().__call__(X, Y, eval_gradient)


@pytest.mark.parametrize("kernel", [DotProduct(), RBF() * DotProduct(), Hill()], ids=str)
def test_kernels_that_need_not_fall_are_never_skipped(kernel):
    far = Boxes(np.full((1, 2), 1e6), np.full((1, 2), 1e6 + 1))
    near = Boxes(np.zeros((1, 2)), np.ones((1, 2)))
    assert covariance_bounds(kernel, far, near)[0] == np.inf


@given(st.sampled_from(FALLING[:4]), seeds, st.floats(0, 30))
def test_loadings_are_within_their_bound(kernel, seed, distance):
    rng = np.random.default_rng(seed)
    kernel = kernel + WhiteKernel(0.05)
    X, Z = rng.uniform(size=(20, 2)) + distance, rng.uniform(size=(6, 2))
    data = Observations.checked(kernel, X, rng.normal(size=20), mean=None, noise_variance=None)
    latent = Latent.prior(kernel, Z, as_mean(None))
    (factored,) = factor_stacks(data, Composite.full(20))
    (bound,) = Influence(data, Composite.full(20)).bounds(latent)
    loading = np.linalg.norm(loadings(kernel, latent, factored))
    # The bound on ‖W‖ by dense algebra: these kernels are largest where the two boxes are nearest.
    gap = np.maximum(np.maximum(X.min(axis=0) - Z.max(axis=0), Z.min(axis=0) - X.max(axis=0)), 0.0)
    nearest = kernel(gap[None], np.zeros((1, 2)))[0, 0]
    inverse = np.linalg.norm(np.linalg.inv(np.linalg.cholesky(kernel(Z, Z))), 2)
    noise = kernel(X[:1])[0, 0] - kernel(X[:1], X[:1])[0, 0]
    largest = nearest * np.sqrt(20 * 6 / noise) * inverse
    assert loading <= largest * (1 + 1e-6)
    if np.isfinite(bound):
        assert largest < 0.5 * (1 + 1e-6)
        assert loading * np.linalg.norm(factored.innovations) <= bound * (1 + 1e-9)
    else:
        assert largest > 0.5 * (1 - 1e-6)  # near enough to matter: there is nothing to bound


@pytest.mark.parametrize("kernel", FALLING[:4], ids=str)
def test_a_distant_block_has_a_small_bound(kernel, rng):
    kernel = kernel + WhiteKernel(0.05)
    X, Z = rng.uniform(size=(20, 2)) + 40, rng.uniform(size=(6, 2))
    data = Observations.checked(kernel, X, rng.normal(size=20), mean=None, noise_variance=None)
    (bound,) = Influence(data, Composite.full(20)).bounds(Latent.prior(kernel, Z, as_mean(None)))
    assert bound < groups.NEGLIGIBLE


def islands(rng, n_islands=6, size=40):
    centres = 60.0 * np.arange(n_islands)[:, None]
    X = (centres + rng.uniform(size=(n_islands, size))).ravel()[:, None]
    return X, np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=len(X))


@pytest.mark.parametrize("conditional", [False, True])
def test_skipping_changes_nothing_that_matters(rng, conditional, monkeypatch):
    X, y = islands(rng)
    kernel = 1.0 * Matern(1.0, nu=1.5) + WhiteKernel(0.01)
    segments = segment(X, 20)
    given_sets = conditioning_sets(X, segments, 10 if conditional else 0)
    factored = factorize(kernel, X, y, Composite.conditional(segments, given_sets))
    Z = np.concatenate([60.0 * i + np.linspace(0, 1, 9) for i in range(6)])[:, None]
    calls = []
    collect = groups.collect_evidence
    monkeypatch.setattr(
        groups, "collect_evidence", lambda *args: calls.append(len(args[2].stack)) or collect(*args)
    )
    with monkeypatch.context() as nothing_is_negligible:
        nothing_is_negligible.setattr(groups, "NEGLIGIBLE", -1.0)
        every = predict_groups(factored, Z, 9)
    asked_of_all = sum(calls)
    fast = predict_groups(factored, Z, 9)
    assert sum(calls) - asked_of_all < 0.4 * asked_of_all  # most islands are skipped
    np.testing.assert_allclose(fast.mean, every.mean, rtol=0, atol=groups.NEGLIGIBLE)
    np.testing.assert_allclose(fast.variance, every.variance, rtol=0, atol=groups.NEGLIGIBLE)


def test_far_segments_inform_about_the_coefficients_of_the_mean(rng):
    X, y = islands(rng)
    kernel = 1.0 * Matern(1.0, nu=1.5) + WhiteKernel(0.01)
    composite = Composite.marginal(segment(X, 20))
    factored = factorize(kernel, X, y + 7, composite, mean="constant")
    Z = np.linspace(0, 1, 9)[:, None]
    found = predict_groups(factored, Z, 9)
    whole = posterior(kernel, X, y + 7, Z, composite, mean="constant")
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-10)
    np.testing.assert_allclose(found.variance, whole.variance, rtol=1e-8)


def test_without_noise_nothing_is_skipped(rng):
    X, y = islands(rng, 2, 10)
    data = Observations.checked(Matern(1.0), X, y, mean=None, noise_variance=None)
    latent = Latent.prior(data.kernel, np.zeros((1, 1)), as_mean(None))
    assert (Influence(data, Composite.marginal(segment(X, 5))).bounds(latent) == np.inf).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_each_group_is_a_joint_posterior(rng, n_jobs):
    X = rng.uniform(0, 4, size=(120, 2))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=120)
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.01)
    factored = factorize(kernel, X, y, Composite.marginal(segment(X, 30)))
    Z = rng.uniform(0, 4, size=(50, 2))
    found = predict_groups(factored, Z, 10, n_jobs=n_jobs)
    for group in segment(Z, 10, kernel=kernel):
        belief = factored.posterior(Z[group])
        np.testing.assert_allclose(found.mean[group], belief.mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.variance[group], belief.variance, rtol=0, atol=1e-8)


def test_factors_need_not_be_held(rng):
    X = rng.uniform(0, 4, size=(120, 2))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=120)
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.01)
    held = factorize(kernel, X, y, Composite.marginal(segment(X, 30)))
    bare = type(held)(held.data, held.composite, ())
    Z = rng.uniform(0, 4, size=(50, 2))
    np.testing.assert_array_equal(predict_groups(held, Z, 10).mean, predict_groups(bare, Z, 10).mean)


def test_gather_is_the_sum_of_evidence(rng):
    X = rng.uniform(0, 4, size=(60, 1))
    data = Observations.checked(RBF() + WhiteKernel(0.1), X, rng.normal(size=60), mean=None, noise_variance=None)
    composite = Composite.marginal(segment(X, 20))
    latents = [Latent.prior(data.kernel, rng.uniform(0, 4, size=(m, 1)), as_mean(None)) for m in (1, 4)]
    together = gather(data, composite, factor_stacks(data, composite), latents)
    for latent, total in zip(latents, together, strict=True):
        (alone,) = gather(data, composite, factor_stacks(data, composite), [latent])
        np.testing.assert_allclose(total.precision, alone.precision, rtol=1e-10, atol=0)
        np.testing.assert_allclose(total.shift, alone.shift, rtol=1e-10, atol=0)
