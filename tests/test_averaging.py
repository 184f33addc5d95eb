"""The paper's average of segment estimates, and its recursion."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, PairwiseKernel
from test_learning import DEFAULT, TRUTH, simulate

from compositegp import (
    Basis,
    Composite,
    CompositeLikelihood,
    FisherAverage,
    RecursiveEstimate,
    fisher_information,
    learn,
    segment,
)
from compositegp.composite import Observations
from compositegp.learning import Average, BlockEstimate, estimate_block, fisher_average
from compositegp.learning.fisher_average import _warnings as average_warnings
from compositegp.simulate import stationary_field


@pytest.fixture(scope="module")
def data():
    X, y = simulate(TRUTH, 2000, 0)
    return X, y, segment(X, 200)


class TestAverage:
    def test_is_the_segments_own_estimates_weighted(self, data):
        X, y, segments = data
        result = learn(DEFAULT, X, y, segments[:3], learning=FisherAverage(tolerance=None))
        estimate = RecursiveEstimate.empty(4)
        for part in segments[:3]:
            alone = learn(
                result.kernel,
                X[part],
                y[part],
                Composite.full(len(part)),
                learning=CompositeLikelihood(start="kernel"),
            )
            estimate = estimate.add(alone.theta, fisher_information(alone.kernel, X[part]))
        np.testing.assert_allclose(
            result.theta, estimate.theta, rtol=0, atol=0.3 * result.theta_standard_errors.max()
        )

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_bad_segment_does_not_poison_it(self, data):
        X, y, segments = data
        reference = learn(DEFAULT, X, y, segments, learning=FisherAverage(tolerance=None))
        spoiled = y.copy()
        spoiled[segments[3]] = 0.0  # a dead sensor
        result = learn(DEFAULT, X, spoiled, segments, learning=FisherAverage(tolerance=None))
        assert result.n_at_bound.sum() + result.n_left_out >= 1
        assert (np.abs(result.theta - reference.theta) < 3 * reference.theta_standard_errors).all()

    def test_a_segment_that_fails_is_left_out_and_counted(self, data, monkeypatch):
        X, y, segments = data
        estimate = fisher_average.estimate_block
        lost = set(segments[2].tolist())

        def fails_once(observations, stack, *rest):
            if set(observations.X[:, 0]) == set(X[sorted(lost), 0]):
                return None
            return estimate(observations, stack, *rest)

        monkeypatch.setattr(fisher_average, "estimate_block", fails_once)
        method = FisherAverage(tolerance=None)
        with pytest.warns(ConvergenceWarning, match="1 of 4 segments have no maximum likelihood estimate"):
            result = learn(DEFAULT, X, y, segments[:4], learning=method, n_jobs=1)
        assert result.n_left_out == 1
        others = [part for number, part in enumerate(segments[:4]) if number != 2]
        without = learn(DEFAULT, X, y, others, learning=method, n_jobs=1)
        np.testing.assert_allclose(result.theta, without.theta, rtol=0, atol=2e-3)

    def test_a_segment_without_a_positive_definite_covariance_has_no_estimate(self):
        """A sigmoid kernel is not positive definite, at any variance."""
        X = np.linspace(-2, 2, 12)[:, None]
        kernel = ConstantKernel() * PairwiseKernel(gamma=-1.0, gamma_bounds="fixed", metric="sigmoid")
        data = Observations.checked(kernel, X, X[:, 0], mean=None, noise_variance=None)
        (stack,) = Composite.full(len(X)).stacks
        assert estimate_block(data, stack, np.zeros((0, 1)), 0, 0) is None

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_gaussian_prior_of_the_coefficients_counts(self, data):
        X, y, segments = data
        tight = Basis("constant", prior_mean=[5.0], prior_covariance=[[1e-8]])
        result = learn(DEFAULT, X, y, segments[:4], mean=tight, learning="fisher_average")
        np.testing.assert_allclose(result.mean_coefficients, 5.0, rtol=0, atol=1e-3)

    def test_an_average_of_one_segment_gives_a_warning(self):
        average = Average.empty(1)
        for fisher in (1e-3, 1.0, 1e-3):
            average = average.add(BlockEstimate(np.zeros(1), np.array([[fisher]]), np.array([False]), 0.0, 10))
        assert average_warnings(average, ["length_scale"]) == [
            "The estimate of hyper-parameter length_scale is that of a single segment."
        ]

    def test_segments_that_disagree_give_a_warning(self):
        rng = np.random.default_rng(1)
        X = rng.uniform(0, 4, size=(300, 2))
        y = 1e-3 * rng.normal(size=300)
        y[:100] = np.linalg.cholesky(TRUTH(X[:100])) @ rng.normal(size=100)
        with pytest.warns(ConvergenceWarning) as told:
            learn(
                DEFAULT, X, y, segment(X, scheme=np.repeat([0, 1, 2], 100)), learning=FisherAverage(tolerance=None)
            )
        assert any("segments disagree" in str(warning.message) for warning in told)

    def test_interrupted_in_the_second_round(self, data):
        X, y, segments = data
        calls = itertools.count()

        def press(_):
            if next(calls) == len(segments) + 3:
                raise KeyboardInterrupt

        options = {"learning": FisherAverage(None), "mean": "constant", "on_interrupt": "return"}
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            result = learn(DEFAULT, X, y, segments, callback=press, **options)
        assert result.n_segments == len(segments)
        assert (np.diag(result.mean_covariance) > 0).all()


class TestRecursiveEstimate:
    def parts(self, rng, n=5):
        roots = rng.normal(size=(n, 3, 3))
        return [(rng.normal(size=3), root @ root.T) for root in roots]

    def test_is_the_weighted_average(self, rng):
        parts = self.parts(rng)
        estimate = RecursiveEstimate.empty(3)
        for theta, fisher in parts:
            estimate = estimate.add(theta, fisher)
        total = sum(fisher for _, fisher in parts)
        expected = np.linalg.solve(total, sum(fisher @ theta for theta, fisher in parts))
        np.testing.assert_allclose(estimate.theta, expected)
        np.testing.assert_allclose(estimate.covariance, np.linalg.inv(total))
        np.testing.assert_allclose(estimate.standard_errors, np.sqrt(np.diag(np.linalg.inv(total))))
        assert estimate.n_segments == 5

    def test_merging_is_adding_in_any_order(self, rng):
        parts = self.parts(rng)
        singles = [RecursiveEstimate.empty(3).add(*part) for part in parts]
        sequential = RecursiveEstimate.empty(3)
        for part in parts:
            sequential = sequential.add(*part)
        left = singles[0].merge(singles[1]).merge(singles[2]).merge(singles[3]).merge(singles[4])
        right = singles[4].merge(singles[3].merge(singles[2].merge(singles[1].merge(singles[0]))))
        for merged in (left, right, pickle.loads(pickle.dumps(right))):
            np.testing.assert_allclose(merged.theta, sequential.theta)
            np.testing.assert_allclose(merged.covariance, sequential.covariance)
            assert merged.n_segments == 5

    def test_a_parameter_that_nothing_is_known_about(self):
        estimate = RecursiveEstimate.empty(2).add([1.0, 5.0], [[2.0, 0.0], [0.0, 0.0]])
        np.testing.assert_array_equal(estimate.known, [True, False])
        assert estimate.theta[0] == pytest.approx(1)
        assert np.isnan(estimate.theta[1])
        np.testing.assert_allclose(np.diag(estimate.covariance), [0.5, np.inf])

    def test_estimates_of_a_wrong_shape_or_size_are_refused(self):
        estimate = RecursiveEstimate.empty(2)
        with pytest.raises(ValueError, match="must have shapes"):
            estimate.add([1.0], [[1.0]])
        with pytest.raises(ValueError, match="must be finite"):
            estimate.add([1.0, np.nan], np.eye(2))
        with pytest.raises(ValueError, match="do not merge"):
            estimate.merge(RecursiveEstimate.empty(3))


@pytest.mark.parametrize("first", [5200, 7600, 8000, 9000])
def test_a_segment_has_its_maximum_though_a_long_step_leads_to_a_singular_covariance(first):
    """By scikit-learn's gradient: a step of Newton from the estimate would be short, and likelihood hardly gained."""
    start, y = ConstantKernel() * RBF(1.4), stationary_field(RBF(np.sqrt(2)), 10_000, n_draws=2, random_state=0)[1]
    X, part = np.arange(10_000.0)[:, None], np.arange(first, first + 200)
    observations = Observations.checked(start, X, y, mean=None, noise_variance=None)
    found = estimate_block(observations, Composite.of_segments([part]).stacks[0], np.zeros((0, 1)), 0, 0)
    dense = GaussianProcessRegressor(start, optimizer=None).fit(X[part], y[part])
    _, gradient = dense.log_marginal_likelihood(found.theta, eval_gradient=True)
    step = np.linalg.solve(found.fisher, gradient)
    assert abs(gradient @ step) < 1e-3
