"""One suite for every back end: NumPy, PyTorch on the processor and, where there is one, on a GPU."""

import builtins
import pickle
from dataclasses import replace

import numpy as np
import pytest
from oracles import composite_gp, exact_gp, sparse_gp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from test_kernels import FALLBACK, KERNELS, id_of
from test_likelihood import composites

from compositegp import (
    Composite,
    CompositeGPRegressor,
    CompositeLikelihood,
    Nearest,
    NumericalWarning,
    committee,
    conditioning_sets,
    factorize,
    fisher_information,
    learn,
    nearest,
    posterior,
    prior,
    segment,
    use_device,
)
from compositegp.backend import (
    SingularMatrixError,
    cholesky,
    cholesky_and_inverse,
    cholesky_of_complement,
    current_device,
    fetch,
    half_of_weighted_inverse,
    in_batches,
    invert_lower,
    on_processor,
    pivots_and_solve,
    solve_lower,
    solve_right,
    subtract_products,
)
from compositegp.backend.devices import Device, _open
from compositegp.composite import Observations, total_score
from compositegp.kernels import OnSphere, diagonal, gram, linearize
from compositegp.posteriors import NeighborSearch, normal_equations, predict_prefixes
from compositegp.prediction import Committee, CompositeSum, Inducing

KERNEL = 1.3 * Matern([1.0, 0.7], nu=1.5) + WhiteKernel(0.2)


def send(values):
    device = current_device()
    return np.array(values) if device is None else device.send(values)


def problem(rng, n=60, m=7):
    return rng.uniform(0, 3, size=(n, 2)), rng.normal(size=n), rng.uniform(0, 3, size=(m, 2))


def log_density(kernel, X, y, noise):
    K = kernel(X) + np.diag(noise)
    return -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])


class TestKernels:
    @pytest.mark.parametrize("kernel", KERNELS + FALLBACK, ids=id_of)
    def test_values_and_derivatives_equal_scikit_learn(self, kernel, rng, device):
        X, Y = rng.normal(size=(2, 11, 3)), rng.normal(size=(5, 3))
        X[0, 5] = X[0, 2]  # a duplicate
        cotangent, vectors = rng.normal(size=(2, 11, 11)), rng.normal(size=(2, 11, 3))
        linearized = linearize(kernel, send(X))
        pulled, moved = linearized.pullback(send(cotangent)), linearized.products(send(cotangent), send(vectors))
        for b in range(2):
            K, gradient = kernel(X[b], eval_gradient=True)
            np.testing.assert_allclose(fetch(gram(kernel, send(X)))[b], K, rtol=0, atol=1e-10)
            np.testing.assert_allclose(
                fetch(gram(kernel, send(X), send(Y)))[b], kernel(X[b], Y), rtol=0, atol=1e-10
            )
            np.testing.assert_allclose(fetch(diagonal(kernel, send(X)))[b], np.diag(K), rtol=0, atol=1e-10)
            np.testing.assert_allclose(fetch(linearized.value)[b], K, rtol=0, atol=1e-10)
            np.testing.assert_allclose(
                fetch(linearized.jacobian())[b], np.moveaxis(gradient, -1, 0), rtol=0, atol=1e-10
            )
            expected = np.einsum("ij,ijp->p", cotangent[b], gradient)
            np.testing.assert_allclose(fetch(pulled)[b], expected, rtol=0, atol=1e-9)
            expected = np.einsum("ij,ijp,jm->pim", cotangent[b], gradient, vectors[b])
            np.testing.assert_allclose(fetch(moved)[b], expected, rtol=0, atol=1e-9)


