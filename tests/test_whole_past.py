"""Short series: forecasts from all the past, against dense algebra."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from compositegp.forecasting import CompositeGPForecaster
from compositegp.forecasting.horizon_terms import covariances
from compositegp.forecasting.memory import (
    _places_of_theta,
    learn_memory,
    prior_precision,
    sum_of,
    whole_kernel,
)
from compositegp.forecasting.whole_past import WholePast

SIZE, HORIZON = 40, 5


@pytest.fixture
def kernel():
    return sum_of(list(whole_kernel({"year": 12.0}, 12, SIZE, 1.0).values()))


@pytest.fixture
def past(rng):
    functions = np.column_stack([np.ones(SIZE), np.linspace(-1, 1, SIZE)])
    return WholePast(rng.normal(size=SIZE).cumsum() * 0.3, functions, 0.7)


def dense(past, kernel):
    """Covariance of all the values, effects included."""
    k = covariances(kernel, SIZE)
    at = np.arange(SIZE)
    return k[np.abs(at[:, None] - at)] + past.prior_variance * past.functions @ past.functions.T


def conditional(covariance, values, known, wanted):
    """Mean and variance of some values given others, from the textbook."""
    inner = covariance[np.ix_(known, known)]
    outer = covariance[np.ix_(wanted, known)]
    mean = outer @ np.linalg.solve(inner, values[known])
    return mean, np.diagonal(covariance[np.ix_(wanted, wanted)] - outer @ np.linalg.solve(inner, outer.T))


def test_the_score_is_the_log_likelihood(past, kernel):
    value, _ = past.score(covariances(kernel, SIZE))
    expected = multivariate_normal.logpdf(past.values, cov=dense(past, kernel))
    assert value == pytest.approx(expected, rel=1e-5)
    assert past.log_scores(covariances(kernel, SIZE)).sum() == pytest.approx(expected, rel=1e-5)


def test_the_slope_is_that_of_finite_differences(past, kernel):
    k = covariances(kernel, SIZE)
    slope = past.score(k)[1]
    steps = 1e-6 * np.eye(len(k))
    differences = [(past.score(k + step)[0] - past.score(k - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, differences, rtol=1e-3, atol=1e-3)


def test_forecasts_of_every_origin_are_conditional_distributions(past, kernel):
    errors, variance = past.forecasts(covariances(kernel, SIZE), HORIZON)
    assert errors.shape == (SIZE - HORIZON + 1, HORIZON)
    covariance = dense(past, kernel)
    for origin in (1, 7, SIZE - HORIZON):
        wanted = np.arange(origin, origin + HORIZON)
        mean, spread = conditional(covariance, past.values, np.arange(origin), wanted)
        np.testing.assert_allclose(errors[origin], past.values[wanted] - mean, rtol=0, atol=1e-5)
        np.testing.assert_allclose(variance[origin], spread, rtol=1e-5)


def test_a_missing_value_tells_nothing(past, kernel):
    k, covariance = covariances(kernel, SIZE), dense(past, kernel)
    holes = WholePast(np.where(np.arange(SIZE) % 7 == 3, np.nan, past.values), past.functions, past.prior_variance)
    there = np.isfinite(holes.values)
    expected = multivariate_normal.logpdf(past.values[there], cov=covariance[np.ix_(there, there)])
    assert holes.score(k)[0] == pytest.approx(expected, rel=1e-4)
    assert holes.count == there.sum()
    errors, _ = holes.forecasts(k, HORIZON)
    known, wanted = np.flatnonzero(there[:20]), np.arange(20, 25)
    mean, _ = conditional(covariance, past.values, known, wanted)
    seen = there[wanted]
    np.testing.assert_allclose(errors[20][seen], (past.values[wanted] - mean)[seen], rtol=0, atol=1e-4)
    assert np.isnan(errors[20][~seen]).all()


def test_the_prior_keeps_learning_near_its_start(past, kernel):
    tight = learn_memory(kernel, [past], precision=prior_precision(kernel, 1e-3)).kernel
    np.testing.assert_allclose(tight.theta, kernel.theta, rtol=0, atol=0.05)
    free = learn_memory(kernel, [past]).kernel
    k = [covariances(one, SIZE) for one in (free, kernel)]
    assert past.score(k[0])[0] > past.score(k[1])[0]


def test_a_forecaster_of_a_short_series_is_the_exact_process(rng):
    """The forecast from effects and memory is that of one Gaussian process of all the values."""
    index = pd.date_range("2010-01-01", periods=60, freq="MS")
    series = pd.Series(10 + np.sin(2 * np.pi * np.arange(60) / 12) + 0.1 * rng.normal(size=60).cumsum(), index)
    model = CompositeGPForecaster(None, search=False, horizon=6, theta_uncertainty=False).fit(series)
    fitted = model._fitted()
    points = np.concatenate([fitted.grid.points, fitted.next_places(6)[:, None]])
    functions = fitted.effects(points)
    at = np.arange(66)
    covariance = covariances(fitted.kernel, 66)[np.abs(at[:, None] - at)]
    covariance += fitted.information.prior_variance * functions @ functions.T
    values = np.append(series.to_numpy() - fitted.center, np.zeros(6))
    mean, variance = conditional(covariance, values, at[:60], at[60:])
    found = fitted.forecast(points[60:], joint=False, latent=False)
    np.testing.assert_allclose(found.location, fitted.center + mean, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.scale / fitted.factors(points[60:]), np.sqrt(variance), rtol=1e-3)


def test_a_slope_that_changes_is_followed():
    """Forecasts follow the latest slope, not the average one."""
    index = pd.date_range("2010-01-01", periods=120, freq="MS")
    t = np.arange(120.0)
    values = np.where(t < 70, 100 + t, 170 - (t - 70)) + np.random.default_rng(1).normal(size=120) * 0.3
    model = CompositeGPForecaster(None, horizon=12).fit(pd.Series(values, index))
    ahead = model.predict(12)["mean"].to_numpy()
    np.testing.assert_allclose(ahead, 170 - (np.arange(120, 132) - 70), rtol=0, atol=6)  # damped a little


def test_hyperparameters_are_set_in_their_places(kernel):
    theta = kernel.theta + np.linspace(-0.3, 0.4, len(kernel.theta))
    changed = kernel.clone_with_theta(kernel.theta)
    for (part, name), value in zip(_places_of_theta(changed), np.exp(theta), strict=True):
        setattr(part, name, value)
    np.testing.assert_allclose(changed.theta, theta)


def test_a_series_whose_first_part_is_missing_is_learned(rng):
    index = pd.date_range("2010-01-01", periods=60, freq="MS")
    values = 5 + rng.normal(size=60)
    values[1:30] = np.nan
    forecast = CompositeGPForecaster(None, search=False, horizon=6).fit(pd.Series(values, index)).predict(6)
    assert np.isfinite(forecast.to_numpy()).all()
    np.testing.assert_allclose(forecast["mean"], 5.0, rtol=0, atol=1.2)  # white noise: nothing else is known
    assert forecast["std"].between(0.7, 2.0).all()


class TestParts:
    """What the likelihood does not ask for is left out, and what it asks for is there."""

    @pytest.mark.parametrize(("growth", "is_there"), [(0.0, False), (0.1, True)])
    def test_a_season_that_drifts_is_a_part_where_there_is_one(self, growth, is_there):
        rng, months = np.random.default_rng(1), np.arange(96)
        values = 50 + growth * months * np.sin(2 * np.pi * months / 12) + rng.normal(size=96)
        index = pd.date_range("2010-01-01", periods=96, freq="MS")
        model = CompositeGPForecaster(None, horizon=12, search=False).fit(pd.Series(values, index))
        assert ("year pattern" in model.parts_) is is_there

    @pytest.mark.parametrize(("decay", "is_there"), [(1.0, False), (0.6, True)])
    def test_a_short_memory_is_a_part_where_the_level_returns(self, decay, is_there):
        rng = np.random.default_rng(2)
        values = [0.0]
        for error in rng.normal(size=400):
            values.append(decay * values[-1] + error)
        series = pd.Series(values[-240:], pd.date_range("2000-01-01", periods=240, freq="MS"))
        model = CompositeGPForecaster(None, horizon=12, search=False).fit(series)
        assert ("short memory" in model.parts_) is is_there
        if is_there:  # the forecast goes back to the mean
            assert abs(model.predict(12)["mean"].iloc[-1]) < 0.6

    def test_they_are_kept_in_files_and_by_a_refit(self, tmp_path):
        rng = np.random.default_rng(1)
        series = pd.Series(50 + rng.normal(size=96), pd.date_range("2010-01-01", periods=96, freq="MS"))
        model = CompositeGPForecaster(None, horizon=12).fit(series)
        model.save(tmp_path / "model.cgp")
        again = CompositeGPForecaster.load(tmp_path / "model.cgp")
        assert list(again.parts_) == list(model.parts_)
        pd.testing.assert_frame_equal(again.predict(12), model.predict(12))
        refitted = again.refit(series)
        assert list(refitted.parts_) == list(model.parts_)
        np.testing.assert_allclose(refitted.predict(12)["mean"], model.predict(12)["mean"], rtol=1e-6)


class TestOutliers:
    """A value far from its forecast counts as four standard deviations from it."""

    def test_each_value_is_moved_to_four_deviations_from_its_forecast(self, past, kernel):
        k, covariance = covariances(kernel, SIZE), dense(past, kernel)
        wild = past.values.copy()
        wild[[9, 22, 23]] += [60.0, -80.0, -80.0]
        expected = wild.copy()
        for row in range(1, SIZE):  # each given those before it, as they are by then
            mean, variance = conditional(covariance, expected, np.arange(row), np.array([row]))
            reach = 4 * np.sqrt(variance[0])
            expected[row] = np.clip(wild[row], mean[0] - reach, mean[0] + reach)
        assert (expected != wild).sum() >= 3
        tempered = WholePast(wild, past.functions, past.prior_variance).tempered(k)
        np.testing.assert_allclose(tempered.values, expected, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(tempered.observed, wild)
        np.testing.assert_allclose(tempered.tempered(k).values, tempered.values, rtol=0, atol=1e-9)

    def test_forecasts_are_scored_by_what_was_observed(self, past, kernel):
        k, wild = covariances(kernel, SIZE), past.values.copy()
        wild[30] += 70.0
        tempered = WholePast(wild, past.functions, past.prior_variance).tempered(k)
        errors, _ = tempered.forecasts(k, HORIZON)
        for origin in (27, 31):
            wanted = np.arange(origin, origin + HORIZON)
            mean, _ = conditional(dense(past, kernel), tempered.values, np.arange(origin), wanted)
            np.testing.assert_allclose(errors[origin], wild[wanted] - mean, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(tempered.latest(10).observed, wild[-10:])

    def test_without_outliers_nothing_changes(self, past, kernel):
        k = covariances(kernel, SIZE)
        calm = WholePast(0.2 * past.values, past.functions, past.prior_variance)
        assert calm.tempered(k) is calm
        holes = WholePast(np.where(np.arange(SIZE) % 7 == 3, np.nan, calm.values), calm.functions, 0.7)
        assert holes.tempered(k) is holes

    def test_a_missing_value_stays_missing(self, past, kernel):
        wild = np.where(np.arange(SIZE) % 7 == 3, np.nan, past.values)
        wild[20] += 90.0
        tempered = WholePast(wild, past.functions, 0.7).tempered(covariances(kernel, SIZE))
        np.testing.assert_array_equal(np.isnan(tempered.values), np.isnan(wild))
        assert tempered.values[20] < wild[20] - 50

    def test_forecasts_after_months_that_stood_still_are_those_of_the_years_before(self, tmp_path):
        months = np.arange(120)
        values = 100 + 20 * np.sin(2 * np.pi * months / 12) + np.random.default_rng(3).normal(size=120)
        index = pd.date_range("2012-01-01", periods=120, freq="MS")
        usual = CompositeGPForecaster(None, horizon=12).fit(pd.Series(values, index)).predict(12)["mean"]
        values[111:113] = 5.0  # April and May of the last year: without tempering the next ones were 100 lower
        model = CompositeGPForecaster(None, horizon=12).fit(pd.Series(values, index))
        np.testing.assert_allclose(model.predict(12)["mean"], usual, rtol=0, atol=5)
        assert any("2021-05-01." in note and "2 value" in note for note in model.notes_)
        fitted = model._fitted()
        assert (fitted.targets[111:113] + fitted.center).min() > 90
        whole = model.parts(12).mean.sum(axis=0)
        np.testing.assert_allclose(whole, model.predict_distribution(12).location, rtol=0, atol=1e-9)
        model.save(tmp_path / "model.cgp")
        again = CompositeGPForecaster.load(tmp_path / "model.cgp")
        pd.testing.assert_frame_equal(again.predict(12), model.predict(12))
        again.update(pd.Series([300.0], pd.date_range("2022-01-01", periods=1, freq="MS")))
        np.testing.assert_allclose(again.predict(11)["mean"], usual[1:], rtol=0, atol=12)

    def test_an_outlier_among_later_values_teaches_as_little(self):
        index = pd.date_range("2012-01-01", periods=84, freq="MS")
        values = 50 + 10 * np.sin(2 * np.pi * np.arange(84) / 12) + np.random.default_rng(0).normal(size=84)
        wild = values.copy()
        wild[65] += 1e5
        models = [CompositeGPForecaster(None, horizon=12).fit(pd.Series(values[:60], index[:60])) for _ in range(2)]
        for model, later in zip(models, (values, wild), strict=True):
            model.update(pd.Series(later[60:], index[60:]))
        means = [model.predict(12)["mean"] for model in models]
        np.testing.assert_allclose(means[1], means[0], rtol=0, atol=4)
        assert any("on 2017-06-01." in note for note in models[1].notes_)
        assert not any("far from" in note for note in models[0].notes_)
        # Bands are about what was observed: such a month may come again.
        assert models[1].predict(12)["std"].mean() > models[0].predict(12)["std"].mean()

    @pytest.mark.parametrize("learn", [False, True])
    def test_it_does_not_matter_in_how_many_parts_outliers_arrive(self, learn):
        rng, index = np.random.default_rng(1), pd.date_range("2000-01-01", periods=200, freq="MS")
        values = 50 + 10 * np.sin(2 * np.pi * np.arange(200) / 12) + rng.normal(size=200)
        values[[30, 70, 71, 140, 199]] += [60.0, -50.0, -50.0, 80.0, -70.0]
        trained = CompositeGPForecaster(None, horizon=12, search=False).fit(pd.Series(values[:60], index[:60]))
        forecasts = []
        for step in (140, 5, 1):
            model = copy.copy(trained)
            for start in range(60, 200, step):
                part = slice(start, min(start + step, 200))
                model.update(pd.Series(values[part], index[part]), learn=learn)
            forecasts.append(model.predict(12))
        for other in forecasts[1:]:
            pd.testing.assert_frame_equal(other, forecasts[0])

    def test_a_mark_for_missing_values_does_not_tell_how_much_a_series_varies(self):
        index = pd.date_range("2012-01-01", periods=96, freq="MS")
        values = 50 + 10 * np.sin(2 * np.pi * np.arange(96) / 12) + np.random.default_rng(0).normal(size=96)
        usual = CompositeGPForecaster(None, horizon=12).fit(pd.Series(values, index)).predict(12)
        values[[20, 77]] = 1e6
        marked = CompositeGPForecaster(None, horizon=12).fit(pd.Series(values, index)).predict(12)
        np.testing.assert_allclose(marked["mean"], usual["mean"], rtol=0, atol=3)
        assert (marked["q0.75"] - marked["q0.25"]).max() < 10
