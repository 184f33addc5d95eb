"""The paper's experiments: figures, claims, and whether the numbers that were found agree with them."""

from compositegp.paper.claims import Claim, Experiment, write_csv
from compositegp.paper.nox_day import forecast_day
from compositegp.paper.nox_model import Model, learn_model
from compositegp.paper.nox_study import choices
from compositegp.paper.report import markdown
from compositegp.paper.verdicts import VERDICT_COLUMNS, changed_verdicts, verdict_rows

__all__ = [
    "VERDICT_COLUMNS",
    "Claim",
    "Experiment",
    "Model",
    "changed_verdicts",
    "choices",
    "forecast_day",
    "learn_model",
    "markdown",
    "verdict_rows",
    "write_csv",
]
