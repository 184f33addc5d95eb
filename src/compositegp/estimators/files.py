"""Files of fitted regressors: their parameters and what they learned, as values that hold no code."""

from pathlib import Path
from typing import Any

import numpy as np

from compositegp.estimators.fitted_model import FittedModel
from compositegp.estimators.fitting import choices_of
from compositegp.estimators.stored_parts import LATENT, build_model
from compositegp.means import Basis, Constant, Estimated, Linear, MeanModel, as_mean
from compositegp.predictive import LogTarget, TransformedTarget
from compositegp.storage import Fields, damaged, read_archive, write_archive
from compositegp.validation import check_noise_variance

FORMAT = "compositegp regressor"
VERSION = 3

_FEATURES = ("n_features_in_", "feature_names_in_")
_OF_THE_MACHINE = ("device", "n_jobs")  # parameters that are not part of a model
_PREFIX = "parameters."  # of parameters in a file
_MOST_RESTARTS = 1000  # that a file may ask for: each is a search for the best likelihood


def save(estimator: Any, model: FittedModel, path: str | Path) -> None:
    """Write a fitted estimator; the old file, if any, stays whole until the new one is."""
    write_archive(path, FORMAT, VERSION, content_of(estimator, model))


def content_of(estimator: Any, model: FittedModel) -> dict[str, Any]:
    """A fitted estimator as a dictionary of values that `write_archive` takes."""
    if isinstance(model.target.transform, TransformedTarget):
        raise ValueError(
            f"target_transform {estimator.target_transform!r} is an object with code of its own, which save does not "
            "write. Use pickle, or target_transform='log'."
        )
    features = {name: value for name, value in vars(estimator).items() if name in _FEATURES}
    # On one level, so that an error names a parameter as the user knows it.
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _OF_THE_MACHINE}
    parameters = {f"{_PREFIX}{name}": value for name, value in given.items()}
    return {**parameters, "features": features, "model": _parts(model)}


def load(kind: type[Any], path: str | Path) -> tuple[Any, FittedModel]:
    """An estimator of a kind, and what it had learned, from a file that `save` wrote."""
    return from_content(kind, read_archive(path, FORMAT, VERSION), path)


def from_content(kind: type[Any], content: Any, path: str | Path) -> tuple[Any, FittedModel]:
    """An estimator of a kind, and what it had learned, from what `content_of` made; `path` is named in errors."""
    try:
        parameters = kind().get_params(deep=False)
        names = [f"{_PREFIX}{name}" for name in parameters if name not in _OF_THE_MACHINE]
        machine = [f"{_PREFIX}{name}" for name in _OF_THE_MACHINE]  # a file may name them; they are not read
        fields = Fields(content, [*names, "features", "model"], machine)
        estimator = kind(**{name.removeprefix(_PREFIX): fields[name] for name in names})
        _check_parameters(estimator)
        _set_features(estimator, fields["features"])
        return estimator, build_model(choices_of(estimator), fields["model"], estimator.n_features_in_)
    except Exception as error:  # what is in the file may be none of our values
        raise damaged(path, error) from error


def _check_parameters(estimator: Any) -> None:
    """The rules of the parameters, and limits on what a file may ask for."""
    estimator._check_parameters()
    seed = estimator.random_state
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32):
        raise ValueError(f"random_state must be a whole number or None; found {seed!r:.60}")
    if callable(estimator.segmentation):
        raise ValueError("segmentation is a function, which no file holds")
    check_noise_variance(estimator.alpha, max(np.size(estimator.alpha), 1), "alpha")
    if estimator.target_transform not in (None, "log"):
        raise ValueError(f"target_transform must be 'log' or None; found {estimator.target_transform!r:.60}")
    if not isinstance(
        estimator.mean, int | float | str | list | np.ndarray | Constant | Linear | Basis | Estimated | None
    ):
        raise ValueError(f"mean is no mean that a file can have; found {type(estimator.mean).__name__}")
    as_mean(estimator.mean)
    restarts = getattr(estimator.learning, "n_restarts", 0)
    if not isinstance(restarts, str) and restarts > _MOST_RESTARTS:
        raise ValueError(f"n_restarts is {estimator.learning.n_restarts}, and a file may ask for {_MOST_RESTARTS}")


def _set_features(estimator: Any, values: Any) -> None:
    features = Fields(values, ["n_features_in_"], _FEATURES)
    estimator.n_features_in_ = features.count("n_features_in_", least=1)
    names = features["feature_names_in_"]
    if names is None:
        return
    is_text = isinstance(names, np.ndarray) and names.dtype.kind in "OU" and all(isinstance(n, str) for n in names)
    if not is_text or names.shape != (estimator.n_features_in_,):
        raise ValueError("feature_names_in_ must have a text for each column")
    estimator.feature_names_in_ = names.astype(object)


def _parts(model: FittedModel) -> dict[str, Any]:
    """The arrays and numbers that a fitted model is made of."""
    segments = model.segments
    parts: dict[str, Any] = {
        "log_target": isinstance(model.target.transform, LogTarget),
        "offset": np.asarray(model.target.offset),
        "scale": np.asarray(model.target.scale),
        "kernel": model.kernel,
        "mean": _mean_of(model.mean),
        "coefficients": None if model.estimate is None else np.asarray(model.estimate.coefficients),
        "coefficient_covariance": None if model.estimate is None else np.asarray(model.estimate.covariance),
        "X": model.X,
        "y": model.y,
        "noise_variance": model.noise_variance,
        "weights": model.weights,
        "segment_members": None if segments is None else np.concatenate([*segments, np.empty(0, dtype=np.intp)]),
        "segment_sizes": None if segments is None else np.array([len(part) for part in segments], dtype=np.intp),
        "waiting": model.waiting,
        "tuning": model.tuning,
        "theta": None,
        "watched": None,
        "comparison": None if model.comparison is None else model.comparison.to_values(),
    }
    if model.average is not None:
        estimate = model.average.estimate
        parts["theta"] = {
            "precision": estimate.precision,
            "shift": estimate.shift,
            "largest": estimate.largest,
            "n_at_bound": np.asarray(model.average.n_at_bound),
            "log_likelihood": model.average.log_likelihood,
            "n_points": model.average.n_points,
            "n_segments": model.average.n_segments,
            "n_left_out": model.average.n_left_out,
        }
    if model.watched is not None and model.watched.whitened is not None:
        latent, location, scale, natural, *_ = model.watched.whitened
        parts["watched"] = {
            "latent": {name: getattr(latent, name) for name in LATENT},
            "variance": latent.variance,
            "location": location,
            "scale": scale,
            "precision": None if natural is None else natural.precision,
            "shift": None if natural is None else natural.shift,
            "outputs": model.watched.outputs,
        }
    return parts


def _mean_of(mean: MeanModel) -> Any:
    """A mean as a value that can be written: one of the mean's classes."""
    if mean.coefficients is not None:
        return mean.coefficients
    if isinstance(mean.known, Constant | Linear):
        return mean.known
    raise ValueError(
        f"mean is {mean.known!r}, which save does not write: it would need code to be read again. Use pickle, or a "
        "named mean ('constant', 'linear')."
    )
