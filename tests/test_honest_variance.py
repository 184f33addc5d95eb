"""Honest variances are the errors that predictions really have, where claimed ones are too small."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, WhiteKernel

from compositegp import CompositeGPRegressor, CompositeSum


class TestOverconfidence:
    """The paper's time series: four sequential segments repeat each other, and claim too little variance."""

    @pytest.fixture
    def series(self):
        rng = np.random.default_rng(3)
        t = np.arange(1056.0)[:, None]
        kernel = ExpSineSquared(1.0, 128.0) + RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
        y = np.linalg.cholesky(kernel(t)) @ rng.normal(size=len(t))
        model = CompositeGPRegressor(
            kernel,
            learning=None,
            segment_size=256,
            conditioning_size=0,
            segmentation="sequential",
            prediction=CompositeSum(group_size=128),
        )
        return model.fit(t[:1024], y[:1024]), t[1024:]

    def test_the_analysis_finds_it(self, series):
        model, Z = series
        report = model.analyze(Z)
        assert (report.actual_mse > 1.2 * report.claimed_variance).any()
        assert (report.confidence == "over-confident").mean() > 0.5
        assert "over-confident" in report.verdict

    def test_honest_variance_is_the_actual_error(self, series):
        model, Z = series
        mean, std = model.predict(Z, return_std=True, latent=True)
        honest_mean, honest = model.predict(Z, return_std=True, latent=True, variance="honest")
        np.testing.assert_array_equal(mean, honest_mean)
        assert honest.mean() > 1.1 * std.mean()
        np.testing.assert_allclose(honest**2, model.analyze(Z).actual_mse, rtol=1e-6)

    def test_honest_intervals_cover_and_claimed_ones_do_not(self, series):
        model, Z = series
        t = np.concatenate([np.arange(1024.0)[:, None], Z])
        root = np.linalg.cholesky(model.kernel(t))
        rng = np.random.default_rng(1)
        half = {
            kind: 1.96 * model.predict(Z, return_std=True, variance=kind)[1] for kind in ("claimed", "honest")
        }  # neither depends on the targets
        inside = {kind: [] for kind in half}
        for _ in range(60):
            y = root @ rng.normal(size=len(t))
            errors = np.abs(model.fit(t[:1024], y[:1024]).predict(Z) - y[1024:])
            for kind, width in half.items():
                inside[kind].append(np.mean(errors < width))
        coverage = {kind: np.mean(shares) for kind, shares in inside.items()}
        error = np.std(inside["honest"], ddof=1) / np.sqrt(60)
        assert abs(coverage["honest"] - 0.95) < 3 * error
        assert coverage["claimed"] < 0.9

    def test_nearest_claims_its_actual_error(self, series):
        model, Z = series
        nearby = model.set_params(prediction="nearest")
        np.testing.assert_array_equal(
            nearby.predict(Z, return_std=True)[1], nearby.predict(Z, return_std=True, variance="honest")[1]
        )
        report = nearby.analyze(Z)
        np.testing.assert_allclose(report.actual_mse, report.claimed_variance, rtol=1e-6)


@pytest.mark.parametrize("conditioning_size", [0, 20])
def test_honest_variance_is_that_of_the_whole_predictor(rng, conditioning_size):
    """The mean is linear in the data: its weights, one datum at a time, give its error by dense algebra."""
    X = np.sort(rng.uniform(0, 10, size=(60, 1)), axis=0)
    Z = np.array([[3.0], [9.5], [12.0], [20.0]])
    kernel = RBF(1.5) + WhiteKernel(0.05)
    model = CompositeGPRegressor(
        kernel,
        learning=None,
        mean="linear",
        segment_size=20,
        conditioning_size=conditioning_size,
        prediction="composite",
    )
    weights = np.stack([model.fit(X, row).predict(Z) for row in np.eye(60)], axis=1)
    expected = 1.0 - 2 * np.einsum("mn,nm->m", weights, kernel(X, Z))
    expected += np.einsum("mi,ij,mj->m", weights, kernel(X), weights)
    np.testing.assert_allclose(weights @ np.c_[np.ones(60), X], np.c_[np.ones(4), Z], rtol=0, atol=1e-6)  # unbiased
    honest = model.predict(Z, return_std=True, latent=True, variance="honest")[1] ** 2
    np.testing.assert_allclose(honest, expected, rtol=1e-5)


def test_honest_variance_is_the_error_of_drawn_data(rng):
    X = np.sort(rng.uniform(0, 10, size=(120, 1)), axis=0)
    Z = np.linspace(0, 12, 15)[:, None]
    kernel = RBF(1.5) + WhiteKernel(0.05)
    joint = np.concatenate([X, Z])
    root = np.linalg.cholesky(kernel(joint, joint) + 1e-9 * np.eye(135))
    options = {"learning": None, "segment_size": 30, "conditioning_size": 0, "prediction": "composite"}
    errors = []
    for _ in range(300):
        f = root @ rng.normal(size=135)
        # the mean is linear in the data, so one fit would do; this is the estimator as a user has it
        model = CompositeGPRegressor(kernel, mean="constant", **options)
        y = 5.0 + f[:120] + np.sqrt(0.05) * rng.normal(size=120)
        mean = model.fit(X, y).predict(Z)
        errors.append((mean - 5.0 - f[120:]) ** 2)
    honest = model.predict(Z, return_std=True, latent=True, variance="honest")[1] ** 2
    found, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(300)
    assert np.abs((found - honest) / error).max() < 4
