"""Random starts find the highest of several maxima of the likelihood of few data."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeLikelihood, FisherAverage, learn

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def far_start():
    """Where scikit-learn's example plot_gpr_noisy begins: length scale and noise are far from those of the data."""
    return 1.0 * RBF(100.0, (1e-2, 1e3)) + WhiteKernel(1e-5, (1e-10, 1e1))


def noisy(function, n, noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 5.0, (n, 1))
    return X, function(X[:, 0]) + noise * rng.normal(size=n)


PROBLEMS = [
    noisy(lambda x: 0.5 * np.sin(3 * x), 20, 0.75, 0),
    noisy(np.sin, 20, 0.3, 1),
    noisy(lambda x: np.sign(np.sin(2 * x)), 50, 0.3, 0),
    noisy(lambda x: 0.5 * np.sin(3 * x), 50, 0.3, 1),
    noisy(lambda x: np.sin(x) * x / 5, 100, 0.75, 0),
    noisy(lambda x: np.sign(np.sin(2 * x)), 100, 0.05, 1),
]


@pytest.mark.parametrize("problem", range(len(PROBLEMS)))
def test_few_data_are_learned_as_well_as_by_fifteen_restarts_of_scikit_learn(problem):
    X, y = PROBLEMS[problem]
    oracle = GaussianProcessRegressor(far_start(), n_restarts_optimizer=15, random_state=0).fit(X, y)
    model = CompositeGPRegressor(far_start(), prediction="composite", random_state=0).fit(X, y)
    assert oracle.log_marginal_likelihood(model.kernel_.theta) > oracle.log_marginal_likelihood_value_ - 0.1


def test_more_starts_are_never_less_likely():
    X, y = PROBLEMS[0]
    found = []
    for n_restarts in (0, 1, 8):
        learning = CompositeLikelihood(n_restarts=n_restarts, start="kernel")
        model = CompositeGPRegressor(far_start(), learning=learning, prediction="composite", random_state=0).fit(
            X, y
        )
        found.append(model.log_marginal_likelihood(model.kernel_.theta))
    assert found[0] <= found[1] + 0.05
    assert found[1] <= found[2] + 0.05
    assert found[2] > found[0] + 0.5  # the given start leads to a lower maximum


def test_an_average_of_segments_begins_at_several_points_too():
    X, y = PROBLEMS[0]
    found = []
    for n_restarts in (0, 8):
        learning = FisherAverage(n_restarts=n_restarts, tolerance=None)
        result = learn(far_start(), X, y, [np.arange(len(X))], learning=learning, random_state=0)
        found.append(GaussianProcessRegressor(result.kernel, optimizer=None).fit(X, y).log_marginal_likelihood())
    assert found[1] > found[0] + 0.5  # the given start leads to a lower maximum


def test_starts_are_the_same_in_every_run():
    X, y = PROBLEMS[1]
    one, other = (CompositeGPRegressor(far_start(), random_state=0).fit(X, y).kernel_ for _ in range(2))
    assert one == other


@pytest.mark.parametrize("n_restarts", [-1, 1.5, "many", None])
def test_a_number_of_starts_that_is_none_is_refused(n_restarts):
    with pytest.raises(ValueError, match="n_restarts"):
        CompositeGPRegressor(learning=CompositeLikelihood(n_restarts=n_restarts)).fit(*PROBLEMS[0])


@pytest.mark.parametrize("n_restarts", ["auto", 2])
def test_the_number_of_starts_is_saved(n_restarts, tmp_path):
    learning = CompositeLikelihood(n_restarts=n_restarts)
    CompositeGPRegressor(far_start(), learning=learning, random_state=0).fit(*PROBLEMS[1]).save(
        tmp_path / "model.cgp"
    )
    assert CompositeGPRegressor.load(tmp_path / "model.cgp").learning.n_restarts == n_restarts
