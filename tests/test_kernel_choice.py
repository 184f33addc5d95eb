"""The kernel that the data choose: the comparison over the same terms, and what the estimators make of it."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.utils import check_random_state

from compositegp import CompositeGPRegressor, CompositeLikelihood, FisherAverage, segment
from compositegp.composite import Observations, total_score
from compositegp.distributed import DistributedGPRegressor
from compositegp.kernels import DataScale
from compositegp.learning import (
    LocalSegments,
    candidates_of,
    choose_kernel,
    default_kernel,
    kernel_family,
    learn_from,
    problem_of,
)
from compositegp.learning.kernel_race import FixedTerms, _promising, compare_kernels
from compositegp.learning.log_likelihoods import log_likelihoods_of_pieces
from compositegp.learning.problem import Reporter
from compositegp.learning.warm_starts import warm_starts
from compositegp.means import as_mean

PROCESSES = {
    "Matern 1/2": Matern([0.3, 0.6], nu=0.5),
    "Matern 3/2": Matern([0.2, 0.4], nu=1.5),
    "RBF": RBF([0.15, 0.3]),
}


def draw(kernel, n, seed, noise=0.05, n_outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    shape = n if n_outputs is None else (n, n_outputs)
    lower = np.linalg.cholesky(kernel(X) + 1e-8 * np.eye(n))
    return X, lower @ rng.normal(size=shape) + noise * rng.normal(size=shape)


@pytest.fixture(scope="module")
def smooth():
    return draw(PROCESSES["RBF"], 250, 5)


@pytest.fixture(scope="module")
def fitted(smooth):
    return CompositeGPRegressor(n_jobs=1).fit(*smooth)


def observations(X, y, mean="constant"):
    return Observations.of(default_kernel(X.shape[1]), as_mean(mean), X, y, None)


# --- the choice ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROCESSES)
def test_the_true_smoothness_is_chosen(name):
    names = []
    for seed in range(3):  # twice in three times, or sooner
        names.append(CompositeGPRegressor().fit(*draw(PROCESSES[name], 300, seed)).kernel_comparison_.best.name)
        if names.count(name) == 2:
            return
    raise AssertionError(names)


def test_a_sum_is_chosen_where_the_data_are_one():
    X, y = draw(0.5 * Matern([0.05, 0.05], nu=0.5) + 4.0 * RBF([0.3, 0.6]), 1000, 0, noise=0.01)
    comparison = CompositeGPRegressor().fit(X, y).kernel_comparison_
    assert "+" in comparison.best.name, comparison
    rows = {row.name: row for row in comparison}
    assert rows["RBF"].difference < -2 * rows["RBF"].standard_error


def test_the_comparison_is_a_sequence_with_a_table(fitted):
    comparison = fitted.kernel_comparison_
    assert len(comparison) == len(kernel_family(2)) == len(list(comparison))
    assert {row.name for row in comparison} == set(kernel_family(2))
    assert comparison[0] is comparison.best
    assert [row.chosen for row in comparison] == [True] + 5 * [False]
    assert max(row.difference for row in comparison) == 0
    assert all(row.standard_error > 0 for row in comparison if row.difference < 0)
    assert all(row.seconds > 0 and row.n_evaluations > 0 for row in comparison)
    assert sum(row.seconds for row in comparison) < comparison.seconds
    lines = repr(comparison).splitlines()
    assert len(lines) == 8
    assert lines[2].startswith(comparison.best.name)
    assert lines[2].endswith("chosen")


def test_the_chosen_kernel_is_learned_as_if_it_had_been_given(smooth, fitted):
    X, y = smooth
    name = fitted.kernel_comparison_.best.name
    given = CompositeGPRegressor(kernel_family(2)[name], mean="constant").fit(X, y - y.mean())
    assert_allclose(fitted.kernel_.theta, given.kernel_.theta, rtol=0, atol=0.2)
    here, there = fitted.learning_result_.log_likelihood, given.learning_result_.log_likelihood
    assert_allclose(here, there, rtol=0, atol=0.1)


# --- the same terms -----------------------------------------------------------------------------------------------


def test_log_likelihoods_are_those_of_the_same_terms(rng):
    X, y = draw(PROCESSES["Matern 3/2"], 900, 1)
    data = observations(X, y)
    source = LocalSegments(data, segment(X, 30), 30)  # too small to be halved
    _, comparison = choose_kernel(kernel_family(2), data, source, CompositeLikelihood(), random_state=3)
    order = check_random_state(3).permutation(len(source))
    for row in comparison:
        composite = source.take(order[: row.n_segments], comparison.first_kernel)
        found = total_score(data.with_kernel(row.kernel), composite, row.mean_coefficients)
        assert_allclose(row.log_likelihood * row.n_points, found.log_likelihood, rtol=1e-12)
        assert row.n_points == found.n_points


@pytest.mark.parametrize(("size", "given"), [(400, 0), (64, 0), (64, 32)])
def test_pieces_add_up_to_the_log_likelihood(size, given):
    X, y = draw(PROCESSES["Matern 3/2"], 400, 2, n_outputs=2)
    data = observations(X, y)
    composite = LocalSegments(data, segment(X, size), given).take(range(max(1, 400 // size)), data.kernel)
    beta = np.array([[0.3, -0.2]])
    pieces = log_likelihoods_of_pieces(data, composite, beta, 8)
    assert len(pieces) >= 8
    assert_allclose(pieces.sum(), total_score(data, composite, beta).log_likelihood, rtol=1e-12)


def test_pieces_of_data_elsewhere_add_up_to_the_log_likelihood():
    class Elsewhere:
        """Readings that only have a score."""

        def __init__(self, source):
            self._source, self.mean_size = source, source.mean_size

        def __len__(self):
            return len(self._source)

        def halved(self, numbers):
            return None

        def read(self, numbers, kernel):
            reading = self._source.read(numbers, kernel)
            sizes = {"n_blocks": reading.n_blocks, "cubes": reading.cubes}
            return type("Reading", (), {**sizes, "score": staticmethod(reading.score)})()

    X, y = draw(PROCESSES["Matern 3/2"], 400, 2)
    data = observations(X, y)
    local = LocalSegments(data, segment(X, 32), 16)
    found = []
    for source in (local, Elsewhere(local)):
        reporter = Reporter(None, False, len(source))
        order = np.arange(len(local))
        problem = problem_of(
            data, local.segments, source, order, start="data", seed=0, n_jobs=None, reporter=reporter
        )
        terms = FixedTerms(problem, 11, data.kernel)
        found.append(terms.log_likelihoods(data.kernel, np.zeros((1, 1))).sum())
        names = [row.name for row in compare_kernels(kernel_family(2), problem, DataScale(np.ones(2), 1.0))]
        assert names[0].startswith("Matern 3/2")
    assert_allclose(found[0], found[1], rtol=1e-12)


def test_more_terms_are_read_only_where_they_are_needed(monkeypatch):
    X, y = draw(PROCESSES["RBF"], 1200, 3)
    monkeypatch.setattr("compositegp.learning.kernel_race._SECOND_POINTS", 120)
    data = observations(X, y)
    source = LocalSegments(data, segment(X, 30), 15)
    _, comparison = choose_kernel(kernel_family(2), data, source, CompositeLikelihood())
    rows = {row.name: row for row in comparison}
    assert rows["Matern 1/2"].n_points < rows["RBF"].n_points
    assert comparison.best.name == "RBF"
    apart = {name: kernel_family(2)[name] for name in ("Matern 1/2", "RBF")}
    monkeypatch.setattr("compositegp.learning.kernel_race._SECOND_POINTS", 600)
    _, comparison = choose_kernel(apart, data, source, CompositeLikelihood())
    assert comparison.best.name == "RBF"
    assert max(row.n_points for row in comparison) <= 600


def test_half_of_few_data_leaves_the_kernels_that_the_exact_likelihood_likes_best():
    """scikit-learn's likelihood of all the data, at the values where each kernel was left, is the judge."""
    X, y = draw(PROCESSES["RBF"], 800, 7)
    model = CompositeGPRegressor(segment_size=200, conditioning_size=200).fit(X, y)
    rows = {row.name: row for row in model.kernel_comparison_}
    assert rows["Matern 1/2"].n_points == 400  # which half the data tell apart from the others
    exact = {
        name: GaussianProcessRegressor(row.kernel, optimizer=None)
        .fit(X, y - y.mean())
        .log_marginal_likelihood_value_
        for name, row in rows.items()
    }
    chosen = model.kernel_comparison_.best.name
    assert exact[chosen] >= max(exact.values()) - 5
    assert exact["Matern 1/2"] < exact[chosen] - 20


