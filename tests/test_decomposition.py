"""The simple forecast by decomposition: exact where it must be, and fair where it is not."""

import numpy as np
import pandas as pd
import pytest

from compositegp.forecasting import CompositeGPForecaster, backtest
from compositegp.forecasting.decomposition import continue_decomposition, decompose


def periodic(rows, period, seed):
    profile = np.random.default_rng(seed).normal(size=period)
    return (profile - profile.mean())[rows % period]


@pytest.mark.parametrize("periods", [[7], [12], [24, 168], [5, 35], [12, 24]])
@pytest.mark.parametrize("cycles", [3, 4.3, 20])
def test_a_line_plus_periodic_functions_is_continued_exactly(periods, cycles):
    size, ahead = int(cycles * max(periods)), 2 * max(periods)
    rows = np.arange(size + ahead)
    y = 3.0 + 0.05 * rows + sum(periodic(rows, period, period) for period in periods)
    found = continue_decomposition(y[:size], periods, 1 + np.arange(ahead))
    np.testing.assert_allclose(found, y[size:], rtol=0, atol=1e-9)


def test_the_parts_are_the_line_and_the_profiles():
    rows = np.arange(24 * 7 * 6)
    day, week = periodic(rows, 24, 1), np.repeat(periodic(np.arange(7 * 6), 7, 2), 24)
    found = decompose(10 - 0.01 * rows + day + week, [24, 168])
    inside = np.isfinite(found.trend)
    assert inside.sum() == len(rows) - 168
    np.testing.assert_allclose(found.trend[inside], (10 - 0.01 * rows)[inside], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.seasonal(rows), day + week, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.seasons[24], day[:24], rtol=0, atol=1e-9)


def test_missing_values_change_little(rng):
    rows = np.arange(24 * 40)
    y = 5 + 0.01 * rows + 3 * np.sin(2 * np.pi * rows / 24)
    known = y[:-24].copy()
    known[rng.choice(len(known), 90, replace=False)] = np.nan
    known[300:330] = np.nan
    found = continue_decomposition(known, [24], 1 + np.arange(24))
    assert np.abs(found - y[-24:]).max() < 0.05


def test_noise_is_averaged_and_a_level_that_wanders_is_followed(rng):
    rows = np.arange(24 * 60)
    daily = 3 * np.sin(2 * np.pi * rows / 24)
    steps = 1 + np.arange(24)
    noisy = daily + rng.normal(size=len(rows))
    naive = noisy[-48:-24] - daily[-24:]
    found = continue_decomposition(noisy[:-24], [24], steps) - daily[-24:]
    assert np.sqrt(np.mean(found**2)) < 0.6 * np.sqrt(np.mean(naive**2))
    walk = daily + np.cumsum(rng.normal(size=len(rows)))
    found = continue_decomposition(walk[:-24], [24], steps)
    np.testing.assert_allclose(found[0] - daily[-24], walk[-25] - daily[-25], rtol=0, atol=2.0)


def test_a_series_that_is_too_short_has_no_decomposition():
    assert continue_decomposition(np.arange(70.0), [24], np.array([1])) is None
    assert continue_decomposition(np.arange(71.0), [24, 168], np.array([1])) is None
    assert continue_decomposition(np.arange(72.0), [24, 168], np.array([1])) == pytest.approx(72.0)
    assert continue_decomposition(np.full(80, np.nan), [24], np.array([1])) is None


def test_a_backtest_has_it_beside_the_other_simple_forecasts():
    index = pd.date_range("2024-01-01", periods=24 * 16, freq="h", tz="Europe/Stockholm")
    rows = np.arange(len(index))
    y = pd.Series(20 + 0.02 * rows + periodic(rows, 24, 0), index=index)
    done = backtest(CompositeGPForecaster(None, search=False), y + 1e-3 * np.sin(rows**2), "6h", 3)
    assert done.scores.loc["decomposition", "RMSE"] < 0.01
    assert done.scores.loc["seasonal naive", "RMSE"] > 0.4  # the trend of a day
