"""Gross errors among the targets are told: a few values that all the others contradict."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from compositegp import CompositeGPRegressor
from compositegp.prediction.gross_errors import gross_errors

WARNING = "off by more than ten usual errors"


def waves(n, seed=0, columns=2):
    """Sums of sines with a little noise, and the noise-free values."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, columns))
    f = np.sin(X).sum(axis=1)
    return X, f + 0.1 * rng.normal(size=n), f


def fit_and_listen(X, y, **options):
    """A fitted model, and the warnings about its targets."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = CompositeGPRegressor(**options).fit(X, y)
    return model, [str(one.message) for one in heard if WARNING in str(one.message)]


@pytest.mark.parametrize("n", [150, 800, 2_100])
def test_a_mistake_is_named_and_without_it_all_is_well(n):
    X, y, f = waves(n)
    wrong = y.copy()
    wrong[:2] = 57.5, -61.25
    seen = n < 500  # with more observations errors are learned from some of them
    if not seen:
        wrong[: n // 100] = 57.5
    model, heard = fit_and_listen(X, wrong)
    assert len(heard) == 1
    assert "57.5" in heard[0]
    assert not seen or "-61.25" in heard[0]
    rows = np.arange(n) if seen else np.flatnonzero(wrong != 57.5)
    kept = rows[2:] if seen else rows
    mended, heard = fit_and_listen(X[kept], wrong[kept])
    assert not heard
    error, mended_error = (np.sqrt(np.mean((one.predict(X) - f) ** 2)) for one in (model, mended))
    assert mended_error < 0.1 < 0.5 * error


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, n: 0.1 * rng.normal(size=n),
        lambda rng, n: 0.1 * rng.standard_t(3, size=n),
        lambda rng, n: 0.1 * rng.exponential(size=n),
        lambda rng, n: rng.normal(size=n) * np.where(rng.uniform(size=n) < 0.1, 1.0, 0.1),
        lambda rng, n: 10.0 * (rng.uniform(size=n) < 0.1),
    ],
    ids=["normal", "t with 3 degrees", "exponential", "a tenth with ten times the noise", "a tenth far away"],
)
def test_errors_with_heavy_tails_are_no_mistakes(noise):
    X, _, f = waves(400, columns=1)
    _, heard = fit_and_listen(X, f + noise(np.random.default_rng(1), 400))
    assert not heard


def test_values_are_named_in_the_users_unit():
    X, y, _ = waves(300, columns=1)
    positive = np.exp(y)
    positive[5] = 1.25e9
    _, heard = fit_and_listen(X, positive, target_transform="log")
    assert "1.25e+09" in heard[0]
    both = np.column_stack([1000 + y, 5 * y])
    both[7, 1] = -7777.0
    _, heard = fit_and_listen(X, both)
    assert "-7777" in heard[0]


def test_rows_without_a_target_do_not_shift_the_names():
    X, y, _ = waves(200, columns=1)
    y[:50] = np.nan
    y[120] = 88.5
    _, heard = fit_and_listen(X, y)
    assert "88.5" in heard[0]


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_a_mistake_throws_off_are_innocent(seed):
    X, y, _ = waves(200, seed)
    y[7] = 100.0
    model, heard = fit_and_listen(X, y)
    assert_array_equal(model._model.tuning.gross, [7])
    assert "one is off" in heard[0]


def test_a_model_with_gross_errors_is_saved(tmp_path):
    X, y, _ = waves(150, columns=1)
    y[3] = 40.0
    model, heard = fit_and_listen(X, y)
    assert heard
    model.save(tmp_path / "model.cgp")
    again = CompositeGPRegressor.load(tmp_path / "model.cgp")
    assert_array_equal(again.predict(X), model.predict(X))


def test_gross_errors_are_few_far_and_most_of_the_squares():
    errors, targets = np.random.default_rng(0).normal(size=(2, 1_000, 2))
    assert not len(gross_errors(errors, targets))
    errors[[10, 20], 1] = 500.0, -900.0
    assert_array_equal(gross_errors(errors, targets), [20, 10])
    assert_array_equal(gross_errors(1e-9 * errors, 1e9 * targets), [20, 10])
    errors[:40, 0] = 500.0  # four in a hundred are no mistakes
    assert not len(gross_errors(errors, targets))
    assert not len(gross_errors(np.zeros((100, 1)), np.zeros((100, 1))))
    assert not len(gross_errors(np.zeros((0, 1)), np.zeros((0, 1))))
    most = np.zeros((1_000, 1))
    most[0] = 1.0  # where the others are exact there are no usual errors
    assert not len(gross_errors(most, most))


def test_a_target_with_most_of_the_variance_is_gross_though_its_neighbors_are_as_far_off():
    errors, targets = np.random.default_rng(1).normal(size=(2, 500, 1))
    errors[:30] *= 10  # bent towards it
    errors[100], targets[100] = 15.0, 60.0
    assert_array_equal(gross_errors(errors, targets), [100])
    targets[100] = 15.0  # less than half of the variance
    assert not len(gross_errors(errors, targets))


def test_a_gross_error_is_that_of_a_leave_one_out_prediction():
    X, y, _ = waves(200, columns=1)
    y[11] = -30.0
    model, _ = fit_and_listen(X, y)
    found = model.predict_leave_one_out()
    errors = np.abs(y - found.mean)
    assert errors.argmax() == model._model.tuning.gross[0] == 11
