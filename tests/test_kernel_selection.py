"""The last word on a kernel: when errors on training points overrule the likelihood, and when not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import Nearest
from compositegp.composite import Observations
from compositegp.estimators.kernel_selection import by_held_out_errors
from compositegp.learning import ComparedKernel, KernelComparison
from compositegp.posteriors import neighbor_search
from compositegp.prediction import neighborhood_tuning
from compositegp.simulate import stationary_field

KERNELS = {
    "likely": ConstantKernel(1.0) * RBF(2.0) + WhiteKernel(0.1),
    "close": ConstantKernel(1.0) * Matern(2.0, nu=1.5) + WhiteKernel(0.1),
    "behind": ConstantKernel(1.0) * Matern(2.0, nu=0.5) + WhiteKernel(0.1),
}


class Scored(Nearest):
    """A prediction method whose errors are given."""

    errors: dict = {}

    def held_out_crps(self, candidates, *, heavy_tails, n_jobs):
        names = {str(kernel): name for name, kernel in KERNELS.items()}
        return [self.errors[names[str(data.kernel)]] for data in candidates]


def comparison(differences=(0.0, -0.03, -0.5)):
    rows = [
        ComparedKernel(
            name, kernel, np.zeros((0, 1)), difference, difference, 0.01, 3000, 6, 3, 9, True, 0.1, name == "likely"
        )
        for (name, kernel), difference in zip(KERNELS.items(), differences, strict=True)
    ]
    return KernelComparison(tuple(rows), KERNELS["likely"], 1.0)


@pytest.fixture
def data(rng):
    return Observations.checked(
        KERNELS["likely"], rng.uniform(size=(30, 1)), rng.normal(size=30), mean=None, noise_variance=None
    )


def chosen(data, **errors):
    method = Scored()
    method.errors = errors
    return by_held_out_errors(comparison(), data, method, heavy_tails=True, n_jobs=None)


def test_a_kernel_that_predicts_clearly_better_is_chosen_and_its_score_is_told(rng, data):
    base = rng.exponential(size=400)
    found = chosen(data, likely=base, close=0.95 * base, behind=0.1 * base)
    assert found.best.name == found[0].name == "close"
    assert sum(row.chosen for row in found) == 1
    scores = {row.name: row.crps for row in found}
    assert scores["close"] == pytest.approx(0.95 * base.mean())
    assert np.isnan(scores["behind"])  # far behind in likelihood: it is not tried
    assert "CRPS" in repr(found)
    again = KernelComparison.from_values(found.to_values())
    assert again.best.name == "close"
    assert again.best.crps == found.best.crps


def test_chance_and_trifles_leave_the_most_likely(rng, data):
    base = rng.exponential(size=400)
    noisy = base + rng.normal(-0.05, 1.0, size=400)  # a mean gain of one standard error
    assert chosen(data, likely=base, close=noisy, behind=base).best.name == "likely"
    assert chosen(data, likely=base, close=0.995 * base, behind=base).best.name == "likely"


def test_one_kernel_alone_is_not_tried(data):
    alone = replace(comparison(), rows=comparison().rows[:1])
    assert by_held_out_errors(alone, data, Scored(), heavy_tails=True, n_jobs=None) is alone


def test_the_score_is_that_of_a_gaussian_where_the_model_is_right():
    """Of a field under its own kernel the mean CRPS of errors with variance v is E √v / √π."""
    kernel = ConstantKernel(1.0) * Matern(6.0, nu=0.5) + WhiteKernel(0.2)
    y = stationary_field(kernel, (60, 60), random_state=3)[0].ravel()
    X = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0), indexing="ij"), axis=-1).reshape(-1, 2)
    data = Observations.checked(kernel, X, y, mean=None, noise_variance=None)
    (found,) = Nearest().held_out_crps([data], heavy_tails=True, n_jobs=None)
    one = np.array([1827])
    inside = np.delete(np.arange(3600), one)
    near = inside[np.argsort(np.linalg.norm(X[inside] - X[one], axis=1))[:128]]
    C = kernel(X[near])
    k = kernel(X[one], X[near])[0]
    v = 1.2 - k @ np.linalg.solve(C, k)
    error = found.std() / np.sqrt(len(found))
    assert found.mean() == pytest.approx(np.sqrt(v / np.pi), abs=4 * error)
    assert np.sqrt(1 / np.pi) == pytest.approx(stats.norm().expect(lambda z: abs(z)) / np.sqrt(2))


def test_one_search_tree_serves_kernels_that_measure_alike(rng, monkeypatch):
    """Neighbors under length scales in the same proportion are the same, so that scores are those of own trees."""
    X = rng.uniform(size=(2_100, 3))
    y = np.sin(6 * X).sum(axis=1) + 0.1 * rng.normal(size=len(X))
    kernels = [kernel + WhiteKernel(0.01) for kernel in (RBF([0.5, 1.0, 2.0]), Matern([1.0, 2.0, 4.0], nu=1.5))]
    candidates = [Observations.checked(kernel, X, y, mean=0.0, noise_variance=None) for kernel in kernels]
    own = Nearest().held_out_crps(candidates, heavy_tails=True, n_jobs=None)
    trees = []
    monkeypatch.setattr(
        neighbor_search, "KDTree", lambda *args, **options: trees.append(1) or KDTree(*args, **options)
    )
    monkeypatch.setattr(neighborhood_tuning, "_ONE_TREE", 2_000)
    shared = Nearest().held_out_crps(candidates, heavy_tails=True, n_jobs=None)
    assert len(trees) == 1
    np.testing.assert_array_equal(shared[0], own[0])
    np.testing.assert_allclose(shared[1], own[1], rtol=1e-6)
