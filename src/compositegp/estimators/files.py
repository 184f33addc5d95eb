"""Files of fitted regressors: their parameters and what they learned, as values that hold no code."""

from pathlib import Path
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.composite import Evidence, Latent
from compositegp.estimators.fitted_model import FittedModel, TargetScale
from compositegp.estimators.fitting import choices_of
from compositegp.learning import Average, KernelComparison, RecursiveEstimate
from compositegp.means import Basis, Constant, Estimated, Linear, MeanModel, as_mean
from compositegp.posteriors import Belief, Whitened
from compositegp.predictive import IdentityTarget, LogTarget, TransformedTarget
from compositegp.storage import read_archive, unreadable, write_archive

FORMAT = "compositegp regressor"
VERSION = 2

_FEATURES = ("n_features_in_", "feature_names_in_")
_OF_THE_MACHINE = ("device",)  # parameters that are not part of a model
_LATENT = ("points", "mean", "root", "unroot", "strengths", "basis")


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
    parameters = {f"parameters.{name}": value for name, value in given.items()}
    return {**parameters, "features": features, "model": _parts(model)}


def load(kind: type[Any], path: str | Path) -> tuple[Any, FittedModel]:
    """An estimator of a kind, and what it had learned, from a file that `save` wrote."""
    return from_content(kind, read_archive(path, FORMAT, VERSION), path)


def from_content(kind: type[Any], content: dict[str, Any], path: str | Path) -> tuple[Any, FittedModel]:
    """An estimator of a kind, and what it had learned, from what `content_of` made."""
    prefix = "parameters."
    given = {name.removeprefix(prefix): value for name, value in content.items() if name.startswith(prefix)}
    if "features" not in content or "model" not in content:
        raise unreadable(path, "a part of it is missing")
    try:
        estimator = kind(**given)
        for name in _FEATURES:
            if name in content["features"]:
                setattr(estimator, name, content["features"][name])
        return estimator, _build(estimator, content["model"], path)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise unreadable(path, f"a part of it is missing or damaged ({error})") from error
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise unreadable(path, f"a part of it is missing or damaged ({error})") from error


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
            "latent": {name: getattr(latent, name) for name in _LATENT},
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


def _build(estimator: Any, parts: dict[str, Any], path: str | Path) -> FittedModel:
    mean, estimate = parts["mean"], None
    if parts["coefficients"] is not None:
        if not isinstance(mean, Basis):
            raise unreadable(path, "its mean has no coefficients")
        estimate = Estimated(mean.functions, parts["coefficients"], parts["coefficient_covariance"])
    model = as_mean(mean)
    members, sizes, segments = parts["segment_members"], parts["segment_sizes"], None
    if members is not None:
        segments = np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []
    choices = choices_of(estimator)
    fitted = FittedModel(
        choices.prediction,
        choices.terms,
        TargetScale(
            LogTarget() if parts["log_target"] else IdentityTarget(),
            _plain(parts["offset"]),
            _plain(parts["scale"]),
        ),
        parts["kernel"],
        model,
        estimate,
        None if parts["theta"] is None else _average(parts["theta"]),
        parts["X"],
        parts["y"],
        parts["noise_variance"],
        segments,
        tuning=parts["tuning"],
        watched=None if parts["watched"] is None else _belief(parts["watched"], parts["kernel"], model),
        weights=parts["weights"],
        comparison=_comparison(parts.get("comparison")),  # files of earlier versions have none
    )
    noise, weights = fitted.noise_variance, fitted.weights
    n, d = fitted.X.shape
    fits = len(fitted.y) == n and d == estimator.n_features_in_
    fits = fits and all(values is None or values.shape == (n,) for values in (noise, weights))
    whole = members is None or (np.array_equal(np.sort(members), np.arange(n)) and sizes.sum() == n)
    if not fits or not whole:
        raise unreadable(path, "its arrays do not fit together")
    return fitted


def _plain(value: Floats) -> Any:
    return float(value) if value.ndim == 0 else value


def _comparison(values: dict[str, Any] | None) -> KernelComparison | None:
    return None if values is None else KernelComparison.from_values(values)


def _average(parts: dict[str, Any]) -> Average:
    estimate = RecursiveEstimate(parts["precision"], parts["shift"], parts["n_segments"], parts["largest"])
    return Average(
        estimate,
        parts["log_likelihood"],
        parts["n_points"],
        parts["n_segments"],
        parts["n_left_out"],
        parts["n_at_bound"],
    )


def _belief(parts: dict[str, Any], kernel: Any, mean: MeanModel) -> Belief:
    latent = Latent(**parts["latent"], variance=parts["variance"])
    natural = None if parts["precision"] is None else Evidence(parts["precision"], parts["shift"])
    whitened = Whitened(latent, parts["location"], parts["scale"], natural, kernel, mean)
    return Belief.of(whitened, tuple(parts["outputs"]))