class TestLinearAlgebra:
    @pytest.mark.parametrize("n", [1, 20, 150])
    def test_factors_and_solves_are_those_of_numpy(self, n, rng, device):
        roots = rng.normal(size=(3, n, n))
        A = roots @ roots.transpose(0, 2, 1) + n * np.eye(n)
        B, weights = rng.normal(size=(3, n, 2)), np.where(np.arange(n) < n // 2, 0.0, 2.0)
        lower, jitter = cholesky(send(A))
        C = np.linalg.cholesky(A)
        np.testing.assert_allclose(np.tril(fetch(lower)), C, rtol=0, atol=1e-8 * n)
        assert not jitter.any()
        np.testing.assert_allclose(C @ fetch(solve_lower(lower, send(B))), B, rtol=0, atol=1e-8)
        inverse = invert_lower(send(C))
        np.testing.assert_allclose(fetch(inverse) @ C, np.broadcast_to(np.eye(n), A.shape), rtol=0, atol=1e-8)
        expected = np.linalg.inv(C).transpose(0, 2, 1) @ (weights[:, None] * np.linalg.inv(C))
        half = fetch(half_of_weighted_inverse(1.0 * inverse, send(np.broadcast_to(weights, (3, n)))))
        np.testing.assert_allclose(half + half.transpose(0, 2, 1), expected, rtol=0, atol=1e-8)
        half = fetch(half_of_weighted_inverse(inverse, None))
        np.testing.assert_allclose(half + half.transpose(0, 2, 1), np.linalg.inv(A), rtol=0, atol=1e-8)
        changed, left = rng.normal(size=(3, n, n)), rng.normal(size=(3, n, 2))
        found = send(changed.copy())
        subtract_products(found, send(left), send(B))
        np.testing.assert_allclose(fetch(found), changed - left @ B.transpose(0, 2, 1), rtol=0, atol=1e-12)
        rows = rng.normal(size=(3, 4, n))
        np.testing.assert_allclose(fetch(solve_right(send(C[0]), send(rows))) @ C[0].T, rows, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("n", [1, 20, 40, 150])
    @pytest.mark.parametrize("m", [1, 3, 32, 33])
    def test_solves_without_the_factors_are_those_with_them(self, n, m, rng, device):
        roots = rng.normal(size=(3, n, n))
        A = roots @ roots.transpose(0, 2, 1) + np.eye(n)
        B = 1e3 * rng.normal(size=(3, n, m))
        pivots, solved = pivots_and_solve(send(A.copy()), send(B.copy()))
        C = np.linalg.cholesky(A)
        np.testing.assert_allclose(fetch(pivots), np.diagonal(C, axis1=1, axis2=2), rtol=1e-9)
        np.testing.assert_allclose(C @ fetch(solved), B, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(("n", "m"), [(20, 3), (40, 3), (150, 3), (150, 200)])
    @pytest.mark.parametrize("singular", [False, True])
    def test_of_numpy_s_matrices_only_the_upper_triangles_are_read(self, n, m, singular, rng):
        roots = rng.normal(size=(3, n, n))
        A = np.ones((3, n, n)) if singular else roots @ roots.transpose(0, 2, 1) + np.eye(n)
        B = rng.normal(size=(3, n, m))
        expected = pivots_and_solve(A.copy(), B.copy())
        half = np.where(np.tri(n, k=-1) != 0, np.nan, A)
        for found, known in zip(pivots_and_solve(half, B.copy()), expected, strict=True):
            np.testing.assert_array_equal(found, known)

    @pytest.mark.parametrize("m", [2, 40])
    def test_singular_matrices_are_solved_with_jitter_or_refused(self, m, rng, device):
        A = np.stack([np.eye(40), np.ones((40, 40)), 2 * np.eye(40)])
        B = rng.normal(size=(3, 40, m))
        lower, jitter = cholesky(send(A.copy()))
        assert jitter[1] > 0
        expected = fetch(solve_lower(lower, send(B.copy())))
        pivots, solved = pivots_and_solve(send(A.copy()), send(B.copy()))
        np.testing.assert_allclose(fetch(solved), expected, rtol=1e-9)
        np.testing.assert_allclose(fetch(pivots), np.diagonal(fetch(lower), axis1=1, axis2=2), rtol=1e-9)
        A[2, 3, 3] = -1.0
        with pytest.raises(SingularMatrixError) as caught:
            pivots_and_solve(send(A), send(B))
        assert caught.value.index == 2

    @pytest.mark.parametrize("n", [1, 40, 65, 200])
    @pytest.mark.parametrize("noise", [1e-1, 1e-4, 1e-9])
    def test_factors_and_inverses_are_found_together(self, n, noise, rng, device):
        X = rng.uniform(size=(3, n, 2))
        A = np.stack([RBF(0.5)(x) + noise * np.eye(n) for x in X])
        (lower, jitter), inverse = cholesky_and_inverse(send(A.copy()))
        C, found = np.tril(fetch(lower)), fetch(inverse)
        assert not jitter.any()
        np.testing.assert_allclose(C @ C.transpose(0, 2, 1), A, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(found, np.tril(found))
        np.testing.assert_allclose(
            found @ C, np.broadcast_to(np.eye(n), A.shape), rtol=0, atol=1e-13 / np.sqrt(noise)
        )
        assert np.log(np.diagonal(C, axis1=1, axis2=2)).sum() == pytest.approx(
            np.linalg.slogdet(A)[1].sum() / 2, abs=1e-11 / noise
        )
        A[1] = 1.0
        (_, jitter), _ = cholesky_and_inverse(send(A))
        assert jitter[0] == jitter[2] == 0
        assert (jitter[1] > 0) == (n > 1)

    def test_a_singular_matrix_gets_jitter_and_an_indefinite_one_is_named(self, rng, device):
        A = np.stack([np.eye(40), np.ones((40, 40)), 2 * np.eye(40)])
        _, jitter = cholesky(send(A))
        assert jitter[0] == jitter[2] == 0
        assert 1e-10 <= jitter[1] <= 1e-9
        A[2, 3, 3] = -1.0
        with pytest.raises(SingularMatrixError) as caught:
            cholesky(send(A))
        assert caught.value.index == 2

    @pytest.mark.parametrize("n", [3, 40])
    def test_complements_are_factorized_tempered_or_refused(self, n, rng, device):
        A = np.stack([0.5 * np.eye(n), 0.2 * np.eye(n)])
        lower, tempering = cholesky_of_complement(send(A))
        assert tempering == 0
        np.testing.assert_allclose(
            fetch(lower) @ fetch(lower).transpose(0, 2, 1), np.eye(n) - A, rtol=0, atol=1e-12
        )
        A[1, 0, 0] = 1.0
        assert cholesky_of_complement(send(A))[1] > 0
        A[1, 0, 0] = 2.0
        with pytest.raises(SingularMatrixError) as caught:
            cholesky_of_complement(send(A))
        assert caught.value.index == 1


class TestLikelihood:
    @pytest.mark.parametrize("kind", ["full", "marginal", "pointwise", "conditional", "own"])
    def test_score_is_the_weighted_sum_of_exact_ones(self, kind, rng, device):
        X, y, _ = problem(rng)
        noise, composite = rng.uniform(0, 0.3, size=len(X)), composites(X)[kind]
        data = Observations.checked(KERNEL, X, y, mean=None, noise_variance=noise)

        def expected(kernel):
            return sum(w * log_density(kernel, X[s], y[s], noise[s]) for s, w in composite.terms)

        found = total_score(data, composite, np.zeros((0, 1)))
        assert found.log_likelihood == pytest.approx(expected(KERNEL))
        for i, step in enumerate(1e-5 * np.eye(len(KERNEL.theta))):
            up, down = (expected(KERNEL.clone_with_theta(KERNEL.theta + s * step)) for s in (1, -1))
            assert found.gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)

    def test_fisher_information_is_slepian_bangs(self, rng, device):
        X = problem(rng)[0]
        composite = composites(X)["conditional"]
        expected = 0.0
        for indices, weight in composite.terms:
            K, gradient = KERNEL(X[indices], eval_gradient=True)
            A = [np.linalg.solve(K, gradient[..., i]) for i in range(gradient.shape[-1])]
            expected = expected + 0.5 * weight * np.array([[np.trace(a @ b) for b in A] for a in A])
        np.testing.assert_allclose(fisher_information(KERNEL, X, composite), expected, rtol=1e-8)
        data = Observations.checked(KERNEL, X, np.zeros(len(X)), mean=None, noise_variance=None)
        probed = np.mean(
            [total_score(data, composite, np.zeros((0, 1)), probes=64, seed=s).fisher for s in range(8)], axis=0
        )
        np.testing.assert_allclose(probed, expected, rtol=0.2, atol=0.1 * np.abs(expected).max())

    def test_learning_finds_the_maximum(self, rng, device):
        X = rng.uniform(0, 6, size=(240, 1))
        kernel = 1.0 * RBF(0.8) + WhiteKernel(0.1)
        y = np.linalg.cholesky(kernel(X)) @ rng.normal(size=240)
        found = learn(
            ConstantKernel() * RBF() + WhiteKernel(),
            X,
            y,
            Composite.full(240),
            learning=CompositeLikelihood(tolerance=None),
        )
        best = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), alpha=1e-300).fit(X, y)
        assert found.log_likelihood == pytest.approx(best.log_marginal_likelihood_value_, abs=0.02)


class TestPosteriors:
    @pytest.mark.parametrize("kind", ["full", "marginal", "pointwise", "conditional"])
    @pytest.mark.parametrize("m", [3, 30])  # latents smaller and larger than a term
    def test_the_posterior_of_a_composite_is_that_of_dense_algebra(self, kind, m, rng, device):
        X, y, Z = problem(rng, m=m)
        belief = posterior(KERNEL, X, y, Z, composites(X)[kind])
        mean, covariance = composite_gp(KERNEL, X, y, Z, composites(X)[kind].terms)
        np.testing.assert_allclose(belief.mean, mean, rtol=0, atol=1e-5)
        np.testing.assert_allclose(belief.covariance, covariance, rtol=0, atol=1e-5)
        with use_device(None):  # the dense algebra loses digits that NumPy keeps
            by_numpy = posterior(KERNEL, X, y, Z, composites(X)[kind])
        np.testing.assert_allclose(belief.mean, by_numpy.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(belief.covariance, by_numpy.covariance, rtol=0, atol=1e-9)

    def test_inducing_points_give_the_sparse_gp(self, rng, device):
        X, y, Z = problem(rng)
        segments, U = segment(X, 9), rng.uniform(0, 3, size=(12, 2))
        for composite, blocks in [
            (Composite.marginal(segments), segments),
            (Composite.pointwise(60), [[i] for i in range(60)]),
        ]:
            belief = posterior(KERNEL, X, y, Z, composite, inducing=U)
            mean, covariance = sparse_gp(KERNEL, X, y, Z, U, blocks)
            np.testing.assert_allclose(belief.mean, mean, rtol=0, atol=1e-6)
            np.testing.assert_allclose(belief.covariance, covariance, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("group_size", [1, 4])
    def test_nearest_with_all_neighbours_is_exact(self, group_size, rng, device):
        X, y, Z = problem(rng, m=9)
        found = nearest(KERNEL, X, y, Z, group_size=group_size, noise_variance=0.1, n_neighbors=60)
        mean, covariance = exact_gp(KERNEL, X, y, Z, noise_variance=0.1)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("mean", [None, "linear"])
    def test_nearest_is_the_exact_gp_of_the_search(self, mean, rng, device):
        X, y, Z = problem(rng, n=200, m=5)
        found = nearest(KERNEL, X, y, Z, mean=mean, n_neighbors=20)
        scaled, tests = X / [1.0, 0.7], Z / [1.0, 0.7]
        for i in range(5):
            near = np.argsort(((scaled - tests[i]) ** 2).sum(axis=1))[:20]
            if mean is None:
                expected = exact_gp(KERNEL, X[near], y[near], Z[i : i + 1])[0]
            else:
                F = np.column_stack([np.ones(20), X[near]])
                K = KERNEL(X[near])
                beta = np.linalg.solve(F.T @ np.linalg.solve(K, F), F.T @ np.linalg.solve(K, y[near]))
                residual, _ = exact_gp(KERNEL, X[near], y[near] - F @ beta, Z[i : i + 1])
                expected = residual + np.array([1.0, *Z[i]]) @ beta
            np.testing.assert_allclose(found.mean[i], expected[0], rtol=0, atol=1e-7)

    def test_factors_serve_later_predictions(self, rng, device):
        X, y, Z = problem(rng)
        composite = composites(X)["marginal"]
        factored = factorize(KERNEL, X, y, composite)
        np.testing.assert_allclose(
            factored.posterior(Z).mean, composite_gp(KERNEL, X, y, Z, composite.terms)[0], rtol=0, atol=1e-6
        )

    def test_recursion_and_bcm_are_the_composite_gp(self, rng, device):
        X, y, Z = problem(rng)
        segments = segment(X, 20)
        belief = prior(KERNEL, Z)
        for part in segments:
            belief = belief.update(X[part], y[part])
        terms = [(part, 1.0) for part in segments]
        np.testing.assert_allclose(belief.mean, composite_gp(KERNEL, X, y, Z, terms)[0], rtol=0, atol=1e-6)
        found = committee(KERNEL, X, y, Z[:1], segments, rule="bcm")
        np.testing.assert_allclose(found.mean, composite_gp(KERNEL, X, y, Z[:1], terms)[0], rtol=0, atol=1e-6)

    def test_neighbours_are_the_nearest(self, rng, device):
        points, centres = rng.normal(size=(300, 5)) + 40, rng.normal(size=(20, 5)) + 40
        neighbours = NeighborSearch(points)
        distances = np.linalg.norm(points[None] - centres[:, None], axis=2)
        np.testing.assert_array_equal(neighbours.nearest(centres, 7, None), np.argsort(distances, axis=1)[:, :7])
        np.testing.assert_allclose(neighbours.distance_to(centres, 7, None), np.sort(distances, axis=1)[:, 6])

    def test_neighbours_far_from_each_other_are_distinguished(self, rng, device):
        """Two short campaigns, a hundred million length scales apart."""
        points = np.concatenate([rng.uniform(size=(200, 1)), 1e8 + rng.uniform(size=(200, 1))])
        centres = np.array([[0.3], [1e8 + 0.7]])
        distances = np.abs(points[None, :, 0] - centres)
        found = NeighborSearch(points).nearest(centres, 5, None)
        np.testing.assert_array_equal(found, np.argsort(distances, axis=1)[:, :5])

    def test_read_only_data_are_taken(self, rng, device):
        X, y, Z = problem(rng)
        X.flags.writeable = y.flags.writeable = False
        with use_device(None):
            expected = nearest(KERNEL, X, y, Z, n_neighbors=20)
        np.testing.assert_allclose(nearest(KERNEL, X, y, Z, n_neighbors=20).mean, expected.mean, rtol=0, atol=1e-9)

    def test_data_are_left_as_they_were(self, rng, device):
        X, y, Z = problem(rng)
        before = X.copy(), y.copy()
        composite = composites(X)["conditional"]
        factored = factorize(KERNEL, X, y, composite)
        first, second = factored.posterior(Z).mean, factored.posterior(Z).mean
        posterior(KERNEL, X, y, Z, composite)
        nearest(KERNEL, X, y, Z, n_neighbors=20)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(before[0], X)
        np.testing.assert_array_equal(before[1], y)

    def test_singular_terms_warn(self, rng, device):
        X, y, Z = problem(rng)
        X[1] = X[0]
        with pytest.warns(NumericalWarning, match="singular"):
            posterior(RBF(1.0), X, y, Z, composites(X)["marginal"])


OPTIONS = {"segment_size": 60, "conditioning_size": 20}
PREDICTIONS = [
    Nearest(40),
    CompositeSum(),
    Committee("rbcm"),
    Committee("grbcm"),
    Inducing(30, "fitc"),
    Inducing(30, "pitc"),
]
SMOOTH = 1.0 * RBF([1.0, 1.0]) + WhiteKernel(0.01)


def waves(rng):
    X = rng.uniform(0, 4, size=(300, 2))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=300), rng.uniform(0, 4, size=(30, 2))


def test_estimator_learns_the_same_on_every_back_end(rng, device):
    X, y, _ = waves(rng)
    with use_device(None):
        expected = CompositeGPRegressor(SMOOTH, **OPTIONS).fit(X, y)
    found = CompositeGPRegressor(SMOOTH, device=device, **OPTIONS).fit(X, y)
    np.testing.assert_allclose(found.kernel_.theta, expected.kernel_.theta, rtol=0, atol=2e-3)


@pytest.mark.parametrize("prediction", PREDICTIONS, ids=repr)
def test_estimator_predicts_the_same_on_every_back_end(prediction, rng, device):
    X, y, Z = waves(rng)
    with use_device(None):
        expected = CompositeGPRegressor(SMOOTH, learning=None, prediction=prediction, **OPTIONS).fit(X, y)
        theirs = expected.predict(Z, return_std=True)
    model = CompositeGPRegressor(SMOOTH, learning=None, prediction=prediction, device=device, **OPTIONS).fit(X, y)
    np.testing.assert_allclose(model.predict(Z, return_std=True), theirs, rtol=0, atol=1e-6)
    for copy in (pickle.loads(pickle.dumps(model)), model):
        with use_device(None):  # the device is a parameter like any other
            np.testing.assert_allclose(
                copy.set_params(device=None).predict(Z, return_std=True), theirs, rtol=0, atol=1e-6
            )


@pytest.mark.parametrize("d", [2, 6])
def test_groups_of_test_points_are_predicted_the_same_on_every_back_end(d, rng, device):
    """Points that share their neighbors: close together in two columns, and tried out in six."""
    X = rng.uniform(size=(700, d))
    y, Z = np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=700), 0.2 + 0.3 * rng.uniform(size=(300, d))
    kernel = 1.0 * RBF(np.full(d, 2.0)) + WhiteKernel(0.01)
    method = Nearest(60, calibration=None)
    found = CompositeGPRegressor(kernel, learning=None, prediction=method, device=device).fit(X, y)
    with use_device(None):
        expected = CompositeGPRegressor(kernel, learning=None, prediction=method).fit(X, y)
        theirs = expected.predict(Z, return_std=True)
    np.testing.assert_allclose(found.predict(Z, return_std=True), theirs, rtol=0, atol=1e-6)


def test_hyperparameters_are_mixed_on_the_device(rng, device):
    X = rng.uniform(0, 6, size=(40, 1))
    y, Z = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40), np.linspace(0, 6, 9)[:, None]
    kernel = 1.0 * RBF() + WhiteKernel()
    model = CompositeGPRegressor(kernel, device=device).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    members = model._model.predictor.members
    assert len(members) > 1
    assert isinstance(members[0].factored.lower, np.ndarray) == (device is None)
    with use_device(None):
        expected = CompositeGPRegressor(kernel).fit(X, y)
        np.testing.assert_allclose(mean, expected.predict(Z), rtol=0, atol=0.01)
        np.testing.assert_allclose(std, expected.predict(Z, return_std=True)[1], rtol=0.05)
        joint = expected.predict(Z[:3], return_cov=True)[1]
    np.testing.assert_allclose(model.predict(Z[:3], return_cov=True)[1], joint, rtol=0.1, atol=1e-4)