def test_little_is_left_to_gain_after_a_comparison():
    """The likelihood of the learned terms is within a tenth of p / 2 of its maximum, found by SciPy."""
    X, y = draw(PROCESSES["Matern 3/2"], 800, 8)
    kernels = {"one": ConstantKernel() * Matern([1.0, 1.0], nu=1.5) + WhiteKernel()}
    data = observations(X, y)
    source = LocalSegments(data, segment(X, 200), 0)
    result, _ = choose_kernel(kernels, data, source, CompositeLikelihood(prior=None))
    assert result.converged
    composite = source.take(range(len(source)), result.kernel)

    def loss(theta):
        found = total_score(data.with_kernel(result.kernel.clone_with_theta(theta)), composite, beta)
        return -found.log_likelihood, -found.gradient

    beta = result.mean.coefficients.reshape(-1, 1)
    best = minimize(loss, result.theta, jac=True, method="BFGS")
    assert -best.fun - result.log_likelihood < 0.1 * len(result.theta) / 2 + 0.1


def test_ties_go_to_the_simpler_kernel():
    X, y = draw(PROCESSES["Matern 3/2"], 300, 4)
    simple = kernel_family(2)["Matern 3/2"]
    twice = ConstantKernel(1.0) * Matern([1.0, 1.0], nu=1.5) + simple
    comparison = CompositeGPRegressor({"twice": twice, "simple": simple}).fit(X, y).kernel_comparison_
    assert comparison.best.name == "simple"
    assert comparison.best.n_parameters == 4


