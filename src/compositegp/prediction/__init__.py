"""Prediction methods: which terms give evidence about a test point, and how it is combined."""

from compositegp.prediction.committee import Committee
from compositegp.prediction.composite_sum import CompositeSum
from compositegp.prediction.fitted_terms import FittedTerms
from compositegp.prediction.functional_calibration import functional_spread
from compositegp.prediction.inducing_points import Inducing
from compositegp.prediction.method import PredictionMethod, Predictor
from compositegp.prediction.nearest import ExactPredictor, Nearest
from compositegp.prediction.neighborhood_tuning import (
    NeighborCurve,
    NeighborhoodTuning,
    chosen_neighbors,
    spread_of,
)
from compositegp.prediction.short_forms import SHORT_FORMS, as_prediction_method
from compositegp.prediction.theta_mixture import ThetaMixture, over_theta
from compositegp.prediction.theta_posterior import Proposal

__all__ = [
    "SHORT_FORMS",
    "Committee",
    "CompositeSum",
    "ExactPredictor",
    "FittedTerms",
    "Inducing",
    "Nearest",
    "NeighborCurve",
    "NeighborhoodTuning",
    "PredictionMethod",
    "Predictor",
    "Proposal",
    "ThetaMixture",
    "as_prediction_method",
    "chosen_neighbors",
    "functional_spread",
    "over_theta",
    "spread_of",
]
