"""The parts of a forecast: they add up, and each is what dense algebra says."""

import tracemalloc

import numpy as np
import pytest

from compositegp.forecasting import CompositeGPForecaster
from compositegp.plotting import draw_parts

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module", params=[False, True], ids=["series", "with a column"])
def fitted(request):
    """A forecaster, and the further column over its horizon."""
    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01", periods=24 * 40, freq="h")
    slow = np.convolve(rng.normal(size=len(index) + 11), np.ones(12) / 4, "valid")
    values = 10 + np.sin(2 * np.pi * np.arange(len(index)) / 24) + slow + 0.1 * rng.normal(size=len(index))
    if not request.param:
        return CompositeGPForecaster(None, seasons=["day"]).fit(pd.Series(values, index=index)), None
    heat = pd.DataFrame({"heat": np.convolve(rng.normal(size=len(index) + 29), np.ones(6) / 2, "valid")})
    known = heat[: len(index)].set_index(index)
    future = heat[len(index) :].set_index(pd.date_range(index[-1], periods=25, freq="h")[1:])
    return CompositeGPForecaster(None, seasons=["day"]).fit(
        pd.Series(values + 2 * known["heat"], index=index), known
    ), future


def test_parts_add_up(fitted):
    model, future = fitted
    parts = model.parts(24, future)
    latent = model.predict_distribution(24, future, joint=False, latent=True)
    np.testing.assert_allclose(parts.mean.sum(axis=0), latent.location, rtol=1e-10)
    np.testing.assert_allclose(parts.covariance.sum(axis=(0, 1)), latent.scale**2, rtol=1e-8)
    np.testing.assert_array_equal(parts.times, model.predict(24, X=future).index)
    assert (np.linalg.eigvalsh(np.moveaxis(parts.covariance, -1, 0)) > -1e-9).all()
    assert "noise" not in parts.names
    assert {"level", "day"} <= set(parts.names)


def test_a_long_horizon_is_taken_in_pieces(fitted, monkeypatch):
    """Parts are the same in one piece, which takes 70 kB a step."""
    model, future = fitted
    if future is not None:
        future = pd.concat([future] * 25).reset_index(drop=True)
    tracemalloc.start()
    try:
        parts = model.parts(600, future)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
    monkeypatch.setattr("compositegp.forecasting.forecast_parts._CHUNK", 600)
    whole = model.parts(600, future)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(parts.covariance, whole.covariance, rtol=1e-9, atol=1e-10)


def test_memory_equals_dense_algebra(fitted):
    """Each part of the kernel, by scikit-learn's kernels: k_p(z, x) K⁻¹ (y − mean)."""
    model, future = fitted
    parts, series = model.parts(24, future), model._fitted()
    x, y = series.observed + series.grid.first, series.grid.values[series.observed]
    x, z = x.astype(float)[:, None], series.next_places(24)[:, None]
    mean = series.center + series.effects(series.grid.points[series.observed]) @ series.estimate.mean
    K = model.kernel_(x) + 1e-8 * model.kernel_.diag(x[:1])[0] * np.eye(len(x))  # as horizon_terms has it
    for name, kernel in model.parts_.items():
        if name != "noise":
            expected = kernel(z, x) @ np.linalg.solve(K, y - mean)
            np.testing.assert_allclose(parts.mean[parts.names.index(name)], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fitted", [True], indirect=True, ids=["with a column"])
def test_the_effect_of_a_column_is_found(fitted):
    model, future = fitted
    parts = model.parts(24, future)
    own = sum(mean for name, mean in zip(parts.names, parts.mean, strict=True) if "heat" in name)
    which = [number for number, name in enumerate(parts.names) if "heat" in name]
    std = np.sqrt(parts.covariance[np.ix_(which, which)].sum(axis=(0, 1)))
    errors = own - 2 * future["heat"].to_numpy()  # as it was simulated, but for a constant
    assert np.abs((errors - errors.mean()) / std).max() < 3
    assert np.polyfit(future["heat"], own, 1)[0] == pytest.approx(2, abs=0.5)


def test_table_and_picture(fitted):
    model, future = fitted
    table = model.parts("24h", future).table
    assert table.shape[0] == 24
    assert (table["day", "std"] > 0).all()
    assert draw_parts(table, "load $")[:4] == b"\x89PNG"
