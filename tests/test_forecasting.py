"""The forecaster: time zones, gaps, seasons, updates and files, against the functions below it and simulated series."""

import copy
import datetime
import sys
import tracemalloc
import types
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from compositegp import Composite, posterior
from compositegp.datasets import nox_emissions
from compositegp.forecasting import (
    CompositeGPForecaster,
    Timeline,
    backtest,
    given_seasons,
    in_utc,
    observe,
)
from compositegp.forecasting.stored_series import from_values, to_values


def make_series(n=24 * 35, freq="h", tz=None, seed=0, start="2024-02-20", log=False):
    index = pd.date_range(start, periods=n, freq=freq, tz=tz)
    rng = np.random.default_rng(seed)
    hours = (index - index[0]) / pd.Timedelta(hours=1)
    red = np.zeros(n)
    for i in range(1, n):
        red[i] = 0.8 * red[i - 1] + 0.3 * rng.normal()
    values = 3 + np.sin(2 * np.pi * hours / 24) + 0.5 * np.sin(2 * np.pi * hours / 168) + red
    return pd.Series(np.exp(values) if log else np.asarray(values), index=index)


@pytest.fixture(scope="module")
def series():
    return make_series()


@pytest.fixture(scope="module")
def model(series):
    return CompositeGPForecaster(None, search=False).fit(series)


