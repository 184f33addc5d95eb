"""Files of fitted models: a zip archive of NumPy arrays and one JSON text. Nothing in it is ever executed."""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.arrays import Floats
from compositegp.composite import Evidence, Latent
from compositegp.estimators.encoding import decode, encode
from compositegp.estimators.fitting import choices_of
from compositegp.estimators.scaling import Scaling
from compositegp.estimators.state import State
from compositegp.estimators.targets import AsTheyAre, Log, Transformed
from compositegp.learning.averaging import Average
from compositegp.learning.recursive import RecursiveEstimate
from compositegp.means import Estimated, as_mean
from compositegp.posteriors import Belief
from compositegp.posteriors.belief import Whitened

FORMAT = "compositegp regressor"
VERSION = 1

_WHITENED = ("points", "mean", "root", "unroot", "strengths", "basis")


def save(estimator: Any, state: State, path: str | Path) -> None:
    """Write a fitted estimator; the old file, if any, stays whole until the new one is."""
    if isinstance(state.transform, Transformed):
        raise ValueError(
            f"target_transform {estimator.target_transform!r} is an object with code of its own, which save does not "
            "write. Use pickle, or target_transform='log'."
        )
    arrays: dict[str, Any] = {}
    text = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": {
            name: encode(value, name, arrays) for name, value in estimator.get_params(deep=False).items()
        },
        "features": {
            name: encode(value, name, arrays)
            for name, value in vars(estimator).items()
            if name in ("n_features_in_", "feature_names_in_")
        },
        "state": {name: encode(value, name, arrays) for name, value in _parts(state).items()},
    }
    write_atomically(Path(path), _archive(text, arrays))


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Any], Callable[[Any], State]]:
    """Parameters and feature names of a stored estimator, and a function that builds its state."""
    text, arrays = _read(Path(path))
    try:
        parameters = {name: decode(value, arrays) for name, value in text["parameters"].items()}
        features = {name: decode(value, arrays) for name, value in text["features"].items()}
        parts = {name: decode(value, arrays) for name, value in text["state"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(path, f"a part of it is missing or damaged ({error})") from error
    return parameters, features, lambda estimator: _build(estimator, parts, path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at every moment the old or the new content is there, whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _archive(text: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", json.dumps(text, allow_nan=True))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read("model.json"))
            if not isinstance(text, dict) or text.get("format") != FORMAT:
                raise _unreadable(path, "it is no model that CompositeGPRegressor.save wrote")
            if text.get("version") != VERSION:
                raise ValueError(
                    f"{path} has version {text.get('version')} of the format, and this release of compositegp reads "
                    f"version {VERSION}. Use the release that wrote it, or one that is newer."
                )
            arrays = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    content = io.BytesIO(archive.read(name))  # checks the archive's checksum
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
            return text, arrays
    except (zipfile.BadZipFile, KeyError, EOFError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, f"it is truncated, damaged or of another kind ({error})") from error
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise _unreadable(path, f"an array in it is damaged ({error})") from error


def _unreadable(path: str | Path, why: str) -> ValueError:
    return ValueError(f"{path} cannot be read: {why}. Save the model again.")


def _parts(state: State) -> dict[str, Any]:
    """The arrays and numbers that a state is made of."""
    sizes = np.array([len(part) for part in state.segments], dtype=np.intp)
    parts = {
        "log_target": isinstance(state.transform, Log),
        "centre": state.scaling.centre,
        "spread": state.scaling.spread,
        "offset": state.scaling.offset,
        "unit": state.scaling.unit,
        "fitted_kernel": state.kernel,
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
        scaling = Scaling(parts["centre"], parts["spread"], float(parts["offset"]), float(parts["unit"]))
        members, sizes = parts["segment_members"], parts["segment_sizes"]
        mean = scaling.mean(estimator.mean, parts["X"])
        estimate = None
        if parts["coefficients"] is not None:
            functions = as_mean(mean).coefficients.functions  # type: ignore[union-attr]
            estimate = Estimated(functions, parts["coefficients"], parts["coefficient_covariance"])
        return State(
            choices_of(estimator),
            Log() if parts["log_target"] else AsTheyAre(),
            scaling,
            parts["fitted_kernel"],
            mean,
            estimate,
            None if parts["theta"] is None else _average(parts["theta"]),
            parts["X"],
            parts["y"],
            parts["noise_variance"],
            np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else [],
            watched=None if parts["watched"] is None else _belief(parts["watched"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _unreadable(path, f"a part of it is missing or damaged ({error})") from error


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
