"""Predictive distributions in the target's own unit, and scores of them."""

from compositegp.predictive.calibration import Calibration, ratios
from compositegp.predictive.combination import combine_predictions
from compositegp.predictive.distribution import PredictiveDistribution
from compositegp.predictive.families import Family, Normal, NormalMixture, StudentT
from compositegp.predictive.scores import point_scores, score_predictions
from compositegp.predictive.target_transforms import (
    IdentityTarget,
    LogTarget,
    PowerTarget,
    TargetTransform,
    TransformedTarget,
    as_target_transform,
)
from compositegp.predictive.two_piece import TwoPieceT

__all__ = [
    "Calibration",
    "Family",
    "IdentityTarget",
    "LogTarget",
    "Normal",
    "NormalMixture",
    "PowerTarget",
    "PredictiveDistribution",
    "StudentT",
    "TargetTransform",
    "TransformedTarget",
    "TwoPieceT",
    "as_target_transform",
    "combine_predictions",
    "point_scores",
    "ratios",
    "score_predictions",
]