def test_averages_of_segments_are_the_same_on_every_back_end(rng, device):
    X = rng.uniform(0, 6, size=(120, 1))
    kernel = 1.0 * RBF(0.8) + WhiteKernel(0.1)
    y = np.linalg.cholesky(kernel(X)) @ rng.normal(size=120)
    found = learn(kernel, X, y, segment(X, 60), learning="fisher_average")
    with use_device(None):
        expected = learn(kernel, X, y, segment(X, 60), learning="fisher_average")
    np.testing.assert_allclose(found.theta, expected.theta, rtol=0, atol=1e-3)


def test_a_saved_model_does_not_ask_for_the_device(rng, device, tmp_path):
    X, y = rng.uniform(size=(50, 1)), rng.normal(size=50)
    model = CompositeGPRegressor(RBF() + WhiteKernel(0.1), learning=None, device=device).fit(X, y)
    model.save(tmp_path / "m.cgp")
    assert CompositeGPRegressor.load(tmp_path / "m.cgp").device is None


class TestWhatCannotBe:
    def test_no_such_device_is_an_error_and_never_the_processor(self, rng):
        torch = pytest.importorskip("torch")
        wrong = ["tpu"] if torch.cuda.is_available() else ["tpu", "cuda", "cuda:1"]
        for name in wrong:
            with pytest.raises(ValueError, match=f"device='{name}' cannot be used"):
                CompositeGPRegressor(device=name).fit(rng.normal(size=(9, 1)), rng.normal(size=9))
            with pytest.raises(ValueError, match="device"), use_device(name):
                pass

    def test_without_pytorch_the_error_says_what_to_install(self, monkeypatch):
        original = builtins.__import__

        def without_torch(name, *args, **keywords):
            if name == "torch":
                raise ImportError(name)
            return original(name, *args, **keywords)

        monkeypatch.setattr(builtins, "__import__", without_torch)
        _open.cache_clear()
        with pytest.raises(ImportError, match=r"pip install 'compositegp\[gpu\]'"), use_device("cuda"):
            pass

    def test_a_failure_leaves_the_device_behind(self):
        pytest.importorskip("torch")
        with pytest.raises(ZeroDivisionError), use_device("cpu"):
            raise ZeroDivisionError
        assert current_device() is None

    def test_a_device_is_a_name(self):
        with pytest.raises(ValueError, match="device must be None or the name"), use_device(["cuda"]):
            pass
        pytest.importorskip("torch")
        with pytest.raises(ValueError, match="device='meta' cannot be used"), use_device("meta"):
            pass


