"""Learning: hyper-parameters and mean coefficients from segments, with standard errors."""

from compositegp.learning.fisher_average import Average, BlockEstimate, estimate_block
from compositegp.learning.fisher_scoring import maximise
from compositegp.learning.hyperparameters import METHODS, SCALE_SEGMENTS, learn, run, task_of
from compositegp.learning.problem import Reporter
from compositegp.learning.recursive_estimate import RecursiveEstimate
from compositegp.learning.result import LearningResult, Progress
from compositegp.learning.segment_reader import LocalSegments
from compositegp.learning.starting_values import data_scale, starting_kernel

__all__ = [
    "METHODS",
    "SCALE_SEGMENTS",
    "Average",
    "BlockEstimate",
    "LearningResult",
    "LocalSegments",
    "Progress",
    "RecursiveEstimate",
    "Reporter",
    "data_scale",
    "estimate_block",
    "learn",
    "maximise",
    "run",
    "starting_kernel",
    "task_of",
]
