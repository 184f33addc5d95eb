"""A warning about targets that the others contradict: mistakes of measurement bend a Gaussian process."""

import numpy as np

from compositegp.backend import warn_caller
from compositegp.estimators.fitted_model import FittedModel
from compositegp.prediction import NeighborhoodTuning

_NAMED = 3  # values in the message


def warn_of_doubtful_targets(model: FittedModel) -> None:
    """Warn if a few targets are far beyond what the others say, and the fit bends to them."""
    tuning = model.tuning
    if not isinstance(tuning, NeighborhoodTuning) or tuning.gross is None or not len(tuning.gross):
        return
    rows = np.asarray(tuning.gross)
    values = model.target.transform.inverse(model.target.offset + model.target.scale * model.y[rows[:_NAMED]])
    named = ", ".join(str([f"{one:.6g}" for one in value]) if value.ndim else f"{value:.6g}" for value in values)
    subject = "one is" if len(rows) == 1 else f"{len(rows)} are"
    warn_caller(
        f"Of the targets that were predicted from all the others, {subject} off by more than ten usual errors: "
        f"{named}{', …' if len(rows) > _NAMED else ''}. The model takes that for noise or for sharp peaks, and its "
        "predictions are worse for it. If it is a mistake, leave the row out, or give it a small sample_weight, and "
        "fit again; predict_leave_one_out has the error of every row. If values are so skewed, give a "
        "target_transform such as 'log'.",
        UserWarning,
    )
