"""Design: which segmentation and which prediction method to use, by the error under the model and the cost."""

from compositegp.design.plans import Clock, Plan, flops, possible_plans
from compositegp.design.segmentation_choice import Candidate, Design, choose_segmentation

__all__ = [
    "Candidate",
    "Clock",
    "Design",
    "Plan",
    "choose_segmentation",
    "flops",
    "possible_plans",
]
