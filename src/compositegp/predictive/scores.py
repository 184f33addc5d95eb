"""Scores of predictions against what was observed."""

from numpy.typing import ArrayLike
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from compositegp.predictive.distribution import PredictiveDistribution


def point_scores(predicted: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """RMSE and MAE of single numbers."""
    return {
        "RMSE": float(root_mean_squared_error(y, predicted)),
        "MAE": float(mean_absolute_error(y, predicted)),
    }


def score_predictions(
    predicted: PredictiveDistribution, y: ArrayLike, levels: tuple[float, ...] = (0.5, 0.95)
) -> dict[str, float]:
    """RMSE and MAE of the mean, and CRPS, log score and coverage of the distribution, averaged over the points.

    Examples
    --------
    >>> import numpy as np
    >>> scores = score_predictions(PredictiveDistribution(np.zeros(3), np.ones(3)), [-1.0, 0.0, 1.0])
    >>> {name: round(value, 2) for name, value in scores.items()}
    {'RMSE': 0.82, 'MAE': 0.67, 'CRPS': 0.48, 'log score': 1.25, 'coverage 50 %': 0.33, 'coverage 95 %': 1.0}
    """
    scores = point_scores(predicted.mean, y)
    scores["CRPS"] = float(predicted.crps(y).mean())
    scores["log score"] = float(predicted.log_score(y).mean())
    return scores | {f"coverage {100 * level:.4g} %": float(predicted.coverage(y, level)) for level in levels}
