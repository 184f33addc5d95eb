"""Scores of probabilistic forecasts."""

import numpy as np
from scipy.special import ndtr

from compositegp.backend import Floats


def crps(mean: Floats, std: Floats, y: Floats) -> Floats:
    """Continuous ranked probability score of Gaussian forecasts, for each value."""
    z = (y - mean) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.asarray(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))


def crps_log_normal(mean: Floats, std: Floats, y: Floats) -> Floats:
    """The same of log-normal forecasts, given the mean and standard deviation of the logarithm."""
    z = (np.log(y) - mean) / std
    expected = np.exp(mean + 0.5 * std**2)
    return np.asarray(y * (2 * ndtr(z) - 1) - 2 * expected * (ndtr(z - std) + ndtr(std / np.sqrt(2)) - 1))
