import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import composite_gp, exact_gp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, WhiteKernel
from strategies import partitions, problems

from compositegp import (
    Composite,
    Constant,
    Linear,
    conditioning_sets,
    factorize,
    posterior,
    prior,
    segment,
)
from compositegp.posteriors import composite_posterior


def everything_before(segments):
    return [np.concatenate([[], *segments[:k]]).astype(int) for k in range(len(segments))]


def assert_same(belief, other, scale=1.0, **tolerance):
    mean, covariance = (other.mean, other.covariance) if hasattr(other, "mean") else other
    tolerance = {"atol": 1e-8 * scale, "rtol": 0} | tolerance
    np.testing.assert_allclose(belief.mean, mean, **tolerance)
    np.testing.assert_allclose(belief.covariance, covariance, **tolerance)
    np.testing.assert_allclose(belief.variance, np.diag(belief.covariance), rtol=1e-12, atol=1e-14 * scale)


def prior_scale(kernel, Z):
    return 1 + np.abs(kernel(Z, Z)).max()


@given(problems())
def test_full_composite_is_the_exact_gp(problem):
    kernel, X, y, Z = problem
    belief = posterior(kernel, X, y, Z, Composite.full(len(X)))
    assert_same(belief, exact_gp(kernel, X, y, Z), prior_scale(kernel, Z))


