"""Learning: hyper-parameters and mean coefficients from segments, with standard errors."""

from compositegp.learning.composite_likelihood import CompositeLikelihood
from compositegp.learning.custom_optimizer import CustomOptimizer
from compositegp.learning.defaults import at_scale, default_kernel
from compositegp.learning.fisher_average import FisherAverage
from compositegp.learning.fisher_scoring import maximize
from compositegp.learning.hyperparameters import (
    SCALE_SEGMENTS,
    as_learning_method,
    learn,
    learn_from,
    problem_of,
    solve,
)
from compositegp.learning.kernel_choice import (
    candidates_of,
    check_kernel_choice,
    choose_kernel,
    choose_kernel_from,
    is_automatic,
    kernel_family,
    single_kernel,
)
from compositegp.learning.kernel_comparison import ComparedKernel, KernelComparison
from compositegp.learning.method import LearningMethod
from compositegp.learning.problem import Reporter
from compositegp.learning.recursive_estimate import RecursiveEstimate
from compositegp.learning.result import LearningResult, Progress
from compositegp.learning.segment_estimate import Average, BlockEstimate, estimate_block
from compositegp.learning.segment_reader import LocalSegments
from compositegp.learning.starting_values import starting_kernel, starting_points

__all__ = [
    "SCALE_SEGMENTS",
    "Average",
    "BlockEstimate",
    "ComparedKernel",
    "CompositeLikelihood",
    "CustomOptimizer",
    "FisherAverage",
    "KernelComparison",
    "LearningMethod",
    "LearningResult",
    "LocalSegments",
    "Progress",
    "RecursiveEstimate",
    "Reporter",
    "as_learning_method",
    "at_scale",
    "candidates_of",
    "check_kernel_choice",
    "choose_kernel",
    "choose_kernel_from",
    "default_kernel",
    "estimate_block",
    "is_automatic",
    "kernel_family",
    "learn",
    "learn_from",
    "maximize",
    "problem_of",
    "single_kernel",
    "solve",
    "starting_kernel",
    "starting_points",
]
