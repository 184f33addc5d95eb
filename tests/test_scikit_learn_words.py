"""Parameters as scikit-learn spells them, and what its Gaussian process gives back."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from compositegp import CompositeGPRegressor, CompositeSum, Nearest

KERNEL = 2.0 * RBF(1.5) + WhiteKernel(0.1)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 10, size=(40, 1))
    return X, 30 + 7 * np.sin(X[:, 0]) + rng.normal(size=40), np.linspace(-1, 11, 9)[:, None]


def ours(**options):
    return CompositeGPRegressor(KERNEL, learning=None, **options)


def theirs(**options):
    return GaussianProcessRegressor(KERNEL, optimizer=None, **({"alpha": 0.0} | options))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3, np.linspace(0.1, 2.0, 40)], ids=["0", "0.3", "array"])
def test_alpha_and_normalize_y_are_those_of_scikit_learn(data, alpha, normalize_y, several):
    X, y, Z = data
    y = np.column_stack([y, np.cos(X[:, 0])]) if several else y
    found = ours(alpha=alpha, normalize_y=normalize_y).fit(X, y)
    expected = theirs(alpha=alpha, normalize_y=normalize_y).fit(X, y)
    np.testing.assert_allclose(found.predict(Z), expected.predict(Z), rtol=1e-8, atol=1e-8)
    for option in ("return_std", "return_cov"):
        np.testing.assert_allclose(
            found.predict(Z, **{option: True})[1], expected.predict(Z, **{option: True})[1], rtol=1e-6, atol=1e-7
        )
    assert found.log_marginal_likelihood_value_ == pytest.approx(expected.log_marginal_likelihood_value_, rel=1e-9)


def test_alpha_is_the_noise_of_every_fit(data):
    X, y, Z = data
    plain = ours().fit(X, y, noise_variance=0.3).predict(Z, return_std=True)
    np.testing.assert_array_equal(ours(alpha=0.3).fit(X, y).predict(Z, return_std=True), plain)
    parts = ours(alpha=0.3).partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    np.testing.assert_allclose(parts.predict(Z, return_std=True), plain, rtol=1e-9)
    search = GridSearchCV(ours(), {"alpha": [1e-3, 30.0], "normalize_y": [False, True]}, cv=3).fit(X, y)
    assert search.best_params_ == {"alpha": 1e-3, "normalize_y": True}


def test_a_learned_model_is_the_same_in_any_unit_of_the_target(data):
    X, y, Z = data
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.1)
    one = CompositeGPRegressor(kernel, normalize_y=True).fit(X, y)
    other = CompositeGPRegressor(kernel, normalize_y=True).fit(X, 1e3 * y - 5e4)
    np.testing.assert_allclose(other.kernel_.theta, one.kernel_.theta, rtol=0, atol=1e-6)
    np.testing.assert_allclose(other.predict(Z), 1e3 * one.predict(Z) - 5e4, rtol=1e-6)


@pytest.mark.parametrize("prediction", ["nearest", "composite", "fitc", "rbcm"])
def test_normalize_y_is_a_scaler_outside(data, prediction):
    X, y, Z = data
    center, spread = y.mean(), y.std()
    inside = ours(normalize_y=True, prediction=prediction).fit(X, y).predict(Z, return_std=True)
    mean, std = ours(prediction=prediction).fit(X, (y - center) / spread).predict(Z, return_std=True)
    np.testing.assert_allclose(inside, (center + spread * mean, spread * std), rtol=1e-10)


def test_normalize_y_of_a_stream_is_by_its_first_segment(data):
    X, y, Z = data
    found = ours(normalize_y=True).partial_fit(X[:15], y[:15]).partial_fit(X[15:], y[15:])
    center, spread = y[:15].mean(), y[:15].std()
    expected = ours().fit(X, (y - center) / spread).predict(Z)
    np.testing.assert_allclose(found.predict(Z), center + spread * expected, rtol=1e-9)


def test_a_constant_output_has_a_scale_of_one(data):
    X, y, _ = data
    both = np.column_stack([y, np.full(40, 2.0)])
    found = CompositeGPRegressor(RBF(1.0), learning=None, alpha=1e-10, normalize_y=True).fit(X, both)
    expected = GaussianProcessRegressor(RBF(1.0), optimizer=None, normalize_y=True).fit(X, both)
    mean, covariance = found.predict(X, return_cov=True)
    np.testing.assert_allclose(mean[:, 1], 2.0, rtol=1e-9)
    np.testing.assert_allclose(covariance, expected.predict(X, return_cov=True)[1], rtol=0, atol=1e-6)


def test_a_saved_model_knows_the_words(data, tmp_path):
    X, y, Z = data
    model = ours(alpha=0.3, normalize_y=True).fit(X, y)
    model.save(tmp_path / "model.cgp")
    loaded = CompositeGPRegressor.load(tmp_path / "model.cgp")
    assert (loaded.alpha, loaded.normalize_y) == (0.3, True)
    np.testing.assert_array_equal(loaded.predict(Z, return_std=True), model.predict(Z, return_std=True))


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"alpha": 0.1}, {"noise_variance": 0.1}, "alpha=0.1 and noise_variance are both given"),
        ({"alpha": np.ones(3)}, {}, "alpha must be a scalar or an array with same number of entries as y"),
        ({"alpha": -1.0}, {}, "alpha has a negative value"),
        ({"alpha": "much"}, {}, "alpha must be"),
        (
            {"normalize_y": True, "target_transform": "log"},
            {},
            "normalize_y=True and target_transform='log' are both",
        ),
        ({"normalize_y": "yes"}, {}, "normalize_y must be True or False"),
        ({"mean": [0.0, 0.0]}, {}, "The number of targets seen in `y` is 1, but mean has 2"),
        ({"mean": [np.nan]}, {}, "mean must be None, a finite number, one for each output"),
    ],
)
def test_contradictions_and_bad_values_are_named(data, options, given, message):
    with pytest.raises(ValueError, match=message):
        ours(**options).fit(*data[:2], **given)


@pytest.mark.parametrize("n_targets", [1, 2, 3])
def test_a_mean_for_each_output_is_a_prior_of_so_many_outputs(data, n_targets):
    """`mean=np.zeros(t)` before `fit` is scikit-learn's `n_targets=t`: the same shapes and numbers."""
    Z = data[2]
    model, other = ours(mean=np.zeros(n_targets)), theirs(n_targets=n_targets)
    for option in ({}, {"return_std": True}, {"return_cov": True}):
        found, expected = model.predict(Z, **option), other.predict(Z, **option)
        for one, two in zip(np.atleast_1d(found) if not option else found, expected, strict=True):
            assert np.shape(one) == np.shape(two)
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-9)
    draws = model.sample_y(Z, 4000, random_state=0)
    assert draws.shape == other.sample_y(Z, 4000, random_state=0).shape
    np.testing.assert_allclose(draws.mean(axis=-1), 0.0, rtol=0, atol=0.12)
    np.testing.assert_allclose(draws.std(axis=-1), np.sqrt(2.1), rtol=0, atol=0.1)
    found = model.predict_distribution(Z, joint=True)
    assert found.location.shape == ((9,) if n_targets == 1 else (9, n_targets))


