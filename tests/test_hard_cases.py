"""Numerical trouble: never a NaN, never a negative variance, never a silent change of the problem."""

import warnings

import numpy as np
import pytest
from oracles import exact_gp
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    WhiteKernel,
)
from test_posterior import assert_same

from compositegp import (
    Composite,
    NumericalWarning,
    committee,
    conditioning_sets,
    factorize,
    posterior,
    prior,
    segment,
)
from compositegp.backend import (
    JITTER_START,
    cholesky,
    cholesky_of_complement,
    half_of_weighted_inverse,
    invert_lower,
    lapack_calls,
    psd_root,
    solve_lower,
)
from compositegp.paper.spatial import held_out_box
from compositegp.posteriors import RULES
from compositegp.simulate import stationary_field


def assert_sound(belief, prior_variance):
    assert np.isfinite(belief.mean).all()
    assert np.isfinite(belief.covariance).all()
    assert (belief.variance >= 0).all()
    assert (belief.variance <= prior_variance * (1 + 1e-9)).all()
    np.testing.assert_array_equal(belief.covariance, belief.covariance.T)
    assert np.linalg.eigvalsh(belief.covariance).min() > -1e-12 * prior_variance


class TestThePapersGrid:
    """Squared-exponential field on a grid, a box of neighbouring points held out (reduced: 32 × 32, 8 × 8)."""

    kernel = RBF(8 / np.sqrt(2))
    grid = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0)), axis=-1).reshape(-1, 2)
    inside = ((grid >= 12) & (grid < 20)).all(axis=1)

    def field(self, rng):
        values, vectors = np.linalg.eigh(self.kernel(np.arange(32.0)[:, None]))
        root = vectors * np.sqrt(np.maximum(values, 0))
        return (root @ rng.normal(size=(32, 32)) @ root.T).ravel()

    def test_a_singular_segment_gives_one_warning(self):
        X = self.grid[~self.inside]
        segments = segment(X, 240, "sequential")
        with pytest.warns(
            NumericalWarning, match="4 segment.* is singular in double precision; up to 1e-10"
        ) as told:
            posterior(self.kernel, X, np.zeros(len(X)), self.grid[self.inside], Composite.marginal(segments))
        assert len(told) == 1
        assert told[0].filename == __file__

    @pytest.mark.filterwarnings("ignore::compositegp.NumericalWarning")
    @pytest.mark.parametrize("scheme", ["sequential", "tree", "interleaved", "random"])
    def test_a_smooth_field_without_noise_is_predicted(self, scheme, rng):
        assert np.linalg.cond(self.kernel(self.grid[self.inside])) > 1e16
        f = self.field(rng)
        X, y, Z, z = self.grid[~self.inside], f[~self.inside], self.grid[self.inside], f[self.inside]
        segments = segment(X, 240, scheme, random_state=0)
        at_once = posterior(self.kernel, X, y, Z, Composite.marginal(segments))
        recursive = prior(self.kernel, Z)
        for part in segments:
            recursive = recursive.update(X[part], y[part])
        for belief in (at_once, recursive):
            assert_sound(belief, 1.0)
            assert np.sqrt(np.mean((belief.mean - z) ** 2)) < 0.02
        np.testing.assert_allclose(at_once.mean, recursive.mean, rtol=0, atol=1e-3)
        np.testing.assert_allclose(at_once.covariance, recursive.covariance, rtol=0, atol=1e-6)

    @pytest.mark.filterwarnings("ignore::compositegp.NumericalWarning")
    def test_a_conditional_composite_predicts_a_field_without_noise(self, rng):
        f = self.field(rng)
        X, y, Z, z = self.grid[~self.inside], f[~self.inside], self.grid[self.inside], f[self.inside]
        segments = segment(X, 120)
        composite = Composite.conditional(segments, conditioning_sets(X, segments, 60))
        belief = posterior(self.kernel, X, y, Z, composite)
        assert_sound(belief, 1.0)
        assert np.sqrt(np.mean((belief.mean - z) ** 2)) < 0.02