def test_among_many_points_the_nearest_are_those_of_the_tree(device, rng):
    points, centres = rng.uniform(size=(70_000, 4)), rng.uniform(size=(30, 4))
    points[5:40] = centres[3] + 1e-3 * rng.normal(size=(35, 4))  # far more than a sample of the points lets expect
    found = NeighborSearch(points).nearest(centres, 100, None)
    with use_device(None):
        np.testing.assert_array_equal(found, NeighborSearch(points).nearest(centres, 100, 1))


class TestTermsOfManyPoints:
    @pytest.mark.parametrize("n", [3000, 3001])
    def test_segments_are_as_local_as_those_of_the_processor(self, n, device, rng, monkeypatch):
        monkeypatch.setattr("compositegp.composite.segmentation._MANY_POINTS", 100)
        for X in (rng.uniform(size=(n, 5)), 1e6 + rng.normal(size=(n, 2)) @ [[1.0, 0.9], [0.0, 0.3]]):
            found = segment(X, 70)
            with use_device(None):
                expected = segment(X, 70)
            np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(n))
            assert [len(part) for part in found] == [len(part) for part in expected]
            assert all((np.diff(part) > 0).all() for part in found)
            spreads = [np.mean([X[part].var(axis=0) for part in parts]) for parts in (found, expected)]
            assert spreads[0] == pytest.approx(spreads[1], rel=0.05)

    @pytest.mark.parametrize("kernel", [None, RBF([0.3, 2.0, 1.0]), OnSphere(RBF(0.5))])
    def test_conditioning_sets_are_those_of_the_processor(self, kernel, device, rng, monkeypatch):
        X = rng.uniform(size=(400, 2 if isinstance(kernel, OnSphere) else 3))
        segments = [*segment(X[:390], 30), np.arange(390, 397), np.arange(0), np.arange(397, 400)]
        with use_device(None):
            expected = conditioning_sets(X, segments, 12, kernel=kernel)
        monkeypatch.setattr("compositegp.composite.block_vecchia._MANY_POINTS", 100)
        monkeypatch.setattr("compositegp.composite.block_vecchia._MANY_SEGMENTS", 1000)
        for only in (None, [0, 5, 9], [len(segments) - 2]):
            found = conditioning_sets(X, segments, 12, kernel=kernel, only=only)
            chosen = expected if only is None else [expected[number] for number in only]
            assert len(found) == len(chosen)
            for one, other in zip(found, chosen, strict=True):
                np.testing.assert_array_equal(one, other)
        assert all(len(part) == 0 for part in conditioning_sets(X, segments, 0))


