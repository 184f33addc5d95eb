import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from strategies import noisy_kernels, seeds

from compositegp import OnColumns, OnSphere, RotatedMatern
from compositegp.kernels import (
    MaternOnSphere,
    at_theta,
    covariances_of_pairs,
    diagonal,
    form_of,
    gram,
    in_length_scales,
    linearize,
    noise_variance,
    squared_distances,
    upper_gram,
)

ARD = np.array([0.5, 1.0, 2.0])
KERNELS = [
    ConstantKernel(2.0),
    ConstantKernel(2.0, "fixed"),
    WhiteKernel(0.3),
    WhiteKernel(0.3, "fixed"),
    RBF(0.8),
    RBF(ARD),
    RBF(ARD, "fixed"),
    RBF(ARD, [(0.1, 1), (0.2, 2), (0.3, 3)]),
    RBF(ARD, np.array([(0.1, 1), (0.2, 2), (0.3, 3)])),
    Matern(0.8, nu=0.5),
    Matern(ARD, nu=0.5),
    Matern(0.8, nu=1.5),
    Matern(ARD, nu=1.5),
    Matern(0.8, nu=2.5),
    Matern(ARD, nu=2.5),
    Matern(0.8, nu=np.inf),
    Matern(ARD, nu=np.inf),
    RationalQuadratic(0.7, 1.3),
    RationalQuadratic(0.7, 1.3, alpha_bounds="fixed"),
    RationalQuadratic(0.7, 1.3, length_scale_bounds="fixed"),
    ExpSineSquared(0.7, 1.3),
    ExpSineSquared(0.7, 1.3, length_scale_bounds="fixed"),
    ExpSineSquared(0.7, 1.3, periodicity_bounds="fixed"),
    DotProduct(0.6),
    DotProduct(0.6, "fixed"),
    RBF(0.8) + WhiteKernel(0.1),
    WhiteKernel(0.1) + RBF(0.8),
    2.0 * RBF(ARD) * Matern(0.5, nu=1.5) + ExpSineSquared(1.0, 0.9) * RBF(3.0) + WhiteKernel(0.1),
    Exponentiation(RBF(0.8) + WhiteKernel(0.2), 2),
    (DotProduct(0.6) + 0.3) ** 3,
    RBF(0.8) * WhiteKernel(0.5),
    OnColumns(Matern(ARD[:2], nu=1.5), [0, 2]) * OnColumns(RBF(0.4), 1) + WhiteKernel(0.1),
    OnColumns(RBF(0.4) + WhiteKernel(0.2), [1]),
]
FALLBACK = [
    PairwiseKernel(0.7, metric="laplacian"),
    2.0 * PairwiseKernel(0.7, metric="laplacian") + RBF(ARD) + WhiteKernel(0.1),
]
SIZES = [17, 150]  # of large sets each pair is computed once
FALLBACK_WITHOUT_EXACT_GRADIENT = [Matern(0.8, nu=1.2)]


def id_of(kernel):
    return str(kernel)


def jacobian(kernel, X):
    return linearize(kernel, X).jacobian()


def pullback(kernel, X, cotangent):
    return linearize(kernel, X).pullback(cotangent)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel", KERNELS + FALLBACK + FALLBACK_WITHOUT_EXACT_GRADIENT, ids=id_of)