class TestTimeline:
    def test_the_most_common_difference_is_the_step(self):
        index = pd.date_range("2024-03-01 05:00", periods=10, freq="15min", tz="UTC").delete([3, 4])
        timeline = Timeline.of(index, None)
        assert timeline.step == pd.Timedelta(minutes=15)
        assert list(timeline.places(index)[:4]) == [0.0, 1.0, 2.0, 5.0]
        assert list(timeline.stamps([0, 1])) == list(pd.to_datetime(["2024-03-01 05:00", "2024-03-01 05:15"]))

    @pytest.mark.parametrize("horizon", [0, "-3"])
    def test_a_horizon_of_months_has_a_step_at_least(self, horizon):
        timeline = Timeline.of(pd.date_range("2024", periods=5, freq="MS", tz="UTC"), None)
        with pytest.raises(ValueError, match=f"whole number of steps, at least one; found {int(horizon)}"):
            timeline.steps(horizon)

    def test_durations_are_whole_steps(self):
        timeline = Timeline.of(pd.date_range("2024", periods=5, freq="h", tz="UTC"), None)
        assert timeline.steps("24h") == timeline.steps(24) == timeline.steps(pd.Timedelta(days=1)) == 24
        for wrong in ("90min", "0h", "tomorrow", 0, -3, 2.5):
            with pytest.raises(ValueError, match="horizon"):
                timeline.steps(wrong)

    def test_steps_that_are_all_different_have_their_median(self, rng):
        index = pd.DatetimeIndex(
            pd.Timestamp("2024", tz="UTC") + pd.to_timedelta(np.arange(500) * 3600.0, unit="s")
        )
        shaken = (index + pd.to_timedelta(rng.uniform(0, 50, 500), unit="us")).sort_values()
        assert Timeline.of(shaken, None).step == pd.Timedelta(hours=1)

    @pytest.mark.parametrize(
        ("freq", "zone", "unit"),
        [
            ("MS", None, "month"),
            ("ME", None, "month end"),
            ("QS", "Europe/Stockholm", "month"),
            ("YS", None, "month"),
            ("B", None, "business day"),
            ("D", "Australia/Melbourne", "day"),
            ("7D", None, "time"),
        ],
    )
    def test_steps_of_the_calendar_differ_in_length(self, freq, zone, unit):
        index = pd.date_range("2020-01-01", periods=300 if freq in "BD" else 40, freq=freq, tz=zone)
        timeline = Timeline.of(in_utc(index), zone)
        assert timeline.unit == unit
        np.testing.assert_array_equal(timeline.places(in_utc(index)), np.arange(len(index)))
        assert (timeline.stamps(np.arange(len(index))) == index).all()
        assert Timeline.from_dict(timeline.to_dict()) == timeline
        if unit in ("month", "business day"):
            with pytest.raises(ValueError, match="must be a number of steps"):
                timeline.steps("30D")

    @pytest.mark.parametrize("step", ["7min", "333ms", "36h"])
    def test_odd_steps_keep_their_times(self, step):
        index = pd.date_range("2024-01-01 00:00:30", periods=1000, freq=step, tz="UTC")
        timeline = Timeline.of(index, None)
        assert (timeline.stamps(timeline.places(index)) == index.tz_localize(None).round("us")).all()

    def test_daylight_saving_is_counted_in_utc(self):
        index = pd.date_range("2024-03-30", "2024-04-01", freq="h", tz="Europe/Stockholm")
        series = pd.Series(1.0, index=index)
        places = Timeline.of(observe(series).stamps, "Europe/Stockholm").places(observe(series).stamps)
        np.testing.assert_allclose(np.diff(places), 1.0)
        assert len(index) == 48  # and not 49: the clock skips an hour

    def test_missing_values_and_gaps_are_noted_and_left_out(self):
        series = make_series(100)
        series.iloc[[5, 6]] = np.nan
        series = series.drop(series.index[20:30])
        seen = observe(series.sample(frac=1.0, random_state=0))  # in any order
        assert len(seen.values) == 88
        assert (np.diff(seen.stamps.asi8) > 0).all()
        assert any("2 of 90 values are missing" in note for note in seen.notes)
        assert any("2 gaps, 12 steps in all" in note for note in seen.notes)

    @pytest.mark.parametrize(("what", "value"), [("mean", 15.0), ("last", 20.0)])
    def test_duplicates_are_merged_or_refused(self, what, value):
        series = pd.Series([1.0, 10.0, 20.0], index=pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"]))
        assert observe(series, duplicates=what).values[1] == value
        with pytest.raises(ValueError, match="occur more than once, the first 2024-01-02"):
            observe(series)


def test_seasons_named_by_the_user_are_taken(series):
    found = given_seasons(["week", "12h"], pd.Timedelta(hours=1))
    assert [season.period for season in found] == [12.0, 168.0]
    for wrong in (["fortnight"], ["1h"]):
        with pytest.raises(ValueError, match="season"):
            given_seasons(wrong, pd.Timedelta(hours=1))
    model = CompositeGPForecaster(None, seasons=["12h", "day"], search=False).fit(series)
    assert [season.name for season in model.seasons_] == ["12h", "day"]
    assert {"12h", "day"} <= set(model.effects_)
    assert "12h pattern" in model.parts_


def test_five_business_days_are_a_week():
    index = pd.bdate_range("2020-01-01", periods=300)
    rng = np.random.default_rng(0)
    fridays = np.linspace(0, 6, 300) * (index.day_of_week == 4)  # a pattern that changes
    series = pd.Series(10 + fridays + 0.2 * rng.normal(size=300), index)
    model = CompositeGPForecaster(None, seasons=["week", "28D"], search=False).fit(series)
    assert [(season.name, season.period) for season in model.seasons_] == [("week", 5.0), ("28D", 20.0)]
    periods = [value for name, value in model.kernel_.get_params().items() if name.endswith("periodicity")]
    assert sorted(periods) == [5.0, 20.0]
    expected = {name: pd.Timedelta(days=days) / model.timeline_.mean_step for name, days in (("year", 365.25),)}
    assert expected["year"] == pytest.approx(365.25 * 5 / 7)
    done = backtest(CompositeGPForecaster(None, seasons=["week"], search=False), series, 5, 4, refit_every=None)
    assert done.scores.loc["decomposition", "RMSE"] < 0.5  # of a pattern of seven steps it is one
    assert done.scores.loc["seasonal naive", "RMSE"] < 0.5


def test_a_scale_that_was_chosen_is_chosen_anew_where_it_has_not_all_values():
    index = pd.date_range("2024-01-01", periods=24 * 10, freq="h")
    noise = np.random.default_rng(0).normal(size=len(index))
    series = pd.Series(np.exp(1 + np.sin(2 * np.pi * np.arange(len(index)) / 24) + 0.8 * noise), index)
    chosen = CompositeGPForecaster(seasons=["day"], search=False)
    model = clone(chosen).set_params(horizon="24h").fit(series[:-48])
    assert model.target_transform_ is not None
    changed = series.copy()
    changed.iloc[-30] = -1.0
    assert not model.takes(changed.to_numpy())
    assert model.takes(series.to_numpy())
    with pytest.raises(ValueError, match="-1.*The model chose the .* when there were no such values: fit it anew"):
        model.update(changed[-48:])
    done = backtest(chosen, changed, "24h", 2, refit_every=None)
    row = done.forecasts.loc[changed.index[-30]]
    draws = model.predict_distribution(24).sample(20_000, random_state=0)[18]
    expected = np.mean(draws + 1) - 0.5 * np.mean(np.abs(draws - np.roll(draws, 1)))  # E|x − y| − ½ E|x − x′|
    assert row["CRPS"] == pytest.approx(expected, rel=0.05)
    assert row["PIT"] == 0
    plain = clone(chosen).set_params(horizon="24h").fit(changed[:-24])
    assert plain.target_transform_ is None
    np.testing.assert_allclose(done.forecasts["mean"][-24:], plain.predict(24)["mean"])
    with pytest.raises(ValueError, match="not positive, the first -1"):
        backtest(CompositeGPForecaster("log", seasons=["day"], search=False), changed, "24h", 2, refit_every=None)


def test_a_forecast_is_an_exact_gp_on_the_latest_observations(model, series):
    """The same as `posterior` with the learned kernel and mean, up to the scale that past errors teach."""
    latest = model.observations_["value"]
    X = model.timeline_.places(in_utc(latest.index))[:, None]
    Z = X[-1] + 1 + np.arange(12.0)[:, None]
    belief = posterior(model.kernel_, X, latest.to_numpy(), Z, Composite.full(len(X)), mean=model.mean_)
    found = model.predict_distribution(12)
    np.testing.assert_allclose(found.location, belief.mean, rtol=1e-6)
    covariance = belief.covariance + model.parts_["noise"].noise_level * np.eye(12)
    factors = found.scale / np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(found.covariance, covariance * np.outer(factors, factors), rtol=1e-4)
    alone = model.predict_distribution(12, joint=False)
    np.testing.assert_allclose(alone.scale, found.scale, rtol=1e-6)
    latent = model.predict_distribution(12, latent=True)
    np.testing.assert_allclose(latent.scale, factors * np.sqrt(belief.variance), rtol=1e-4)
    forecast = model.predict(12)
    assert forecast.index[0] == series.index[-1] + pd.Timedelta(hours=1)
    assert (forecast["q0.025"] < forecast["q0.5"]).all()


def test_memory_is_linear_in_the_horizon(model):
    """Marginals are those of the joint forecast, without its matrix of 5,000² numbers (200 MB)."""
    joint, alone = model.predict_distribution(1500), model.predict(1500)
    np.testing.assert_allclose(alone["mean"], joint.mean, rtol=1e-10)
    np.testing.assert_allclose(alone["std"], joint.std, rtol=1e-10)
    tracemalloc.start()
    try:
        assert len(model.predict(5000)) == 5000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6


def test_nanoseconds_are_kept():
    stamps = pd.to_datetime(1_700_000_000_000_000_000 + 100 * np.arange(50), unit="ns", utc=True)
    timeline = Timeline.of(stamps, None)
    assert list(timeline.stamps(timeline.places(stamps)).tz_localize("UTC")) == list(stamps)
    assert timeline.steps("1us") == 10


def test_what_was_learned_can_be_read(model, series):
    assert [season.name for season in model.seasons_] == ["day", "week"]
    assert model.timeline_.step == pd.Timedelta(hours=1)
    assert model.theta_standard_errors_.shape == model.kernel_.theta.shape
    assert model.last_ == series.index[-1]
    assert model.target_transform_ is None
    assert list(model.parts_)[-1] == "noise"
    assert sum(len(part.theta) for part in model.parts_.values()) == len(model.kernel_.theta)
    assert model.effects_["day"].stop <= len(model.mean_.coefficients)
    assert any("day pattern" in line for line in model.describe())
    for name in ("kernel_", "mean_", "seasons_", "timeline_", "notes_", "last_", "observations_", "parts_"):
        with pytest.raises(NotFittedError):
            getattr(CompositeGPForecaster(), name)


def test_a_series_that_was_checked_is_not_checked_again(monkeypatch):
    series = make_series(24 * 8)
    seen = observe(series)
    plain = CompositeGPForecaster(None, search=False).fit(series).predict(3)
    monkeypatch.setattr("pandas.to_numeric", None)  # by which observe reads a series
    pd.testing.assert_frame_equal(CompositeGPForecaster(None, search=False).fit(seen).predict(3), plain)
    assert len(backtest(CompositeGPForecaster(None, search=False), seen, "12h", 2).forecasts) == 24
    with pytest.raises(ValueError, match="X is not needed"):
        observe(seen, pd.DataFrame())


def test_a_table_of_one_column_is_a_series():
    series = pd.Series([1.0, 2.0], pd.to_datetime(["2024-01-01", "2024-01-02"]), name="nox")
    np.testing.assert_array_equal(observe(series.to_frame()).values, observe(series).values)
    with pytest.raises(ValueError, match="must be a pandas Series with a DatetimeIndex; found DataFrame"):
        observe(pd.DataFrame({"a": series, "b": series}))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (pd.RangeIndex(2), r"found Series with a RangeIndex\. Use pandas\.Series\("),
        (
            pd.period_range("2024", periods=2, freq="M"),
            r"found Series with a PeriodIndex\. Use series\.to_timestamp\(\)",
        ),
    ],
)
def test_an_index_that_is_no_time_is_named_with_its_remedy(index, words):
    with pytest.raises(ValueError, match=words):
        observe(pd.Series([1.0, 2.0], index))