def test_a_kernel_that_cannot_be_factorized_leaves_the_comparison():
    class Negative(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            found = super().__call__(X, Y, eval_gradient)
            return (-found[0], -found[1]) if eval_gradient else -found

    X, y = draw(PROCESSES["RBF"], 120, 6)
    comparison = CompositeGPRegressor({"good": 1.0 * RBF() + WhiteKernel(), "bad": Negative()}).fit(X, y)
    rows = {row.name: row for row in comparison.kernel_comparison_}
    assert rows["good"].chosen
    assert rows["bad"].log_likelihood == -np.inf
    assert "failed" in repr(comparison.kernel_comparison_)


# --- what does not matter -----------------------------------------------------------------------------------------


def test_the_number_of_processes_does_not_matter_nor_that_automatic_is_named(smooth, fitted):
    two = CompositeGPRegressor("auto", n_jobs=2).fit(*smooth)
    assert fitted.kernel_ == two.kernel_
    for here, there in zip(fitted.kernel_comparison_, two.kernel_comparison_, strict=True):
        assert here.name == there.name
        assert here.log_likelihood == there.log_likelihood
        assert here.difference == there.difference


def test_units_do_not_matter(smooth, fitted):
    X, y = smooth
    other = CompositeGPRegressor().fit(X * [1e3, 1e-4] + [5.0, 0.0], 1e6 * y - 3e6)
    for here, there in zip(fitted.kernel_comparison_, other.kernel_comparison_, strict=True):
        assert here.name == there.name
        assert_allclose(here.difference, there.difference, rtol=0, atol=1e-3)
        assert_allclose(here.log_likelihood, there.log_likelihood + np.log(1e6), rtol=0, atol=1e-3)


def test_the_data_and_the_candidates_stay_as_they_were(smooth):
    kernels = kernel_family(2)
    before = {name: (kernel.theta.copy(), kernel.bounds.copy()) for name, kernel in kernels.items()}
    CompositeGPRegressor(kernels, mean="constant").fit(*smooth)
    for name, (theta, bounds) in before.items():
        assert_allclose(kernels[name].theta, theta, rtol=0)
        assert_allclose(kernels[name].bounds, bounds, rtol=0)


# --- estimators ---------------------------------------------------------------------------------------------------


def test_kernels_of_a_user(smooth):
    smooth = smooth[0][:150], smooth[1][:150]
    rough, soft = ConstantKernel(1.0) * Matern(nu=0.5) + WhiteKernel(), ConstantKernel(1.0) * RBF() + WhiteKernel()
    found = CompositeGPRegressor([rough, soft], mean="constant").fit(*smooth)
    assert isinstance(found.kernel_.k1.k2, RBF)
    assert [row.name for row in found.kernel_comparison_] == [str(soft), str(rough)]
    named = CompositeGPRegressor({"rough": rough, "smooth": soft}, mean="constant").fit(*smooth)
    assert named.kernel_comparison_.best.name == "smooth"
    assert_allclose(named.kernel_.theta, found.kernel_.theta, rtol=0)
    assert clone(found).fit(*smooth).kernel_ == found.kernel_
    alike = CompositeGPRegressor([soft, soft], mean="constant").fit(*smooth).kernel_comparison_
    assert [row.name for row in alike] == [str(soft), f"{soft} (2)"]


def test_bounds_and_starts_of_a_user_are_respected(smooth):
    narrow = 1.0 * RBF(0.5, (0.45, 0.55)) + WhiteKernel(0.01, "fixed")
    rough = 1.0 * Matern(0.5, (0.45, 0.55), nu=0.5) + WhiteKernel(0.01, "fixed")
    for start in ("data", "kernel"):
        with pytest.warns(ConvergenceWarning, match="bound"):
            found = CompositeGPRegressor([narrow, rough], learning=CompositeLikelihood(start=start)).fit(*smooth)
        for row in found.kernel_comparison_:
            assert 0.45 <= row.kernel.k1.k2.length_scale <= 0.55
            assert row.kernel.k2.noise_level == 0.01


def test_a_single_kernel_is_not_compared(smooth):
    assert CompositeGPRegressor(1.0 * RBF() + WhiteKernel()).fit(*smooth).kernel_comparison_ is None


@pytest.mark.parametrize("kernel", [None, "auto"])
def test_without_a_comparison_the_kernel_is_the_default(kernel, smooth):
    X, y = smooth
    few = CompositeGPRegressor(kernel).fit(X[:49], y[:49])
    nothing_learned = CompositeGPRegressor(kernel, learning=None).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="constant target"):
        constant = CompositeGPRegressor(kernel).fit(X, np.ones(len(X)))
    streamed = CompositeGPRegressor(kernel).partial_fit(X[:100], y[:100]).partial_fit(X[100:200], y[100:200])
    for model in (few, nothing_learned, constant, streamed):
        assert model.kernel_comparison_ is None
        assert model.kernel_.k1.k2.nu == 1.5
    assert CompositeGPRegressor(kernel).predict(X[:2], return_std=True)[1].shape == (2,)