def test_means_of_outputs_are_subtracted_from_each(data):
    X, y, Z = data
    both = np.column_stack([y, 100 - y])
    shifted = ours().fit(X, both - [30.0, 70.0])
    found = ours(mean=[30.0, 70.0])
    np.testing.assert_allclose(found.predict(Z), np.tile([30.0, 70.0], (9, 1)))
    np.testing.assert_allclose(
        found.fit(X, both).predict(Z), shifted.predict(Z) + np.array([30.0, 70.0]), rtol=1e-9
    )


def test_the_first_output_is_drawn_as_if_it_were_alone(data):
    X, y, Z = data
    alone = ours().fit(X, y).sample_y(Z, 5, random_state=3)
    both = ours().fit(X, np.column_stack([y, 2 * y])).sample_y(Z, 5, random_state=3)
    np.testing.assert_allclose(both[:, 0], alone, rtol=0, atol=1e-6)
    assert not np.allclose(both[:, 1] - both[:, 1].mean(), both[:, 0] - both[:, 0].mean())


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        MinMaxScaler((2, 9)),
        RobustScaler(),
        FunctionTransformer(lambda y: -3 * y + 1, lambda y: (1 - y) / 3, check_inverse=False),
    ],
    ids=lambda scaler: type(scaler).__name__,
)
def test_covariances_behind_a_transformer_that_shifts_and_scales(data, scaler, several):
    X, y, Z = data
    y = np.column_stack([y, 5 * np.cos(X[:, 0])]) if several else y
    columns = y.reshape(40, -1)
    scaler.fit(columns)
    factor = (scaler.inverse_transform(0 * columns + 1) - scaler.inverse_transform(0 * columns))[0]
    inner = ours(mean=5.0).fit(X, scaler.transform(columns).reshape(y.shape))
    mean, covariance = inner.predict(Z, return_cov=True)
    found = ours(mean=5.0, target_transform=scaler).fit(X, y).predict(Z, return_cov=True)
    restored = scaler.inverse_transform(mean.reshape(9, -1)).reshape(mean.shape)
    np.testing.assert_allclose(found[0], restored, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], covariance * (factor**2 if several else factor[0] ** 2), rtol=1e-8)


@pytest.mark.parametrize("transformer", [PowerTransformer(), QuantileTransformer(n_quantiles=20)])
def test_covariances_behind_a_curved_transformer_are_refused(data, transformer):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, target_transform=transformer).fit(X, y)
    with pytest.raises(ValueError, match="only shifts and scales"):
        model.predict(Z, return_cov=True)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_through_a_pipeline(data, level):
    X, y, Z = data
    pipeline = make_pipeline(StandardScaler(), CompositeGPRegressor(KERNEL, learning=None)).fit(X, y)
    mean, lower, upper = pipeline.predict(Z, return_interval=level)
    scaled = pipeline[:-1].transform(Z)
    np.testing.assert_allclose(mean, pipeline[-1].predict(scaled), rtol=1e-9)
    np.testing.assert_allclose((lower, upper), pipeline[-1].predict_interval(scaled, level), rtol=1e-9)
    inside = pipeline.predict(Z, return_interval=level, latent=True)
    assert (inside[1] > lower).all()
    assert (inside[2] < upper).all()


@pytest.mark.parametrize("prediction", [Nearest(10), CompositeSum()])
def test_intervals_of_other_methods_and_several_outputs(data, prediction):
    X, y, Z = data
    model = CompositeGPRegressor(Matern() + WhiteKernel(), learning=None, prediction=prediction)
    found = model.fit(X, np.column_stack([y, -y])).predict(Z, return_interval=0.9)
    assert [part.shape for part in found] == [(9, 2)] * 3
    np.testing.assert_allclose(found[1:], model.predict_interval(Z, 0.9), rtol=1e-9)


def test_requests_that_exclude_each_other(data):
    X, y, Z = data
    model = ours().fit(X, y)
    with pytest.raises(RuntimeError, match="return_interval cannot"):
        model.predict(Z, return_std=True, return_interval=0.9)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        model.predict(Z, return_interval=95)
