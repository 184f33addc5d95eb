"""Estimators with the interface of scikit-learn, around learning, terms and predictions."""

from compositegp.estimators.held_out import ValidationReport
from compositegp.estimators.importances import Importances
from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = [
    "CompositeGPRegressor",
    "Importances",
    "ValidationReport",
]
