"""Estimators: scikit-learn's contract around learning, terms and predictions."""

from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = [
    "CompositeGPRegressor",
]