def test_batches_halve_when_memory_runs_out(monkeypatch):
    torch = pytest.importorskip("torch")
    sizes = []

    def work(part):
        sizes.append(part.stop - part.start)
        if sizes[-1] > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return list(range(part.start, part.stop))

    with use_device("cpu"):
        found = in_batches(20, 1, work)
        assert [number for part in found for number in part] == list(range(20))
        assert sizes[:4] == [20, 10, 5, 2]
        with pytest.raises(RuntimeError, match="another"):
            in_batches(4, 1, lambda part: (_ for _ in ()).throw(RuntimeError("another")))
    with pytest.raises(torch.OutOfMemoryError):
        in_batches(20, 1, work)  # without a device it is somebody else's memory


def test_results_do_not_depend_on_the_memory_of_a_device(rng, monkeypatch):
    """Every part of the work is halved where it does not fit: here if it has matrices of more than two blocks."""
    torch = pytest.importorskip("torch")
    X, y, Z = problem(rng, n=120, m=9)
    composite = Composite.marginal(segment(X, 12))
    data = Observations.checked(KERNEL, X, y, mean="linear", noise_variance=None)
    sets = np.stack([np.delete(rng.permutation(120), np.arange(40))[:20] for _ in range(7)])
    rows = np.arange(7)

    def results():
        return [
            total_score(data, composite, np.zeros((3, 1))).gradient,
            posterior(KERNEL, X, y, Z, composite).mean,
            nearest(KERNEL, X, y, Z, n_neighbors=20).mean,
            predict_prefixes(data, sets, rows, (0, 3))[1].mean,
            normal_equations(data, sets).information,
        ]

    with use_device("cpu"):
        expected = results()

        def limited(function):
            def work(kernel, X, *others):
                if X.ndim > 2 and len(X) > 2:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                return function(kernel, X, *others)

            return work

        monkeypatch.setattr("compositegp.composite.likelihood.linearize", limited(linearize))
        for module in ("composite.factors", "composite.evidence", "posteriors.block_prediction"):
            monkeypatch.setattr(f"compositegp.{module}.gram", limited(gram))
        for found, whole in zip(results(), expected, strict=True):
            np.testing.assert_allclose(found, whole, rtol=1e-10)


