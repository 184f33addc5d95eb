"""Functionals against dense algebra, Monte Carlo and each other."""

import functional_oracles as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Exponentiation, Matern, RationalQuadratic, WhiteKernel
from strategies import seeds

from compositegp import Basis, Composite, OnColumns, committee, factorize, nearest, posterior, prior, project
from compositegp import functionals as F
from compositegp.analysis import compare
from compositegp.composite import fisher_information
from compositegp.learning import learn

NOISE = 0.05
LONG, SHORT, LINE = 2.0 * RBF([2.0, 3.0]), 0.7 * Matern(1.5, nu=2.5), 0.3 * DotProduct(0.5)
PARTS = {"k1__k1": LONG, "k1__k2__k1": SHORT, "k1__k2__k2": LINE}
KERNEL = (LONG + (SHORT + LINE)) + WhiteKernel(NOISE)
BOX, SHARES = F.box([0.0, -1.0], [1.0, 0.5], size=3)


def everything(Z):
    """One of each kind, and the same as the oracle has it."""
    weights = np.array([0.5, -2.0, 1.0])
    ours = F.join(
        [
            F.at(Z[:1]),
            F.derivative(Z[:1], 0),
            F.derivative(Z[1:2], 1),
            F.average([BOX], [SHARES]),
            F.combine(Z[:3], weights),
            F.part(Z[1:2], "k1__k1"),
            F.part(F.derivative(Z[2:3], 1), "k1__k2__k2"),
            F.combine([F.at(Z[:1]), F.derivative(Z[:1], 0), F.part(Z[:1], "k1__k2__k1")], weights),
            F.average([Z[:3], Z[2:5]]),
        ]
    )
    theirs = [
        oracle.at(Z[0]),
        oracle.slope(Z[0], 0),
        oracle.slope(Z[1], 1),
        oracle.mean_over(BOX, SHARES),
        oracle.combined([oracle.at(z) for z in Z[:3]], weights),
        oracle.at(Z[1], "k1__k1"),
        oracle.slope(Z[2], 1, "k1__k2__k2"),
        oracle.combined([oracle.at(Z[0]), oracle.slope(Z[0], 0), oracle.at(Z[0], "k1__k2__k1")], weights),
        oracle.mean_over(Z[:3]),
        oracle.mean_over(Z[2:5]),
    ]
    return ours, theirs


@pytest.fixture
def problem(rng):
    X, Z = rng.uniform(-2, 2, size=(24, 2)), rng.uniform(-2, 2, size=(6, 2))
    return X, np.sin(X[:, 0]) + X[:, 1], Z, [oracle.at(x) for x in X]


def test_prior_equals_dense_algebra(problem):
    *_, Z, _ = problem
    ours, theirs = everything(Z)
    belief = prior(KERNEL, ours)
    np.testing.assert_allclose(belief.covariance, oracle.covariance(PARTS, theirs, theirs), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(belief.variance, np.diagonal(belief.covariance), rtol=1e-10)


def test_exact_posterior_equals_dense_algebra(problem, device):
    X, y, Z, observed = problem
    ours, theirs = everything(Z)
    mean, covariance = oracle.exact(PARTS, observed, y, NOISE, theirs)
    belief = posterior(KERNEL, X, y, ours, Composite.full(24))
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-5, atol=1e-6)


