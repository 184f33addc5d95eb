"""Short forms: a string for each prediction method with its default parameters."""

from typing import Any

from compositegp.prediction.committee import Committee
from compositegp.prediction.composite_sum import CompositeSum
from compositegp.prediction.inducing_points import Inducing
from compositegp.prediction.method import PredictionMethod
from compositegp.prediction.nearest import Nearest

SHORT_FORMS: dict[str, PredictionMethod] = {
    "nearest": Nearest(),
    "composite": CompositeSum(),
    "fitc": Inducing(rule="fitc"),
    "pitc": Inducing(rule="pitc"),
    "bcm": Committee("bcm"),
    "rbcm": Committee("rbcm"),
    "gpoe": Committee("gpoe"),
    "grbcm": Committee("grbcm"),
}


def as_prediction_method(prediction: Any) -> PredictionMethod:
    """A prediction method from a short form, or from an object, whose parameters are checked.

    Parameters
    ----------
    prediction : str or PredictionMethod

    Returns
    -------
    PredictionMethod

    Examples
    --------
    >>> as_prediction_method("rbcm")
    Committee()
    """
    if isinstance(prediction, str) and prediction in SHORT_FORMS:
        return SHORT_FORMS[prediction]
    if isinstance(prediction, PredictionMethod):
        prediction.check()
        return prediction
    names = ", ".join(repr(name) for name in SHORT_FORMS)
    raise ValueError(
        "prediction must be an object such as Nearest(512), CompositeSum(), Inducing(256, 'fitc') or "
        f"Committee('rbcm'), or one of {names}; found {prediction!r}."
    )
