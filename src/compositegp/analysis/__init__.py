"""Analysis: what the approximation costs, in closed form (the paper's Section 5, for any composite)."""

from compositegp.analysis.comparison import Report, compare
from compositegp.analysis.directions import Direction, directions_of, length_scale_along
from compositegp.analysis.excess_error import actual_mse, observed_covariance
from compositegp.analysis.honest_variance import predict_honest_variance
from compositegp.analysis.linear_predictor import LinearPredictor, neighborhood, predictor, without_data
from compositegp.analysis.variograms import (
    EmpiricalVariogram,
    VariogramSummary,
    empirical_variogram,
    model_variogram,
    summarize_variogram,
    value_with_error,
)

__all__ = [
    "Direction",
    "EmpiricalVariogram",
    "LinearPredictor",
    "Report",
    "VariogramSummary",
    "actual_mse",
    "compare",
    "directions_of",
    "empirical_variogram",
    "length_scale_along",
    "model_variogram",
    "neighborhood",
    "observed_covariance",
    "predict_honest_variance",
    "predictor",
    "summarize_variogram",
    "value_with_error",
    "without_data",
]
