import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_gp, sparse_gp
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from strategies import partitions, problems
from test_posterior import assert_same, prior_scale

from compositegp import Composite, posterior, prior, project, segment


@pytest.fixture
def problem(rng):
    kernel = 1.5 * Matern(0.8, nu=1.5) + WhiteKernel(0.2)
    X, Z, U = rng.uniform(0, 4, size=(60, 2)), rng.uniform(0, 4, size=(9, 2)), rng.uniform(0, 4, size=(12, 2))
    return kernel, X, rng.normal(size=60), Z, U


def test_pitc_is_the_textbook_formula(problem):
    kernel, X, y, Z, U = problem
    segments = segment(X, 17)
    belief = posterior(kernel, X, y, Z, Composite.marginal(segments), inducing=U)
    assert_same(belief, sparse_gp(kernel, X, y, Z, U, segments))


def test_fitc_is_the_textbook_formula(problem):
    kernel, X, y, Z, U = problem
    belief = posterior(kernel, X, y, Z, Composite.pointwise(60), inducing=U)
    assert_same(belief, sparse_gp(kernel, X, y, Z, U, np.arange(60)[:, None]))


def test_fitc_with_noise_per_point_and_mean(problem, rng):
    kernel, X, y, Z, U = problem
    noise = rng.uniform(0, 1, size=60)
    belief = posterior(kernel, X, y + 4, Z, Composite.pointwise(60), inducing=U, noise_variance=noise, mean=4.0)
    mean, covariance = sparse_gp(kernel, X, y, Z, U, np.arange(60)[:, None], noise)
    assert_same(belief, (mean + 4, covariance))


def test_pitc_with_blocks_of_one_is_fitc(problem):
    kernel, X, y, Z, U = problem
    one_each = Composite.marginal([[i] for i in range(60)])
    fitc = posterior(kernel, X, y, Z, Composite.pointwise(60), inducing=U)
    assert_same(posterior(kernel, X, y, Z, one_each, inducing=U), fitc, atol=1e-12)


@given(problems(), st.data())
def test_inducing_points_at_the_data_are_exact(problem, data):
    kernel, X, y, Z = problem
    expected = exact_gp(kernel, X, y, Z)
    segments = data.draw(partitions(len(X)))
    for composite in (Composite.pointwise(len(X)), Composite.marginal(segments)):
        belief = posterior(kernel, X, y, Z, composite, inducing=X)
        assert_same(belief, expected, prior_scale(kernel, Z))


@given(problems(), st.data())
def test_inducing_points_at_the_test_points_are_the_composite_gp(problem, data):
    kernel, X, y, Z = problem
    composite = Composite.marginal(data.draw(partitions(len(X))))
    direct = posterior(kernel, X, y, Z, composite)
    assert_same(posterior(kernel, X, y, Z, composite, inducing=Z), direct, prior_scale(kernel, Z))


def test_one_block_is_exact_about_the_inducing_variables(problem):
    kernel, X, y, _, U = problem
    belief = posterior(kernel, X, y, U, Composite.full(60), inducing=U)
    assert_same(belief, exact_gp(kernel, X, y, U))


def test_a_stream_of_inducing_beliefs_is_pitc(problem):
    kernel, X, y, Z, U = problem
    segments = segment(X, 17)
    about_u = prior(kernel, U)
    for part in segments:
        about_u = about_u.update(X[part], y[part])
    pitc = posterior(kernel, X, y, Z, Composite.marginal(segments), inducing=U)
    assert_same(project(about_u, kernel, Z), pitc, atol=1e-12)


def test_more_inducing_points_than_data_and_duplicates_among_them(problem):
    kernel, X, y, Z, _ = problem
    U = np.concatenate([X, X, Z])
    assert_same(posterior(kernel, X, y, Z, Composite.pointwise(60), inducing=U), exact_gp(kernel, X, y, Z))


def test_many_points_are_batched(rng):
    """The sum over 5,000 terms of one point is the same as over a few large products."""
    kernel = RBF(0.5) + WhiteKernel(0.1)
    X, U, Z = rng.uniform(0, 4, size=(5000, 1)), np.linspace(0, 4, 16)[:, None], rng.uniform(0, 4, size=(5, 1))
    y = rng.normal(size=5000)
    K_uu, K_ux = kernel(U, U), kernel(U, X)
    d = kernel.diag(X) - np.einsum("un,un->n", K_ux, np.linalg.solve(K_uu, K_ux))
    precision = K_uu + (K_ux / d) @ K_ux.T
    weights = np.linalg.solve(precision, kernel(U, Z)).T
    belief = posterior(kernel, X, y, Z, Composite.pointwise(5000), inducing=U)
    np.testing.assert_allclose(belief.mean, weights @ (K_ux @ (y / d)), rtol=1e-7, atol=1e-9)
