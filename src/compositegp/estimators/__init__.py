"""Estimators: scikit-learn's contract around learning and posteriors."""

from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = ["CompositeGPRegressor"]