def test_infinite_values_are_not_called_missing_alone():
    series = pd.Series([1.0, np.inf, np.nan, 2.0], pd.date_range("2024", periods=4))
    assert "2 of 4 values are missing or infinite" in observe(series).notes


def test_times_of_a_zone_come_back_in_it():
    series = make_series(24 * 30, tz="Europe/Stockholm", start="2024-03-01")
    forecast = CompositeGPForecaster(None, search=False).fit(series).predict("48h")
    assert str(forecast.index.tz) == "Europe/Stockholm"
    assert (np.diff(forecast.index.asi8) == np.diff(forecast.index.asi8)[0]).all()  # across the change of the clock


@pytest.mark.parametrize("log", [False, True])
def test_intervals_cover_and_simple_forecasts_are_beaten(log):
    series = make_series(24 * 70, seed=4, log=log)
    done = backtest(CompositeGPForecaster("log" if log else None, search=False), series, "24h", 14)
    ours = done.scores.loc["compositegp, mean"]
    assert 0.88 < ours["coverage 95 %"] < 0.99
    assert ours["RMSE"] < done.scores.loc["seasonal naive", "RMSE"]
    assert ours["RMSE"] < done.scores.loc["persistence", "RMSE"]
    assert len(done.forecasts) == 14 * 24
    if log:
        assert done.forecasts["q0.025"].min() > 0


