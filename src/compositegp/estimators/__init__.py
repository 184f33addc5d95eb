"""Estimators: scikit-learn's contract around learning and posteriors."""

from compositegp.estimators.fitted_model import State
from compositegp.estimators.fitting import at_scale, default_kernel
from compositegp.estimators.predictive import Predictive
from compositegp.estimators.regressor import CompositeGPRegressor

__all__ = [
    "CompositeGPRegressor",
    "Predictive",
    "State",
    "at_scale",
    "default_kernel",
]