def test_what_works_on_the_processor_alone_says_so(monkeypatch):
    pytest.importorskip("torch")
    with use_device("cpu"), on_processor("analysis"):
        assert current_device() is None
    with use_device("cpu"):
        pretended = replace(current_device(), name="cuda")
        monkeypatch.setattr("compositegp.backend.devices.current_device", lambda: pretended)
        with pytest.raises(ValueError, match="analysis works on the processor, and device='cuda' is in use"):
            on_processor("analysis").__enter__()


def test_a_batch_is_as_large_as_the_free_memory_of_a_gpu_allows():
    """By a stand-in for PyTorch that says how much memory is free: from very little to more than is ever used."""

    class Memory:
        cuda = None
        free = 0

        @classmethod
        def mem_get_info(cls, name):
            return cls.free, 2 * cls.free

        memory_reserved = memory_allocated = staticmethod(lambda name: 0)

    Memory.cuda = Memory
    device = Device("cuda", Memory)
    found = []
    for Memory.free in (8 * 10**3, 8 * 10**6, 8 * 10**7, 8 * 10**15):
        found.append(device.batch_elements)
        assert 1 <= found[-1] < Memory.free // 8
    assert found[2] == pytest.approx(10 * found[1], rel=1e-3)
    assert found[3] < 10**12