@pytest.mark.filterwarnings("ignore::compositegp.NumericalWarning")
def test_the_papers_grid_at_its_size_without_noise():
    """64 × 64 points of a squared-exponential field, of which a box of 16 × 16 is predicted by four segments."""
    kernel = RBF(8 / np.sqrt(2))
    grid, held = held_out_box()
    field = stationary_field(kernel, (64, 64), random_state=0).reshape(-1)
    X, y, Z = grid[~held], field[~held], grid[held]
    assert np.linalg.cond(kernel(Z)) > 1e16
    belief = posterior(kernel, X, y, Z, Composite.marginal(segment(X, 960, "sequential")))
    assert_sound(belief, 1.0)
    assert np.sqrt(np.mean((belief.mean - field[held]) ** 2)) < 0.005


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_units_do_not_matter(scale, shift, rng):
    X, y, Z = rng.uniform(0, 3, size=(60, 2)), rng.normal(size=60), rng.uniform(0, 3, size=(8, 2))
    segments = segment(X, 15)
    reference = posterior(Matern(1.0, nu=1.5) + WhiteKernel(0.1), X, y, Z, Composite.marginal(segments))
    kernel = ConstantKernel(scale**2, "fixed") * Matern(scale, nu=1.5) + WhiteKernel(0.1 * scale**2)
    belief = posterior(
        kernel,
        scale * (X + shift),
        scale * y + 7,
        scale * (Z + shift),
        Composite.marginal(segments),
        mean=7.0,
    )
    tolerance = 1e-7 if shift or scale < 1 else 1e-9
    np.testing.assert_allclose((belief.mean - 7) / scale, reference.mean, rtol=0, atol=tolerance)
    np.testing.assert_allclose(belief.covariance / scale**2, reference.covariance, rtol=0, atol=tolerance)


@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_duplicates_with_next_to_no_noise(noise, rng):
    X = np.repeat(rng.uniform(0, 3, size=(10, 1)), 3, axis=0)
    y = np.sin(X[:, 0])
    kernel = RBF(1.0) + WhiteKernel(noise) if noise else RBF(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        for composite in (Composite.full(30), Composite.marginal(segment(X, 7, "interleaved"))):
            belief = posterior(kernel, X, y, X, composite)
            assert_sound(belief, 1.0)
            np.testing.assert_allclose(belief.mean, y, rtol=0, atol=1e-3)


def test_test_points_that_repeat_the_data_without_noise_are_interpolated(rng):
    X = np.arange(12.0)[:, None]
    y = rng.normal(size=12)
    belief = posterior(Matern(1.0, nu=0.5), X, y, X, Composite.marginal(segment(X, 4, "sequential")))
    np.testing.assert_allclose(belief.mean, y, rtol=0, atol=1e-7)
    np.testing.assert_allclose(belief.variance, 0, rtol=0, atol=1e-8)


def test_constant_inputs_are_averaged(rng):
    X, y = np.ones((20, 3)), rng.normal(size=20)
    kernel = 2.0 * RBF(1.0) + WhiteKernel(0.5)
    belief = posterior(kernel, X, y, np.ones((4, 3)), Composite.marginal(segment(X, 6)))
    expected = y.sum() / 0.5 / (20 / 0.5 + 1 / 2)
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-9)
    np.testing.assert_allclose(belief.variance, 1 / (20 / 0.5 + 1 / 2), rtol=1e-9)


def test_one_point_one_test_point():
    kernel = 2.0 * RBF(1.0) + WhiteKernel(0.5)
    belief = posterior(kernel, [[0.0]], [3.0], [[1.0]], Composite.full(1))
    assert_same(belief, exact_gp(kernel, np.array([[0.0]]), np.array([3.0]), np.array([[1.0]])))


def test_a_kernel_of_zero_variance_learns_nothing(rng):
    kernel = ConstantKernel(0.0, "fixed") * RBF(1.0) + WhiteKernel(1.0)
    X = rng.normal(size=(6, 1))
    belief = posterior(kernel, X, np.ones(6), X, Composite.marginal(segment(X, 3)), mean=5.0)
    np.testing.assert_array_equal(belief.mean, 5)
    np.testing.assert_array_equal(belief.variance, 0)
    np.testing.assert_array_equal(prior(kernel, X).update(X, np.ones(6)).variance, 0)


def test_a_kernel_that_is_none_is_named_with_its_segment_and_a_remedy(rng):
    X = rng.uniform(0, 3, size=(40, 2))
    indefinite = PairwiseKernel(metric="sigmoid", gamma=-1.0)
    with pytest.raises(np.linalg.LinAlgError, match=r"segment \d+ under kernel PairwiseKernel.*Add a WhiteKernel"):
        posterior(indefinite, X, np.zeros(40), X[:3], Composite.marginal(segment(X, 10)))


def test_a_periodic_kernel_on_two_columns_is_named(rng):
    kernel = ExpSineSquared(1.0, 1.62) + WhiteKernel(1.0)  # no covariance in the plane
    X, Z = np.array([[-0.11807561, 1.51377537]]), np.array([[1.30007093, 1.69753952], [-0.84061863, -0.68855068]])
    for call in (
        lambda: posterior(kernel, X, [0.4], Z, Composite.full(1)),
        lambda: prior(kernel, Z).update(X, [0.4]),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="ExpSineSquared.*OnColumns"):
            call()


