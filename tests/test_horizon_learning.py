"""Learning by the terms of the task: against the composite's likelihood, dense algebra and finite differences."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp.composite import Composite
from compositegp.forecasting import CompositeGPForecaster, backtest, cross_validation
from compositegp.forecasting.clock import Clock, dates_of, holidays_of
from compositegp.forecasting.coefficients import Information, forecast_in_order, look_through
from compositegp.forecasting.effects import Effect, Effects, column_knots
from compositegp.forecasting.error_scale import ErrorScale, Situation, recent_squares, scaled_t_log_density
from compositegp.forecasting.grid import column_histories, history_names, past_lags
from compositegp.forecasting.horizon_terms import (
    Geometry,
    Windows,
    covariances,
    covariances_and_slopes,
    cut_windows,
)
from compositegp.forecasting.memory import Memory, learn_memory, memory_kernel, parts_of, standard_errors, sum_of
from compositegp.forecasting.model_choice import _best_scale, _without_effects
from compositegp.forecasting.series_learning import Candidate, PastForecasts
from compositegp.forecasting.timeline import Timeline
from compositegp.predictive import IdentityTarget, LogTarget, PowerTarget, PredictiveDistribution

KERNEL = ConstantKernel(1.3) * Matern(7.0, nu=1.5) + ConstantKernel(0.4) * Matern(40.0, nu=0.5) + WhiteKernel(0.2)


def drawn(n, rng, kernel=KERNEL):
    return np.linalg.cholesky(kernel(np.arange(float(n))[:, None])) @ rng.normal(size=n)


class TestTerms:
    def test_they_are_a_conditional_composite(self, rng):
        """Σ log p(y_step | past) is the log likelihood of the terms (past and step, 1) and (past, −1)."""
        y, geometry = drawn(60, rng), Geometry(np.array([1, 2, 5, 9]), np.array([0, 3]))
        starts = [15, 30, 44]
        windows = cut_windows(y, starts, geometry, 1, 0)
        terms = []
        for start in starts:
            for step in geometry.steps:
                past = start - geometry.lags
                terms += [(np.append(past, start + step), 1.0), (past, -1.0)]
        K = KERNEL(np.arange(60.0)[:, None])

        expected = sum(
            weight * multivariate_normal.logpdf(y[points], cov=K[np.ix_(points, points)])
            for points, weight in [(term.indices, term.weight) for term in Composite(terms).terms]
        )
        found, _ = windows[0].score(covariances(KERNEL, geometry.reach))
        assert found == pytest.approx(expected, rel=1e-6)

    def test_the_gradient_is_that_of_finite_differences(self, rng):
        y, geometry = drawn(80, rng), Geometry(np.arange(1, 20), np.arange(5))
        y[40] = np.nan
        windows = cut_windows(y, np.arange(20, 70, 7), geometry, 1000, 5)
        assert len(windows) > 2  # complete ones together, each incomplete one on its own

        def total(theta):
            k = covariances(KERNEL.clone_with_theta(theta), geometry.reach)
            return sum(one.score(k)[0] for one in windows)

        k, slope = covariances(KERNEL, geometry.reach), np.zeros(geometry.reach)
        for one in windows:
            by_k = one.score(k)[1]
            slope[: len(by_k)] += by_k
        theta = KERNEL.theta
        numeric = [(total(theta + d) - total(theta - d)) / 2e-5 for d in 1e-5 * np.eye(len(theta))]
        k, slopes = covariances_and_slopes(KERNEL, geometry.reach)
        np.testing.assert_allclose(slopes @ slope, numeric, rtol=1e-5)
        np.testing.assert_allclose(k, covariances(KERNEL, geometry.reach), rtol=1e-13)
        assert sum(one.log_scores(k).sum() for one in windows) == pytest.approx(total(theta))

    def test_what_is_missing_is_left_out(self, rng):
        y = drawn(40, rng)
        y[[18, 21]] = np.nan
        geometry = Geometry(np.arange(1, 6), np.arange(3))
        (window,) = cut_windows(y, [20], geometry, 1, 5)
        assert list(window.geometry.lags) == [1, 3, 4, 5]
        assert window.count == 2

    def test_learning_finds_what_was_simulated(self, rng):
        y = drawn(2500, rng)
        geometry = Geometry(np.arange(1, 60), np.arange(12))
        windows = cut_windows(y, np.arange(60, 2480, 12), geometry, 1, 0)
        start = KERNEL.clone_with_theta(KERNEL.theta + rng.normal(size=5))
        start = start.set_params(**{name: (1e-3, 1e3) for name in start.get_params() if name.endswith("_bounds")})
        found = learn_memory(start, windows)
        k = covariances(KERNEL, geometry.reach)
        assert found.score >= windows[0].score(k)[0] / windows[0].count - 1e-6
        errors = standard_errors(found.kernel, windows)
        off = np.abs(found.kernel.theta - KERNEL.theta)
        known = errors < 0.5
        assert known.sum() >= 2
        assert (off[known] < 5 * errors[known] + 0.05).all()

    def test_parts_keep_their_names(self):
        parts = memory_kernel(Memory(long=0.5), {"day": 24.0}, 24.0, 1.0)
        kernel = sum_of(list(parts.values()))
        assert parts_of(kernel, len(parts)) == list(parts.values())

    def test_old_lags_are_thinned(self):
        lags = past_lags(14 * 1440)
        assert len(lags) <= 672
        assert list(lags[:20]) == list(range(1, 21))
        assert (np.diff(lags) >= 1).all()
        assert lags[-1] > 0.9 * 14 * 1440


class TestCoefficients:
    def test_information_is_that_of_generalized_least_squares(self, rng):
        """One window with a weight of one: the posterior of a linear model with independent errors."""
        y, F = drawn(50, rng), rng.normal(size=(50, 3))
        geometry = Geometry(np.arange(1, 10), np.arange(4))
        seen = look_through(y, F, np.array([30]), geometry, covariances(KERNEL, geometry.reach))
        used = geometry.filter(covariances(KERNEL, geometry.reach))
        past, ahead = 30 - geometry.lags, 30 + geometry.steps
        G = F[ahead] - used.weights @ F[past]
        r = y[ahead] - used.weights @ y[past]
        precision = np.eye(3) / 2.0 + G.T @ (G / used.variance[:, None])
        found = Information.none(3, 2.0).plus(*seen.standardized(slice(0, 1))).estimate()
        np.testing.assert_allclose(found.mean, np.linalg.solve(precision, G.T @ (r / used.variance)), rtol=1e-8)
        np.testing.assert_allclose(found.covariance, np.linalg.inv(precision), rtol=1e-8)
        np.testing.assert_allclose(found.variance_of(G), np.diag(G @ np.linalg.inv(precision) @ G.T), rtol=1e-8)

    def test_forecasts_see_no_later_window(self, rng):
        y, F = drawn(300, rng), rng.normal(size=(300, 2))
        geometry, starts = Geometry(np.arange(1, 20), np.arange(6)), np.arange(30, 290, 6)
        k = covariances(KERNEL, geometry.reach)
        changed = y.copy()
        changed[200:] += 100.0
        (a,), _ = forecast_in_order(look_through(y, F, starts, geometry, k), 1.0, [1.0], 10, 1)
        (b,), _ = forecast_in_order(look_through(changed, F, starts, geometry, k), 1.0, [1.0], 10, 1)
        before = starts[10:] + 5 < 200
        np.testing.assert_array_equal(a.errors[before], b.errors[before])

    def test_every_step_is_seen_in_turn(self, rng):
        geometry = Geometry(np.arange(1, 5), np.arange(6))
        k = covariances(KERNEL, geometry.reach)
        seen = look_through(drawn(60, rng), np.ones((60, 1)), np.array([10, 20, 30]), geometry, k, stride=2)
        assert seen.steps.tolist() == [[0, 2, 4], [1, 3, 5], [0, 2, 4]]


class TestEffects:
    @pytest.fixture
    def timeline(self):
        return Timeline.of(pd.date_range("2024-03-01", periods=10, freq="h", tz="UTC"), "Europe/Stockholm")

    def test_the_clock_is_local_and_holidays_are_days(self, timeline):
        places = np.arange(24.0 * 60)
        clock = Clock.at(timeline, places, dates_of(["2024-03-29"]))
        local = timeline.stamps(places)
        np.testing.assert_allclose(clock.day * 24, local.hour)
        np.testing.assert_array_equal(clock.weekday, local.day_of_week)
        assert clock.is_holiday.sum() == 24
        assert (pd.DatetimeIndex(local[clock.is_holiday]).day == 29).all()
        assert len(np.unique(local)) == len(local)  # no instant twice where the clocks change

    def test_holidays_of_a_country(self):
        pytest.importorskip("holidays")
        found = holidays_of("AU-VIC", pd.Timestamp("2014-01-01"), pd.Timestamp("2014-12-31"))
        assert np.datetime64("2014-12-25") in found
        assert np.datetime64("2014-11-04") in found  # of that state only
        with pytest.raises(ValueError, match="found 'XX'"):
            holidays_of("XX", pd.Timestamp("2014-01-01"), pd.Timestamp("2014-12-31"))

    def test_they_are_smooth_and_of_unit_variance(self, timeline, rng):
        x = rng.uniform(-3, 3, 200)
        effect = Effect("x", "column", 1, column_knots(x))
        F = Effects([effect], timeline, dates_of([]))(np.column_stack([np.arange(200.0), x]))
        inside = np.abs(x) < 2.5
        np.testing.assert_allclose((F**2).sum(axis=1)[inside], 1.0, rtol=0, atol=0.15)
        day = Effects([Effect("day", "day")], timeline, dates_of([]))(np.arange(48.0)[:, None])
        np.testing.assert_allclose(day[:24], day[24:], rtol=0, atol=1e-10)
        np.testing.assert_allclose((day**2).sum(axis=1), 1.0, rtol=0, atol=0.05)

    def test_a_missing_column_has_no_effect(self, timeline):
        effect = Effect("x", "column", 1, np.linspace(0, 9, 10), by_hour=True)
        F = Effects([effect], timeline, dates_of([]))(np.array([[0.0, np.nan], [1.0, 5.0]]))
        assert not F[0].any()
        assert F[1].any()

    def test_histories_are_running_means_that_can_be_continued(self, rng):
        column = rng.normal(size=100)
        column[40:45] = np.nan
        whole = column_histories(column, 24.0)
        begun = column_histories(column[:60], 24.0)
        np.testing.assert_allclose(column_histories(column[60:], 24.0, begun[-1]), whole[60:])
        keep = np.exp(-1 / 24)  # of the mean over a day
        assert whole[31, 1] == pytest.approx(keep * whole[30, 1] + (1 - keep) * column[31])


class TestErrorScale:
    def test_the_density_is_scipys_and_its_derivatives_those_of_finite_differences(self, rng):
        z, log_scale = 3 * rng.standard_t(3, size=20), rng.normal(size=20)
        for log_df in np.log([[2.5], [8.0], [100.0]]):
            found, *slopes = scaled_t_log_density(z**2, log_scale, log_df)
            assert_allclose(found, stats.t.logpdf(z, np.exp(log_df), scale=np.exp(log_scale)), rtol=1e-9)
            for slope, step in zip(slopes, [(1e-6, 0.0), (0.0, 1e-6)], strict=True):
                ends = [
                    scaled_t_log_density(z**2, log_scale + side * step[0], log_df + side * step[1])[0]
                    for side in (1, -1)
                ]
                assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)

    def test_it_learns_scales_and_tails(self, rng):
        n = 24 * 400
        timeline = Timeline.of(pd.date_range("2024-01-01", periods=4, freq="h", tz="UTC"), None)
        clock = Clock.at(timeline, np.arange(float(n)), dates_of([]))
        situation = Situation(1.0 + np.arange(n) % 24, clock, np.ones((n, 3)))
        truth = np.exp(0.5 * np.cos(2 * np.pi * clock.day))
        z = truth * rng.standard_t(5, size=n)
        found = ErrorScale.learn(z, situation, 24, sub_daily=True, yearly=False, limited=False, overlap=1.0)
        np.testing.assert_allclose(found.factors(situation), truth, rtol=0.15)
        assert 3 < np.exp(found.log_df) < 9
        assert len(found.slopes) == found.n_features
        inside = np.abs(z) < found.factors(situation) * found.family.quantile(0.75)
        assert inside.mean() == pytest.approx(0.5, abs=0.02)

    def test_the_scale_of_a_short_series_follows_errors_that_change_from_year_to_year(self, rng):
        """Eight years teach it; the ninth is scored, with errors whose scale wanders by a fourth each year."""
        years, block = 8, 12
        timeline = Timeline.of(pd.date_range("2000-01-01", periods=4, freq="MS", tz="UTC"), None)
        clock = Clock.at(timeline, np.arange(float((years + 1) * block)), dates_of([]))
        steps = np.tile(1.0 + np.arange(block), years + 1)
        known = np.arange((years + 1) * block) < years * block
        gains = []
        for _ in range(60):
            truth = np.exp(np.cumsum(rng.normal(0, 0.25, size=years + 1)))
            z = np.repeat(truth, block) * rng.normal(size=(years + 1) * block)
            squares = (z.reshape(-1, block) ** 2).mean(axis=1)
            recent = recent_squares(squares, np.full(years + 1, float(block)), float(block))[:-1]
            situation = Situation(steps, clock, np.repeat(recent, block, axis=0))
            past, ahead = (
                Situation(steps[rows], clock.take(rows), situation.recent[rows]) for rows in (known, ~known)
            )
            scores = []
            for whole in (False, True):
                found = ErrorScale.learn(
                    z[known], past, block, sub_daily=False, yearly=False, limited=False, overlap=1.0, whole=whole
                )
                factors = found.factors(ahead)
                scores.append(np.mean(found.family.logpdf(z[~known] / factors) - np.log(factors)))
            gains.append(scores[1] - scores[0])
        assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(len(gains))

    def test_a_scale_known_from_few_errors_is_that_of_students_t(self, rng):
        """The next error, over the scale √(Σ z² / n) of n others, is inside its bands as often as it should be."""
        n, draws = 12, 20_000
        errors, following = rng.normal(size=(draws, n)), rng.normal(size=draws)
        error = np.abs(following) / np.sqrt((errors**2).mean(axis=1))
        known = ErrorScale(1.0, False, False, False, np.zeros(7), np.inf)
        for level in (0.5, 0.8, 0.95):
            limit = known.widened(float(n)).family.quantile(0.5 + level / 2)
            assert np.mean(error < limit) == pytest.approx(level, abs=0.01)
        assert type(known.widened(1e9).family) is type(known.family)

    def test_the_level_follows_a_change_that_lasts_and_no_other(self, rng):
        """Bands of errors that are half as large again for good end at their nominal coverage; others stay there."""
        block, horizons = 24, 400
        n = block * horizons
        known = ErrorScale(float(block), False, False, False, np.zeros(7), np.log(8.0))
        situation = self.situation(n, block)
        of = np.repeat(np.arange(horizons), block)
        late = of >= horizons // 2
        for change in (1.0, 1.5, 0.7):
            z = change * rng.standard_t(8, size=n)
            found = known.followed(z[~late], self.at(situation, ~late), of[~late], block)
            assert found.slopes[0] == pytest.approx(np.log(change), abs=0.1)
            assert found.slopes[0] != 0
            np.testing.assert_array_equal(found.slopes[1:], known.slopes[1:])
            factors = found.factors(self.at(situation, late))
            for level in (0.5, 0.8, 0.95):
                inside = np.abs(z[late]) < factors * found.family.quantile(0.5 + level / 2)
                assert inside.mean() == pytest.approx(level, abs=0.05)

    def test_the_level_after_two_horizons_is_that_of_one_after_the_other(self, rng):
        known = ErrorScale(24.0, True, False, False, 0.1 * rng.normal(size=13), np.log(5.0))
        situation, of, z = self.situation(48, 24), np.repeat([0, 1], 24), 3 * rng.normal(size=48)
        both = known.followed(z, situation, of, 24)
        one = known.followed(z[:24], self.at(situation, of == 0), of[:24], 24)
        two = one.followed(z[24:], self.at(situation, of == 1), of[24:], 24)
        np.testing.assert_allclose(both.slopes, two.slopes, rtol=1e-12)
        assert both.slopes[0] > known.slopes[0]

    def test_windows_that_overlap_or_skip_steps_teach_the_level_as_much_as_horizons(self, rng):
        """Four windows for each horizon, or a fourth of the steps of each: the same errors, the same level."""
        known = ErrorScale(24.0, False, False, False, np.zeros(7), np.log(8.0))
        z = 2 * rng.standard_t(8, size=24 * 20)
        of = np.repeat(np.arange(20), 24)
        level = known.followed(z, self.situation(len(z), 24), of, 24).slopes[0]
        again, whole = np.repeat(z.reshape(20, 24), 4, axis=0).ravel(), np.repeat(np.arange(80), 24)
        overlapping = known.followed(again, self.situation(len(again), 24), whole, 24 * 4).slopes[0]
        some = np.arange(len(z)) % 4 == 0
        skipping = known.followed(z[some], self.situation(some.sum(), 24), of[some], 6).slopes[0]
        assert overlapping == pytest.approx(level, rel=0.05)
        assert skipping == pytest.approx(level, abs=0.15)

    @pytest.mark.parametrize(("error", "level"), [(1e9, 1.0), (0.0, -1.0)])
    @pytest.mark.parametrize("log_df", [np.log(4.0), np.log(100.0), 800.0, np.inf])
    def test_absurd_errors_move_the_level_within_limits_in_one_part_or_many(self, error, level, log_df):
        known = ErrorScale(24.0, False, False, False, np.zeros(7), log_df)
        situation, of = self.situation(24 * 90, 24), np.repeat(np.arange(90), 24)
        z = np.full(len(of), error)
        found = known.followed(z, situation, of, 24)
        assert found.slopes[0] == pytest.approx(level)
        parts = known
        for one in range(90):
            parts = parts.followed(z[of == one], self.at(situation, of == one), of[of == one], 24)
        np.testing.assert_allclose(parts.slopes, found.slopes, rtol=1e-12)
        first = known.followed(z[:24], self.at(situation, of == 0), of[:24], 24).slopes[0]
        assert 0 < first / level < 0.5
        beyond = replace(known, slopes=np.full(7, 3.0 * level))  # of a file: it only comes nearer
        assert abs(beyond.followed(z, situation, of, 24).slopes[0]) <= 3.0

    @staticmethod
    def situation(n, block):
        timeline = Timeline.of(pd.date_range("2024-01-01", periods=4, freq="h", tz="UTC"), None)
        clock = Clock.at(timeline, np.arange(float(n)), dates_of([]))
        return Situation(1.0 + np.arange(n) % block, clock, np.ones((n, 3)))

    @staticmethod
    def at(situation, rows):
        return Situation(situation.steps[rows], situation.clock.take(rows), situation.recent[rows])

    def test_recent_errors_are_running_means(self):
        squares, counts = np.array([4.0, 0.0, 1.0]), np.array([24.0, 0.0, 24.0])
        found = recent_squares(squares, counts, 24.0, np.ones(3))
        gain = 1 - np.exp(-1 / np.array([1.0, 7.0, 28.0]))
        np.testing.assert_allclose(found[1], 1 + 3 * gain)
        np.testing.assert_allclose(found[2], found[1])  # nothing was observed
        assert (found[3] <= found[1]).all()


def monthly(n=120):
    index = pd.date_range("2010-01-01", periods=n, freq="MS")
    rng = np.random.default_rng(3)
    return pd.Series(100 + 10 * np.sin(2 * np.pi * np.arange(n) / 12) + rng.normal(size=n), index=index)


def test_months_are_forecast_by_the_calendar():
    model = CompositeGPForecaster(None, search=False).fit(monthly())
    forecast = model.predict(12)
    assert list(forecast.index.strftime("%Y-%m-%d")[:3]) == ["2020-01-01", "2020-02-01", "2020-03-01"]
    truth = 100 + 10 * np.sin(2 * np.pi * np.arange(120, 132) / 12)
    assert np.abs(forecast["mean"] - truth).max() < 2.5


def test_business_days_have_no_weekends():
    index = pd.bdate_range("2023-01-02", periods=200)
    rng = np.random.default_rng(0)
    series = pd.Series(rng.normal(size=200).cumsum(), index=index)
    forecast = CompositeGPForecaster(None, search=False).fit(series).predict(10)
    assert (forecast.index.day_of_week < 5).all()
    assert (forecast.index == pd.bdate_range(index[-1], periods=11)[1:]).all()


def test_minutes_over_days_need_no_dense_covariance():
    index = pd.date_range("2024-01-01", periods=1440 * 6, freq="min")
    rng = np.random.default_rng(0)
    values = np.sin(2 * np.pi * np.arange(len(index)) / 1440) + 0.1 * rng.normal(size=len(index))
    model = CompositeGPForecaster(None, search=False).fit(pd.Series(values, index))
    forecast = model.predict("3D")
    assert len(forecast) == 3 * 1440
    truth = np.sin(2 * np.pi * np.arange(3 * 1440) / 1440)
    assert np.sqrt(np.mean((forecast["mean"] - truth) ** 2)) < 0.2


def test_holidays_change_the_forecast():
    index = pd.date_range("2024-01-01", periods=24 * 70, freq="h", tz="Europe/Stockholm")
    rng = np.random.default_rng(0)
    closed = pd.DatetimeIndex(["2024-01-10", "2024-01-24", "2024-02-07", "2024-02-21", "2024-03-11"])
    is_closed = index.tz_localize(None).normalize().isin(closed)
    series = pd.Series(10 - 5.0 * is_closed + 0.3 * rng.normal(size=len(index)), index=index)
    model = CompositeGPForecaster(None, holidays=closed, search=False).fit(series)
    forecast = model.predict("24h")  # of 2024-03-11
    assert forecast.index[0].day == 11
    assert forecast["mean"].mean() < 8.0
    assert CompositeGPForecaster(None, search=False).fit(series).predict("24h")["mean"].mean() > 9.0


def test_the_transform_is_chosen_by_the_log_score(rng):
    index = pd.date_range("2024-01-01", periods=24 * 25, freq="h")
    daily = np.sin(2 * np.pi * np.arange(len(index)) / 24)
    noise = 0.3 * rng.normal(size=len(index))
    grown = CompositeGPForecaster(search=False).fit(pd.Series(np.exp(3 + 2 * daily + 3 * noise), index))
    plain = CompositeGPForecaster(search=False).fit(pd.Series(20 + daily + noise, index))
    assert grown.target_transform_ == "log"
    assert plain.target_transform_ != "log"


def test_counts_with_zeros_are_forecast_on_the_scale_of_roots(rng):
    index = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
    level = np.convolve(rng.normal(size=len(index) + 47), np.ones(48) / 7, "valid")  # changes over two days
    rate = np.exp(1.5 + 1.5 * np.sin(2 * np.pi * np.arange(len(index)) / 24) + 0.4 * level)
    counts = pd.Series(rng.poisson(rate).astype(float), index)
    assert 0.03 < (counts == 0).mean() < 0.2
    model = CompositeGPForecaster(search=False).fit(counts)
    assert model.target_transform_ == "sqrt"  # by which the variance of a Poisson distribution is constant
    assert (model.predict("24h", quantiles=[0.01])["q0.01"] >= 0).all()
    below = counts - 1.0
    assert CompositeGPForecaster(search=False).fit(below).target_transform_ is None


class TestPastForecasts:
    """By which scales are compared: log scores, and CRPS where these say the same."""

    @staticmethod
    def of(mean, observed, origins):
        made = PredictiveDistribution(
            np.broadcast_to(mean, observed.shape), np.ones(len(observed)), IdentityTarget()
        )
        return PastForecasts(made, observed, origins, 1.0)

    def test_errors_of_a_horizon_are_one_error(self, rng):
        """Forecasts that are worse in one of two horizons are not known to be worse, however long the horizons are."""
        origins = np.repeat(np.arange(2), 500)
        observed = np.where(origins == 0, 0.0, 1.0) + 0.01 * rng.normal(size=1000)
        low, high = self.of(0.4, observed, origins), self.of(0.5, observed, origins)
        behind = high.log_scores - low.log_scores
        assert 0 < behind.mean() < low.standard_error(behind)
        many = np.repeat(np.arange(500), 2)
        low, high = (self.of(mean, 1.0 + 0.01 * rng.normal(size=1000), many) for mean in (0.4, 0.5))
        behind = high.log_scores - low.log_scores
        assert behind.mean() > 10 * low.standard_error(behind)

    @pytest.mark.parametrize("transform", [IdentityTarget(), PowerTarget(0.5), LogTarget()])
    def test_the_crps_is_that_of_the_distribution_at_every_hour(self, rng, transform):
        """Errors are small at one hour of each day: a sample of that hour alone would say that all of them are."""
        n = 24 * 400
        location = np.full(n, 3.0)
        errors = np.where(np.arange(n) % 24 == 0, 0.0, 0.5) * rng.normal(size=n)
        made = PredictiveDistribution(location, np.full(n, 0.5), transform)
        past = PastForecasts(made, transform.inverse(location + errors), np.repeat(np.arange(400), 24), 1.0)
        assert_allclose(past.crps.mean(), made.crps(past.observed).mean(), rtol=0.01)

    def test_a_zero_has_the_probability_of_a_value_that_is_no_larger_than_the_least(self, rng):
        """Against the share of draws: the density of a root is infinite at zero."""
        observed, drawn = np.array([0.0, 2.0]), 1.2 + 0.8 * rng.normal(size=200_000)
        made = PredictiveDistribution(np.full(2, 1.2), np.full(2, 0.8), PowerTarget(0.5))
        past = PastForecasts(made, observed, np.arange(2), 1.0, least=0.25)
        share = np.mean(np.maximum(drawn, 0) ** 2 <= 0.25)
        assert_allclose(past.log_scores[0], np.log(share), atol=0.02)
        assert_allclose(past.log_scores[1], made.logpdf(observed)[1], rtol=1e-12)

    @staticmethod
    def compared(observed, *normals):
        """Candidates whose forecasts have these means and standard deviations."""
        found, origins = [], np.repeat(np.arange(len(observed) // 10), 10)
        for mean, scale in normals:
            made = PredictiveDistribution(*(np.full(len(observed), one) for one in (mean, scale)), IdentityTarget())
            past = PastForecasts(made, observed, origins, 1.0)
            found.append(SimpleNamespace(score=float(past.log_scores.mean()), past=past))
        return found

    def test_of_scales_that_score_alike_the_first_is_taken(self, rng):
        observed = rng.normal(size=200)
        observed -= observed.mean()
        low, high, wrong = self.compared(observed, (-0.1, 1.0), (0.1, 1.0), (3.0, 1.0))
        assert _best_scale([low, high, wrong]) is low
        assert _best_scale([wrong, high, low]) is high

    def test_of_scales_with_about_the_same_log_score_the_least_crps_counts(self, rng):
        """A few values that are far away make log scores uncertain; the CRPS tells the scales apart all the same."""
        observed = rng.normal(size=2000)
        observed[::60] = 12.0
        wide, narrow = self.compared(observed, (0.0, 3.0), (0.0, 1.2))
        behind = wide.past.log_scores - narrow.past.log_scores
        assert 0 < behind.mean() < 2 * wide.past.standard_error(behind)
        assert _best_scale([wide, narrow]) is narrow


@pytest.mark.parametrize("name", [None, "sqrt", "fourth_root", "log"])
def test_every_scale_is_kept_in_files_and_said_in_words(name, tmp_path, rng):
    index = pd.date_range("2024-01-01", periods=120, freq="h")
    y = pd.Series(10 + np.sin(np.arange(120) / 24 * 2 * np.pi) + 0.1 * rng.normal(size=120), index=index)
    model = CompositeGPForecaster(name, n_neighbors=64, search=False).fit(y)
    assert model.target_transform_ == name
    model.save(tmp_path / "model.cgp")
    loaded = CompositeGPForecaster.load(tmp_path / "model.cgp")
    assert loaded.target_transform_ == name
    pd.testing.assert_frame_equal(loaded.predict(6), model.predict(6))
    words = {None: "as it is", "sqrt": "square root", "fourth_root": "fourth root", "log": "logarithm"}
    assert f"scale of the target: {words[name]};" in model.describe()[-1]


def test_cross_validation_is_the_backtest_as_a_tidy_table():
    series = monthly()
    table = pd.DataFrame({"ds": series.index, "y": series.to_numpy(), "unique_id": "a"})
    forecaster = CompositeGPForecaster(None, search=False)
    found = cross_validation(forecaster, table, 6, 3, quantiles=[0.25, 0.75])
    done = backtest(forecaster, series, 6, 3)
    assert list(found.columns) == ["unique_id", "ds", "cutoff", "y", "mean", "q0.25", "q0.75"]
    np.testing.assert_allclose(found["mean"], done.forecasts["mean"])
    np.testing.assert_allclose(found["q0.25"], done.forecasts["q0.25"])
    assert (found["cutoff"] < found["ds"]).all()
    assert found["cutoff"].nunique() == 3
    by_step = done.by(done.forecasts["step"])
    assert list(by_step.index) == [1, 2, 3, 4, 5, 6]
    assert done.forecasts["PIT"].between(0, 1).all()
    with pytest.raises(ValueError, match="df must have the column 'ds'"):
        cross_validation(forecaster, table.drop(columns="ds"), 6)


def test_a_backtest_may_learn_anew():
    series = monthly()
    forecaster = CompositeGPForecaster(None, search=False)
    again = backtest(forecaster, series, 6, 3, refit_every=2)
    fitted = forecaster.set_params(horizon=6).fit(series[:-6]).predict(6)
    np.testing.assert_allclose(again.forecasts["mean"][-6:], fitted["mean"])
    with pytest.raises(ValueError, match="refit_every"):
        backtest(forecaster, series, 6, 3, refit_every=0)


def test_windows_count_only_what_was_observed():
    windows = Windows(
        Geometry(np.array([1]), np.array([0, 1])), np.ones((1, 2)), np.array([[1.0, np.nan], [2.0, 3.0]])
    )
    assert windows.count == 3


def test_every_effect_but_the_level_may_be_left_out_and_a_column_with_its_history():
    named = {"level": "level", "trend": "trend", "day": "day", "heat": "column", "wind": "column"}
    before = [Effect(name, "column") for name in history_names("heat")]
    effects = [Effect(name, kind) for name, kind in named.items()] + before
    candidate = Candidate(IdentityTarget(), effects, Memory())
    found = dict(_without_effects(candidate, {"heat": before}, ["day"]))
    assert list(found) == ["without trend", "without heat", "without wind"]
    left = {name: {one.name for one in change.effects} for name, change in found.items()}
    everything = {one.name for one in effects}
    assert everything - left["without heat"] == {"heat", *history_names("heat")}
    assert everything - left["without wind"] == {"wind"}


def test_to_leave_out_a_column_costs_what_it_says(rng):
    index = pd.date_range("2024-01-01", periods=24 * 40, freq="h")
    daily = np.sin(2 * np.pi * np.arange(len(index)) / 24)
    X = pd.DataFrame({"heat": rng.normal(size=len(index)), "nothing": rng.normal(size=len(index))}, index=index)
    y = pd.Series(daily + 2 * X["heat"] + 0.3 * rng.normal(size=len(index)), index)
    model = CompositeGPForecaster(None).fit(y, X)
    gains = {note.split(":")[0]: float(note.split(":")[1].split()[0]) for note in model.notes_ if "without" in note}
    assert gains["without heat"] < -0.5
    assert gains["without nothing"] > -0.05