def test_averages_of_segments_keep_the_default_kernel_unless_asked(smooth):
    X, y = smooth
    method = FisherAverage()
    assert CompositeGPRegressor(learning=method, segment_size=128).fit(X, y).kernel_comparison_ is None
    asked = CompositeGPRegressor("auto", learning=method, segment_size=128).fit(X, y)
    assert asked.kernel_comparison_.best.name == "RBF"


def test_few_observations_are_compared_under_simple_kernels_only(smooth):
    data, method = observations(*smooth), CompositeLikelihood()
    assert list(candidates_of(None, data, method, 100)) == ["Matern 3/2", "Matern 1/2", "Matern 5/2", "RBF"]
    assert list(candidates_of(None, data, method)) == list(kernel_family(2))
    assert candidates_of(RBF(), data, method) == {}


def test_amplitudes_of_the_family_are_bounded_by_the_data(smooth):
    for kernel in candidates_of(None, observations(*smooth), CompositeLikelihood()).values():
        bounds = [value for name, value in kernel.get_params().items() if name.endswith("constant_value_bounds")]
        assert_allclose(bounds, len(bounds) * [(1e-5 * smooth[1].var(), 1e3 * smooth[1].var())])


def test_several_outputs():
    X, y = draw(PROCESSES["Matern 1/2"], 300, 7, n_outputs=2)
    model = CompositeGPRegressor().fit(X, y * [1.0, 100.0] + [0.0, 50.0])
    assert model.kernel_comparison_.best.name == "Matern 1/2"
    assert model.kernel_comparison_.best.mean_coefficients.shape == (1, 2)
    assert model.predict(X[:3]).shape == (3, 2)


