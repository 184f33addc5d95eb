"""Further columns of a series: found by their times, of any name, of numbers."""

import numpy as np
import pandas as pd
import pytest

from compositegp.forecasting import CompositeGPForecaster, Timeline, cross_validation, in_utc, observe
from compositegp.forecasting.effects import Effect, Effects

INDEX = pd.date_range("2024-01-01", periods=24 * 12, freq="h")
LATER = pd.date_range(INDEX[-1], periods=7, freq="h")[1:]


def make(*names):
    """A series of hours and columns that explain much of it."""
    rng = np.random.default_rng(0)
    columns = pd.DataFrame(rng.normal(size=(len(INDEX), len(names))), index=INDEX, columns=names)
    y = 5 + np.sin(2 * np.pi * np.arange(len(INDEX)) / 24) + 0.1 * rng.normal(size=len(INDEX))
    return y + columns.sum(axis=1), columns


@pytest.fixture(scope="module")
def model():
    return CompositeGPForecaster(None, seasons=["day"], search=False).fit(*make("heat"))


def test_rows_are_found_by_their_times(model):
    X = pd.DataFrame({"heat": np.arange(6.0)}, index=LATER)
    expected = model.predict(6, X=X.reset_index(drop=True))
    more = pd.concat([make("heat")[1], X]).sample(frac=1.0, random_state=0)
    for given in (X, X[::-1], more):
        pd.testing.assert_frame_equal(model.predict(6, X=given), expected)
        np.testing.assert_allclose(model.parts(6, given).mean.sum(axis=0), expected["mean"])
    found = model.predict_distribution(LATER[[1, 4]], X)
    np.testing.assert_allclose(found.mean, expected["mean"].iloc[[1, 4]], rtol=0.2)  # what was between is not known
    with pytest.raises(ValueError, match="X has no row for 2024-01-13 03:00:00"):
        model.predict(6, X=X.drop(LATER[3]))
    with pytest.raises(ValueError, match="X has no row for 2024-01-13 00:00:00"):
        model.predict(6, X=X.set_axis(LATER - pd.Timedelta(days=9000)))


@pytest.mark.parametrize("freq", ["B", "MS", "h"])
def test_the_nearest_row_is_that_of_the_same_time(freq):
    index = pd.date_range("2024-01-01", periods=40, freq=freq)
    days = pd.date_range(index[0], index[-1], freq="12min" if freq == "h" else "D")  # weekends too
    timeline = Timeline.of(in_utc(index), None)
    rows = timeline.rows_at(np.arange(40.0), in_utc(days))
    assert (days[rows] == index).all()
    assert timeline.rows_at(np.array([41.0]), in_utc(days)) == [-1]
    assert timeline.rows_at(np.array([0.0]), in_utc(days[:0])) == [-1]


NAMES = ("value", "level", "trend", "day", "week", "short memory", "heat over 1 day(s)", "heat")


def test_a_column_may_have_any_name():
    """Parts add up, none is lost, and a column changes the part that has its name alone."""
    y, X = make(*NAMES)
    model = CompositeGPForecaster(None, seasons=["day"], search=False).fit(y, X)
    future = pd.DataFrame(np.random.default_rng(1).normal(size=(6, len(NAMES))), index=LATER, columns=NAMES)
    parts = model.parts(6, future)
    assert len(set(parts.names)) == len(parts.names)
    np.testing.assert_allclose(parts.mean.sum(axis=0), model.predict(6, X=future)["mean"])
    labels = {name: f"column {name}" for name in NAMES[1:6]} | {"value": "value"}
    for name, label in labels.items():
        changed = model.parts(6, future.assign(**{name: future[name] + 1})).mean != parts.mean
        assert [one for one, row in zip(parts.names, changed, strict=True) if row.any()] == [label]
    assert list(model.observations_.columns) == ["value", *NAMES]
    again = model.refit(y, X).predict(6, X=future)
    assert set(model.effects_) >= set(labels.values())
    assert np.isfinite(again).all(axis=None)


def test_names_of_effects_are_different(model):
    with pytest.raises(ValueError, match="effects must have different names"):
        Effects([Effect("day", "day"), Effect("day", "level")], model.timeline_, [])


def test_columns_are_numbers_and_no_two_are_alike():
    y, X = make("heat")
    with pytest.raises(ValueError, match="the extra column 'heat' must have numbers.*'warm'"):
        observe(y, X.astype(object).where(X["heat"] < 1, "warm"))
    table = pd.DataFrame({"ds": INDEX, "y": y.to_numpy(), "kind": "warm"})
    with pytest.raises(ValueError, match="the extra column 'kind' must have numbers"):
        cross_validation(CompositeGPForecaster(None), table, 6)
    with pytest.raises(ValueError, match="different names; found 'heat' 2 times"):
        observe(y, pd.concat([X, X], axis=1))


class TestMissingValues:
    """Where a column is missing, its effect is what it was on average."""

    @pytest.mark.parametrize("known_in_fit", [1.0, 0.7])
    @pytest.mark.parametrize("shape", ["switch", "square"])
    def test_a_forecast_without_the_column_is_the_average(self, shape, known_in_fit):
        rng, n = np.random.default_rng(0), 24 * 60
        index = pd.date_range("2024-01-01", periods=n + 24, freq="h")
        x = (rng.uniform(size=n) < 0.05).astype(float) if shape == "switch" else rng.normal(size=n)
        y = 100 + (20 * x if shape == "switch" else 10 * x**2) + rng.normal(size=n)
        seen = np.where(rng.uniform(size=n) < known_in_fit, x, np.nan)
        model = CompositeGPForecaster(None, search=False).fit(
            pd.Series(y, index[:n]), pd.DataFrame({"x": seen}, index=index[:n])
        )

        def forecast(value):
            return model.predict(24, X=pd.DataFrame({"x": np.full(24, value)}, index=index[n:]))["mean"].mean()

        assert forecast(np.nan) == pytest.approx(y.mean(), abs=1.5)
        assert forecast(0.0) == pytest.approx(100, abs=1.5)
        assert forecast(1.0) == pytest.approx(120 if shape == "switch" else 110, abs=2.5)

    def test_a_column_without_a_value_is_left_out(self):
        y, X = make("heat", "power")
        X["power"] = np.nan
        model = CompositeGPForecaster(None, search=False).fit(y, X)
        assert "column power has no value in what is learned from, and is left out" in model.notes_
        future = pd.DataFrame({"heat": np.ones(6), "power": 3.0}, index=LATER)
        alone = CompositeGPForecaster(None, search=False).fit(y, X[["heat"]])
        pd.testing.assert_frame_equal(model.predict(6, X=future), alone.predict(6, X=future[["heat"]]))

    def test_files_keep_the_average(self, tmp_path):
        y, X = make("heat")
        model = CompositeGPForecaster(None, search=False).fit(y, X**2)
        model.save(tmp_path / "model.cgp")
        future = pd.DataFrame({"heat": np.full(6, np.nan)}, index=LATER)
        again = CompositeGPForecaster.load(tmp_path / "model.cgp")
        pd.testing.assert_frame_equal(again.predict(6, X=future), model.predict(6, X=future))