def test_composites_and_the_recursion_equal_dense_algebra(problem, device):
    X, y, Z, observed = problem
    ours, theirs = everything(Z)
    chosen = [1, 3, 4, 8]
    segments = [np.arange(8), np.arange(8, 16), np.arange(16, 24)]
    mean, covariance = oracle.composite(
        PARTS, observed, y, NOISE, [theirs[i] for i in chosen], [(part, 1.0) for part in segments]
    )
    asked = ours[chosen]
    belief = posterior(KERNEL, X, y, asked, Composite.marginal(segments))
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-5, atol=1e-6)
    again = factorize(KERNEL, X, y, Composite.marginal(segments)).posterior(asked)
    np.testing.assert_allclose(again.mean, belief.mean, rtol=1e-10)
    step = prior(KERNEL, asked)
    for part in segments:
        step = step.update(X[part], y[part])
    np.testing.assert_allclose(step.mean, belief.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(step.covariance, belief.covariance, rtol=1e-7, atol=1e-9)
    vecchia = Composite.conditional(segments, [[], *[np.arange(8 * k) for k in (1, 2)]])
    exact = oracle.exact(PARTS, observed, y, NOISE, [theirs[i] for i in chosen])
    np.testing.assert_allclose(posterior(KERNEL, X, y, asked, vecchia).mean, exact[0], rtol=1e-5, atol=1e-6)


def test_observations_may_be_functionals(problem, device):
    """Block averages and slopes as data, with noise of their own, in one term and in several."""
    X, _, Z, _ = problem
    blocks = [X[start : start + 4] for start in range(0, 12, 4)]
    observed = F.join([F.average(blocks), F.derivative(X[12:16], 1), F.at(X[16:20])])
    theirs = (
        [oracle.mean_over(block) for block in blocks]
        + [oracle.slope(x, 1) for x in X[12:16]]
        + [oracle.at(x) for x in X[16:20]]
    )
    # An average of four noisy values has a quarter of the noise; the noise of a slope is what is given for it.
    given = np.array([0.1] * 3 + [0.2] * 4 + [0.0] * 4)
    noise = given + np.array([NOISE / 4] * 3 + [0.0] * 4 + [NOISE] * 4)
    y = np.arange(11.0) / 5
    ours, asked = everything(Z)
    belief = posterior(KERNEL, observed, y, ours, Composite.full(11), noise_variance=given)
    mean, covariance = oracle.exact(PARTS, theirs, y, noise, asked)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-5, atol=1e-6)
    terms = [(np.array([0, 4, 7, 10]), 1.0), (np.array([1, 2, 3, 5, 6, 8, 9]), 1.0)]
    chosen = [0, 3, 5]
    mean, covariance = oracle.composite(PARTS, theirs, y, noise, [asked[i] for i in chosen], terms)
    belief = posterior(KERNEL, observed, y, ours[chosen], Composite(terms), noise_variance=given)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-5, atol=1e-6)
    step = prior(KERNEL, ours[chosen])
    for indices, _ in terms:
        step = step.update(observed[indices], y[indices], noise_variance=given[indices])
    np.testing.assert_allclose(step.mean, mean, rtol=1e-5, atol=1e-6)
    points = posterior(KERNEL, observed, y, Z, Composite.full(11), noise_variance=given)
    mean, covariance = oracle.exact(PARTS, theirs, y, noise, [oracle.at(z) for z in Z])
    np.testing.assert_allclose(points.mean, mean, rtol=1e-5, atol=1e-6)


def test_likelihood_of_functionals(problem):
    """Learning reads the gradient in θ and the Fisher information: against differences of the dense likelihood."""
    X, _, _, _ = problem
    observed = F.join([F.average([X[start : start + 3] for start in range(0, 12, 3)]), F.derivative(X[12:16], 0)])
    y = np.sin(np.arange(8.0))
    kernel = 1.3 * RBF(1.0) + WhiteKernel(0.2)
    theirs = [oracle.mean_over(X[s : s + 3]) for s in range(0, 12, 3)] + [oracle.slope(x, 0) for x in X[12:16]]

    def dense(theta):
        changed = kernel.clone_with_theta(theta)
        noise = np.r_[np.full(4, changed.k2.noise_level / 3), np.zeros(4)] + 0.1
        K = oracle.covariance({"all": changed.k1}, theirs, theirs) + np.diag(noise)
        return K, -0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(2 * np.pi * K)[1])

    h, p = 1e-4, len(kernel.theta)
    steps = h * np.eye(p)
    slopes = [(dense(kernel.theta + s)[0] - dense(kernel.theta - s)[0]) / (2 * h) for s in steps]
    K = dense(kernel.theta)[0]
    fisher = [[0.5 * np.trace(np.linalg.solve(K, A) @ np.linalg.solve(K, B)) for B in slopes] for A in slopes]
    found = fisher_information(kernel, observed, noise_variance=0.1)
    np.testing.assert_allclose(found, fisher, rtol=1e-4, atol=1e-6)
    result = learn(kernel, observed, y, Composite.full(8), noise_variance=0.1, warn=False)
    best = dense(result.kernel.theta)[1]
    assert best >= dense(kernel.theta)[1]
    free = (result.kernel.theta - 1e-2 > result.kernel.bounds[:, 0]) & (
        result.kernel.theta + 1e-2 < result.kernel.bounds[:, 1]
    )
    for s in np.eye(p)[free] * 0.05:
        assert best >= max(dense(result.kernel.theta + s)[1], dense(result.kernel.theta - s)[1]) - 1e-2


