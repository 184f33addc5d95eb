"""Means with unknown coefficients, against generalised least squares by dense algebra."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from test_posterior import assert_same

from compositegp import (
    Basis,
    Composite,
    Estimated,
    committee,
    conditioning_sets,
    posterior,
    prior,
    project,
    segment,
)

KERNEL = 0.5 * Matern(0.8, nu=1.5) + WhiteKernel(0.1)


def linear(X):
    return np.concatenate([np.ones((len(X), 1)), X], axis=1)


def universal_kriging(kernel, X, y, Z, functions):
    """Coefficients and beliefs by the textbook (Rasmussen and Williams, Section 2.7, flat prior)."""
    K, K_zx, F, F_z = kernel(X), kernel(Z, X), functions(X), functions(Z)
    information = F.T @ np.linalg.solve(K, F)
    beta = np.linalg.solve(information, F.T @ np.linalg.solve(K, y))
    R = F_z - K_zx @ np.linalg.solve(K, F)
    mean = F_z @ beta + K_zx @ np.linalg.solve(K, y - F @ beta)
    covariance = kernel(Z, Z) - K_zx @ np.linalg.solve(K, K_zx.T) + R @ np.linalg.solve(information, R.T)
    return beta, np.linalg.inv(information), mean, covariance


@pytest.fixture
def problem(rng):
    X = rng.uniform(0, 4, size=(60, 2))
    y = linear(X) @ [30.0, 2.0, -1.0] + np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=60)
    return X, y, rng.uniform(0, 4, size=(7, 2))


@pytest.mark.parametrize(("mean", "functions"), [("linear", linear), ("constant", lambda X: np.ones((len(X), 1)))])
def test_flat_prior_is_universal_kriging(problem, mean, functions):
    X, y, Z = problem
    beta, beta_covariance, *moments = universal_kriging(KERNEL, X, y, Z, functions)
    for belief in (
        posterior(KERNEL, X, y, Z, Composite.full(60), mean=mean),
        prior(KERNEL, Z, mean=mean).update(X, y),
    ):
        assert_same(belief, moments, atol=1e-7)
        np.testing.assert_allclose(belief.coefficients, beta, rtol=1e-7)
        np.testing.assert_allclose(belief.coefficient_covariance, beta_covariance, rtol=1e-6)


def test_estimated_coefficients_are_universal_kriging_too(problem):
    X, y, Z = problem
    beta, beta_covariance, *moments = universal_kriging(KERNEL, X, y, Z, linear)
    belief = posterior(KERNEL, X, y, Z, Composite.full(60), mean=Estimated("linear", beta, beta_covariance))
    assert_same(belief, moments)
    known = posterior(KERNEL, X, y, Z, Composite.full(60), mean=lambda X: linear(X) @ beta)
    np.testing.assert_allclose(known.mean, belief.mean)
    assert (known.variance < belief.variance).all()


@pytest.mark.parametrize("m", [2, 40])  # both forms of the evidence
def test_gaussian_prior_of_the_coefficients_is_a_linear_kernel(problem, rng, m):
    X, y, _ = problem
    Z = rng.uniform(0, 4, size=(m, 2))
    root = rng.normal(size=(3, 3))
    b, B = rng.normal(size=3), root @ root.T
    K = KERNEL(X) + linear(X) @ B @ linear(X).T
    K_zx = KERNEL(Z, X) + linear(Z) @ B @ linear(X).T
    K_zz = KERNEL(Z, Z) + linear(Z) @ B @ linear(Z).T
    expected = (
        linear(Z) @ b + K_zx @ np.linalg.solve(K, y - linear(X) @ b),
        K_zz - K_zx @ np.linalg.solve(K, K_zx.T),
    )
    mean = Basis("linear", prior_mean=b, prior_covariance=B)
    segments = segment(X, 15)
    everything = [np.concatenate([[], *segments[:k]]).astype(int) for k in range(len(segments))]
    for composite in (Composite.full(60), Composite.conditional(segments, everything)):
        assert_same(posterior(KERNEL, X, y, Z, composite, mean=mean), expected, atol=1e-7)


@pytest.mark.parametrize("m", [2, 40])
def test_segments_are_independent_given_latent_and_coefficients(problem, rng, m):
    """q(z, β) ∝ p(z) p(β) Π p(y_k | z, β), by dense algebra."""
    X, y, _ = problem
    Z = rng.uniform(0, 4, size=(m, 2))
    B = np.diag([100.0, 4.0, 4.0])
    K_zz = KERNEL(Z, Z)
    precision = np.zeros((m + 3, m + 3))
    precision[:m, :m], precision[m:, m:] = np.linalg.inv(K_zz), np.linalg.inv(B)
    shift = np.zeros(m + 3)
    segments = segment(X, 15)
    for part in segments:
        H = np.linalg.solve(K_zz, KERNEL(Z, X[part])).T
        R = KERNEL(X[part]) - H @ K_zz @ H.T
        D = np.concatenate([H, linear(X[part])], axis=1)
        precision += D.T @ np.linalg.solve(R, D)
        shift += D.T @ np.linalg.solve(R, y[part])
    covariance = np.linalg.inv(precision)
    G = np.concatenate([np.eye(m), linear(Z)], axis=1)
    expected = G @ covariance @ shift, G @ covariance @ G.T
    mean = Basis("linear", prior_covariance=B)
    assert_same(posterior(KERNEL, X, y, Z, Composite.marginal(segments), mean=mean), expected, atol=1e-6)
    belief = prior(KERNEL, Z, mean=mean)
    for part in segments:
        belief = belief.update(X[part], y[part])
    assert_same(belief, expected, atol=1e-6)
    np.testing.assert_allclose(belief.coefficients, (covariance @ shift)[m:], rtol=1e-6)


def test_inducing_points_at_the_data_are_universal_kriging(problem):
    X, y, Z = problem
    beta, beta_covariance, *moments = universal_kriging(KERNEL, X, y, Z, linear)
    assert_same(posterior(KERNEL, X, y, Z, Composite.pointwise(60), inducing=X, mean="linear"), moments, atol=1e-6)
    about_x = posterior(KERNEL, X, y, X, Composite.pointwise(60), mean="linear")
    assert_same(project(about_x, KERNEL, Z, mean="linear"), moments, atol=1e-6)
    estimated = posterior(
        KERNEL, X, y, Z, Composite.full(60), inducing=X, mean=Estimated("linear", beta, 1e-12 * beta_covariance)
    )
    known = posterior(KERNEL, X, y, Z, Composite.full(60), mean=lambda X: linear(X) @ beta)
    assert_same(estimated, known, atol=1e-6)


def test_offsets_and_units_of_the_inputs_do_not_matter(problem):
    X, y, Z = problem
    reference = posterior(KERNEL, X, y, Z, Composite.marginal(segment(X, 15)), mean="linear")
    kernel = 0.5 * Matern(800.0, nu=1.5) + WhiteKernel(0.1)
    shifted = posterior(
        kernel, 1000 * X + 2e4, y, 1000 * Z + 2e4, Composite.marginal(segment(X, 15)), mean="linear"
    )
    assert_same(shifted, reference, atol=1e-5)


def test_a_flat_prior_is_flat_in_any_unit(problem):
    X, y, Z = problem
    reference = posterior(KERNEL, X, y, Z, Composite.full(60), mean="linear")
    kernel = 0.5 * Matern(0.8e-7, nu=1.5) + WhiteKernel(0.1)
    tiny = posterior(kernel, 1e-7 * X, y, 1e-7 * Z, Composite.full(60), mean="linear")
    assert_same(tiny, reference, atol=1e-6)


def test_any_transformer_is_a_basis(problem):
    X, y, Z = problem
    polynomial = PolynomialFeatures(2).fit(X)
    moments = universal_kriging(KERNEL, X, y, Z, polynomial.transform)[2:]
    assert_same(posterior(KERNEL, X, y, Z, Composite.full(60), mean=Basis(polynomial)), moments, atol=1e-5)
    hours = np.arange(60.0)[:, None] % 4
    sparse = OneHotEncoder().fit(hours)
    belief = posterior(KERNEL, hours, y, hours[:4], Composite.full(60), mean=Basis(sparse))
    assert belief.coefficients.shape == (4,)


def test_a_weekly_profile_in_the_mean_cures_over_confidence(rng):
    """Segments that share a pattern count it again and again; in the mean's coefficients it counts once."""
    kernel = RBF(3.0) + WhiteKernel(0.1)
    t = np.arange(7.0 * 40)[:, None]
    Z = t[-7:]
    profile = Basis(lambda X: (np.arange(7) == X % 7).astype(float), prior_covariance=4 * np.eye(7))
    periodic = kernel + 4.0 * RepeatsWeekly()
    segments = segment(t[:-7], 28, "sequential")
    z_scores = {"in the kernel": [], "in the mean": []}
    for _ in range(60):
        pattern = 2 * rng.normal(size=7)
        latent = pattern[t[:, 0].astype(int) % 7] + rng.multivariate_normal(np.zeros(len(t)), RBF(3.0)(t))
        y = latent + np.sqrt(0.1) * rng.normal(size=len(t))
        for name, k, mean in (("in the kernel", periodic, None), ("in the mean", kernel, profile)):
            belief = posterior(k, t[:-7], y[:-7], Z, Composite.marginal(segments), mean=mean)
            z_scores[name].append((belief.mean - latent[-7:]) / belief.standard_deviation)
    assert np.mean(np.square(z_scores["in the kernel"])) > 3
    assert 0.75 < np.mean(np.square(z_scores["in the mean"])) < 1.25


