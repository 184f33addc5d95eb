"""Every prediction method of the estimator is a function of the layers below, and covers as it claims."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import OneHotEncoder

from compositegp import (
    Basis,
    Composite,
    CompositeGPRegressor,
    CompositeSum,
    Estimated,
    Linear,
    Nearest,
    committee,
    conditioning_sets,
    learn,
    nearest,
    posterior,
    segment,
)
from compositegp.composite import Observations
from compositegp.prediction import Committee, FittedTerms, Inducing
from compositegp.simulate import stationary_field

KERNEL = ConstantKernel(1.5) * Matern([0.7, 1.5], nu=1.5) + WhiteKernel(0.04)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 6, size=(400, 2))
    y = np.sin(X[:, 0]) * np.cos(0.7 * X[:, 1]) + 0.2 * rng.normal(size=400)
    return X, y, rng.uniform(0, 6, size=(60, 2))


def latent(model, Z):
    mean, std = model.predict(Z, return_std=True, latent=True)
    return mean, std**2


def assert_same(found, mean, variance, **tolerance):
    np.testing.assert_allclose(found[0], mean, **({"rtol": 0, "atol": 1e-7} | tolerance))
    np.testing.assert_allclose(found[1], variance, **({"rtol": 0, "atol": 1e-7} | tolerance))


def test_nearest_is_the_function_nearest(data):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(50, group_size=5, calibration=None)).fit(
        X, y
    )
    assert_same(latent(model, Z), *nearest(KERNEL, X, y, Z, group_size=5, n_neighbors=50), rtol=1e-10, atol=0)


def test_nearest_in_many_columns_predicts_one_by_one(rng):
    X = rng.normal(size=(200, 6))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    kernel = RBF(3.0) + WhiteKernel(0.01)
    model = CompositeGPRegressor(kernel, learning=None, prediction=Nearest(n_neighbors=30)).fit(X, y)
    Z = rng.normal(size=(20, 6))
    alone = np.array([model.predict(z[None])[0] for z in Z])
    np.testing.assert_allclose(model.predict(Z), alone, rtol=1e-10)


@pytest.mark.parametrize("conditioning_size", [0, 30])
def test_composite_sum_is_the_posterior_of_its_composite(data, conditioning_size):
    X, y, Z = data
    model = CompositeGPRegressor(
        KERNEL, learning=None, segment_size=50, conditioning_size=conditioning_size, prediction="composite"
    ).fit(X, y)
    segments = segment(X, 50, kernel=KERNEL)
    for mine, theirs in zip(model.segments_, segments, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    given = conditioning_sets(X, segments, conditioning_size, kernel=KERNEL)
    belief = posterior(KERNEL, X, y, Z, Composite.conditional(segments, given))
    assert_same(latent(model, Z), belief.mean, belief.variance)
    np.testing.assert_allclose(
        model.predict(Z, return_cov=True, latent=True)[1], belief.covariance, rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("rule", ["bcm", "rbcm", "gpoe", "grbcm"])
def test_a_committee_is_the_function_committee(data, rule):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, segment_size=50, prediction=rule).fit(X, y)
    found = committee(KERNEL, X, y, Z, segment(X, 50, kernel=KERNEL), rule=rule)
    assert_same(latent(model, Z), *found)
    with pytest.raises(ValueError, match="no joint covariance"):
        model.sample_y(Z)
    with pytest.raises(ValueError, match="has no closed form"):
        model.predict(Z, variance="honest")


@pytest.mark.parametrize("prediction", ["fitc", "pitc"])
def test_inducing_is_the_posterior_with_inducing_points(data, prediction):
    X, y, Z = data
    U = X[::10]
    model = CompositeGPRegressor(
        KERNEL, learning=None, segment_size=50, conditioning_size=0, prediction=Inducing(U, prediction)
    ).fit(X, y)
    terms = Composite.pointwise(400) if prediction == "fitc" else Composite.marginal(segment(X, 50, kernel=KERNEL))
    belief = posterior(KERNEL, X, y, Z, terms, inducing=U)
    assert_same(latent(model, Z), belief.mean, belief.variance)
    spread = CompositeGPRegressor(KERNEL, learning=None, prediction=Inducing(40, prediction)).fit(X, y)
    truth = np.sin(Z[:, 0]) * np.cos(0.7 * Z[:, 1])
    assert np.sqrt(np.mean((spread.predict(Z) - truth) ** 2)) < 0.2


def test_joint_prediction_by_nearest_is_exact_given_their_union(data):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(60, group_size=6, calibration=None)).fit(
        X, y
    )
    mean, cov = model.predict(Z[:12], return_cov=True, latent=True)
    observed = Observations.checked(KERNEL, X, y, mean=None, noise_variance=None)
    fitted = FittedTerms(observed, observed.mean, lambda: [np.arange(400)], Composite.of_segments)
    composite, _ = model.prediction.bind(fitted).terms(Z[:12])
    ((union, weight),) = composite.terms
    assert weight == 1
    assert 60 <= len(union) <= 400
    belief = posterior(KERNEL, X[union], y[union], Z[:12], Composite.full(len(union)))
    np.testing.assert_allclose(mean, belief.mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(cov, belief.covariance, rtol=0, atol=1e-8)


def test_joint_prediction_that_is_too_large_says_so(data, monkeypatch):
    monkeypatch.setattr("compositegp.prediction.nearest._MOST_JOINT", 100)
    X, y, Z = data
    with pytest.raises(ValueError, match="Ask for fewer points"):
        CompositeGPRegressor(KERNEL, learning=None, prediction=Nearest(n_neighbors=60)).fit(X, y).predict(
            Z, return_cov=True
        )


@pytest.mark.parametrize("prediction", [Nearest(100), CompositeSum(), Committee("rbcm"), Inducing(40)], ids=repr)
def test_the_mean_function_is_used_everywhere(rng, prediction):
    X = rng.uniform(0, 6, size=(300, 1))
    y = 40.0 - 3.0 * X[:, 0] + np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=300)
    Z = np.array([[-20.0], [3.0], [30.0]])  # far outside the mean is all there is
    kernel = 0.5 * RBF(0.5) + WhiteKernel(0.01)
    options = {"prediction": prediction, "segment_size": 100}
    known = CompositeGPRegressor(kernel, learning=None, mean=Linear([-3.0], 40.0), **options).fit(X, y)
    np.testing.assert_allclose(known.predict(Z)[[0, 2]], [100.0, -50.0], rtol=0, atol=1e-6)
    F, F_z = (np.concatenate([np.ones((len(points), 1)), points], axis=1) for points in (X, Z[[0, 2]]))
    information, shift = F.T @ np.linalg.solve(kernel(X), F), F.T @ np.linalg.solve(kernel(X), y)
    coefficients = np.linalg.solve(information, shift)  # generalized least squares
    for mean in ("linear", Basis("linear")):
        model = CompositeGPRegressor(kernel, learning=None, mean=mean, **options).fit(X, y)
        np.testing.assert_allclose(model.predict(Z)[[0, 2]], F_z @ coefficients, rtol=0, atol=1e-5)
        np.testing.assert_allclose(model.mean_coefficients_, coefficients, rtol=0, atol=1e-6)
        np.testing.assert_allclose(model.mean_covariance_, np.linalg.inv(information), rtol=1e-6)
    before = np.array([41.0, -2.5])
    given = CompositeGPRegressor(kernel, learning=None, mean=Estimated("linear", before, np.eye(2)), **options)
    # An estimate from elsewhere stays as it is, except that inducing variables are learned together with it.
    together = np.linalg.solve(information + np.eye(2), shift + before)
    expected = together if isinstance(prediction, Inducing) else before
    np.testing.assert_allclose(given.fit(X, y).predict(Z)[[0, 2]], F_z @ expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_a_local_mean_is_universal_kriging_in_each_neighbourhood(data, mean):
    X, y, Z = data
    model = CompositeGPRegressor(
        KERNEL, learning=None, mean=mean, prediction=Nearest(100, group_size=1, local_mean=True, calibration=None)
    )
    found = latent(model.fit(X, y), Z)
    functions = (lambda P: np.ones((len(P), 1))) if mean == "constant" else (lambda P: np.c_[np.ones(len(P)), P])
    for row in range(0, 60, 7):
        near = np.argsort((((X - Z[row]) / [0.7, 1.5]) ** 2).sum(axis=1))[:100]
        K, k = KERNEL(X[near]), KERNEL(Z[row : row + 1], X[near])[0]
        F, f = functions(X[near]), functions(Z[row : row + 1])[0]
        information = F.T @ np.linalg.solve(K, F)
        beta = np.linalg.solve(information, F.T @ np.linalg.solve(K, y[near]))
        rest = f - F.T @ np.linalg.solve(K, k)
        expected = f @ beta + k @ np.linalg.solve(K, y[near] - F @ beta)
        variance = 1.5 - k @ np.linalg.solve(K, k) + rest @ np.linalg.solve(information, rest)
        # The estimate from all the data is a prior a hundred times wider than its error.
        assert found[0][row] == pytest.approx(expected, abs=2e-3)
        assert found[1][row] == pytest.approx(variance, rel=2e-2)
    assert_same(found, *nearest(KERNEL, X, y, Z, mean=mean, n_neighbors=100), atol=5e-3)


def test_a_local_mean_costs_little_where_the_mean_is_the_same_everywhere():
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=0.5) + WhiteKernel(0.1)
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 15, size=(900, 2))
        y = 5 + X @ [0.3, -0.2] + np.linalg.cholesky(kernel(X)) @ rng.normal(size=900)
        model = CompositeGPRegressor(kernel, learning=None, mean="linear", prediction=Nearest(n_neighbors=200)).fit(
            X[:700], y[:700]
        )
        errors = [
            np.mean((model.set_params(prediction__local_mean=local).predict(X[700:]) - y[700:]) ** 2)
            for local in (True, False)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.mean(ratios) < 1.01


@pytest.mark.parametrize("d", [1, 2])
def test_test_points_that_are_far_apart_are_predicted_alone(rng, d):
    X = rng.uniform(0, 100, size=(6000, d))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=6000)
    model = CompositeGPRegressor(
        RBF(1.0) + WhiteKernel(0.01), learning=None, prediction=Nearest(n_neighbors=50)
    ).fit(X, y)
    Z = rng.uniform(0, 100, size=(7, d))
    alone = np.array([model.predict(z[None], return_std=True) for z in Z])[:, :, 0]
    np.testing.assert_allclose(np.array(model.predict(Z, return_std=True)).T, alone, rtol=1e-10)
    np.testing.assert_allclose(model.predict(Z, return_cov=True)[0], alone[:, 0], rtol=0, atol=1e-2)
    many = rng.uniform(0, 100, size=(3000, d))
    one_by_one = CompositeGPRegressor(
        RBF(1.0) + WhiteKernel(0.01), learning=None, prediction=Nearest(n_neighbors=50, group_size=1)
    )
    difference = model.predict(many) - one_by_one.fit(X, y).predict(many)
    assert np.sqrt(np.mean(difference**2)) < 0.05


@pytest.mark.parametrize("prediction", ["fitc", "pitc"])
def test_inducing_points_count_the_data_once_for_the_mean(rng, prediction):
    X = rng.uniform(0, 6, size=(60, 1))
    kernel = RBF(1.0) + WhiteKernel(0.1)
    y = 3.0 + np.linalg.cholesky(kernel(X)) @ rng.normal(size=60)
    options = {"learning": None, "mean": "constant", "segment_size": 100}
    sparse = CompositeGPRegressor(kernel, prediction=Inducing(X, prediction), **options).fit(X, y)
    exact = CompositeGPRegressor(kernel, **options).fit(X, y)
    far = [[1e4]]  # where the mean is all there is
    np.testing.assert_allclose(sparse.predict(far, return_std=True), exact.predict(far, return_std=True), rtol=1e-4)


def test_a_mean_estimated_elsewhere_is_used_as_it_is(data):
    X, y, _ = data
    given = Estimated("constant", [3.0], [[0.25]])
    for learning in (None, "composite_likelihood"):
        model = CompositeGPRegressor(
            KERNEL, mean=given, learning=learning, prediction=Nearest(100, calibration=None)
        ).fit(X, y)
        mean, std = model.predict([[1e4, 1e4]], return_std=True, latent=True)
        assert mean[0] == pytest.approx(3.0, abs=1e-6)
        variance = model.kernel_.k1.k1.constant_value
        assert std[0] ** 2 == pytest.approx(variance + 0.25, rel=1e-6)
    sure = CompositeGPRegressor(KERNEL, mean=Estimated("constant", [3.0], [[0.0]]), learning=None).fit(X, y)
    known = CompositeGPRegressor(KERNEL, mean=3.0, learning=None).fit(X, y)
    assert sure.log_marginal_likelihood() == pytest.approx(known.log_marginal_likelihood())


def test_functions_of_the_mean_see_the_data_as_they_are(rng):
    X = np.c_[rng.uniform(0, 5, size=200), rng.integers(0, 3, size=200)]
    levels = np.array([10.0, -5.0, 3.0])
    y = levels[X[:, 1].astype(int)] + np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    transformer = ColumnTransformer([("kind", OneHotEncoder(sparse_output=False), [1])])
    model = CompositeGPRegressor(mean=transformer).fit(X, y)
    np.testing.assert_allclose(model.mean_coefficients_, levels, rtol=0, atol=2.0)
    assert model.score(X, y) > 0.99
    known = CompositeGPRegressor(mean=lambda points: levels[points[:, 1].astype(int)]).fit(X, y)
    assert known.score(X, y) > 0.99


def test_learning_is_that_of_learn(data):
    X, y, _ = data
    kernel = ConstantKernel() * Matern([1.0, 1.0], nu=1.5) + WhiteKernel()
    spread = X / X.std(axis=0)
    for method, conditioning in (("composite_likelihood", 40), ("fisher_average", 0)):
        model = CompositeGPRegressor(kernel, learning=method, segment_size=80, conditioning_size=conditioning).fit(
            X, y
        )
        result = learn(
            kernel,
            X,
            y,
            segment(spread, 80),
            learning=method,
            conditioning_size=conditioning,
        )
        np.testing.assert_allclose(model.kernel_.theta, result.theta, rtol=1e-10)
        np.testing.assert_allclose(model.theta_standard_errors_, result.theta_standard_errors, rtol=1e-6)


@pytest.mark.usefixtures("two_blas_threads")
def test_predict_is_safe_in_threads_and_processes(data):
    X, y, Z = data
    for options in ({"prediction": Nearest(n_neighbors=50)}, {"prediction": "composite", "segment_size": 50}):
        model = CompositeGPRegressor(KERNEL, learning=None, **options).fit(X, y)
        expected = model.predict(Z, return_std=True)
        barrier = threading.Barrier(6)

        def ask(_, model=model, barrier=barrier):
            barrier.wait()
            return model.predict(Z, return_std=True)

        fresh = CompositeGPRegressor(KERNEL, learning=None, **options).fit(X, y)
        with ThreadPoolExecutor(6) as pool:
            for found in pool.map(lambda i, ask=ask, fresh=fresh: ask(i, model=fresh), range(6)):
                np.testing.assert_array_equal(found, expected)
        for found in Parallel(n_jobs=2)(delayed(model.predict)(Z, return_std=True) for _ in range(2)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_default_covers_what_it_says_from_neighbors():
    """Beyond 2,048 observations, where neighbors are chosen and errors calibrated: grids, of which half is known."""
    kernel = ConstantKernel(1.0) * Matern(6.0, nu=1.5)
    X = np.stack(np.meshgrid(np.arange(80.0), np.arange(80.0)), -1).reshape(-1, 2)
    shares = {0.5: [], 0.95: []}
    for seed, field in enumerate(stationary_field(kernel, (80, 80), n_draws=6, random_state=5)):
        rng = np.random.default_rng(seed)
        y = field.ravel() + np.sqrt(0.1) * rng.normal(size=len(X))
        order = rng.permutation(len(X))
        known, wanted = order[:3200], order[3200:]
        model = CompositeGPRegressor().fit(X[known], y[known])
        assert model.neighbor_curve_ is not None
        assert model.calibration_ is not None
        for level, found in shares.items():
            lower, upper = model.predict_interval(X[wanted], level)
            found.append(np.mean((lower < y[wanted]) & (y[wanted] < upper)))
    for level, found in shares.items():
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        assert abs(np.mean(found) - level) < 3 * error + 0.005


@pytest.mark.parametrize(
    ("n_fields", "largest_error"), [(5, 0.012), pytest.param(20, 0.006, marks=pytest.mark.slow)]
)
def test_default_covers_what_it_says_on_data_from_the_model(n_fields, largest_error):
    """Binomial band: 300 test points in each field; points of a field are dependent, so fields are the trials."""
    kernel = ConstantKernel(1.0) * Matern(0.6, nu=1.5) + WhiteKernel(0.1)
    shares = []
    for seed in range(n_fields):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 6, size=(900, 2))
        field = np.linalg.cholesky(kernel(X)) @ rng.normal(size=900)
        model = CompositeGPRegressor().fit(X[:600], field[:600])
        lower, upper = model.predict_interval(X[600:])
        shares.append(np.mean((lower < field[600:]) & (field[600:] < upper)))
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert error < largest_error
    assert abs(np.mean(shares) - 0.95) < 3 * error + 0.002
