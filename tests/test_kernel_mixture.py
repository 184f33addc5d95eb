"""Forecasts that are averaged over kernels: against dense algebra under each of them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from compositegp.forecasting import CompositeGPForecaster
from compositegp.forecasting.grid import Grid
from compositegp.forecasting.horizon_terms import covariances
from compositegp.forecasting.kernel_mixture import (
    LikelyKernel,
    likely_kernels,
    mixed_forecasts,
    mixed_moments,
    weighted,
)
from compositegp.forecasting.memory import prior_precision
from compositegp.forecasting.short_series import FREEDOM, learn_structures
from compositegp.forecasting.stored_series import from_values, to_values
from compositegp.forecasting.whole_past import WholePast
from compositegp.kernels import at_theta

SIZE, HORIZON = 60, 6


@pytest.fixture(scope="module")
def series():
    index = pd.date_range("2010-01-01", periods=SIZE, freq="MS")
    noise = 0.3 * np.random.default_rng(2).normal(size=SIZE).cumsum()
    return pd.Series(10 + np.sin(2 * np.pi * np.arange(SIZE) / 12) + noise, index)


@pytest.fixture(scope="module")
def model(series):
    return CompositeGPForecaster(None, search=False, horizon=HORIZON).fit(series)


@pytest.fixture
def fitted(model):
    return model._fitted()


def dense(fitted, member, size):
    """Covariance of all the values and those to come under a kernel, effects included."""
    at = np.arange(size)
    functions = fitted.effects(np.arange(float(size))[:, None] + fitted.grid.first)
    covariance = covariances(member.kernel, size)[np.abs(at[:, None] - at)]
    return covariance + member.information.prior_variance * functions @ functions.T


def conditional(covariance, values):
    """Mean and covariance of what follows some values."""
    n = len(values)
    weights = np.linalg.solve(covariance[:n, :n], covariance[:n, n:])
    return weights.T @ values, covariance[n:, n:] - covariance[n:, :n] @ weights


def test_a_forecast_is_the_mixture_of_exact_processes(fitted, series):
    values = series.to_numpy() - fitted.center
    each = [conditional(dense(fitted, one, SIZE + HORIZON), values) for one in fitted.members]
    weights = np.array([one.weight for one in fitted.members])
    assert len(weights) > 10
    assert weights.sum() == pytest.approx(1)
    mean = sum(weight * one for weight, (one, _) in zip(weights, each, strict=True))
    covariance = sum(
        weight * (own + np.outer(one - mean, one - mean)) for weight, (one, own) in zip(weights, each, strict=True)
    )
    points = fitted.next_places(HORIZON)[:, None]
    factors = fitted.factors(points)
    for joint in (False, True):
        found = fitted.forecast(points, joint=joint, latent=False)
        np.testing.assert_allclose(found.location, fitted.center + mean, rtol=0, atol=1e-4)
        np.testing.assert_allclose(found.scale / factors, np.sqrt(np.diagonal(covariance)), rtol=1e-3)
    np.testing.assert_allclose(found.covariance / np.outer(factors, factors), covariance, rtol=1e-2, atol=1e-4)
    noise = weights @ [one.kernel.k2.noise_level for one in fitted.members]
    latent = fitted.forecast(points, joint=False, latent=True)
    np.testing.assert_allclose((latent.scale / factors) ** 2, np.diagonal(covariance) - noise, rtol=1e-3)


def test_parts_add_up_to_the_forecast(model):
    parts, ahead = model.parts(HORIZON), model.predict_distribution(HORIZON, latent=True)
    np.testing.assert_allclose(parts.mean.sum(axis=0), ahead.location, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(parts.covariance.sum(axis=(0, 1))), ahead.scale, rtol=1e-6)
    names = {name for one in model._fitted().members for name in one.names} - {"noise"}
    assert names <= set(parts.names)


def test_the_description_says_how_likely_parts_are(model):
    (line,) = [one for one in model.describe() if one.startswith("forecasts: ")]
    members = model._fitted().members
    assert f"{len(members)} kernels" in line
    share = sum(one.weight for one in members if "short memory" in one.names)
    assert f"{share:.0%} with short memory" in line


def test_past_forecasts_are_those_of_the_mixture(series):
    past = WholePast(series.to_numpy() - 10, np.ones((SIZE, 1)), 1.0)
    structures = learn_structures(past, {"year": 12.0}, HORIZON, 1.0)
    kernels, made = mixed_forecasts(likely_kernels(structures, past), past, HORIZON)
    each = [past.forecasts(covariances(one.kernel, SIZE), HORIZON) for one in kernels]
    weights = np.array([one.weight for one in kernels])[:, None, None]
    errors = (weights * [one.errors for one in each]).sum(axis=0)
    np.testing.assert_allclose(made.errors, errors, rtol=0, atol=1e-12)
    second = (weights * [one.variance + one.errors**2 for one in each]).sum(axis=0)  # moments about the value
    np.testing.assert_allclose(made.variance, second - errors**2, rtol=1e-6)


def test_a_structure_has_its_akaike_weight(series):
    past = WholePast(series.to_numpy() - 10, np.ones((SIZE, 1)), 1.0)
    structures = learn_structures(past, {"year": 12.0}, HORIZON, 1.0)
    assert {("year pattern" in one.names, "short memory" in one.names) for one in structures} == {
        (season, short) for season in (False, True) for short in (False, True)
    }
    for one in structures:  # the criterion from its definition
        expected = past.score(covariances(one.kernel, SIZE))[0] - len(one.kernel.theta)
        assert one.criterion == pytest.approx(expected)
    kernels = likely_kernels(structures, past)
    found = [sum(kernel.weight for kernel in kernels if kernel.names == one.names) for one in structures]
    ratios = np.exp([one.criterion - structures[0].criterion for one in structures])
    np.testing.assert_allclose(
        found, ratios / ratios.sum(), rtol=0, atol=0.05
    )  # but for draws of hardly any weight


def test_weights_follow_the_likelihood_and_the_prior(series):
    """Draws around the mode, weighted by importance, have the mean of log θ that many draws from the prior have."""
    past = WholePast(series.to_numpy()[:24] - 10, np.ones((24, 1)), 1.0)
    structure = min(learn_structures(past, {}, HORIZON, 1.0), key=lambda one: len(one.names))
    kernels = likely_kernels([structure], past)
    spread = np.diagonal(prior_precision(structure.kernel, FREEDOM)) ** -0.5
    draws = structure.center + spread * np.random.default_rng(0).normal(size=(4000, len(spread)))
    draws = draws[((draws >= structure.kernel.bounds[:, 0]) & (draws <= structure.kernel.bounds[:, 1])).all(axis=1)]
    logs = np.array([past.log_scores(covariances(at_theta(structure.kernel, one), 24)).sum() for one in draws])
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = weights @ draws
    deviation = np.sqrt(weights @ (draws - mean) ** 2)
    found = sum(one.weight * one.kernel.theta for one in kernels)
    assert 1 / (weights**2).sum() > 100
    assert (np.abs(found - mean) < 0.6 * deviation).all()


def test_every_kernel_learns_from_later_values_as_it_would_alone(fitted):
    expected = fitted.forecast(fitted.next_places(13)[:, None], joint=False, latent=False).location
    later = np.append(expected[:-1] + 0.02 * (-1.0) ** np.arange(12), np.nan)  # no outlier under any kernel
    rows = Grid(int(fitted.last) + 1, later, np.zeros((13, 0)))
    updated = fitted.with_observations(rows)
    assert updated.learned_until == fitted.learned_until + 12
    for member, alone in zip(updated.members, fitted.alternatives(), strict=True):
        expected = alone.with_observations(rows)
        np.testing.assert_allclose(member.information.matrix, expected.information.matrix, rtol=1e-9)
        np.testing.assert_allclose(member.information.moment, expected.information.moment, rtol=1e-6, atol=1e-9)


def test_a_kernel_that_goes_on_learning_forecasts_alone(fitted, series):
    later = series.to_numpy()[-12 : -12 + HORIZON] + 0.2
    rows = Grid(int(fitted.last) + 1, later, np.zeros((HORIZON, 0)))
    updated = fitted.with_observations(rows, learn=True)
    assert updated.kernel != fitted.kernel
    assert not updated.members
    points = updated.next_places(HORIZON)[:, None]
    found = updated.forecast(points, joint=False, latent=False)
    np.testing.assert_array_equal(found.location, updated.ahead(points).location)


def test_a_refit_is_averaged_over_the_same_kernels(model, series):
    again = copy.deepcopy(model).refit(series)
    pd.testing.assert_frame_equal(again.predict(HORIZON), model.predict(HORIZON), rtol=1e-9)
    weights = [[one.weight for one in found._fitted().members] for found in (again, model)]
    np.testing.assert_allclose(*weights)
    alone = copy.deepcopy(model).refit(series, theta=model.kernel_.theta)
    assert not alone._fitted().members


def test_filters_of_long_forecasts_are_not_kept(fitted):
    fitted = pickle.loads(pickle.dumps(fitted))
    fitted.forecast(fitted.next_places(200)[:, None], joint=False, latent=False)
    assert not any(one.filters for one in fitted.members)
    rows = Grid(int(fitted.last) + 1, np.full(3 * HORIZON, 10.0), np.zeros((3 * HORIZON, 0)))
    updated = fitted.with_observations(rows)
    assert {len(one.filters) for one in updated.members} == {1}
    assert not any(one.filters for one in pickle.loads(pickle.dumps(updated)).members)


def test_files_have_all_the_kernels(fitted, model, tmp_path):
    model.save(tmp_path / "model.cgp")
    again = CompositeGPForecaster.load(tmp_path / "model.cgp")
    pd.testing.assert_frame_equal(again.predict(HORIZON), model.predict(HORIZON))
    content = to_values(fitted)
    stored = content["series"]["members"][0]
    kept = dict(stored)
    stored["weights"] = 2 * kept["weights"]
    with pytest.raises(ValueError, match="add up to"):
        from_values(**content)
    stored["weights"] = -kept["weights"]
    with pytest.raises(ValueError, match="must be positive"):
        from_values(**content)
    stored |= {"weights": kept["weights"], "thetas": kept["thetas"] + 1e3}
    with pytest.raises(ValueError, match="within their bounds"):
        from_values(**content)
    del content["series"]["members"]  # as in the file of a long series
    assert from_values(**content).members == []


def test_one_kernel_where_that_is_asked_for_or_the_series_is_long(series):
    alone = CompositeGPForecaster(None, search=False, horizon=HORIZON, theta_uncertainty=False).fit(series)
    assert not alone._fitted().members
    values = np.random.default_rng(0).normal(size=700)
    index = pd.date_range("2024-01-01", periods=700, freq="h")
    long = CompositeGPForecaster(None, search=False).fit(pd.Series(values, index))
    assert not long._fitted().members
    with pytest.raises(ValueError, match="theta_uncertainty"):
        CompositeGPForecaster(theta_uncertainty="often").fit(series)


def test_moments_of_a_mixture_and_members_of_no_weight():
    two = [LikelyKernel(0.25, None, [], None), LikelyKernel(0.75, None, [], None)]
    mean, variance = mixed_moments(
        two, [np.array([0.0, np.nan]), np.array([4.0, np.nan])], [np.ones(2), np.ones(2)]
    )
    np.testing.assert_allclose(mean, [3.0, np.nan])
    np.testing.assert_allclose(variance, [1 + 3.0, 1.0])  # ¼ · 3² + ¾ · 1²
    assert [one.weight for one in weighted(two, [1.0, 3.0])] == [0.25, 0.75]
    assert [one.weight for one in weighted(two, [1e-3, 1.0], 0.01)] == [1.0]