def test_a_value_at_the_end_of_a_band_is_inside():
    """At night the sun is a zero, and so is the lower end of a band under a root."""
    hours, index = np.arange(24 * 40), pd.date_range("2024-01-01", periods=24 * 40, freq="h")
    strength = np.repeat(np.random.default_rng(0).uniform(0.3, 1, size=40), 24)
    sun = pd.Series(np.maximum(0.0, np.sin(2 * np.pi * hours / 24 - 1.6)) * 100 * strength, index)
    done = backtest(CompositeGPForecaster("sqrt", search=False), sun, "24h", 7, refit_every=None)
    table, y = done.forecasts, done.forecasts["observed"]
    assert (table["q0.25"] == y).any()
    for low, high, name in (("q0.25", "q0.75", "50 %"), ("q0.1", "q0.9", "80 %"), ("q0.025", "q0.975", "95 %")):
        inside = y.between(table[low], table[high]).mean()
        assert done.scores.loc["compositegp, mean", f"coverage {name}"] == inside
        if name != "80 %":
            whole = done.by(np.zeros(len(table)))
            assert whole[f"coverage {name}"].item() == inside


@pytest.mark.slow
def test_a_real_series_is_forecast_with_intervals_that_cover():
    series = nox_emissions()
    assert len(series) == 8088
    done = backtest(CompositeGPForecaster("log"), series, "24h", 100)
    ours = done.scores.loc["compositegp, mean"]
    assert 0.90 < ours["coverage 95 %"] < 0.98
    assert ours["RMSE"] < 0.8 * done.scores.loc["seasonal naive", "RMSE"]


