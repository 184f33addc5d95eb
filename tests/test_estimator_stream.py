"""One segment at a time: the same belief as at once, and nothing lost when a segment is refused."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.linalg import LinAlgError
from oracles import composite_gp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeSum, Estimated, Nearest, fisher_information, prior

KERNEL = ConstantKernel(1.2) * Matern(0.8, nu=1.5) + WhiteKernel(0.05)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 8, size=(240, 1))
    return X, 3.0 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=240), np.linspace(0, 9, 25)[:, None]


def parts(*arrays, size=60):
    return zip(*([a[i : i + size] for i in range(0, len(a), size)] for a in arrays), strict=True)


LABELS = np.repeat(np.arange(4), 60)


@pytest.mark.parametrize("mean", [None, "linear", 3.0])
@pytest.mark.parametrize(
    "options",
    [
        {"prediction": "composite", "conditioning_size": 0},
        {"prediction": "composite", "conditioning_size": 20},
        {"prediction": Nearest(n_neighbors=30)},
        {"prediction": "rbcm"},
    ],
    ids=str,
)
def test_segments_one_by_one_are_fit_at_once(data, options, mean):
    X, y, Z = data
    noise = np.linspace(0.0, 0.1, 240)
    whole = CompositeGPRegressor(KERNEL, learning=None, mean=mean, **options)
    whole.fit(X, y, noise_variance=noise, groups=LABELS)
    stream = CompositeGPRegressor(KERNEL, learning=None, mean=mean, **options)
    for X_k, y_k, noise_k in parts(X, y, noise):
        stream.partial_fit(X_k, y_k, noise_variance=noise_k)
    np.testing.assert_allclose(
        stream.predict(Z, return_std=True), whole.predict(Z, return_std=True), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        stream.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=1e-10
    )


@pytest.mark.parametrize("mean", [None, "constant"])
def test_watching_keeps_the_same_belief(data, mean):
    X, y, Z = data
    options = {"learning": None, "mean": mean, "conditioning_size": 0}
    stream = CompositeGPRegressor(KERNEL, prediction=CompositeSum(watch=Z), **options)
    for X_k, y_k in parts(X, y):
        stream.partial_fit(X_k, y_k)
    from compositegp import Composite, posterior

    belief = posterior(
        KERNEL, X, y, Z, Composite.marginal([np.flatnonzero(k == LABELS) for k in range(4)]), mean=mean
    )
    mean_found, cov = stream.predict(Z, return_cov=True, latent=True)
    np.testing.assert_allclose(mean_found, belief.mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(cov, belief.covariance, rtol=0, atol=1e-8)
    some = stream.predict(Z[[7, 3]], return_std=True)
    np.testing.assert_allclose(some[0], belief.mean[[7, 3]], rtol=0, atol=1e-8)
    assert stream.segments_ == []


def test_watching_may_begin_with_a_fit(data):
    X, y, Z = data
    options = {"learning": None, "conditioning_size": 0}
    stream = CompositeGPRegressor(KERNEL, prediction=CompositeSum(watch=Z), **options)
    stream.fit(X[:120], y[:120], groups=LABELS[:120])
    for X_k, y_k in parts(X[120:], y[120:]):
        stream.partial_fit(X_k, y_k)
    plain = CompositeGPRegressor(KERNEL, learning=None, conditioning_size=0, prediction="composite")
    for X_k, y_k in parts(X, y):
        plain.partial_fit(X_k, y_k)
    np.testing.assert_allclose(
        stream.predict(Z, return_std=True), plain.predict(Z, return_std=True), rtol=0, atol=1e-8
    )


def test_only_watched_points_can_be_predicted(data):
    X, y, Z = data
    stream = CompositeGPRegressor(KERNEL, learning=None, prediction=CompositeSum(watch=Z)).partial_fit(X, y)
    with pytest.raises(ValueError, match="row 1"):
        stream.predict([Z[0], [0.123]])
    for call in (stream.log_marginal_likelihood, lambda: stream.analyze(Z)):
        with pytest.raises(ValueError, match="watch keeps none"):
            call()


@pytest.mark.parametrize("mean", [None, "linear", Estimated("constant", [3.0], [[0.1]])], ids=str)
def test_watching_is_by_plain_segments_however_they_come(data, mean):
    X, y, Z = data
    options = {"learning": None, "mean": mean, "prediction": CompositeSum(watch=Z)}  # conditioning_size as it is
    at_once = CompositeGPRegressor(KERNEL, **options).fit(X, y, groups=LABELS)
    stream = CompositeGPRegressor(KERNEL, **options)
    for X_k, y_k in parts(X, y):
        stream.partial_fit(X_k, y_k)
    np.testing.assert_allclose(
        at_once.predict(Z, return_std=True), stream.predict(Z, return_std=True), rtol=0, atol=1e-8
    )
    with pytest.raises(ValueError, match="watch keeps none"):
        stream.predict(Z, variance="honest")


def test_watched_points_may_be_a_frame_and_have_signed_zeros(data):
    X, y, _ = data
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 0] ** 2})
    watch = pd.DataFrame({"a": [0.0, 2.0], "b": [0.0, 4.0]})
    options = {"learning": None}
    model = CompositeGPRegressor(KERNEL, prediction=CompositeSum(watch=watch), **options).partial_fit(table, y)
    signed = pd.DataFrame({"a": [-0.0, 2.0], "b": [0.0, 4.0]})
    np.testing.assert_array_equal(model.predict(watch), model.predict(signed))
    with pytest.raises(ValueError, match="feature names"):
        CompositeGPRegressor(KERNEL, prediction=CompositeSum(watch=watch[["b", "a"]]), **options).partial_fit(
            table, y
        )


def test_a_poor_beginning_is_made_good_by_later_segments(data):
    X, y, Z = data
    late = CompositeGPRegressor()
    late.partial_fit(X[:1], 1e6 * y[:1])
    for X_k, y_k in parts(X, y):
        late.partial_fit(X_k, 1e6 * y_k)
    assert np.isfinite(late.theta_standard_errors_).all()
    assert np.abs(late.predict(Z[:20]) / 1e6 - 3 - np.sin(Z[:20, 0])).max() < 0.5
    with pytest.warns(ConvergenceWarning, match="constant target"):
        constant = CompositeGPRegressor().fit(X[:20], np.full(20, 3.0))
    constant.partial_fit(X, y)
    assert np.isfinite(constant.theta_standard_errors_).all()


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_points_that_come_one_by_one_are_learned_from_together(unit, rng):
    X = rng.uniform(0, 10, (200, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=200)
    model, n_learned = CompositeGPRegressor(), 150
    for i in range(n_learned):
        model.partial_fit(X[i : i + 1], unit * y[i : i + 1])
    sizes = [len(part) for part in model.segments_]
    assert sizes == [32] * 4 + [1] * (n_learned - 128)
    found = model.predict_distribution(X[n_learned:])
    assert np.sqrt(np.mean((found.mean / unit - np.sin(X[n_learned:, 0])) ** 2)) < 0.15
    assert found.coverage(unit * y[n_learned:], 0.95) > 0.8
    assert 0.15 < found.std.mean() / unit < 0.4
    model.partial_fit(X[n_learned:], unit * y[n_learned:])  # a larger segment takes those that wait with it
    assert [len(part) for part in model.segments_] == [32] * 4 + [200 - 128]
    together = CompositeGPRegressor()
    for start in (0, 32, 64, 96, 128):
        together.partial_fit(
            X[start : start + (32 if start < 128 else 72)], unit * y[start : start + (32 if start < 128 else 72)]
        )
    assert [list(part) for part in together.segments_] == [list(part) for part in model.segments_]
    np.testing.assert_allclose(model.kernel_.theta, together.kernel_.theta, rtol=0, atol=0.05)


def test_single_rows_that_fit_learned_from_do_not_wait(rng, tmp_path):
    X = rng.uniform(0, 10, (120, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=120)
    groups = np.concatenate([np.repeat([0, 1], 50), np.arange(2, 22)])
    model = CompositeGPRegressor(KERNEL).fit(X, y, groups=groups)
    before = model.theta_standard_errors_
    for i in range(3):
        model.partial_fit(X[i : i + 1] + 20, y[i : i + 1])
    assert [len(part) for part in model.segments_] == [50, 50] + [1] * 23
    np.testing.assert_array_equal(model.theta_standard_errors_, before)
    model.save(tmp_path / "model.cgp")
    for one in (model, CompositeGPRegressor.load(tmp_path / "model.cgp")):
        one.partial_fit(X[3:9] + 20, y[3:9])  # three rows have waited, and in the file too
        assert [len(part) for part in one.segments_] == [50, 50] + [1] * 20 + [9]


def test_several_outputs_that_begin_with_one_row_have_one_scale(rng):
    X, y = rng.uniform(0, 10, (2, 1)), rng.normal(size=(2, 2))
    with pytest.warns(UserWarning, match="how much each output varies"):
        CompositeGPRegressor(learning=None).partial_fit(X[:1], y[:1])
    CompositeGPRegressor(learning=None).partial_fit(X, y)


def test_what_was_learned_of_errors_of_few_points_is_outgrown(rng):
    X = rng.uniform(0, 100, (3000, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_t(3, size=3000)
    model = CompositeGPRegressor(1.0 * RBF() + WhiteKernel(), learning=None)
    sizes = (120, 130, 200, 600, 3000)
    found = []
    for start, stop in zip((0, *sizes[:-1]), sizes, strict=True):
        model.partial_fit(X[start:stop], y[start:stop]).predict([[50.0]], return_std=True)
        found.append(model._model.tuning)
    assert found[0] is found[1]  # hardly more
    assert [one.n_neighbors for one in found[1:4]] == [120, 200, 600]
    assert found[4].curve is not None
    assert found[4].n_neighbors == model.neighbor_curve_.smallest()


def test_a_refit_that_fails_leaves_the_model_as_it_was(data):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, target_transform="log").fit(X, y + 5)
    before = model.predict(Z)
    with pytest.raises(ValueError, match="not positive"):
        model.fit(np.c_[X, X], -y - 5)
    np.testing.assert_array_equal(model.predict(Z), before)


def test_watching_needs_constant_memory(rng):
    Z = np.linspace(0, 8, 10)[:, None]
    stream = CompositeGPRegressor(KERNEL, learning=None, conditioning_size=0, prediction=CompositeSum(watch=Z))

    def feed(count):
        for _ in range(count):
            X = rng.uniform(0, 8, size=(20, 1))
            stream.partial_fit(X, np.sin(X[:, 0]))

    feed(20)
    size = len(pickle.dumps(stream))
    tracemalloc.start()
    feed(50)
    before = tracemalloc.get_traced_memory()[0]
    feed(300)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 300 * 20 * 16 / 2  # half of what the data themselves would take
    assert abs(len(pickle.dumps(stream)) - size) < 500


def test_hyper_parameters_are_the_papers_average(data):
    X, y, _ = data
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.3)
    stream = CompositeGPRegressor(kernel, mean=3.0, learning="fisher_average")
    precision, shift = 0.0, 0.0
    for X_k, y_k in parts(X, y):
        stream.partial_fit(X_k, y_k)
        alone = CompositeGPRegressor(kernel, mean=3.0).partial_fit(X_k, y_k)
        information = fisher_information(alone.kernel_, X_k)
        precision, shift = precision + information, shift + information @ alone.kernel_.theta
    theta = np.linalg.solve(precision, shift)
    # each segment begins where the last left off, so optima agree to the optimiser's tolerance
    np.testing.assert_allclose(stream.kernel_.theta, theta, rtol=0, atol=0.05)
    np.testing.assert_allclose(
        stream.theta_standard_errors_, np.sqrt(np.diagonal(np.linalg.inv(precision))), rtol=0.1
    )
    assert abs(stream.predict([[4.0]])[0] - 3.0 - np.sin(4.0)) < 0.3


def test_learning_goes_on_after_fit(data):
    X, y, Z = data
    model = CompositeGPRegressor(
        ConstantKernel() * Matern(nu=1.5) + WhiteKernel(), mean="constant", segment_size=60
    )
    errors = model.fit(X[:180], y[:180]).theta_standard_errors_
    model.partial_fit(X[180:], y[180:])
    assert (model.theta_standard_errors_ < errors).all()
    assert len(model.segments_) == 4
    assert np.abs(model.predict(Z[:20]) - 3 - np.sin(Z[:20, 0])).max() < 0.5


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize(
    ("X_k", "y_k"),
    [
        ([[0.0], [np.nan]], [1.0, 2.0]),
        ([[0.0, 1.0]], [1.0]),
        ([[0.0], [1.0]], [1.0]),
        ([[0.0], [1.0]], [1.0, np.inf]),
        ([[0.0], [1.0]], [np.nan, np.nan]),
        ([["a"], ["b"]], [1.0, 2.0]),
        (np.empty((0, 1)), []),
    ],
)
def test_a_segment_that_is_refused_leaves_the_model_as_it_was(data, X_k, y_k, watch):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=CompositeSum(watch=Z if watch else None))
    model.partial_fit(X, y)
    before, stored = model.predict(Z, return_std=True), pickle.dumps(model)
    with pytest.raises(ValueError):  # noqa: PT011
        model.partial_fit(X_k, y_k)
    assert pickle.dumps(model) == stored
    np.testing.assert_array_equal(model.predict(Z, return_std=True), before)


def test_a_segment_that_cannot_be_factorised_leaves_the_model_as_it_was(data):
    class Indefinite(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            K = super().__call__(X, Y, eval_gradient)
            return K if len(X) < 100 else -K

    X, y, Z = data
    model = CompositeGPRegressor(
        Indefinite() + WhiteKernel(0.1), learning=None, prediction=Nearest(n_neighbors=20)
    ).partial_fit(X[:50], y[:50])
    before = model.predict(Z)
    with pytest.raises(LinAlgError, match="not positive definite"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(Z), before)


@pytest.mark.parametrize("mean", [None, "linear"])
def test_another_kernel_exchanges_the_prior_and_keeps_the_evidence(rng, mean):
    Z, X = np.linspace(0, 4, 6)[:, None], rng.uniform(0, 4, size=(20, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=20)
    old, new = RBF(0.8) + WhiteKernel(0.1), 2.0 * RBF(1.1) + WhiteKernel(0.2)
    belief = prior(old, Z, mean=mean).update(X, y)
    same = belief.under(old)
    np.testing.assert_allclose(same.mean, belief.mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(same.covariance, belief.covariance, rtol=0, atol=1e-8)
    moved = belief.under(new)
    np.testing.assert_allclose(moved.under(old).covariance, belief.covariance, rtol=0, atol=1e-6)
    if mean is None:
        _, covariance = composite_gp(old, X, y, Z, [(np.arange(20), 1.0)])
        evidence = np.linalg.inv(covariance) - np.linalg.inv(old(Z, Z))
        expected = np.linalg.inv(np.linalg.inv(new(Z, Z)) + evidence)
        np.testing.assert_allclose(moved.covariance, expected, rtol=0, atol=1e-6)


def test_learning_while_watching_follows_the_average(data):
    X, y, Z = data
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.3)
    options = {"mean": 3.0, "conditioning_size": 0}
    watching = CompositeGPRegressor(kernel, prediction=CompositeSum(watch=Z), **options)
    keeping = CompositeGPRegressor(kernel, prediction=CompositeSum(), **options)
    for X_k, y_k in parts(X, y):
        watching.partial_fit(X_k, y_k)
        keeping.partial_fit(X_k, y_k)
    np.testing.assert_array_equal(watching.kernel_.theta, keeping.kernel_.theta)
    # the belief is built of segments under the hyper-parameters of their time: close, not equal
    np.testing.assert_allclose(watching.predict(Z), keeping.predict(Z), rtol=0, atol=0.25)