@pytest.mark.parametrize(
    "kernel",
    [
        1.3 * RBF([1.0, 0.7]) + 0.2 * Matern(0.5, nu=1.5) + WhiteKernel(0.05),
        Matern(0.8, nu=0.5) + WhiteKernel(1e-3),
        RBF(0.6) * ExpSineSquared(1.0, 2.0) + WhiteKernel(0.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("m", [1, 40, 200])
def test_full_composite_is_scikit_learns_regressor(kernel, m, rng):
    X, Z = rng.uniform(0, 4, size=(120, 2)), rng.uniform(0, 4, size=(m, 2))
    y = np.sin(X).sum(axis=1) + rng.normal(scale=0.2, size=120)
    reference = GaussianProcessRegressor(kernel, alpha=1e-300, optimizer=None).fit(X, y)
    mean, covariance = reference.predict(Z, return_cov=True)
    noise = kernel.diag(Z) - np.diag(kernel(Z, Z))
    assert_same(posterior(kernel, X, y, Z, Composite.full(120)), (mean, covariance - np.diag(noise)))


@given(problems(), st.data())
def test_marginal_composite_is_the_product_of_segment_likelihoods(problem, data):
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    assume(np.linalg.cond(kernel(Z, Z)) <= 1e6)  # the oracle inverts Σ_zz
    expected = composite_gp(kernel, X, y, Z, [(part, 1.0) for part in segments])
    assert_same(posterior(kernel, X, y, Z, Composite.marginal(segments)), expected, prior_scale(kernel, Z))


@pytest.mark.parametrize("m", [3, 12, 40])  # test points fewer than, as many as, and more than data in a term
def test_any_terms_and_weights_are_those_of_dense_algebra(m, rng):
    kernel = Matern(1.0, nu=1.5) + WhiteKernel(0.2)
    X, y, Z = rng.uniform(0, 4, size=(40, 2)), rng.normal(size=40), rng.uniform(0, 4, size=(m, 2))
    noise = rng.uniform(0, 0.5, size=40)
    terms = [(np.arange(0, 15), 0.7), (np.arange(10, 25), 1.5), (np.arange(10, 15), -0.6), (np.array([39]), 1.0)]
    belief = posterior(kernel, X, y, Z, Composite(terms), noise_variance=noise)
    assert_same(belief, composite_gp(kernel, X, y, Z, terms, noise))


@pytest.mark.parametrize("m", [2, 9, 30])
def test_conditional_composite_is_the_difference_of_its_terms(m, rng):
    kernel = Matern(1.0, nu=1.5) + WhiteKernel(0.2)
    X, y, Z = rng.uniform(0, 4, size=(60, 2)), rng.normal(size=60), rng.uniform(0, 4, size=(m, 2))
    segments = segment(X, 8)
    composite = Composite.conditional(segments, conditioning_sets(X, segments, 5))
    belief = posterior(kernel, X, y, Z, composite)
    assert_same(belief, composite_gp(kernel, X, y, Z, composite.terms))
    assert_same(belief, posterior(kernel, X, y, Z, Composite(composite.terms)))


@given(problems(), st.data())
def test_conditional_composite_with_all_earlier_data_is_the_exact_gp(problem, data):
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    composite = Composite.conditional(segments, everything_before(segments))
    assert_same(posterior(kernel, X, y, Z, composite), exact_gp(kernel, X, y, Z), prior_scale(kernel, Z))


def test_conditioning_on_everything_is_exact_for_few_and_many_test_points(rng):
    kernel = RBF(0.7) + WhiteKernel(0.1)
    X, y = rng.uniform(0, 4, size=(90, 2)), rng.normal(size=90)
    segments = segment(X, 20)
    composite = Composite.conditional(segments, everything_before(segments))
    for m in (1, 15, 150):
        Z = rng.uniform(0, 4, size=(m, 2))
        assert_same(posterior(kernel, X, y, Z, composite), exact_gp(kernel, X, y, Z), atol=2e-8)


@given(problems(), st.data())
def test_recursion_is_the_information_sum(problem, data):
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    belief = prior(kernel, Z)
    for part in segments:
        belief = belief.update(X[part], y[part])
    at_once = posterior(kernel, X, y, Z, Composite.marginal(segments))
    assert_same(belief, at_once, prior_scale(kernel, Z))


@given(problems(), st.data())
def test_segment_order_does_not_matter(problem, data):
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    shuffled = data.draw(st.permutations(segments))
    a, b = (posterior(kernel, X, y, Z, Composite.marginal(parts)) for parts in (segments, shuffled))
    assert_same(a, b, prior_scale(kernel, Z), atol=1e-10 * prior_scale(kernel, Z))


@given(problems(), st.data())
def test_belief_is_a_covariance_and_a_segment_never_raises_the_variance(problem, data):
    kernel, X, y, Z = problem
    segments = data.draw(partitions(len(X)))
    belief = prior(kernel, Z)
    slack = 1e-9 * prior_scale(kernel, Z)
    for k, part in enumerate(segments):
        before = belief
        belief = before.update(X[part], y[part])
        at_once = posterior(kernel, X, y, Z, Composite.marginal(segments[: k + 1]))
        for after in (belief, at_once):
            np.testing.assert_array_equal(after.covariance, after.covariance.T)
            assert np.linalg.eigvalsh(after.covariance).min() > -slack
            assert (after.variance >= 0).all()
            assert (after.variance <= before.variance + slack).all()
            assert np.linalg.eigvalsh(before.covariance - after.covariance).min() > -slack


def test_prior_is_the_gp_prior(rng):
    kernel = 2.0 * Matern(0.7) + WhiteKernel(0.5)
    Z = rng.normal(size=(8, 2))
    belief = prior(kernel, Z, mean=3.0)
    np.testing.assert_array_equal(belief.mean, 3.0)
    np.testing.assert_allclose(belief.covariance, kernel(Z, Z), rtol=0, atol=1e-12)


def test_far_away_data_change_nothing(rng):
    kernel = RBF(1.0) + WhiteKernel(0.1)
    X, y, Z = rng.uniform(0, 3, size=(30, 2)), rng.normal(size=30), rng.uniform(0, 3, size=(5, 2))
    alone = posterior(kernel, X, y, Z, Composite.full(30))
    far = np.concatenate([X, X + 1e4]), np.concatenate([y, 1e3 + y])
    both = posterior(kernel, *far, Z, Composite.marginal([np.arange(30), np.arange(30, 60)]))
    assert_same(both, alone, atol=1e-14)
    assert_same(alone.update(X + 1e4, y + 1e3), alone, atol=1e-14)


@pytest.mark.parametrize("m", [4, 60])
def test_factors_serve_any_number_of_test_points(m, rng):
    kernel = RBF(1.0) + WhiteKernel(0.1)
    X, y = rng.uniform(0, 3, size=(50, 2)), rng.normal(size=50)
    segments = segment(X, 12)
    composite = Composite.conditional(segments, conditioning_sets(X, segments, 6))
    factored = factorize(kernel, X, y, composite, mean=1.0, noise_variance=0.3)
    U = rng.uniform(0, 3, size=(7, 2))
    for _ in range(2):
        Z = rng.uniform(0, 3, size=(m, 2))
        for inducing in (None, U):
            direct = posterior(kernel, X, y, Z, composite, mean=1.0, noise_variance=0.3, inducing=inducing)
            assert_same(factored.posterior(Z, inducing=inducing), direct, atol=0, rtol=0)


def test_factors_are_made_once(rng, monkeypatch):
    X, y = rng.uniform(0, 3, size=(50, 2)), rng.normal(size=50)
    composite = Composite.marginal(segment(X, 12))
    factored = factorize(RBF(1.0) + WhiteKernel(0.1), X, y, composite)

    def again(*_):
        raise AssertionError("factorized again")

    monkeypatch.setattr(composite_posterior, "factor_stacks", again)
    for m in (3, 20):
        assert np.isfinite(factored.posterior(rng.uniform(0, 3, size=(m, 2))).mean).all()
    with pytest.raises(AssertionError, match="again"):
        posterior(factored.data.kernel, X, y, X[:3], composite)


def test_a_prediction_depends_on_what_is_asked_together(rng):
    """The documented property of CGP with several segments, and its absence with one."""
    kernel = RBF(1.0) + WhiteKernel(0.1)
    X, y, Z = rng.uniform(0, 3, size=(30, 1)), rng.normal(size=30), np.array([[1.0], [1.5]])
    for composite, depends in ((Composite.full(30), False), (Composite.marginal(segment(X, 10)), True)):
        alone = posterior(kernel, X, y, Z[:1], composite).variance[0]
        together = posterior(kernel, X, y, Z, composite).variance[0]
        assert (abs(alone - together) > 1e-4) == depends


class TestMeanAndNoise:
    def test_known_means_are_subtracted_and_added_back(self, rng):
        kernel = RBF(1.0) + WhiteKernel(0.1)
        X, y, Z = rng.uniform(0, 3, size=(30, 2)), rng.normal(size=30), rng.uniform(0, 3, size=(5, 2))
        coefficients = np.array([2.0, -1.0])
        for mean, function in [
            (5.0, lambda X: np.full(len(X), 5.0)),
            (Constant(5.0), lambda X: np.full(len(X), 5.0)),
            (Linear(coefficients, 3.0), lambda X: X @ coefficients + 3),
            (lambda X: np.sin(X[:, 0]), lambda X: np.sin(X[:, 0])),
        ]:
            expected = exact_gp(kernel, X, y, Z, mean=function)
            assert_same(posterior(kernel, X, y, Z, Composite.full(30), mean=mean), expected)
            assert_same(prior(kernel, Z, mean=mean).update(X, y), expected)

    def test_each_point_may_have_its_own_noise(self, rng):
        kernel = RBF(1.0)
        X, y, Z = rng.uniform(0, 3, size=(30, 2)), rng.normal(size=30), rng.uniform(0, 3, size=(5, 2))
        noise = rng.uniform(0.1, 1, size=30)
        expected = exact_gp(kernel, X, y, Z, noise)
        assert_same(posterior(kernel, X, y, Z, Composite.full(30), noise_variance=noise), expected)
        assert_same(prior(kernel, Z).update(X, y, noise_variance=noise), expected)

    def test_noise_variance_is_the_white_kernel(self, rng):
        X, y, Z = rng.uniform(0, 3, size=(30, 2)), rng.normal(size=30), rng.uniform(0, 3, size=(5, 2))
        composite = Composite.marginal(segment(X, 10))
        white = posterior(RBF(1.0) + WhiteKernel(0.3), X, y, Z, composite)
        assert_same(posterior(RBF(1.0), X, y, Z, composite, noise_variance=0.3), white, atol=1e-13)


class TestBelief:
    def test_draws_have_the_belief_s_moments(self, rng):
        kernel = RBF(1.0) + WhiteKernel(0.1)
        X, y, Z = rng.uniform(0, 3, size=(30, 1)), rng.normal(size=30), rng.uniform(0, 3, size=(4, 1))
        belief = posterior(kernel, X, y, Z, Composite.full(30))
        draws = belief.sample(200_000, random_state=0)
        assert draws.shape == (200_000, 4)
        scale = belief.standard_deviation
        np.testing.assert_allclose((draws.mean(axis=0) - belief.mean) / scale, 0, rtol=0, atol=5 / np.sqrt(200_000))
        np.testing.assert_allclose(
            np.cov(draws.T) / np.outer(scale, scale), belief.covariance / np.outer(scale, scale), rtol=0, atol=0.02
        )

    def test_inputs_are_left_as_they_were(self, rng):
        kernel = RBF(1.0) + WhiteKernel(0.1)
        X, y, Z = rng.uniform(0, 3, size=(30, 1)), rng.normal(size=30), rng.uniform(0, 3, size=(4, 1))
        copies = X.copy(), y.copy(), Z.copy()
        before = prior(kernel, Z)
        mean, covariance = before.mean.copy(), before.covariance.copy()
        before.update(X, y)
        posterior(kernel, X, y, Z, Composite.marginal(segment(X, 7)), inducing=Z)
        for array, copy in zip((X, y, Z, before.mean, before.covariance), (*copies, mean, covariance), strict=True):
            np.testing.assert_array_equal(array, copy)