def test_simple_forecasts_do_not_depend_on_what_the_model_keeps():
    """The season of a random walk is left out of the model, and is still what a seasonal naive forecast takes."""
    index = pd.date_range("2010-01-01", periods=120, freq="MS")
    series = pd.Series(np.random.default_rng(1).normal(size=120).cumsum(), index)
    done = backtest(CompositeGPForecaster(None, search=False), series, 12, 2, refit_every=None)
    np.testing.assert_array_equal(done.forecasts["seasonal naive"], series[-36:-12])
    assert {"seasonal naive", "decomposition"} <= set(done.scores.index)
    days = backtest(CompositeGPForecaster(None, search=False), make_series(24 * 9), 12, 1, refit_every=None)
    np.testing.assert_array_equal(days.forecasts["seasonal naive"], make_series(24 * 9)[-36:-24])


def test_a_backtest_sees_no_future(series):
    """What comes after the last origin may change at will without changing its forecast."""
    changed = series.copy()
    changed.iloc[-24:] += 1000.0
    a, b = (
        backtest(CompositeGPForecaster(None, search=False), s, "24h", 1).forecasts["mean"]
        for s in (series, changed)
    )
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="too few"):
        backtest(CompositeGPForecaster(None, search=False), series, "24h", 40)


def test_updates_are_a_longer_series_with_the_same_hyper_parameters(series):
    model = CompositeGPForecaster(None, n_neighbors=200, search=False).fit(series[:-48])
    kernel = model.kernel_
    for start in (-48, -24):
        model.update(series[start : start + 24 or None])
    latest = model.observations_["value"]
    assert 150 < len(latest) <= 200
    np.testing.assert_array_equal(latest, series[latest.index])
    assert model.kernel_ == kernel
    assert model.last_ == series.index[-1]


def saved(model, folder):
    """What a file of the model holds."""
    model.save(folder / "saved.cgp")
    with zipfile.ZipFile(folder / "saved.cgp") as archive:
        return tuple(archive.read(name) for name in sorted(archive.namelist()))


@pytest.mark.parametrize("gap", [0, 60, 100, 200])
def test_it_does_not_matter_in_how_many_parts_rows_arrive(rng, tmp_path, gap):
    index = pd.date_range("2024-02-01", periods=520, freq="h")
    y = pd.Series(10 + rng.normal(size=520), index)
    y.iloc[250 : 250 + gap] = np.nan
    y.iloc[120 + rng.choice(400, 30, replace=False)] = np.nan
    averaged = gap == 60
    forecaster = CompositeGPForecaster(None, n_neighbors=200, history=150, search=False, theta_uncertainty=averaged)
    fitted = forecaster.fit(y[:120])
    found = set()
    for size in (7, 400) if averaged else (1, 7, 50, 400):
        model = copy.deepcopy(fitted)
        for start in range(120, 520, size):
            part = y[start : start + size].dropna()
            if len(part):
                model.update(part)
        found.add(saved(model, tmp_path))
    assert len(found) == 1


