"""Scores of predictions: how near, and how well the error bars tell it."""

import numpy as np
from scipy.special import ndtr


def scores(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """RMSE, MAE, NLPD, CRPS, interval score (95 %) and coverage (95 %) of Gaussian predictions."""
    z = (y - mean) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    lower, upper = mean - 1.959964 * std, mean + 1.959964 * std
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return {
        "RMSE": float(np.sqrt(np.mean((y - mean) ** 2))),
        "MAE": float(np.mean(np.abs(y - mean))),
        "NLPD": float(np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi))),
        "CRPS": float(np.mean(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))),
        "interval": float(np.mean(upper - lower + 40 * outside)),
        "coverage": float(np.mean(outside == 0)),
    }
