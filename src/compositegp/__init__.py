"""Gaussian-process regression on large data by composite likelihood.

A composite is a list of (index set, weight) terms; everything is a weighted sum, over the terms, of the exact
Gaussian process's quantity on that small set.
"""

# For type checkers it is true; typing is not imported, so that the command line starts quickly.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from compositegp import analysis, design, functionals, scorers, simulate
    from compositegp.backend import NumericalWarning, use_device
    from compositegp.composite import Composite, conditioning_sets, fisher_information, segment
    from compositegp.estimators import CompositeGPRegressor
    from compositegp.kernels import MaternOnSphere, OnColumns, OnSphere, RotatedMatern, RotatedMaternOnSphere
    from compositegp.learning import (
        CompositeLikelihood,
        FisherAverage,
        LearningResult,
        Progress,
        RecursiveEstimate,
        learn,
    )
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
    )
    from compositegp.prediction import Committee, CompositeSum, Inducing, Nearest, PredictionMethod, Predictor
    from compositegp.predictive import PredictiveDistribution

__version__ = "0.1.0"

__all__ = [
    "Basis",
    "Belief",
    "Committee",
    "Composite",
    "CompositeGPRegressor",
    "CompositeLikelihood",
    "CompositeSum",
    "Constant",
    "Estimated",
    "FactoredComposite",
    "FisherAverage",
    "Inducing",
    "LearningResult",
    "Linear",
    "Marginals",
    "MaternOnSphere",
    "Nearest",
    "NumericalWarning",
    "OnColumns",
    "OnSphere",
    "PeriodicLevels",
    "PredictionMethod",
    "PredictiveDistribution",
    "Predictor",
    "Progress",
    "RecursiveEstimate",
    "RotatedMatern",
    "RotatedMaternOnSphere",
    "analysis",
    "committee",
    "conditioning_sets",
    "design",
    "factorize",
    "fisher_information",
    "functionals",
    "learn",
    "nearest",
    "posterior",
    "prior",
    "project",
    "scorers",
    "segment",
    "simulate",
    "use_device",
]

_HOMES = {
    "Basis": "compositegp.means",
    "Belief": "compositegp.posteriors",
    "Committee": "compositegp.prediction",
    "Composite": "compositegp.composite",
    "CompositeGPRegressor": "compositegp.estimators",
    "CompositeLikelihood": "compositegp.learning",
    "CompositeSum": "compositegp.prediction",
    "Constant": "compositegp.means",
    "Estimated": "compositegp.means",
    "FactoredComposite": "compositegp.posteriors",
    "FisherAverage": "compositegp.learning",
    "Inducing": "compositegp.prediction",
    "LearningResult": "compositegp.learning",
    "Linear": "compositegp.means",
    "Marginals": "compositegp.posteriors",
    "MaternOnSphere": "compositegp.kernels",
    "Nearest": "compositegp.prediction",
    "NumericalWarning": "compositegp.backend",
    "OnColumns": "compositegp.kernels",
    "OnSphere": "compositegp.kernels",
    "PeriodicLevels": "compositegp.means",
    "PredictionMethod": "compositegp.prediction",
    "PredictiveDistribution": "compositegp.predictive",
    "Predictor": "compositegp.prediction",
    "Progress": "compositegp.learning",
    "RecursiveEstimate": "compositegp.learning",
    "RotatedMatern": "compositegp.kernels",
    "RotatedMaternOnSphere": "compositegp.kernels",
    "committee": "compositegp.posteriors",
    "conditioning_sets": "compositegp.composite",
    "factorize": "compositegp.posteriors",
    "fisher_information": "compositegp.composite",
    "learn": "compositegp.learning",
    "nearest": "compositegp.posteriors",
    "posterior": "compositegp.posteriors",
    "prior": "compositegp.posteriors",
    "project": "compositegp.posteriors",
    "segment": "compositegp.composite",
    "use_device": "compositegp.backend",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that the command line starts quickly."""
    from importlib import import_module

    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        found = import_module(f"compositegp.{name}")
    else:
        raise AttributeError(f"module 'compositegp' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
