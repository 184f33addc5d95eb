"""From outside the package: a choice of terms and a prediction method of one's own, each in a few lines.

A fast kernel of one's own is in test_extension_kernel.py. CONTRIBUTING.md shows all three.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from compositegp import Composite, CompositeGPRegressor, Marginals, PredictionMethod, Predictor, learn, posterior
from compositegp.storage import storable

KERNEL = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)


@pytest.fixture
def data(rng):
    X = np.sort(rng.uniform(0, 20, size=(200, 1)), axis=0)
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=200), rng.uniform(0, 20, size=(15, 1))


def overlapping_windows(X, kernel):
    """Windows of 60 points that overlap by 30, each overlap counted once."""
    starts = range(0, len(X) - 30, 30)
    windows = [np.arange(start, min(start + 60, len(X))) for start in starts]
    overlaps = [np.arange(start, min(start + 30, len(X))) for start in list(starts)[1:]]
    return Composite([(window, 1.0) for window in windows] + [(overlap, -1.0) for overlap in overlaps])


def test_a_choice_of_terms_is_learned_from_and_predicted_by(data):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, segmentation=overlapping_windows, prediction="composite").fit(X, y)
    composite = overlapping_windows(X, KERNEL)
    result = learn(KERNEL, X, y, composite)
    np.testing.assert_allclose(model.kernel_.theta, result.theta, rtol=1e-10, atol=0)
    belief = posterior(result.kernel, X, y, Z, composite)
    np.testing.assert_allclose(model.predict(Z), belief.mean, rtol=0, atol=1e-8)


def test_a_choice_of_terms_that_does_not_fit_the_data_is_named(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="segmentation names point 999"):
        CompositeGPRegressor(KERNEL, segmentation=lambda X, kernel: Composite.full(1000)).fit(X, y)
    with pytest.raises(ValueError, match="composite must be a Composite"):
        CompositeGPRegressor(KERNEL, segmentation=lambda X, kernel: [X]).fit(X, y)


@storable
class InverseDistance(PredictionMethod):
    """A weighted average of the data, with the prior's variance: not a good method, but a whole one."""

    def __init__(self, power=2.0):
        self.power = power

    def check(self):
        if not self.power > 0:
            raise ValueError(f"power must be positive; found {self.power!r}.")

    def bind(self, fitted):
        return InverseDistancePredictor(self, fitted.data)


class InverseDistancePredictor(Predictor):
    def __init__(self, method, data):
        self.method, self._data = method, data

    def marginals(self, Z, n_jobs):
        distances = np.abs(Z[:, None, 0] - self._data.X[None, :, 0]) + 1e-12
        weights = distances**-self.method.power
        mean = weights @ self._data.targets / weights.sum(axis=1)
        return Marginals(mean, np.ones(len(Z)))


def test_a_prediction_method_predicts_is_saved_and_checked(data, tmp_path):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, prediction=InverseDistance(4.0)).fit(X, y)
    np.testing.assert_allclose(model.predict(X[:5]), y[:5], rtol=0, atol=1e-6)
    assert model.predict(Z, return_std=True)[1] == pytest.approx(np.sqrt(1.1))
    assert model.predict_interval(Z)[0].shape == (15,)
    np.testing.assert_array_equal(model.set_params(prediction__power=1.0).predict(Z).shape, (15,))
    model.save(tmp_path / "model.cgp")
    again = CompositeGPRegressor.load(tmp_path / "model.cgp")
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    with pytest.raises(ValueError, match="no joint covariance"):
        model.sample_y(Z)
    with pytest.raises(ValueError, match="power must be positive"):
        model.set_params(prediction__power=-1.0).predict(Z)
