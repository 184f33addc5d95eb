"""Analysis: what the approximation costs, in closed form (the paper's Section 5, for any composite)."""

from compositegp.analysis.comparison import Report, compare
from compositegp.analysis.excess_error import actual_mse
from compositegp.analysis.linear_predictor import predictor
from compositegp.analysis.plans import Plan, flops, plans
from compositegp.analysis.segmentation_design import Candidate, Design, choose_segmentation

__all__ = [
    "Candidate",
    "Design",
    "Plan",
    "Report",
    "actual_mse",
    "choose_segmentation",
    "compare",
    "flops",
    "plans",
    "predictor",
]
