"""Time stamps without a zone: times of the clock that a user names, in Python, by command and in a stream."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import command

from compositegp.cli.stream_input import Line
from compositegp.cli.stream_rows import RowParser
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import TimeFormat
from compositegp.forecasting import CompositeGPForecaster, Timeline, backtest, in_utc, in_zone, observe
from compositegp.forecasting.clock import Clock

ZONE = "Europe/Stockholm"
PLAIN = CompositeGPForecaster(None, seasons=["day"], search=False)


def local_series(start="2024-10-20", n=24 * 9, freq="h"):
    """A series in a zone, across the change of its clock."""
    index = pd.date_range(start, periods=n, freq=freq, tz=ZONE)
    noise = np.random.default_rng(0).normal(size=n)
    return pd.Series(10 + np.sin(2 * np.pi * index.hour / 24) + 0.3 * noise, index=index)


@pytest.mark.parametrize("zone", [ZONE, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_a_year_of_local_times_comes_back(zone):
    """Also the hours that the clock has twice, or skips; Lord Howe changes by half an hour."""
    index = pd.date_range("2024-01-01", periods=2 * 24 * 366, freq="30min", tz=zone)
    assert (in_zone(index.tz_localize(None), zone) == index).all()
    assert (in_zone(index.tz_convert("UTC"), zone) == index).all()


@pytest.mark.parametrize(
    ("zone", "standard"),
    [
        (ZONE, "Etc/GMT-1"),
        ("America/New_York", "Etc/GMT+5"),
        ("Australia/Melbourne", "Etc/GMT-10"),
        ("Asia/Tokyo", "Etc/GMT-9"),  # without daylight saving
    ],
)
def test_standard_time_is_the_clock_of_a_fixed_offset(zone, standard):
    stamps = pd.date_range("2023-01-01", periods=2 * 24 * 400, freq="30min", tz="UTC")
    none, places = np.array([], dtype="datetime64[D]"), np.arange(float(len(stamps)))
    local, fixed = (Clock.at(Timeline.of(stamps, one), places, none) for one in (zone, standard))
    found = local.in_standard_time()
    np.testing.assert_allclose(found.day, fixed.day, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.weekday, fixed.weekday)
    assert not fixed.saving.any()
    assert set(np.round(24 * local.saving, 9)) == ({0.0} if zone == "Asia/Tokyo" else {0.0, 1.0})


@pytest.mark.skipif(pd.__version__ < "3", reason="pandas 2 knows of no summer time after 2037")
def test_standard_time_in_far_years():
    stamps = pd.date_range("2300-01-01", periods=12, freq="30D", tz="UTC", unit="s")
    none = np.array([], dtype="datetime64[D]")
    clock = Clock.at(Timeline(stamps[0], pd.Timedelta(days=30), ZONE), np.arange(12.0), none)
    assert set(np.round(24 * clock.saving, 9)) == {0.0, 1.0}


@pytest.mark.parametrize("by_the_sun", [True, False])
def test_the_clock_that_a_series_follows_is_found(by_the_sun, tmp_path):
    index = pd.date_range("2024-02-10", periods=24 * 84, freq="h", tz=ZONE)  # seven weeks of winter, five of summer
    hour = (index.tz_convert("Etc/GMT-1") if by_the_sun else index).hour.to_numpy()
    noise = np.random.default_rng(0).normal(size=len(index))
    series = pd.Series(10 + 3 * np.exp(-0.5 * ((hour - 12) / 1.5) ** 2) + 0.3 * noise, index=index)
    model = CompositeGPForecaster(None).fit(series)
    kinds = {effect.name: effect.kind for effect in model._fitted().effects.effects}
    assert kinds["day"] == ("standard day" if by_the_sun else "day")
    assert any("without daylight saving" in note for note in model.notes_)
    assert "day" in [season.name for season in model.seasons_]
    noon = model.predict(24)["mean"].idxmax()
    assert noon.hour == (13 if by_the_sun else 12)
    model.save(tmp_path / "model.cgp")
    expected = model.predict(24)
    pd.testing.assert_frame_equal(CompositeGPForecaster.load(tmp_path / "model.cgp").predict(24), expected)
    again = model.refit(series)
    assert {effect.name: effect.kind for effect in again._fitted().effects.effects} == kinds


def test_times_that_the_clock_skips_are_of_another_clock():
    index = pd.date_range("2024-03-30", periods=48, freq="h")
    with pytest.raises(ValueError, match=r"Europe/Stockholm skips 2024-03-31 02:00:00"):
        in_zone(index, ZONE)
    days = pd.date_range("2018-10-30", periods=10, freq="D")  # São Paulo skipped a midnight
    assert str(in_zone(days, "America/Sao_Paulo")[5]) == "2018-11-04 01:00:00-02:00"
    with pytest.raises(ValueError, match="timezone must be the name of a zone"):
        PLAIN.__class__(timezone="Europe/Nowhere").fit(pd.Series(1.0, index))


def test_a_model_of_local_times_is_that_of_the_instants():
    series = local_series()
    naive = series.tz_localize(None)
    model = CompositeGPForecaster(None, seasons=["day"], search=False, timezone=ZONE).fit(naive)
    expected = PLAIN.fit(series).predict(5)
    pd.testing.assert_frame_equal(model.predict(5), expected)
    assert model.last_ == series.index[-1]
    scores = [backtest(one, y, 12, 1, refit_every=None).scores for one, y in ((model, naive), (PLAIN, series))]
    pd.testing.assert_frame_equal(*scores)
    later = local_series(n=24 * 9 + 3)[-3:]
    updated = [model.update(later.tz_localize(None)), PLAIN.update(later)]
    pd.testing.assert_frame_equal(*(one.predict(2) for one in updated))


def test_a_time_that_is_there_once_but_occurs_twice_is_the_first():
    naive = local_series().tz_localize(None)
    seen = observe(naive[~naive.index.duplicated()], zone=ZONE)
    assert any("1 times occur twice on the clock of Europe/Stockholm" in note for note in seen.notes)
    assert seen.times[seen.times.tz_localize(None) == "2024-10-27 02:00"][0].utcoffset() == pd.Timedelta(hours=2)
    with pytest.raises(ValueError, match="give observe the zone"):
        CompositeGPForecaster(None, timezone=ZONE).fit(observe(naive[:100]))


def test_times_with_and_without_a_zone_are_not_mixed():
    series = local_series("2024-05-01")
    with_zone = CompositeGPForecaster(None, seasons=["day"], search=False).fit(series)
    without = CompositeGPForecaster(None, seasons=["day"], search=False).fit(series.tz_localize(None))
    later = series[-3:].set_axis(series.index[-3:] + pd.Timedelta(hours=3))
    with pytest.raises(ValueError, match="have no time zone, and those of the series are in Europe/Stockholm"):
        with_zone.update(later.tz_localize(None))
    with pytest.raises(ValueError, match="have a time zone, and those of the series have none"):
        without.update(later)
    with pytest.raises(ValueError, match="have a time zone"):
        without.predict_distribution(later.index)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zones")
    series = local_series()
    series.tz_localize(None).rename("value").rename_axis("time").to_csv(folder / "local.csv")
    both = pd.DataFrame({"time": series.index.tz_localize(None), "value": series.to_numpy()})
    pd.concat([both.assign(name=name) for name in "ab"]).to_csv(folder / "two.csv", index=False)
    return folder


class TestCommands:
    OPTIONS = ("--time", "time", "--target", "value", "--horizon", "6", "--season", "day", "--no-search", "--json")

    def test_one_series(self, folder):
        options = [
            *self.OPTIONS,
            "--timezone",
            ZONE,
            "--report",
            "--out",
            folder / "out",
            "--save",
            folder / "m.cgp",
        ]
        done = command("forecast", folder / "local.csv", *options)
        assert done.code == 0, done.err
        expected = CompositeGPForecaster("auto", horizon=6, seasons=["day"], search=False).fit(local_series())
        found = json.loads(done.out)["forecast"]
        assert [row["time"] for row in found] == [time.isoformat() for time in expected.predict(6).index]
        np.testing.assert_allclose([row["mean"] for row in found], expected.predict(6)["mean"])
        later = local_series(n=24 * 9 + 6)[-6:]
        later.tz_localize(None).rename("value").rename_axis("time").to_csv(folder / "new.csv")
        done = command("stream", folder / "m.cgp", folder / "new.csv")
        assert done.code == 0, done.err
        assert json.loads(done.out.splitlines()[-1])["latest"] == later.index[-1].isoformat()

    def test_many_series(self, folder):
        options = [*self.OPTIONS, "--timezone", ZONE, "--series", "name", "--report", "--out", folder / "many"]
        done = command("forecast", folder / "two.csv", *options)
        assert done.code == 0, done.err
        assert json.loads(done.out)["forecast"][0]["time"] == "2024-10-28T23:00:00+01:00"

    def test_a_wrong_zone_is_found_before_learning(self, folder):
        skips = local_series("2024-03-25").tz_convert("UTC").tz_localize(None)
        skips.rename("value").rename_axis("time").to_csv(folder / "utc.csv")
        done = command("forecast", folder / "utc.csv", *self.OPTIONS, "--timezone", ZONE, "--out", folder / "no")
        assert done.code == 1
        assert "skips 2024-03-31 02:00:00" in done.error
        assert not (folder / "no").exists()


def test_rows_of_a_stream_go_through_the_hour_that_occurs_twice():
    index = pd.date_range("2024-10-26 22:00", periods=16, freq="30min", tz=ZONE)
    timeline = Timeline.of(in_utc(index), ZONE)
    parser = RowParser(
        "time", "value", [], TextFormat(",", "."), TimeFormat(), timeline=timeline, local=True, transform=None
    )
    for _ in range(2):  # the file is sent again
        lines = [Line(i + 1, f"{time.tz_localize(None)},1.5", True) for i, time in enumerate(index)]
        assert [parser.parse(line).stamp for line in lines] == list(index)
    assert parser.parse(Line(99, "2024-10-27 02:00+01:00,1", True)).stamp == pd.Timestamp("2024-10-27 01:00Z")
    with pytest.raises(ValueError, match="skips 2024-03-31 02:30:00"):
        parser.parse(Line(100, "2024-03-31 02:30,1", True))