def test_unknown_coefficients_of_the_mean(problem):
    """The mean is a part: its slope, its average, and the error of its coefficients in each."""
    X, y, Z, observed = problem
    scale = 1e3  # a wide prior of the coefficients is a linear kernel
    mean = Basis("linear", np.zeros(3), scale * np.eye(3))
    parts = {**PARTS, "mean": scale * DotProduct(1.0)}
    ours, theirs = everything(Z)
    ours = F.join([ours, F.part(Z[:1], "mean"), F.part(F.derivative(Z[:1], 1), "mean")])
    theirs = [*theirs, oracle.at(Z[0], "mean"), oracle.slope(Z[0], 1, "mean")]
    expected, covariance = oracle.exact(parts, observed, y, NOISE, theirs)
    belief = posterior(KERNEL, X, y, ours, Composite.full(24), mean=mean)
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-3, atol=1e-3)


def test_known_means(problem):
    X, y, Z, observed = problem

    def wave(X):
        return np.sin(X[:, 0]) * X[:, 1]

    ours, theirs = everything(Z)
    expected, _ = oracle.exact(PARTS, observed, y, NOISE, theirs, wave)
    found = posterior(KERNEL, X, y, ours, Composite.full(24), mean=wave).mean
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    part = posterior(KERNEL, X, y, F.part(Z, "mean"), Composite.full(24), mean=wave)
    np.testing.assert_allclose(part.mean, wave(Z), rtol=1e-12)
    np.testing.assert_allclose(part.variance, 0.0, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="mean .* has no derivative in column 0"):
        posterior(KERNEL, X, y, F.derivative([[0.0, 1.0]], 0), Composite.full(24), mean=lambda X: np.sign(X[:, 0]))


def test_other_methods_are_exact_where_they_must_be(problem, device):
    """All the data in one segment, neighborhood or expert; inducing points at the data."""
    X, y, Z, observed = problem
    ours, theirs = everything(Z)
    mean, covariance = oracle.exact(PARTS, observed, y, NOISE, theirs)
    close = {"rtol": 1e-4, "atol": 1e-5}
    for found in (
        nearest(KERNEL, X, y, ours, n_neighbors=24, group_size=4),
        committee(KERNEL, X, y, ours, [np.arange(24)], rule="bcm"),
        posterior(KERNEL, X, y, ours, Composite.full(24), inducing=ours),
        project(posterior(KERNEL, X, y, X, Composite.full(24)), KERNEL, ours),
    ):
        np.testing.assert_allclose(found.mean, mean, **close)
        np.testing.assert_allclose(found.variance, np.diagonal(covariance), **close)


def test_honest_errors(problem):
    """Closed-form errors of a composite's means against the dense formula for the same weights."""
    X, y, Z, observed = problem
    ours, theirs = everything(Z)
    chosen = [1, 3, 5]
    segments = [np.arange(12), np.arange(12, 24)]
    asked = [theirs[i] for i in chosen]
    terms = [(part, 1.0) for part in segments]
    report = compare(KERNEL, X, ours[chosen], Composite.marginal(segments))
    answers = [oracle.composite(PARTS, observed, row, NOISE, asked, terms)[0] for row in np.eye(24)]
    weights = np.stack(answers, axis=1)
    K = oracle.covariance(PARTS, observed, observed) + NOISE * np.eye(24)
    K_zx = oracle.covariance(PARTS, asked, observed)
    prior_variance = np.diagonal(oracle.covariance(PARTS, asked, asked))
    errors = prior_variance - 2 * (weights * K_zx).sum(axis=1) + ((weights @ K) * weights).sum(axis=1)
    np.testing.assert_allclose(report.actual_mse, errors, rtol=1e-4, atol=1e-7)
    exact = np.diagonal(oracle.exact(PARTS, observed, y, NOISE, asked)[1])
    np.testing.assert_allclose(report.exact_variance, exact, rtol=1e-4, atol=1e-7)


def test_monte_carlo(problem):
    """Draws of f at points, put together by hand, have the moments that the belief about functionals has."""
    X, y, Z, _ = problem
    composite = Composite.full(24)
    sets = [Z[:3], Z[2:6]]
    draws = posterior(KERNEL, X, y, Z, composite).sample(200_000, random_state=0)
    by_hand = np.stack([draws[:, :3].mean(axis=1), draws[:, 2:6].mean(axis=1), draws[:, 0] - draws[:, 5]], axis=1)
    asked = F.join([F.average(sets), F.combine(Z[[0, 5]], [1.0, -1.0])])
    belief = posterior(KERNEL, X, y, asked, composite)
    errors = 4 * np.sqrt(belief.variance / 200_000)
    assert (np.abs(by_hand.mean(axis=0) - belief.mean) < errors).all()
    np.testing.assert_allclose(np.cov(by_hand.T), belief.covariance, rtol=0.05, atol=0.02 * belief.variance.min())


