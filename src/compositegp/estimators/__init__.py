"""Estimators: scikit-learn's contract around learning, terms and predictions."""

from compositegp.estimators.held_out import ValidationReport
from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = [
    "CompositeGPRegressor",
    "ValidationReport",
]
