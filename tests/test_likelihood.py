"""Log likelihood, gradient and Fisher information of composites, against scikit-learn, differences and Monte Carlo."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, PairwiseKernel, WhiteKernel
from strategies import noisy_kernels, seeds
from test_kernels import KERNELS, id_of

from compositegp import Composite, conditioning_sets, fisher_information, segment
from compositegp.composite import Observations, sum_over_terms, total_score
from compositegp.means import as_mean

KERNEL = 1.3 * Matern([1.0, 0.7], nu=1.5) + WhiteKernel(0.2)


def composites(X):
    segments = segment(X, 9)
    return {
        "full": Composite.full(len(X)),
        "marginal": Composite.marginal(segments),
        "pointwise": Composite.pointwise(len(X)),
        "conditional": Composite.conditional(segments, conditioning_sets(X, segments, 6)),
        "own": Composite([(np.arange(12), 0.5), (np.arange(8, 20), 1.5), (np.arange(8, 12), -0.5)]),
    }


def score_at(kernel, X, y, composite, beta=(), mean=None, noise=0.0, **options):
    data = Observations.checked(kernel, X, y, mean=as_mean(mean), noise_variance=noise)
    return total_score(data, composite, np.asarray(beta, dtype=float).reshape(-1, 1), **options)


@given(st.data(), seeds)
def test_one_term_is_the_log_marginal_likelihood(data, seed):
    rng = np.random.default_rng(seed)
    kernel = data.draw(noisy_kernels(2))
    X, y = rng.uniform(-2, 2, size=(12, 2)), rng.normal(size=12)
    reference = GaussianProcessRegressor(kernel, alpha=1e-300, optimizer=None).fit(X, y)
    value, gradient = reference.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    found = score_at(kernel, X, y, Composite.full(12))
    assert found.log_likelihood == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-6, atol=1e-6 * (1 + np.abs(gradient).max()))


def test_composite_likelihood_is_the_weighted_sum_of_its_terms(rng):
    X, y = rng.uniform(0, 3, size=(40, 2)), rng.normal(size=40)
    noise = rng.uniform(0, 0.3, size=40)
    for name, composite in composites(X).items():
        expected = 0.0
        for indices, weight in composite.terms:
            K = KERNEL(X[indices]) + np.diag(noise[indices])
            quadratic = y[indices] @ np.linalg.solve(K, y[indices])
            expected -= 0.5 * weight * (quadratic + np.linalg.slogdet(2 * np.pi * K)[1])
        found = score_at(KERNEL, X, y, composite, noise=noise)
        assert found.log_likelihood == pytest.approx(expected), name
        assert found.n_points == pytest.approx(sum(w * len(s) for s, w in composite.terms))


@pytest.mark.parametrize("kind", ["full", "marginal", "pointwise", "conditional", "own"])
@pytest.mark.parametrize("kernel", [*KERNELS, PairwiseKernel(0.7, metric="laplacian")], ids=id_of)
def test_gradient_by_finite_differences(kernel, kind, rng):
    kernel = kernel + WhiteKernel(9.0, "fixed")  # the periodic kernel on three columns needs it
    X, y = rng.uniform(0, 2, size=(24, 3)), rng.normal(size=24)
    composite, beta = composites(X)[kind], rng.normal(size=4)

    def value(theta):
        return score_at(kernel.clone_with_theta(theta), X, y, composite, beta, mean="linear", noise=0.1)

    gradient = value(kernel.theta).gradient
    assert gradient.shape == kernel.theta.shape
    for i, step in enumerate(1e-5 * np.eye(len(kernel.theta))):
        slope = (value(kernel.theta + step).log_likelihood - value(kernel.theta - step).log_likelihood) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=2e-5, abs=2e-5)


class TestFisherInformation:
    def test_is_slepian_bangs_for_every_composite(self, rng):
        X = rng.uniform(0, 3, size=(40, 2))
        for composite in composites(X).values():
            expected = np.zeros((4, 4))
            for indices, weight in composite.terms:
                K, gradient = KERNEL(X[indices], eval_gradient=True)
                parts = [np.linalg.solve(K, gradient[..., i]) for i in range(4)]
                expected += 0.5 * weight * np.array([[np.trace(a @ b) for a in parts] for b in parts])
            np.testing.assert_allclose(fisher_information(KERNEL, X, composite), expected, rtol=1e-8, atol=1e-9)

    def test_is_the_expected_hessian_by_finite_differences(self, rng):
        X = rng.uniform(0, 3, size=(25, 2))
        truth = KERNEL(X)

        def expected_log_likelihood(theta):
            K = KERNEL.clone_with_theta(theta)(X)
            return -0.5 * (np.linalg.slogdet(K)[1] + np.trace(np.linalg.solve(K, truth)))

        h, theta, steps = 1e-3, KERNEL.theta, np.eye(4)
        hessian = np.array(
            [
                [
                    sum(
                        a * b * expected_log_likelihood(theta + h * (a * u + b * v))
                        for a in (1, -1)
                        for b in (1, -1)
                    )
                    / (4 * h**2)
                    for u in steps
                ]
                for v in steps
            ]
        )
        np.testing.assert_allclose(fisher_information(KERNEL, X), -hessian, rtol=1e-4, atol=1e-4)

    def test_is_the_covariance_of_the_score_by_monte_carlo(self, rng):
        X = rng.uniform(0, 3, size=(20, 2))
        F = np.concatenate([np.ones((20, 1)), X], axis=1)
        K, gradient = KERNEL(X, eval_gradient=True)
        root = np.linalg.cholesky(K)
        draws = root @ rng.normal(size=(20, 20_000))
        solved = np.linalg.solve(K, draws)
        about_theta = [
            0.5 * np.einsum("in,ij,jn->n", solved, part, solved) - 0.5 * np.trace(np.linalg.solve(K, part))
            for part in np.moveaxis(gradient, -1, 0)
        ]
        scores = np.stack([*about_theta, *(F.T @ solved)])
        J = fisher_information(KERNEL, X, mean="linear")
        assert J.shape == (7, 7)
        products = scores[:, None] * scores[None]
        errors = products.std(axis=-1) / np.sqrt(20_000)
        assert (np.abs(products.mean(axis=-1) - J) < 4.5 * errors).all()

    @pytest.mark.parametrize("kind", ["full", "marginal", "conditional"])
    def test_probes_estimate_it_without_bias(self, kind, rng):
        X, y = rng.uniform(0, 3, size=(40, 2)), rng.normal(size=40)
        composite = composites(X)[kind]
        exact = fisher_information(KERNEL, X, composite)
        draws = np.array([score_at(KERNEL, X, y, composite, probes=2, seed=seed).fisher for seed in range(400)])
        assert all(np.linalg.eigvalsh(draw).min() > -1e-9 for draw in draws)
        errors = draws.std(axis=0) / 20
        assert (np.abs(draws.mean(axis=0) - exact) < 4.5 * errors + 1e-12).all()


def test_normal_equations_are_generalised_least_squares(rng):
    X, y = rng.uniform(0, 3, size=(40, 2)), rng.normal(size=40)
    F = np.concatenate([np.ones((40, 1)), X, y[:, None]], axis=1)
    for composite in composites(X).values():
        expected = sum(w * F[s].T @ np.linalg.solve(KERNEL(X[s]), F[s]) for s, w in composite.terms)
        found = score_at(KERNEL, X, y, composite, np.zeros(3), mean="linear").normal
        np.testing.assert_allclose(found.information, expected[:3, :3], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.moment, expected[:3, 3:], rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("two_blas_threads")
def test_any_number_of_processes_gives_the_same_bits(rng):
    X, y = rng.uniform(0, 3, size=(6000, 2)), rng.normal(size=6000)
    segments = segment(X, 300)
    composite = Composite.conditional(segments, conditioning_sets(X, segments, 100))
    one, two = (score_at(KERNEL, X, y, composite, probes=3, n_jobs=n) for n in (1, 2))
    for name in ("log_likelihood", "gradient", "fisher", "n_points", "jitter"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.normal.information, two.normal.information)


def test_large_blocks_and_small_ones_agree(rng):
    """Both sides of the switch between LAPACK calls and batched loops."""
    kernel = RBF(0.5) + WhiteKernel(0.1)
    X, y = rng.uniform(0, 9, size=(80, 1)), rng.normal(size=80)
    for size in (20, 40):
        segments = segment(X, size, "sequential")
        found = score_at(kernel, X, y, Composite.marginal(segments))
        alone = [score_at(kernel, X[s], y[s], Composite.full(size)) for s in segments]
        assert found.log_likelihood == pytest.approx(sum(a.log_likelihood for a in alone))
        np.testing.assert_allclose(found.gradient, sum(a.gradient for a in alone))


def test_bad_arguments_of_fisher_information():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="composite names point 4, but X has only 3"):
        fisher_information(KERNEL, X, Composite.full(5))
    with pytest.raises(ValueError, match="no free hyper-parameter"):
        fisher_information(RBF(1.0, "fixed"), X, mean="constant")
    with pytest.raises(ValueError, match="segments must be a list of index arrays"):
        fisher_information(KERNEL, X, "all")
    np.testing.assert_allclose(
        fisher_information(KERNEL, X, [[0, 1], [2]]),
        fisher_information(KERNEL, X, Composite.marginal([[0, 1], [2]])),
    )


def test_a_task_has_its_own_points_alone(rng, monkeypatch):
    monkeypatch.setattr(sum_over_terms, "_TASK_ELEMENTS", 2 * 15**2)
    X = rng.normal(size=(60, 2))
    for composite in composites(X).values():
        data = Observations.checked(KERNEL, X, X[:, 0], mean=None, noise_variance=None)
        tasks = list(sum_over_terms._tasks(data, composite))
        assert len(tasks) >= len(composite.stacks)
        for part, stack in tasks:
            assert len(part.X) == stack.indices.size
            assert stack.indices.max() < len(part.X)


def test_a_task_has_the_points_of_its_own_terms_alone(rng, monkeypatch):
    """What travels to another process does not grow with the data: each task is small, and all of them are the data."""
    sent = []

    def run(tasks, n_jobs):
        tasks = list(tasks)
        sent.extend(len(pickle.dumps(arguments)) for _, arguments in tasks)
        return [work(*arguments) for work, arguments in tasks]

    monkeypatch.setattr(sum_over_terms, "run_tasks", run)
    X = rng.uniform(size=(4096, 2))
    data = Observations.checked(KERNEL, X, X[:, 0], mean=None, noise_variance=None)
    total_score(data, Composite.marginal(segment(X, 256)), np.zeros((0, 1)), n_jobs=2)
    assert len(sent) >= 4
    assert max(sent) < 2 * (X.nbytes + X[:, 0].nbytes) / len(sent) + 10_000