@given(seed=seeds, n_atoms=st.integers(1, 5))
def test_linearity(seed, n_atoms):
    """A combination of one point is the point; a sum's belief is the sum of beliefs; order does not matter."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(12, 2)), rng.normal(size=(n_atoms, 2))
    y, weights = rng.normal(size=12), rng.normal(size=n_atoms)
    base = F.join([F.at(Z), F.derivative(Z, 1), F.part(Z, "k1__k1")])
    sums = np.concatenate([np.eye(3 * n_atoms), rng.normal(size=(2, 3 * n_atoms))])
    belief = posterior(KERNEL, X, y, base, Composite.full(12))
    found = posterior(KERNEL, X, y, F.combine(base, sums), Composite.full(12))
    np.testing.assert_allclose(found.mean, sums @ belief.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.covariance, sums @ belief.covariance @ sums.T, rtol=1e-6, atol=1e-7)
    points = posterior(KERNEL, X, y, Z, Composite.full(12))
    np.testing.assert_allclose(found.mean[:n_atoms], points.mean, rtol=1e-9, atol=1e-9)
    whole = posterior(KERNEL, X, y, F.combine(Z, weights), Composite.full(12))
    assert whole.mean[0] == pytest.approx(weights @ points.mean, abs=1e-8)


@given(seed=seeds, size=st.floats(1e-5, 1e-3))
def test_an_average_over_a_shrinking_box_tends_to_the_point(seed, size):
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(10, 2)), rng.normal(size=2)
    points, weights = F.box(z - size, z + size, size=4)
    belief = posterior(KERNEL, X, X[:, 0], F.join([F.average([points], [weights]), F.at([z])]), Composite.full(10))
    assert belief.mean[0] == pytest.approx(belief.mean[1], abs=30 * size**2 + 1e-9)
    assert belief.variance[0] == pytest.approx(belief.variance[1], abs=30 * size + 1e-9)


@given(seed=seeds)
def test_a_difference_quotient_tends_to_the_derivative(seed):
    rng = np.random.default_rng(seed)
    X, z, h = rng.normal(size=(10, 2)), rng.normal(size=2), 1e-4
    ends = z + h * np.array([[1, 0], [-1, 0]])
    asked = F.join([F.combine(ends, [1 / (2 * h), -1 / (2 * h)]), F.derivative([z], 0)])
    belief = posterior(KERNEL, X, X[:, 0], asked, Composite.full(10))
    assert belief.mean[0] == pytest.approx(belief.mean[1], rel=1e-4, abs=1e-4)


@given(seed=seeds)
def test_parts_add_up(seed):
    """The parts' means sum to the prediction, in any composite; so do their covariances; slopes of parts too."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(4, 2))
    names = [*F.part_names(KERNEL), "mean"]
    assert names == [*PARTS, "mean"]
    y = X[:, 0] + rng.normal(size=20)
    for composite in (Composite.full(20), Composite.marginal([np.arange(10), np.arange(10, 20)])):
        for base in (F.at(Z), F.derivative(Z, 0)):
            asked = F.join([base, *(F.part(base, name) for name in names)])
            belief = posterior(KERNEL, X, y, asked, composite, mean=lambda X: 3 + X[:, 1])
            means = belief.mean.reshape(1 + len(names), 4)
            np.testing.assert_allclose(means[1:].sum(axis=0), means[0], rtol=1e-6, atol=1e-6)
            joint = belief.covariance.reshape(1 + len(names), 4, 1 + len(names), 4)
            np.testing.assert_allclose(joint[1:, :, 1:].sum(axis=(0, 2)), joint[0, :, 0], rtol=1e-5, atol=1e-6)
    one = F.part(F.derivative(Z, 0), names[0])
    other = F.derivative(F.part(Z, names[0]), 0)
    np.testing.assert_array_equal(one.columns, other.columns)
    assert one.part_names == other.part_names