def test_infinite_covariance_is_named():
    class Exploding(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return np.full((len(X), len(X if Y is None else Y)), np.inf)

    with pytest.raises(np.linalg.LinAlgError, match=r"Exploding.* not finite in segment 0"):
        factorize(Exploding(), np.zeros((2, 1)), [0.0, 0.0], Composite.full(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"Exploding.* not finite at the test points"):
        prior(Exploding(), np.zeros((2, 1)))


def test_terms_that_take_away_more_than_they_bring():
    X = np.arange(6.0)[:, None]
    kernel = RBF(1.0) + WhiteKernel(0.1)
    with pytest.raises(np.linalg.LinAlgError, match="take away more evidence"):
        posterior(kernel, X, np.zeros(6), X[:2], Composite([([0, 1, 2], -1.0)]))


def test_committee_of_noise_free_experts(rng):
    X = np.arange(12.0)[:, None]
    y = rng.normal(size=12)
    for rule in RULES:
        found = committee(Matern(1.0, nu=0.5), X, y, X, segment(X, 4, "sequential"), rule=rule)
        np.testing.assert_allclose(found.mean, y, rtol=0, atol=1e-7)  # one of the experts knows each of them
        assert (found.variance > 0).all()
        assert (found.variance < 1e-8).all()


class TestLinearAlgebra:
    @pytest.mark.parametrize("n", [1, 5, 40])
    def test_cholesky_and_solves_in_batches(self, n, rng):
        root = rng.normal(size=(2, 3, n, n + 2))
        A = root @ root.transpose(0, 1, 3, 2)
        factor = cholesky(A.copy())
        lower = np.tril(factor.lower)
        np.testing.assert_allclose(lower @ lower.transpose(0, 1, 3, 2), A, rtol=0, atol=1e-10 * n)
        np.testing.assert_array_equal(factor.jitter, 0)
        B = rng.normal(size=(2, 3, n, 4))
        np.testing.assert_allclose(lower @ solve_lower(factor.lower, B.copy()), B, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("n", [3, 50])
    def test_jitter_is_the_least_that_works_and_only_where_needed(self, n):
        singular = np.ones((n, n))
        A = np.stack([np.eye(n), singular, 1e10 * singular])
        factor = cholesky(A.copy())
        np.testing.assert_array_equal(factor.jitter, [0, JITTER_START, JITTER_START])
        lower = np.tril(factor.lower)
        jitter = factor.jitter[:, None, None] * np.einsum("bii->b", A)[:, None, None] / n * np.eye(n)
        np.testing.assert_allclose(lower @ lower.transpose(0, 2, 1), A + jitter, rtol=1e-14, atol=1e-14)

    @pytest.mark.parametrize("n", [3, 50])
    def test_an_indefinite_matrix_is_refused(self, n):
        with pytest.raises(np.linalg.LinAlgError, match="matrix 1 of the batch"):
            cholesky(np.stack([np.eye(n), np.diag([-1.0] + [1.0] * (n - 1))]))
        with pytest.raises(np.linalg.LinAlgError, match="matrix 1 of the batch"):
            cholesky_of_complement(np.stack([np.zeros((n, n)), np.diag([1.1] + [0.0] * (n - 1))]))

    @pytest.mark.parametrize("n", [3, 50])
    def test_complement_is_tempered_only_where_it_is_singular(self, n):
        regular, singular = np.diag(np.linspace(0, 0.9, n)), np.diag(np.linspace(0, 1.0, n))
        lower, tempering = cholesky_of_complement(regular)
        assert tempering == 0
        np.testing.assert_allclose(lower @ lower.T, np.eye(n) - regular, rtol=0, atol=1e-15)
        lower, tempering = cholesky_of_complement(singular)
        assert 0 < tempering <= 1e-11
        np.testing.assert_allclose(lower @ lower.T, np.eye(n) - (1 - tempering) * singular, rtol=0, atol=1e-15)

    @pytest.mark.parametrize("n", [5, 60, 201, 700])
    def test_inverse_of_a_factor_and_its_weighted_square(self, n, rng):
        root = rng.normal(size=(3, n, n + 2))
        A = root @ root.transpose(0, 2, 1)
        inverse = invert_lower(cholesky(A.copy()).lower)
        weights = np.stack([np.ones(n), np.arange(n) >= n // 2, rng.choice([0.5, 1.0, 2.0], size=n)])
        found = half_of_weighted_inverse(inverse.copy(), weights)
        found += found.transpose(0, 2, 1)
        np.testing.assert_allclose(found[0], np.linalg.inv(A[0]), rtol=1e-7, atol=1e-9)
        expected = inverse.transpose(0, 2, 1) @ (weights[..., None] * inverse)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("rank", [0, 3, 8])
    def test_root_of_a_semi_definite_matrix(self, rank, rng):
        half = rng.normal(size=(8, rank))
        root = psd_root(half @ half.T)
        assert root.shape == (8, rank)
        np.testing.assert_allclose(root @ root.T, half @ half.T, rtol=0, atol=1e-12)


class TestWideRangesOfScale:
    """Signals, offsets and noises many orders of magnitude apart, in one matrix."""

    X = np.linspace(0, 20, 200)[:, None]
    Z = X[::2] + 0.03

    @pytest.mark.parametrize(
        "kernel",
        [
            ConstantKernel(1e5) + RBF() + WhiteKernel(1e-4),
            ConstantKernel(1e8) + Matern(nu=1.5) + WhiteKernel(1e-2),
        ],
        ids=str,
    )
    def test_a_large_constant_beside_a_small_signal(self, kernel):
        y = np.sin(3 * self.X[:, 0])
        mean, covariance = exact_gp(kernel, self.X, y, self.Z)
        belief = posterior(kernel, self.X, y, self.Z, Composite.full(200))
        deviation = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose((belief.mean - mean) / deviation, 0, rtol=0, atol=0.01)
        np.testing.assert_allclose(belief.standard_deviation / deviation, 1, rtol=0, atol=0.01)

    def test_noise_a_trillionth_of_the_signal(self):
        belief = posterior(1e6 * RBF() + WhiteKernel(1e-6), [[0.0]], [1.0], [[0.0]], Composite.full(1))
        np.testing.assert_allclose(belief.variance, 1e-6, rtol=1e-3)

    @pytest.mark.parametrize("noise", [1e6, 1e12, 1e14])
    def test_one_very_noisy_point_is_as_good_as_none(self, noise, rng):
        X, Z = rng.uniform(0, 5, size=(50, 1)), rng.uniform(0, 5, size=(6, 1))
        y, variances = np.sin(X[:, 0]), np.zeros(50)
        variances[7], y[7] = noise, 3.0
        kernel = RBF() + WhiteKernel(0.01)
        rest = np.delete(np.arange(50), 7)
        belief = posterior(kernel, X, y, Z, Composite.full(50), noise_variance=variances)
        assert_same(belief, exact_gp(kernel, X[rest], y[rest], Z), atol=1e-5)

    def test_variances_that_differ_by_sixteen_orders(self):
        belief = prior(DotProduct(0.0), [[1e-4, 0], [0, 1e4]])
        np.testing.assert_allclose(belief.variance, [1e-8, 1e8])


class TestKernelsOfTheUser:
    @pytest.mark.parametrize("convert", [np.asfortranarray, lambda K: K.astype("f4"), lambda K: K.astype(int)])
    def test_any_array_that_a_kernel_returns(self, convert, rng):
        class Custom(RBF):
            def __call__(self, X, Y=None, eval_gradient=False):
                return convert(np.round(4 * super().__call__(X, Y), 6))

        X, y, Z = rng.uniform(0, 3, size=(40, 1)), rng.normal(size=40), 10 + rng.uniform(0, 3, size=(50, 1))
        Z[:5] = X[:5]
        kernel = Custom(2e-2) + WhiteKernel(1.0)
        K, K_zx = np.float64(Custom(2e-2)(X)) + np.eye(40), np.float64(Custom(2e-2)(Z, X))
        belief = posterior(kernel, X, y, Z, Composite.full(40))
        np.testing.assert_allclose(belief.mean, K_zx @ np.linalg.solve(K, y), rtol=0, atol=1e-6)

    def test_a_kernel_changed_later_does_not_change_the_model(self, rng):
        X, y, Z = rng.uniform(0, 3, size=(40, 1)), rng.normal(size=40), rng.uniform(0, 3, size=(5, 1))
        kernel = RBF(1.0) + WhiteKernel(0.1)
        factored = factorize(kernel, X, y, Composite.full(40))
        before = factored.posterior(Z).mean
        kernel.theta = kernel.theta + 1
        np.testing.assert_array_equal(factored.posterior(Z).mean, before)

    def test_points_changed_later_do_not_change_the_belief(self):
        kernel, Z = RBF(1.0) + WhiteKernel(0.1), np.zeros((1, 1))
        belief = prior(kernel, Z)
        Z += 1
        moved = belief.update([[0.0]], [1.0])
        assert moved.mean == pytest.approx(posterior(kernel, [[0.0]], [1.0], [[0.0]], Composite.full(1)).mean)

    def test_an_indefinite_kernel_has_no_prior(self, rng):
        with pytest.raises(np.linalg.LinAlgError, match="PairwiseKernel.* is not positive definite at the test"):
            prior(PairwiseKernel(metric="sigmoid", gamma=-1.0), rng.uniform(0, 3, size=(9, 2)))


def test_solves_without_columns_are_silent(capfd):
    """BLAS itself would complain, on the user's standard output."""
    lapack_calls.solve_lower(np.eye(40), np.zeros((40, 0)))
    assert capfd.readouterr() == ("", "")
