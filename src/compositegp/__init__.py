"""Gaussian-process regression on large data by composite likelihood.

A composite is a list of (index set, weight) terms; everything is a weighted sum, over the terms, of the exact
Gaussian process's quantity on that small set.
"""

from compositegp import analysis, simulate
from compositegp.backend import NumericalWarning, use_device
from compositegp.composite import Composite, conditioning_sets, fisher_information, segment
from compositegp.estimators import CompositeGPRegressor
from compositegp.kernels import OnColumns
from compositegp.learning import LearningResult, Progress, RecursiveEstimate, learn
from compositegp.means import Basis, Constant, Estimated, Linear, PeriodicLevels
from compositegp.posteriors import (
    Belief,
    FactoredComposite,
    Marginals,
    committee,
    factorize,
    nearest,
    posterior,
    prior,
    project,
    update,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "Basis",
    "Belief",
    "Composite",
    "CompositeGPRegressor",
    "Constant",
    "Estimated",
    "FactoredComposite",
    "LearningResult",
    "Linear",
    "Marginals",
    "NumericalWarning",
    "OnColumns",
    "PeriodicLevels",
    "Progress",
    "RecursiveEstimate",
    "analysis",
    "committee",
    "conditioning_sets",
    "factorize",
    "fisher_information",
    "learn",
    "nearest",
    "posterior",
    "prior",
    "project",
    "segment",
    "simulate",
    "update",
    "use_device",
]
