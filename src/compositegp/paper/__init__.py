"""The paper's experiments: figures, claims, and whether the numbers that were found agree with them."""

from compositegp.paper.claims import VERDICT_COLUMNS, Claim, Experiment, markdown, verdict_rows, write_csv
from compositegp.paper.nox_model import Model, learn_model
from compositegp.paper.nox_study import choices, forecast_day

__all__ = [
    "VERDICT_COLUMNS",
    "Claim",
    "Experiment",
    "Model",
    "choices",
    "forecast_day",
    "learn_model",
    "markdown",
    "verdict_rows",
    "write_csv",
]