class RepeatsWeekly(RBF):
    """Perfect correlation between the same days of different weeks; none between different days."""

    def __init__(self, length_scale=1.0, length_scale_bounds="fixed"):
        super().__init__(length_scale, length_scale_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        return ((X - Y.T) % 7 == 0).astype(float)

    def diag(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        (Basis("quadratic"), 'functions must be "constant", "linear"'),
        (Basis(lambda X: np.ones(len(X))), r"basis functions of shape \(3, q\)"),
        (Basis("constant", prior_mean=[1.0, 2.0]), r"coefficients must be finite numbers of shape \(1,\)"),
        (Basis("constant", prior_covariance=[[1.0, 0.0]]), r"symmetric matrix of shape \(1, 1\)"),
        (Basis("constant", prior_covariance=[[-1.0]]), "not positive definite"),
        (Estimated("constant", [1.0], [1.0]), r"symmetric matrix of shape \(1, 1\)"),
        (Estimated("constant", [1.0], [[-1.0]]), "not positive definite"),
        (Estimated("constant", [1.0, 2.0], np.eye(2)), r"coefficients must be finite numbers of shape \(1,\)"),
    ],
)
def test_bad_means_are_named(mean, message):
    with pytest.raises(ValueError, match=message):
        posterior(KERNEL, np.zeros((3, 2)), np.zeros(3), np.zeros((1, 2)), Composite.full(3), mean=mean)


def test_basis_functions_that_cannot_be_distinguished_are_refused(problem):
    X, y, Z = problem
    twice = Basis(lambda X: np.outer(X[:, 0], [1.0, 1.0]), prior_covariance=1e300 * np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="cannot be distinguished"):
        posterior(KERNEL, X, y, Z, Composite.full(60), mean=twice)


def test_another_mean_than_the_belief_began_with_is_refused(problem):
    X, y, Z = problem
    with pytest.raises(ValueError, match="mean is not the one that belief began with"):
        project(prior(KERNEL, Z, mean="linear"), KERNEL, Z)
    with pytest.raises(ValueError, match="mean must be known for a committee"):
        committee(KERNEL, X, y, Z, segment(X, 20), mean="linear")


def test_conditional_composite_learns_the_coefficients(problem):
    X, y, Z = problem
    segments = segment(X, 10)
    composite = Composite.conditional(segments, conditioning_sets(X, segments, 10))
    beta, beta_covariance, *_ = universal_kriging(KERNEL, X, y, Z, linear)
    belief = posterior(KERNEL, X, y, Z, composite, mean="linear")
    assert (np.abs(belief.coefficients - beta) < 3 * np.sqrt(np.diag(beta_covariance))).all()
