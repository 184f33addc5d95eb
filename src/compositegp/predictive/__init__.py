"""Predictive distributions in the target's own unit, and scores of them."""

from compositegp.predictive.scores import crps, crps_log_normal
from compositegp.predictive.target_transforms import AsTheyAre, Log, Transformed, as_target_transform, quantile

__all__ = [
    "AsTheyAre",
    "Log",
    "Transformed",
    "as_target_transform",
    "crps",
    "crps_log_normal",
    "quantile",
]