def test_parts_of_products():
    """A product with a sum is multiplied out; parts on both sides of a product share what both have."""
    A, B, C = RBF(1.0), RBF(2.0), DotProduct()
    kernel = 2.0 * (A + B) * OnColumns(C + RationalQuadratic(), [0]) + WhiteKernel()
    assert F.part_names(kernel) == ["k1__k1__k2__k1", "k1__k1__k2__k2"]
    X = np.array([[0.5]])
    left, right = F.part(X, "k1__k1__k2__k1"), F.part(X, "k1__k2__kernel__k1")
    joint = prior(kernel, F.join([left, right])).covariance
    rest = (C + RationalQuadratic())(X)[0, 0]
    np.testing.assert_allclose(joint, [[2 * rest, 2 * C(X)[0, 0]], [2 * C(X)[0, 0], 4 * C(X)[0, 0]]], rtol=1e-12)
    assert F.part_names(RBF() + WhiteKernel()) == ["k1"]
    assert F.part_names(2.0 * RBF()) == ["kernel"]
    assert F.part_names(WhiteKernel()) == []


def test_sets_of_many_sizes(rng):
    """Averages over sets of different sizes are computed in few classes; each is what it is alone."""
    X = rng.normal(size=(15, 2))
    sets = [rng.normal(size=(size, 2)) for size in (1, 2, 3, 5, 6, 7, 9, 13, 24, 33)]
    together = posterior(KERNEL, X, X[:, 0], F.average(sets), Composite.full(15))
    for number, own in enumerate(sets):
        alone = posterior(KERNEL, X, X[:, 0], F.average([own]), Composite.full(15))
        assert together.mean[number] == pytest.approx(alone.mean[0], rel=1e-9)
        assert together.variance[number] == pytest.approx(alone.variance[0], rel=1e-7)


def test_selection_and_joins(rng):
    X = rng.normal(size=(5, 2))
    found = F.join([F.at(X), F.average([X, X[:2]]), F.derivative(X, 1)])
    assert len(found) == 12
    assert len(found[3:]) == 9
    chosen = found[[6, 0, -1]]
    np.testing.assert_array_equal(chosen.counts, [2, 1, 1])
    np.testing.assert_array_equal(chosen.points, np.concatenate([X[:2], X[:1], X[4:]]))
    np.testing.assert_allclose(found.centers[5], X.mean(axis=0))
    np.testing.assert_array_equal(found.is_point, [True] * 5 + [False] * 7)
    np.testing.assert_allclose(found.constants, [1.0] * 7 + [0.0] * 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F.derivative([[0.0]], 1), "column is 1, but the points have 1 column"),
        (lambda: F.derivative([[0.0]], "a"), "column 'a' is not among the columns"),
        (lambda: F.derivative(F.derivative([[0.0]], 0), 0), "second derivatives are not available"),
        (lambda: F.combine([[0.0], [1.0]], [1.0]), r"weights must be finite numbers of shape \(2,\)"),
        (lambda: F.combine([[0.0], [1.0]], [0.0, 0.0]), "weights are all zero for sum 0"),
        (lambda: F.average([[[0.0], [1.0]]], [[1.0, -1.0]]), "must not be negative"),
        (lambda: F.average([[[0.0]]], [[1.0], [1.0]]), r"weights has 2 array\(s\) for 1 set"),
        (lambda: F.average(3), "sets must be a list of point sets"),
        (lambda: F.part([[0.0]], ""), "name must be that of a part"),
        (lambda: F.part(F.part([[0.0]], "k1"), "k2"), "X is of the parts 'k1' already"),
        (lambda: F.join([]), "functionals must be a list"),
        (lambda: F.join([F.at([[0.0]]), F.at([[0.0, 1.0]])]), "points with 1 and 2 columns"),
        (lambda: F.box(1.0, 0.0), "low must not be above high"),
        (lambda: prior(KERNEL, F.part([[0.0, 0.0]], "k2")), "part 'k2' .* is noise"),
        (lambda: prior(KERNEL, F.part([[0.0, 0.0]], "k3")), "there is no part 'k3'.*'k1__k1'"),
        (lambda: prior(KERNEL, F.part([[0.0, 0.0]], "k1__k1__k2")), "a factor alone adds nothing"),
        (lambda: prior(Exponentiation(RBF() + RBF(2.0), 2), F.part([[0.0]], "kernel__k1")), "there is no part"),
        (lambda: prior(RBF(), [F.at([[0.0]]), [[1.0]]]), "a list of functionals has something else"),
        (lambda: posterior(RBF(), [[0.0]], [1.0], F.at([[0.0, 1.0]]), Composite.full(1)), "X has 1 column"),
        (lambda: prior(Matern(nu=0.5), F.derivative([[0.0]], 0)), "derivative nowhere"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
