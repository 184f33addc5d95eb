"""Leave-one-out predictions in closed form: those of models that are fitted without each point in turn."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from compositegp import Basis, CompositeGPRegressor, CompositeSum, Constant, Estimated, Inducing, Nearest

KERNEL = 2.0 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(0.3)
PLUG_IN = Nearest(theta_uncertainty=False)
PRIOR = Basis("linear", prior_mean=[0.1, 0.2, 0.0], prior_covariance=np.diag([1.0, 0.5, 0.25]))
KNOWN = Estimated("linear", np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.2, 0.05]))


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 5, size=(40, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.5 * rng.normal(size=40)


def refitted(X, y, rows, *, noise=None, weights=None, **options):
    """Mean and standard deviation of observations, each by a model that was fitted to the others."""
    found = []
    for row in rows:
        others = np.arange(len(X)) != row
        given = {} if noise is None else {"noise_variance": noise[others]}
        given |= {} if weights is None else {"sample_weight": weights[others]}
        model = CompositeGPRegressor(**options).fit(X[others], y[others], **given)
        mean, std = model.predict(X[row : row + 1], return_std=True, latent=True)
        own = 0.3 + (0.0 if noise is None else noise[row])
        found.append((mean[0], np.sqrt(std[0] ** 2 + own / (1.0 if weights is None else weights[row]))))
    return tuple(np.array(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize("local_mean", ["auto", True, False])
@pytest.mark.parametrize("mean", [None, 1.5, "constant", "linear", PRIOR, KNOWN], ids=str)
def test_exact_gaussian_process(data, mean, local_mean):
    X, y = data
    options = {"kernel": KERNEL, "learning": None, "mean": mean, "prediction": Nearest(local_mean=local_mean)}
    found = CompositeGPRegressor(**options).fit(X, y).predict_leave_one_out()
    # A mean that each neighborhood estimates has a prior from all the data, which has the point in it.
    rtol = 2e-3 if local_mean is True and isinstance(mean, str | Basis) else 1e-7
    rows = np.arange(0, 40, 4)
    np.testing.assert_allclose((found.mean[rows], found.std[rows]), refitted(X, y, rows, **options), rtol=rtol)


def test_noise_of_points_and_weights(data, rng, device):
    X, y = data
    noise, weights = rng.uniform(0, 2, size=40), rng.uniform(0.3, 3, size=40)
    options = {"kernel": KERNEL, "learning": None, "mean": "constant"}
    model = CompositeGPRegressor(**options).fit(X, y, noise_variance=noise, sample_weight=weights)
    found = model.predict_leave_one_out()
    expected = refitted(X, y, range(40), noise=noise, weights=weights, **options)
    np.testing.assert_allclose((found.mean, found.std), expected, rtol=1e-7)


def test_several_outputs(data):
    X, y = data
    both = np.column_stack([y, np.cos(y)])
    model = CompositeGPRegressor(KERNEL, learning=None, mean="linear").fit(X, both)
    found = model.predict_leave_one_out()
    for column in range(2):
        alone = CompositeGPRegressor(KERNEL, learning=None, mean="linear").fit(X, both[:, column])
        expected = alone.predict_leave_one_out()
        np.testing.assert_allclose(found.mean[:, column], expected.mean, rtol=1e-9)
        np.testing.assert_allclose(found.std[:, column], expected.std, rtol=1e-9)


def test_transformed_targets_are_predicted_in_their_unit(data):
    X, y = data
    log = CompositeGPRegressor(KERNEL, learning=None, target_transform="log").fit(X, np.exp(y))
    plain = CompositeGPRegressor(KERNEL, learning=None).fit(X, y).predict_leave_one_out()
    np.testing.assert_allclose(log.predict_leave_one_out().median, np.exp(plain.mean), rtol=1e-9)


def test_data_without_noise(rng):
    X = np.sort(rng.uniform(0, 10, size=(12, 1)), axis=0)
    y = np.sin(X[:, 0])
    model = CompositeGPRegressor(RBF(1.0), learning=None).fit(X, y)
    found = model.predict_leave_one_out()
    for row in range(12):
        others = np.arange(12) != row
        alone = CompositeGPRegressor(RBF(1.0), learning=None).fit(X[others], y[others])
        mean, std = alone.predict(X[row : row + 1], return_std=True)
        np.testing.assert_allclose((found.mean[row], found.std[row]), (mean[0], std[0]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("calibration", [None, "local"])
def test_nearest_neighbors(rng, calibration, device):
    """Each point is predicted from its neighbors without itself, as by a model without it."""
    X = rng.uniform(0, 12, size=(300, 2))
    y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=300)
    prediction = Nearest(24, group_size=1, calibration=calibration)
    options = {"kernel": KERNEL, "learning": None, "mean": 0.5, "prediction": prediction}
    model = CompositeGPRegressor(**options).fit(X, y)
    found = model.predict_leave_one_out()
    assert len(found) == 300
    rows = range(0, 300, 30)
    mean, std = refitted(X, y, rows, **(options | {"prediction": Nearest(24, group_size=1, calibration=None)}))
    np.testing.assert_allclose(found.mean[rows], mean, rtol=1e-8)
    if calibration is None:
        np.testing.assert_allclose(found.std[rows], std, rtol=1e-8)
    else:  # the same factors as for predictions in the same neighborhoods
        factors = found.std[rows] / std
        assert np.abs(np.log(factors)).max() < 0.7


def test_a_mixture_over_theta_forgets_what_the_point_says_of_theta(rng):
    """Bayes' rule by hand: weights and predictions of every θ from the other points alone."""
    X = np.sort(rng.uniform(0, 10, size=(15, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=15)
    model = CompositeGPRegressor(1.0 * RBF() + WhiteKernel(), prediction=Nearest(theta_uncertainty=True)).fit(X, y)
    found = model.predict_leave_one_out()
    members = model._model.predictor.members
    for row in (0, 7, 14):
        others = np.arange(15) != row
        logs, means, variances = [], [], []
        for member in members:
            K = member.data.kernel(X)
            solved = np.linalg.solve(K[np.ix_(others, others)], np.c_[y[others], K[others, row]])
            means.append(K[row, others] @ solved[:, 0])
            variances.append(K[row, row] - K[row, others] @ solved[:, 1])
            density = -0.5 * ((y[row] - means[-1]) ** 2 / variances[-1] + np.log(variances[-1]))
            logs.append(np.log(member.weight) - density)
        weights = np.exp(np.array(logs) - np.max(logs))
        weights /= weights.sum()
        mean = weights @ means
        variance = weights @ (variances + (np.array(means) - mean) ** 2)
        np.testing.assert_allclose((found.mean[row], found.variance[row]), (mean, variance), rtol=1e-6)


def test_learned_models_cover_what_they_leave_out(rng):
    X = rng.uniform(0, 10, size=(120, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=120)
    found = CompositeGPRegressor().fit(X, y).predict_leave_one_out()
    assert 0.88 <= found.coverage(y, 0.95) <= 1.0
    assert np.sqrt(np.mean((found.mean - y) ** 2)) < 0.4


@pytest.mark.parametrize("prediction", [CompositeSum(), Inducing(20), "rbcm"])
def test_other_methods_say_that_they_cannot(data, prediction):
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=prediction).fit(*data)
    with pytest.raises(ValueError, match="predict_leave_one_out needs prediction=Nearest"):
        model.predict_leave_one_out()


def test_one_observation_has_no_others():
    model = CompositeGPRegressor(KERNEL, mean=Constant(1.0), learning=None).fit([[0.0, 0.0]], [1.0])
    with pytest.raises(ValueError, match="at least two observations"):
        model.predict_leave_one_out()
