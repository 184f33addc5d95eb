"""The paper's experiments, each with its figures and its claims beside what was found."""

from compositegp.paper.claims import Claim, Experiment, markdown
from compositegp.paper.nox_model import learn_model
from compositegp.paper.nox_study import choices, forecast_day

__all__ = [
    "Claim",
    "Experiment",
    "choices",
    "forecast_day",
    "learn_model",
    "markdown",
]