def test_files_keep_the_comparison(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = CompositeGPRegressor.load(tmp_path / "model")
    assert repr(loaded.kernel_comparison_) == repr(fitted.kernel_comparison_)
    assert loaded.kernel_comparison_.first_kernel == fitted.kernel_comparison_.first_kernel
    assert [row.kernel for row in loaded.kernel_comparison_] == [row.kernel for row in fitted.kernel_comparison_]
    assert loaded.kernel_comparison_.best.chosen


def test_files_of_several_kernels_and_of_earlier_versions(smooth, tmp_path):
    kernels = {"rough": 1.0 * Matern(nu=0.5) + WhiteKernel(), "smooth": 1.0 * RBF() + WhiteKernel()}
    model = CompositeGPRegressor(kernels, mean="constant").fit(*smooth)
    model.save(tmp_path / "model")
    loaded = CompositeGPRegressor.load(tmp_path / "model")
    assert loaded.kernel == kernels
    content = model.to_content()
    del content["model"]["comparison"]
    assert CompositeGPRegressor.from_content(content).kernel_comparison_ is None


@pytest.mark.parametrize("kernel", [None, "auto", [1.0 * RBF() + WhiteKernel(), 1.0 * Matern() + WhiteKernel()]])
def test_further_segments_keep_the_kernel_and_the_comparison(kernel, smooth):
    X, y = smooth
    model = CompositeGPRegressor(kernel, mean="constant").fit(X[:150], y[:150])
    comparison, chosen = model.kernel_comparison_, model.kernel_
    model.partial_fit(X[150:], y[150:])
    assert model.kernel_comparison_ is comparison
    assert type(model.kernel_.k1) is type(chosen.k1)
    assert len(model.kernel_.theta) == len(chosen.theta)


def test_segments_alone_take_the_first_kernel(smooth):
    X, y = smooth
    kernels = [1.0 * RBF() + WhiteKernel(), 1.0 * Matern() + WhiteKernel()]
    model = CompositeGPRegressor(kernels, mean="constant").partial_fit(X[:100], y[:100])
    model.partial_fit(X[100:200], y[100:200])
    assert type(model.kernel_.k1.k2) is RBF
    assert model.kernel_comparison_ is None


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("smooth", 'None or "auto"'),
        ([], "empty list"),
        ({}, "empty dict"),
        ([RBF(), 3], "kernel must be a kernel object"),
        ({1: RBF()}, "key 1"),
        ([RBF(), RBF(1.0, "fixed")], "no free hyper-parameter"),
        (3, "kernel must be a kernel object"),
    ],
)
def test_what_is_no_choice_of_kernels_is_refused(kernel, message):
    X = np.linspace(0, 1, 60)[:, None]
    with pytest.raises(ValueError, match=message):
        CompositeGPRegressor(kernel).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        DistributedGPRegressor(kernel).fit(da.from_array(X), da.from_array(X[:, 0]))


# --- data in partitions -------------------------------------------------------------------------------------------


def test_data_in_partitions(smooth):
    X, y = smooth
    order = np.argsort(X[:, 0])
    table = da.from_array(X[order], chunks=(125, 2)), da.from_array(y[order], chunks=125)
    model = DistributedGPRegressor(segment_size=50, conditioning_size=25).fit(*table)
    assert model.kernel_comparison_.best.name == "RBF"
    assert isinstance(model.kernel_.k1.k2, RBF)
    assert all(np.isfinite(row.standard_error) for row in model.kernel_comparison_)
    own = DistributedGPRegressor([default_kernel(2), kernel_family(2)["RBF"]], mean="constant", segment_size=50)
    assert isinstance(own.fit(*table).kernel_.k1.k2, RBF)
    assert DistributedGPRegressor(default_kernel(2), segment_size=50).fit(*table).kernel_comparison_ is None
    few = DistributedGPRegressor("auto").fit(table[0][:40], table[1][:40])
    assert few.kernel_comparison_ is None
    assert few.kernel_.k1.k2.nu == 1.5


# --- starts -------------------------------------------------------------------------------------------------------