def test_bands_of_a_series_that_became_noisier_end_at_their_nominal_coverage(rng):
    """Its noise doubles: recent errors alone leave bands too narrow; the level of their scale makes up for it."""
    n, day = 24 * 200, 24
    index = pd.date_range("2024-01-01", periods=n, freq="h")
    noise = np.where(np.arange(n) < n // 2, 1.0, 2.0) * rng.normal(size=n)
    y = pd.Series(np.sin(2 * np.pi * np.arange(n) / day) + noise, index)
    found = CompositeGPForecaster(None, n_neighbors=100, search=False).fit(y[: n // 2])
    before = found._series.scale.slopes[0]
    inside = {0.5: [], 0.95: []}
    for start in range(n // 2, n, day):
        ahead = found.predict_distribution(horizon="24h")
        for level, hits in inside.items():
            lower, upper = ahead.interval(level)
            hits.append((y[start : start + day] > lower) & (y[start : start + day] < upper))
        found.update(y[start : start + day])
    assert found._series.scale.slopes[0] > before + 0.1
    for level, hits in inside.items():
        assert np.mean(hits[40:]) == pytest.approx(level, abs=0.04)


def test_what_is_far_ahead_is_refused_and_nothing_is_lost(series):
    model = CompositeGPForecaster(None, search=False, n_neighbors=200).fit(series[:-30])
    last, expected = model.last_, model.predict(5)
    wrong = series[-30:].copy()
    wrong.index = wrong.index[:-1].append(pd.DatetimeIndex(["2099-01-01"], tz=series.index.tz))
    with pytest.raises(
        ValueError, match=r"an observation at 2099-01-01 00:00:00.* steps after the one before it.*max_gap"
    ):
        model.update(wrong)
    assert model.last_ == last
    pd.testing.assert_frame_equal(model.predict(5), expected)
    late = series[-1:].copy()
    late.index = late.index + pd.Timedelta(days=60)
    model.update(late, max_gap=pd.Timedelta(days=90))
    assert model.last_ == late.index[-1]


def test_holidays_of_a_country_go_on_with_the_series(monkeypatch, tmp_path):
    """A country whose holidays are the 10th of each month: two years after the fit they still are."""

    def country_holidays(name, subdiv, years):
        return [datetime.date(year, month, 10) for year in years for month in range(1, 13)]

    monkeypatch.setitem(sys.modules, "holidays", types.SimpleNamespace(country_holidays=country_holidays))
    index = pd.date_range("2020-01-01", "2024-06-30", freq="D")
    noise = np.random.default_rng(0).normal(size=len(index))
    series = pd.Series(50 + 20.0 * (index.day == 10) + noise, index)
    old, new = series[:"2020-12-31"], series["2021-01-01":]
    options = {"seasons": ["week"], "holidays": "XX", "search": False, "theta_uncertainty": False}
    model = CompositeGPForecaster(None, **options).fit(old)
    CompositeGPForecaster.save(model, tmp_path / "m.cgp")
    far = model.predict(5 * 365)["mean"]  # beyond the holidays that the model has
    assert far[far.index.day == 10].min() > far[far.index.day != 10].max()
    parts = model.parts(5 * 365)
    np.testing.assert_allclose(parts.mean.sum(axis=0), far)
    saves = []
    for size in (len(new), 100):
        again = CompositeGPForecaster.load(tmp_path / "m.cgp")
        for start in range(0, len(new), size):
            again.update(new[start : start + size], max_gap=pd.Timedelta(days=2000))
        saves.append(saved(again, tmp_path))
        later = again.predict(60)["mean"]
        assert later[later.index.day == 10].min() > later[later.index.day != 10].max()
    assert saves[0] == saves[1]
    monkeypatch.setitem(sys.modules, "holidays", None)  # as where it is not installed
    with pytest.warns(UserWarning, match="holidays after 2026 are not known"):
        again.predict(5 * 365)


def test_what_is_late_is_refused_or_skipped(series):
    model = CompositeGPForecaster(None, search=False).fit(series[:-24])
    before = model.observations_
    with pytest.raises(ValueError, match="not newer than the latest known"):
        model.update(series[-30:])
    pd.testing.assert_frame_equal(model.observations_, before)
    with pytest.raises(ValueError, match="late must be"):
        model.update(series[-30:], late="never")
    model.update(series[-30:], late="skip")
    assert model.last_ == series.index[-1]
    model.update(series[-30:], late="skip")  # nothing is counted twice
    assert model.observations_.index.is_unique


def test_a_saved_model_forecasts_the_same_and_a_damaged_file_is_refused(model, tmp_path):
    path = tmp_path / "model.cgp"
    model.save(path, horizon="24h")
    again, more = CompositeGPForecaster.load_with(path)
    assert more == {"horizon": "24h"}
    pd.testing.assert_frame_equal(again.predict(24), model.predict(24))
    assert again.describe() == model.describe()
    assert saved(again, tmp_path) == saved(model, tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="cannot be read"):
        CompositeGPForecaster.load(path)


def test_further_columns_whose_future_is_known_improve_the_forecast(rng):
    series = make_series(24 * 30)
    heat = pd.DataFrame({"heat": rng.normal(size=len(series))}, index=series.index)
    series = series + 3 * np.tanh(heat["heat"])
    model = CompositeGPForecaster(None, search=False).fit(series[:-24], heat[:-24])
    plain = CompositeGPForecaster(None, search=False).fit(series[:-24])
    truth = series[-24:]
    errors = [
        np.sqrt(np.mean((m.predict(24, X=x)["mean"] - truth) ** 2)) for m, x in ((model, heat[-24:]), (plain, None))
    ]
    assert errors[0] < 0.5 * errors[1]
    with pytest.raises(ValueError, match="columns \\['heat'\\]"):
        model.predict(24)
    with pytest.raises(ValueError, match="columns \\['heat'\\]"):
        model.update(series[-24:])
    assert list(model.observations_.columns) == ["value", "heat"]
    assert any(line.startswith("heat: moves the series by 1.") for line in model.describe())
    gappy = heat[:-24].mask(rng.uniform(size=(len(heat) - 24, 1)) < 0.2)
    partly = CompositeGPForecaster(None, search=False).fit(series[:-24], gappy).predict(24, X=heat[-24:])
    assert (
        np.sqrt(np.mean((partly["mean"] - truth) ** 2)) < 0.7 * errors[1]
    )  # where it is missing, it counts as average


def test_columns_may_be_missing_in_part(rng):
    """What is known of a column still improves the forecast; where its future is missing it counts as average."""
    index = pd.date_range("2024-01-01", periods=24 * 16, freq="h")
    heat = rng.normal(size=len(index))
    y = pd.Series(5 + 2 * heat + 0.1 * rng.normal(size=len(index)), index=index)
    X = pd.DataFrame({"heat": np.where(rng.uniform(size=len(index)) < 0.2, np.nan, heat)}, index=index)
    model = CompositeGPForecaster(None, seasons=[], search=False).fit(y[:-24], X[:-24])
    future = pd.DataFrame({"heat": heat[-24:]}, index=index[-24:])
    future.iloc[5] = np.nan
    found = model.predict("24h", X=future)
    assert np.isfinite(found).all(axis=None)
    error = np.delete((found["mean"] - y[-24:]).to_numpy(), 5)
    assert np.sqrt(np.mean(error**2)) < 0.5 * y.std()
    assert abs(found["mean"].iloc[5] - y.mean()) < y.std()
    future.index += pd.Timedelta(days=1)
    assert np.isfinite(model.update(y[-24:], X[-24:]).predict("24h", X=future)).all(axis=None)


def test_forecasts_keep_the_phase_of_the_clock():
    series = make_series(24 * 8, start="2024-02-20 00:30")
    forecast = CompositeGPForecaster(None, search=False).fit(series).predict(2)
    assert [str(stamp)[11:16] for stamp in forecast.index] == ["00:30", "01:30"]


def test_models_without_a_season_can_be_saved(rng, tmp_path):
    series = pd.Series(rng.normal(size=80).cumsum(), index=pd.date_range("2024", periods=80, freq="h"))
    model = CompositeGPForecaster(None, search=False).fit(series)
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(CompositeGPForecaster.load(tmp_path / "m").predict(3), model.predict(3))


def test_a_step_that_changes_does_not_confuse_the_backtest():
    hours = np.concatenate([np.arange(300.0), 300 + 0.5 * np.arange(400)])
    index = pd.DatetimeIndex(pd.Timestamp("2024") + pd.to_timedelta(hours, unit="h"))
    noise = 0.05 * np.random.default_rng(0).normal(size=len(hours))
    series = pd.Series(np.sin(2 * np.pi * hours / 24) + noise, index=index)
    done = backtest(CompositeGPForecaster(None, search=False), series, "12h", 2)
    assert done.scores.loc["compositegp, mean", "RMSE"] < 0.2
    with pytest.raises(ValueError, match="n_origins"):
        backtest(CompositeGPForecaster(None, search=False), series, "12h", 0)


def test_zones_without_a_name_come_back_as_offsets():
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=45), "NPT")
    series = make_series(24 * 8).tz_localize(zone)
    forecast = CompositeGPForecaster(None, search=False).fit(series).predict(1)
    assert forecast.index[0] == series.index[-1] + pd.Timedelta(hours=1)
    assert forecast.index[0].utcoffset() == datetime.timedelta(hours=5, minutes=45)


@pytest.mark.parametrize("change", ["recent", "trend", "moment", "center"])
def test_numbers_of_a_file_that_no_model_has_are_refused(change):
    times = pd.date_range("2024-01-01", periods=24 * 12, freq="h", tz="UTC")
    y = pd.Series(5 + np.sin(np.arange(len(times)) / 4), times)
    values = to_values(CompositeGPForecaster("log", search=False).fit(y)._series)
    assert from_values(**values).recent.shape == (3,)
    if change == "recent":
        values["series"]["recent"] = -values["series"]["recent"] - 1
    elif change == "moment":
        values["series"]["information"]["moment"][0] = 1e150
    elif change == "center":
        values["series"]["center"] = 1e5
    else:
        next(one for one in values["series"]["effects"] if one["kind"] == "trend")["numbers"][-1] = 1e-308
    with pytest.raises(ValueError, match="must not be negative|out of range|no finite mean"):
        from_values(**values)
