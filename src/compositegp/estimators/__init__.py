"""Estimators with the interface of scikit-learn, around learning, terms and predictions."""

from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = [
    "CompositeGPRegressor",
]
