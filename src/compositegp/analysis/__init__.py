"""Analysis: what the approximation costs, in closed form (the paper's Section 5, for any composite)."""

from compositegp.analysis.comparison import Report, compare
from compositegp.analysis.excess_error import actual_mse, observed_covariance
from compositegp.analysis.honest_variance import predict_honest_variance
from compositegp.analysis.linear_predictor import neighborhood, predictor, without_data

__all__ = [
    "Report",
    "actual_mse",
    "compare",
    "neighborhood",
    "observed_covariance",
    "predict_honest_variance",
    "predictor",
    "without_data",
]
