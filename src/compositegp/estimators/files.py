"""Files of fitted regressors: their parameters and their state, as values that hold no code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.backend import Floats
from compositegp.composite import Evidence, Latent
from compositegp.estimators.fitted_model import State
from compositegp.estimators.fitting import choices_of
from compositegp.learning import Average, RecursiveEstimate
from compositegp.means import Estimated, as_mean
from compositegp.posteriors import Belief, Whitened
from compositegp.predictive import AsTheyAre, Log, Transformed
from compositegp.storage import read_archive, unreadable, write_archive

FORMAT = "compositegp regressor"
VERSION = 1

_FEATURES = ("n_features_in_", "feature_names_in_")
_OF_THE_MACHINE = ("device",)  # parameters that are no part of a model
_WHITENED = ("points", "mean", "root", "unroot", "strengths", "basis")


def save(estimator: Any, state: State, path: str | Path) -> None:
    """Write a fitted estimator; the old file, if any, stays whole until the new one is."""
    if isinstance(state.transform, Transformed):
        raise ValueError(
            f"target_transform {estimator.target_transform!r} is an object with code of its own, which save does not "
            "write. Use pickle, or target_transform='log'."
        )
    features = {name: value for name, value in vars(estimator).items() if name in _FEATURES}
    # On one level, so that what cannot be written is named as the user knows it.
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _OF_THE_MACHINE}
    parameters = {f"parameters.{name}": value for name, value in given.items()}
    write_archive(path, FORMAT, VERSION, {**parameters, "features": features, "state": _parts(state)})


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Any], Callable[[Any], State]]:
    """Parameters and feature names of a stored estimator, and a function that builds its state."""
    content = read_archive(path, FORMAT, VERSION)
    prefix = "parameters."
    parameters = {name.removeprefix(prefix): value for name, value in content.items() if name.startswith(prefix)}
    if "features" not in content or "state" not in content:
        raise unreadable(path, "a part of it is missing")
    return parameters, content["features"], lambda estimator: _build(estimator, content["state"], path)


def _parts(state: State) -> dict[str, Any]:
    """The arrays and numbers that a state is made of."""
    sizes = np.array([len(part) for part in state.segments], dtype=np.intp)
    parts = {
        "log_target": isinstance(state.transform, Log),
        "offset": state.offset,
        "fitted_kernel": state.kernel,
        "fitted_mean": state.mean,
        "coefficients": None if state.estimate is None else np.asarray(state.estimate.coefficients),
        "coefficient_covariance": None if state.estimate is None else np.asarray(state.estimate.covariance),
        "X": state.X,
        "y": state.y,
        "noise_variance": state.noise_variance,
        "segment_members": np.concatenate([*state.segments, np.empty(0, dtype=np.intp)]),
        "segment_sizes": sizes,
        "theta": None,
        "watched": None,
    }
    if state.average is not None:
        estimate = state.average.estimate
        parts["theta"] = {
            "precision": estimate.precision,
            "shift": estimate.shift,
            "largest": estimate.largest,
            "n_at_bound": np.asarray(state.average.n_at_bound),
            "log_likelihood": state.average.log_likelihood,
            "n_points": state.average.n_points,
            "n_segments": state.average.n_segments,
            "n_left_out": state.average.n_left_out,
        }
    if state.watched is not None and state.watched.whitened is not None:
        latent, location, scale, natural = state.watched.whitened
        parts["watched"] = {
            "latent": {name: getattr(latent, name) for name in _WHITENED},
            "variance": latent.variance,
            "location": location,
            "scale": scale,
            "natural": None if natural is None else natural.matrix,
        }
    return parts


def _build(estimator: Any, parts: dict[str, Any], path: str | Path) -> State:
    try:
        mean, estimate = parts["fitted_mean"], None
        if parts["coefficients"] is not None:
            functions = as_mean(mean).coefficients.functions  # type: ignore[union-attr]
            estimate = Estimated(functions, parts["coefficients"], parts["coefficient_covariance"])
        sizes = parts["segment_sizes"]
        state = State(
            choices_of(estimator),
            Log() if parts["log_target"] else AsTheyAre(),
            float(parts["offset"]),
            parts["fitted_kernel"],
            mean,
            estimate,
            None if parts["theta"] is None else _average(parts["theta"]),
            parts["X"],
            parts["y"],
            parts["noise_variance"],
            np.split(parts["segment_members"], np.cumsum(sizes)[:-1]) if len(sizes) else [],
            watched=None if parts["watched"] is None else _belief(parts["watched"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise unreadable(path, f"a part of it is missing or damaged ({error})") from error
    noise, members = state.noise_variance, parts["segment_members"]
    n, d = state.X.shape
    fits = state.y.shape == (n,) and (noise is None or noise.shape == (n,)) and d == estimator.n_features_in_
    if not fits or not np.array_equal(np.sort(members), np.arange(n)) or sizes.sum() != n:
        raise unreadable(path, "its arrays do not fit together")
    return state


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


def _belief(parts: dict[str, Any]) -> Belief:
    latent = Latent(**parts["latent"], variance=parts["variance"])
    natural: Floats | None = parts["natural"]
    evidence = None if natural is None else Evidence(natural)
    return Belief.of(Whitened(latent, parts["location"], parts["scale"], evidence))