def test_value_equals_scikit_learn(kernel, n, rng):
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(9, 3))
    X[5] = X[2]  # a duplicate
    np.testing.assert_allclose(gram(kernel, X), kernel(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(gram(kernel, X, Y), kernel(X, Y), rtol=0, atol=1e-10)
    np.testing.assert_allclose(gram(kernel, X, X), kernel(X, X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(diagonal(kernel, X), np.diag(kernel(X)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(diagonal(kernel, X, noise=False), np.diag(kernel(X, X)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel", KERNELS + FALLBACK, ids=id_of)
def test_derivative_equals_scikit_learn(kernel, n, rng):
    X = rng.normal(size=(n, 3))
    X[5] = X[2]
    K, gradient = kernel(X, eval_gradient=True)
    linearized = linearize(kernel, X)
    np.testing.assert_allclose(linearized.value, K, rtol=0, atol=1e-10)
    np.testing.assert_allclose(linearized.jacobian(), np.moveaxis(gradient, -1, 0), rtol=0, atol=1e-10)
    cotangent = rng.normal(size=K.shape)  # not symmetric
    scale = 1 + n * np.abs(gradient).max(initial=0)  # of sums over pairs, of any sign
    np.testing.assert_allclose(
        linearized.pullback(cotangent) / scale,
        np.einsum("ij,ijp->p", cotangent, gradient) / scale,
        rtol=0,
        atol=1e-12,
    )
    vectors = rng.normal(size=(n, 4))
    np.testing.assert_allclose(
        linearized.products(cotangent, vectors) / scale,
        np.einsum("ij,ijp,jm->pim", cotangent, gradient, vectors, optimize=True) / scale,
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("kernel", KERNELS + FALLBACK + FALLBACK_WITHOUT_EXACT_GRADIENT + [RBF([0.5])], ids=id_of)
def test_a_kernel_at_theta_is_the_clone_of_scikit_learn(kernel, rng):
    before, theta = kernel.get_params(), kernel.theta + 0.1 * rng.normal(size=kernel.n_dims)
    found, expected = at_theta(kernel, theta), kernel.clone_with_theta(theta)
    assert found == expected
    assert repr(found) == repr(expected)
    assert found is not kernel
    np.testing.assert_array_equal(found.theta, expected.theta)
    np.testing.assert_array_equal(found.bounds, expected.bounds)
    for name, value in kernel.get_params().items():
        np.testing.assert_array_equal(value, before[name])
    with pytest.raises(ValueError, match="theta has"):
        at_theta(kernel, np.append(theta, 0.0))


@given(st.data(), seeds)
def test_random_kernels_equal_scikit_learn(data, seed):
    rng = np.random.default_rng(seed)
    kernel = data.draw(noisy_kernels(2))
    X = rng.uniform(-2, 2, size=(8, 2))
    K, gradient = kernel(X, eval_gradient=True)
    scale = 1 + np.abs(gradient).max()
    np.testing.assert_allclose(gram(kernel, X) / scale, K / scale, rtol=0, atol=1e-11)
    cotangent = rng.normal(size=K.shape)
    np.testing.assert_allclose(
        pullback(kernel, X, cotangent) / scale,
        np.einsum("ij,ijp->p", cotangent, gradient) / scale,
        rtol=0,
        atol=1e-10,
    )


class TestNoise:
    """The noise of a kernel is what its Gram matrix has on the diagonal beyond the latent's."""

    @pytest.mark.parametrize("kernel", KERNELS + FALLBACK, ids=id_of)
    def test_is_the_difference_of_the_diagonals(self, kernel, rng):
        X = rng.normal(size=(2, 5, 3))
        expected = diagonal(kernel, X) - diagonal(kernel, X, noise=False)
        np.testing.assert_allclose(noise_variance(kernel, X), expected, rtol=1e-12, atol=1e-12)

    @given(st.data(), seeds)
    def test_is_the_difference_of_the_diagonals_of_random_kernels(self, data, seed):
        kernel = data.draw(noisy_kernels(2))
        for _ in range(data.draw(st.integers(0, 2))):
            other = data.draw(noisy_kernels(2))
            kernel = data.draw(st.sampled_from([kernel + other, kernel * other, kernel**2, kernel**0.5]))
        X = np.random.default_rng(seed).uniform(-2, 2, size=(6, 2))
        whole, latent = diagonal(kernel, X), diagonal(kernel, X, noise=False)
        np.testing.assert_allclose(noise_variance(kernel, X), whole - latent, rtol=0, atol=1e-12 * whole.max())
        assert (noise_variance(kernel, X) >= 0).all()

    @pytest.mark.parametrize(
        ("kernel", "expected"),
        [
            (1e12 * RBF() + WhiteKernel(1e-5), 1e-5),
            (WhiteKernel(1e-5) + OnColumns(1e12 * RBF(), 0), 1e-5),
            ((1e12 * RBF() + WhiteKernel(1e-5)) * (RBF() + WhiteKernel(1e-18)), 1e-5 + 1e-6 + 1e-23),
            ((1e6 * RBF() + WhiteKernel(1e-12)) ** 2, 2e-6 + 1e-24),
            (Exponentiation(WhiteKernel(1e-3), 2), 1e-6),
            (1e12 * RBF(), 0.0),
        ],
        ids=str,
    )
    def test_keeps_its_digits_beside_a_large_variance(self, kernel, expected):
        np.testing.assert_allclose(noise_variance(kernel, np.zeros((2, 1))), expected, rtol=1e-12)

    def test_of_a_kernel_that_no_rule_is_known_for(self):
        class Noisy(RBF):
            def __call__(self, X, Y=None, eval_gradient=False):
                found = super().__call__(X, Y, eval_gradient)
                return found + 0.25 * np.eye(len(X)) if Y is None and not eval_gradient else found

            def diag(self, X):
                return super().diag(X) + 0.25

        np.testing.assert_allclose(noise_variance(2.0 * Noisy() + WhiteKernel(0.5), np.zeros((3, 1))), 1.0)


@pytest.mark.parametrize("n", [4, 40])  # both sides of the switch between vectorised and looped distances
@pytest.mark.parametrize("kernel", KERNELS + FALLBACK, ids=id_of)
def test_batch_equals_one_by_one(kernel, n, rng):
    X, Y, Z = rng.normal(size=(2, 3, n, 3)), rng.normal(size=(2, 3, n + 1, 3)), rng.normal(size=(5, 3))
    cotangent = rng.normal(size=(2, 3, n, n))
    for b in np.ndindex(2, 3):
        np.testing.assert_allclose(gram(kernel, X)[b], gram(kernel, X[b]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(gram(kernel, X, Y)[b], gram(kernel, X[b], Y[b]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(gram(kernel, X, Z)[b], gram(kernel, X[b], Z), rtol=0, atol=1e-13)
        np.testing.assert_allclose(diagonal(kernel, X)[b], diagonal(kernel, X[b]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            pullback(kernel, X, cotangent)[b], pullback(kernel, X[b], cotangent[b]), rtol=0, atol=1e-10
        )
    assert jacobian(kernel, X).shape == (2, 3, len(kernel.theta), n, n)
    assert pullback(kernel, X, cotangent).shape == (2, 3, len(kernel.theta))


def test_pullback_keeps_its_digits_over_long_series(rng):
    # A series of 10⁷ length scales: x² would leave nothing of (x − x′)².
    X = 1e7 * rng.uniform(size=(50, 2))
    X[1::2] = X[::2] + rng.uniform(size=(25, 2))
    kernel = RBF([1.0, 2.0])
    K, gradient = kernel(X, eval_gradient=True)
    cotangent = rng.normal(size=K.shape)
    expected = np.einsum("ij,ijp->p", cotangent, gradient)
    np.testing.assert_allclose(pullback(kernel, X, cotangent), expected, rtol=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_a_subclass_with_its_own_call_is_asked_itself(n, rng):
    class Halved(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            result = super().__call__(X, Y, eval_gradient)
            return tuple(r / 2 for r in result) if eval_gradient else result / 2

        def diag(self, X):
            return super().diag(X) / 2

    class Renamed(RBF):
        pass

    X = rng.normal(size=(n, 2))
    np.testing.assert_array_equal(gram(Halved(0.7) + WhiteKernel(0.1), X), (Halved(0.7) + WhiteKernel(0.1))(X))
    np.testing.assert_array_equal(diagonal(Halved(0.7), X), np.full(n, 0.5))
    np.testing.assert_array_equal(linearize(Halved(0.7), X).value, Halved(0.7)(X))
    np.testing.assert_allclose(gram(Renamed(0.7), X), RBF(0.7)(X), rtol=0, atol=1e-14)


class TestOnColumns:
    kernel = OnColumns(Matern([0.5, 2.0], nu=1.5), [0, 2]) * OnColumns(RBF(0.4), 1) + WhiteKernel(0.1)

    def test_is_a_scikit_learn_kernel(self, rng):
        X = rng.normal(size=(40, 3))
        y = np.sin(X).sum(axis=1) + rng.normal(scale=0.5, size=40)
        model = GaussianProcessRegressor(self.kernel, random_state=0).fit(X, y)
        assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(self.kernel.theta)

    def test_clones_compares_and_takes_theta(self):
        copy = clone(self.kernel)
        assert copy == self.kernel
        assert copy.k1.k1 != OnColumns(Matern([0.5, 2.0], nu=1.5), [0, 1])
        moved = self.kernel.clone_with_theta(self.kernel.theta + 1)
        np.testing.assert_allclose(moved.theta, self.kernel.theta + 1)
        assert len(self.kernel.bounds) == len(self.kernel.theta) == len(self.kernel.hyperparameters) + 1
        assert self.kernel.get_params()["k1__k2__kernel__length_scale"] == 0.4
        assert "OnColumns(RBF(length_scale=0.4), 1)" in repr(self.kernel)

    def test_gradient_by_finite_differences(self, rng):
        X = rng.normal(size=(5, 3))
        _, gradient = self.kernel(X, eval_gradient=True)
        for i, step in enumerate(1e-6 * np.eye(len(self.kernel.theta))):
            up, down = (self.kernel.clone_with_theta(self.kernel.theta + s)(X) for s in (step, -step))
            np.testing.assert_allclose(gradient[..., i], (up - down) / 2e-6, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("columns", [[], [-1], ["a"], 1.5, [[0]]])
    def test_columns_that_are_not_column_numbers_are_refused(self, columns):
        with pytest.raises(ValueError, match="columns must be"):
            gram(OnColumns(RBF(), columns), np.zeros((2, 2)))

    def test_a_column_that_is_not_there_is_refused(self):
        with pytest.raises(ValueError, match="needs column 3, but the points have 2"):
            gram(OnColumns(RBF(), [3]), np.zeros((2, 2)))


def test_whole_numbers_are_points_too():
    X = np.arange(6).reshape(3, 2)
    for kernel in (ConstantKernel(0.5), 0.5 * RBF(2.0), RBF(2.0) + WhiteKernel(0.3), DotProduct(0.5)):
        np.testing.assert_allclose(gram(kernel, X), kernel(X.astype(float)))
        np.testing.assert_allclose(diagonal(kernel, X), kernel.diag(X.astype(float)))


@pytest.mark.parametrize("n", [12, 150])
@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(ARD), *(Matern(1.0, nu=nu) for nu in (0.5, 1.5, 2.5))], ids=str)
def test_points_hundreds_of_length_scales_apart_are_uncorrelated(kernel, n, rng):
    X = rng.uniform(0, 800, size=(n, 3))
    X[0], X[1] = X[2], X[2] + 1e-3
    K, derivative = kernel(X, eval_gradient=True)
    found = linearize(kernel, X)
    for value, expected in (
        (found.value, K),
        (gram(kernel, X, X), K),
        (found.jacobian(), np.moveaxis(derivative, -1, 0)),
    ):
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-290)
        size = np.abs(value)
        assert ((size == 0) | (size > np.finfo(float).tiny)).all()  # a smaller number would take many times as long
    zero = gram(kernel, X, X) == 0
    assert zero.any()
    assert K[zero].max() < 1e-290


def test_points_with_different_columns_have_no_distance():
    for n in (2, 40):
        with pytest.raises(ValueError, match="points with 2 and 3 columns"):
            gram(RBF(), np.zeros((2, n, 2)), np.zeros((2, n, 3)))


def test_wrong_number_of_length_scales():
    with pytest.raises(ValueError, match="2 length scales, but the points have 3"):
        gram(RBF([1.0, 2.0]), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="2 length scales, but the points have 3"):
        in_length_scales(RBF([1.0, 2.0]), np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("kernel", "scales"),
    [
        (RBF([0.5, 4.0]), [2, 0.25]),
        (Matern(2.0), [0.5, 0.5]),
        (RationalQuadratic(2.0), [0.5, 0.5]),
        (WhiteKernel(9.0) + 3.0 * RBF([0.5, 4.0]), [2, 0.25]),
        (RBF(1.0) * RBF([1.0, 2.0]), np.sqrt([2, 1.25])),
        (3.0 * RBF(1.0) + 1.0 * RBF(0.5), np.full(2, ((3 + np.sqrt(2)) / 4) ** 2)),
        (OnColumns(RBF(0.5), 1), [0, 2]),
        (ExpSineSquared(), [1, 1]),
        (ExpSineSquared() * RBF(0.5), [2, 2]),
        (RBF(0.5) ** 2, np.sqrt([8, 8])),
        (DotProduct() + RBF(0.5), [2, 2]),
        (PairwiseKernel(), [1, 1]),
    ],
    ids=str,
)
def test_points_are_measured_in_the_length_scales_of_the_kernel(kernel, scales):
    np.testing.assert_allclose(in_length_scales(kernel, np.ones((1, 2)))[0], scales)


@pytest.mark.parametrize(
    "kernel", [RBF(ARD), Matern(0.8, nu=0.5), 2.0 * Matern(ARD, nu=2.5) + WhiteKernel(0.1)], ids=id_of
)
@pytest.mark.parametrize("shape", [(2, 130, 3), (3, 600, 3)])
def test_a_batch_of_large_sets_equals_one_by_one(kernel, shape, rng):
    X = rng.normal(size=shape)
    for one, both in zip(X, linearize(kernel, X).value, strict=True):
        np.testing.assert_array_equal(both, linearize(kernel, one).value)
    np.testing.assert_array_equal(gram(kernel, X)[1], gram(kernel, X[1]))
    np.testing.assert_array_equal(jacobian(kernel, X)[1], jacobian(kernel, X[1]))


@pytest.mark.parametrize("n", [20, 60, 90, 120])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_distances_of_a_batch_of_sets_are_those_of_each(n, d, rng):
    """Of sets in few columns they are computed all at once, of others one by one."""
    X, Y = 1e3 + rng.normal(size=(3, n, d)), 1e3 + rng.normal(size=(3, 70, d))
    for found, one, other in zip(squared_distances(X, Y), X, Y, strict=True):
        np.testing.assert_allclose(found, cdist(one, other, "sqeuclidean"), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        1.5 * Matern(ARD, nu=0.5) + 2.0 * RBF(ARD) + WhiteKernel(0.1),
        WhiteKernel(0.1) + RotatedMatern(1.5, 0.4, 0.6, nu=1.5) * RBF(3.0),
        2.0 * MaternOnSphere(900.0, 1.2, nu=0.5) + OnSphere(RBF(4000.0)) + 0.3,
        ExpSineSquared(1.0, 0.9) * RationalQuadratic(0.7, 1.3) + OnColumns(RBF(0.4), 1),
    ],
    ids=id_of,
)
@pytest.mark.parametrize("n", [129, 700])
def test_sums_and_products_of_large_sets_are_made_strip_by_strip(kernel, n, rng):
    X = rng.uniform(-3, 3, size=(n, 2 if "Rotated" in str(kernel) or "Sphere" in str(kernel) else 3))
    X[5] = X[2]
    assert covariances_of_pairs(kernel, X) is not None
    found = gram(kernel, X)
    np.testing.assert_allclose(found, kernel(X), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.triu(upper_gram(kernel, X)), np.triu(found))


@pytest.mark.parametrize("first", KERNELS, ids=id_of)
def test_kernels_of_one_form_differ_in_their_free_numbers_alone(first):
    def bare(kernel):
        fixed = [one.fixed for one in kernel.hyperparameters]
        return repr(kernel.clone_with_theta(np.zeros(len(kernel.theta)))), fixed

    for second in KERNELS:
        assert (form_of(first) == form_of(second)) == (bare(first) == bare(second))
    assert form_of(at_theta(first, first.theta + 0.3)) == form_of(first)
