"""Learning: hyper-parameters and mean coefficients from segments, with standard errors."""

from compositegp.learning.fisher import fisher_information
from compositegp.learning.learn import learn
from compositegp.learning.progress import Progress
from compositegp.learning.recursive import RecursiveEstimate
from compositegp.learning.result import LearningResult

__all__ = ["LearningResult", "Progress", "RecursiveEstimate", "fisher_information", "learn"]
