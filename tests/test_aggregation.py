"""Sums and averages of joint predictions, against draws."""

import numpy as np
import pytest

from compositegp.predictive import LogTarget, PredictiveDistribution, StudentT, combine_predictions

pd = pytest.importorskip("pandas")


def joint(rng, transform=None, family=None):
    root = 0.15 * rng.normal(size=(6, 6))
    covariance = root @ root.T
    options = {} if transform is None else {"transform": transform}
    options |= {} if family is None else {"family": family}
    scale = np.sqrt(np.diagonal(covariance))
    return PredictiveDistribution(rng.normal(size=6), scale, covariance=covariance, **options)


@pytest.mark.parametrize("kind", ["normal", "t", "log", "log with differences"])
def test_against_draws(kind, rng):
    found = joint(
        rng,
        LogTarget() if "log" in kind else None,
        StudentT(np.full(6, 7.0)).shared() if kind == "t" else None,
    )
    weights = rng.uniform(0.1, 1, size=(2, 6))
    if "differences" in kind:
        weights[:, 0] *= -1
    sums = combine_predictions(found, weights)
    draws = weights @ found.sample(200_000, random_state=0)
    np.testing.assert_allclose(sums.mean, draws.mean(axis=1), rtol=0, atol=5 * sums.std.max() / np.sqrt(200_000))
    np.testing.assert_allclose(sums.std, draws.std(axis=1), rtol=0.03)
    if kind != "log with differences":  # whose shape is only taken to be normal
        for level in (0.05, 0.5, 0.95):
            expected = np.quantile(draws, level, axis=1)
            np.testing.assert_allclose(sums.quantile(level), expected, rtol=0, atol=0.06 * sums.std.max())


def test_a_sum_of_one_value_is_the_value(rng):
    for transform in (None, LogTarget()):
        found = joint(rng, transform)
        same = combine_predictions(found, np.eye(6))
        np.testing.assert_allclose(same.mean, found.mean, rtol=1e-12)
        np.testing.assert_allclose(same.quantile(0.9), found.quantile(0.9), rtol=1e-12)


def test_bad_input(rng):
    alone = PredictiveDistribution(np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match="Ask for a joint prediction"):
        combine_predictions(alone, [1.0, 1.0])
    with pytest.raises(ValueError, match="one for each of the 6 values"):
        combine_predictions(joint(rng), [1.0])


@pytest.fixture(scope="module")
def model():
    """A forecaster of a series whose deviations last for hours."""
    from compositegp.forecasting import CompositeGPForecaster

    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01 05:00", periods=24 * 30, freq="h", tz="Europe/Stockholm")
    slow = np.convolve(rng.normal(size=len(index) + 11), np.ones(12) / 4, "valid")
    values = 10 + np.sin(2 * np.pi * np.arange(len(index)) / 24) + slow + 0.1 * rng.normal(size=len(index))
    return CompositeGPForecaster(None, search=False).fit(pd.Series(values, index=index))


class TestForecasts:
    """Averages by day of a forecast with correlated errors."""

    def test_days_of_the_calendar(self, model):
        from compositegp.forecasting import aggregate_forecast

        table = aggregate_forecast(model, "60h", "day")
        hourly = model.predict("60h")
        by_day = hourly["mean"].groupby(hourly.index.tz_localize(None).floor("D"))
        np.testing.assert_allclose(table["mean"], by_day.mean(), rtol=1e-6)
        np.testing.assert_array_equal(table["steps"], by_day.size())
        assert list(table.index) == list(by_day.mean().index)
        assert table["steps"].iloc[0] < 24  # the series does not end at midnight
        draws = model.predict_distribution("60h").sample(20_000, random_state=0)
        days = np.repeat(np.arange(len(table)), table["steps"])
        for number, row in enumerate(table.itertuples()):
            average = draws[days == number].mean(axis=0)
            assert row.std == pytest.approx(average.std(), rel=0.05)
            assert row.mean == pytest.approx(average.mean(), abs=0.1)
        alone = (
            np.sqrt((hourly["std"] ** 2).groupby(hourly.index.tz_localize(None).floor("D")).sum()) / table["steps"]
        )
        assert (table["std"] > 1.2 * alone.to_numpy()).all()

    def test_bad_input(self, model):
        from compositegp.forecasting import aggregate_forecast

        with pytest.raises(ValueError, match="period must be one of hour, day"):
            aggregate_forecast(model, "48h", "fortnight")
        with pytest.raises(ValueError, match="5000 at most. Give a shorter horizon"):
            aggregate_forecast(model, 6000, "day")