def test_starts_carry_over_length_scales_variance_and_noise():
    scale = DataScale(np.ones(2), 1.0)
    learned = 3.0 * Matern([2.0, 5.0], nu=1.5) + WhiteKernel(0.3)
    starts = np.exp(warm_starts(kernel_family(2)["RBF"], [learned], scale))
    carried = starts[np.isclose(starts[:, 0], 3.0)]
    assert_allclose(carried[:, 3], 0.3)
    assert_allclose(carried[:, 1:3] / [2.0, 5.0], np.array([0.25, 1, 4])[:, None] * np.ones(2))
    assert len(starts) > len(carried)  # others are at the scale of the data
    (same,) = warm_starts(kernel_family(2)["Matern 3/2"], [learned], scale)
    assert_allclose(np.exp(same), [3.0, 2.0, 5.0, 0.3])


def test_parts_of_a_sum_begin_at_their_own_kernels_and_share_the_variance():
    scale = DataScale(np.ones(1), 1.0)
    rough = 2.0 * Matern(8.0, nu=0.5) + WhiteKernel(0.1)
    soft = 4.0 * RBF(0.5) + WhiteKernel(0.3)
    starts = np.exp(warm_starts(kernel_family(1)["Matern 1/2 + RBF"], [rough, soft], scale))
    expected = [  # the part with less variance is as coarse as its donor, or finer
        [0.2, 2.0, 3.6, 0.5, 0.3],
        [0.2, 8.0, 3.6, 0.5, 0.3],
        [1.0, 8.0, 2.0, 0.5, 0.1],
        [1.8, 8.0, 0.4, 0.125, 0.1],
        [1.8, 8.0, 0.4, 0.5, 0.1],
    ]
    assert_allclose(starts, expected)


def test_a_single_candidate_is_learned_as_alone(smooth):
    X, y = smooth
    data = observations(X, y)
    source = LocalSegments(data, segment(X, 100), 20)
    result, comparison = choose_kernel({"only": default_kernel(2)}, data, source, CompositeLikelihood(prior=None))
    alone = learn_from(data, source, CompositeLikelihood(), random_state=0)
    # Conditioning sets are found in the length scales of the way to the maximum, and differ a little.
    errors = np.sqrt(np.diagonal(alone.theta_covariance))
    assert_allclose(result.theta / errors, alone.theta / errors, rtol=0, atol=0.3)
    assert comparison.best.name == "only"


# --- what is not gone on with --------------------------------------------------------------------------------------


class _AtPieces:
    """A candidate of which only the log likelihoods of pieces matter."""

    def __init__(self, pieces, n_parameters, last_gain=0.0):
        self.pieces, self.theta, self.last_gain = np.asarray(pieces), np.zeros(n_parameters), last_gain
        self.criterion, self.difference, self.standard_error = float(self.pieces.sum()), 0.0, 0.0
        self.terms = type("Terms", (), {"n_points": 1000.0})()


def test_candidates_go_on_by_what_they_are_expected_to_gain(rng):
    """E max(0, d) of a Gaussian difference d, by Monte Carlo, against a thousandth of a nat a point."""
    base = rng.normal(size=8)
    winner = _AtPieces(base, 3)
    for shift in (-3.0, -1.0, -0.2, 0.0, 0.3):
        for noise in (0.05, 0.5):
            other = _AtPieces(base + shift + noise * rng.normal(size=8), 5)
            other.standard_error = 1e3  # so that the simpler one would be chosen
            differences = other.pieces - winner.pieces
            error = np.sqrt(8) * differences.std(ddof=1)
            drawn = differences.sum() + error * rng.normal(size=200_000)
            expected = np.maximum(drawn, 0.0).mean()
            if abs(expected - 1.0) < 0.1:
                continue
            kept, left = _promising([winner, other])
            assert (other in kept) == (expected > 1.0)
            assert kept + left == [winner, other]


def test_a_sum_far_behind_by_its_best_part_is_hardly_tried():
    X, y = draw(PROCESSES["RBF"], 1000, 4, noise=0.01)
    rows = {row.name: row for row in CompositeGPRegressor().fit(X, y).kernel_comparison_}
    best_part = max(rows["Matern 3/2"].log_likelihood, rows["Matern 1/2"].log_likelihood)
    assert best_part < rows["RBF"].log_likelihood - 0.1
    assert rows["Matern 3/2 + 1/2"].n_evaluations <= 2
    assert rows["Matern 3/2 + 1/2"].difference < -2 * rows["Matern 3/2 + 1/2"].standard_error
    assert not rows["Matern 3/2 + 1/2"].converged
