"""The kernel of a trend whose slope is damped, against Matérn's, its differential equation and finite differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp.forecasting.damped_trend import DampedTrend
from compositegp.kernels import diagonal, gram, linearize, noise_variance
from compositegp.storage import read_archive, write_archive

LENGTHS = [(3.0, 100.0), (100.0, 3.0), (5.0, 5.0), (5.0, 5.001), (5.0, 5.05), (40.0, 2000.0)]
FREE = (1e-5, 1e5)


@pytest.fixture
def times(rng):
    return np.sort(rng.uniform(0, 60, size=(12, 1)), axis=0)


@pytest.mark.parametrize("length", [0.7, 20.0])
def test_equal_lengths_are_matern_three_halves(times, length):
    expected = Matern(np.sqrt(3) * length, nu=1.5)(times)
    assert np.allclose(DampedTrend(length, length)(times), expected, rtol=1e-12)


@pytest.mark.parametrize(("slope", "level"), LENGTHS)
def test_it_is_the_transform_of_its_spectrum(slope, level):
    """The spectrum of (d/dt + a)(d/dt + b) x = white noise is proportional to 1 / ((ω² + a²)(ω² + b²))."""
    a, b = 1 / level, 1 / slope
    for lag in (0.0, 0.5, 10.0, 70.0):
        density = lambda w: 2 * a * b * (a + b) / np.pi / ((w**2 + a**2) * (w**2 + b**2))  # noqa: E731
        if lag:
            expected = quad(density, 0, np.inf, weight="cos", wvar=lag, limlst=200)[0]
        else:
            expected = quad(density, 0, a, limit=200)[0] + quad(density, a, np.inf, limit=200)[0]
        assert DampedTrend(slope, level)([[0.0]], [[lag]])[0, 0] == pytest.approx(expected, rel=0, abs=1e-6)


@pytest.mark.parametrize(("slope", "level"), [(3.0, 100.0), (12.0, 800.0)])
def test_a_forecast_goes_on_with_less_and_less_of_the_slope(slope, level):
    """Given level and slope, the process is Markov: their means follow the matrix exponential of its equation."""
    a, b = 1 / level, 1 / slope
    apart, ahead = 1e-3, np.array([[1.0], [5.0], [30.0]])
    past = np.array([[0.0], [-apart]])
    kernel = DampedTrend(slope, level)
    weights = np.linalg.solve(kernel(past), kernel(past, ahead)).T
    start = np.array([2.0, 0.3])  # level and slope
    found = weights @ np.array([start[0], start[0] - apart * start[1]])
    turn = np.array([[0.0, 1.0], [-a * b, -(a + b)]])
    assert np.allclose(found, [(expm(turn * h) @ start)[0] for h in ahead[:, 0]], rtol=2e-3)


@pytest.mark.parametrize(("slope", "level"), LENGTHS)
def test_the_derivative_is_that_of_finite_differences(times, slope, level):
    kernel = DampedTrend(slope, level, FREE, FREE)
    _, found = kernel(times, eval_gradient=True)
    for i, direction in enumerate(1e-5 * np.eye(2)):
        ends = [kernel.clone_with_theta(kernel.theta + sign * direction)(times) for sign in (1, -1)]
        assert np.allclose(found[:, :, i], (ends[0] - ends[1]) / 2e-5, rtol=0, atol=1e-8)


@pytest.mark.parametrize("bounds", [(FREE, FREE), (FREE, "fixed"), ("fixed", "fixed")])
def test_the_rules_are_the_kernels_own_answers(times, bounds):
    kernel = 2.0 * DampedTrend(4.0, 90.0, *bounds) + WhiteKernel(0.1)
    value, slopes = kernel(times, eval_gradient=True)
    found = linearize(kernel, times)
    assert np.allclose(found.value, value)
    assert np.allclose(found.jacobian(), np.moveaxis(slopes, -1, 0))
    trend = kernel.k1.k2
    assert np.allclose(gram(trend, times[None], times[None, :3])[0], trend(times, times[:3]))
    assert np.allclose(diagonal(trend, times), np.diagonal(trend(times)))
    assert not noise_variance(trend, times).any()


def test_it_is_stored(tmp_path):
    kernel = 2.0 * DampedTrend(4.0, 90.0, (1.0, 50.0))
    write_archive(tmp_path / "kernel", "test", 1, {"kernel": kernel})
    assert read_archive(tmp_path / "kernel", "test", 1)["kernel"] == kernel
