"""Analysis: what the approximation costs, in closed form (the paper's Section 5, for any composite)."""

from compositegp.analysis.compare import Report, compare
from compositegp.analysis.design import Candidate, Design, choose_segmentation
from compositegp.analysis.pictures import plot_confidence, plot_errors, plot_trade_off
from compositegp.analysis.plans import Plan

__all__ = [
    "Candidate",
    "Design",
    "Plan",
    "Report",
    "choose_segmentation",
    "compare",
    "plot_confidence",
    "plot_errors",
    "plot_trade_off",
]
