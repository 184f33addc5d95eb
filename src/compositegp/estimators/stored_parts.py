"""A fitted model from the parts that a file has: each part is checked, so that what was loaded can be used."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Evidence, Latent
from compositegp.estimators.fitted_model import FittedModel, TargetScale
from compositegp.estimators.fitting import Choices
from compositegp.functionals import OnFunctionals, matching_mean, plain_points
from compositegp.kernels import check_covariances
from compositegp.learning import Average, KernelComparison, RecursiveEstimate
from compositegp.means import (
    Basis,
    Constant,
    Estimated,
    Linear,
    MeanModel,
    as_mean,
    check_coefficients,
    check_covariance,
    gaussian_prior,
)
from compositegp.posteriors import Belief, Whitened
from compositegp.predictive import IdentityTarget, LogTarget
from compositegp.storage import Fields
from compositegp.validation import check_kernel, check_noise_variance

NAMES = (
    "log_target",
    "offset",
    "scale",
    "kernel",
    "mean",
    "coefficients",
    "coefficient_covariance",
    "X",
    "y",
    "noise_variance",
    "weights",
    "segment_members",
    "segment_sizes",
    "tuning",
    "theta",
    "watched",
)
LATENT = ("points", "mean", "root", "unroot", "strengths", "basis")
THETA = (
    "precision",
    "shift",
    "largest",
    "n_at_bound",
    "log_likelihood",
    "n_points",
    "n_segments",
    "n_left_out",
)
_LARGEST_TARGET = 1e300  # so that predictions are finite
WATCHED = ("latent", "variance", "location", "scale", "precision", "shift", "outputs")


def build_model(choices: Choices, values: Any, d: int) -> FittedModel:
    """The model of a regressor with `d` columns; a ValueError says which part is not what it should be.

    Parameters
    ----------
    choices : Choices
    values : dict
        The parts by their names.
    d : int
    """
    parts = Fields(values, NAMES, ["comparison", "waiting"])
    kernel, mean = check_kernel(parts["kernel"]), _mean(parts["mean"])
    rows = isinstance(kernel, OnFunctionals) and parts["watched"] is None
    X = parts.reals("X", None, d + 1 if rows else d)
    if rows:
        _check_rows(kernel, X, d)
    n, outputs = len(X), np.shape(parts["y"])[1:]
    y = parts.reals("y", n, *(outputs[:1] and (None,)))
    watched = parts["watched"]
    if (watched is None) == (n == 0) or 0 in outputs:
        raise ValueError("its arrays do not fit together: X and y are empty")
    check_covariances(kernel, X if n else np.zeros((1, d)))
    q = _check_mean(
        mean, plain_points(kernel, X) if n else np.zeros((1, d)), outputs, n if watched is None else None
    )
    choices.prediction.check_tuning(parts["tuning"], q, outputs)
    segments = _segments(parts, n)
    return FittedModel(
        choices.prediction,
        choices.terms,
        _target(parts, y, outputs),
        kernel,
        mean,
        _estimate(parts, mean, q, outputs),
        None if parts["theta"] is None else _average(parts["theta"], len(kernel.theta)),
        X,
        y,
        None if parts["noise_variance"] is None else check_noise_variance(parts.reals("noise_variance", n), n),
        segments,
        tuning=parts["tuning"],
        watched=None if watched is None else _belief(watched, kernel, mean, d, q, outputs),
        weights=_weights(parts, n),
        comparison=None if parts["comparison"] is None else KernelComparison.from_values(parts["comparison"]),
        waiting=_waiting(parts, segments),
    )


def _check_rows(kernel: Kernel, X: Floats, d: int) -> None:
    """Check that rows name functionals that the kernel knows, where it is one of functionals."""
    if isinstance(kernel, OnFunctionals):
        numbers = X[:, -1]
        known = (numbers >= -1) & (numbers < len(kernel.functionals)) & (numbers == np.floor(numbers))
        if kernel.functionals.n_columns != d or not known.all():
            raise ValueError("its observed functionals do not fit its kernel")


def _mean(mean: Any) -> MeanModel:
    if not isinstance(mean, Constant | Linear | Basis | Estimated):
        raise ValueError(f"mean is no mean that a file can have; found {type(mean).__name__}")
    return as_mean(mean)


def _check_mean(mean: MeanModel, X: Floats, outputs: tuple[int, ...], n: int | None) -> int:
    """Number of basis functions of a mean that fits the points; without a prior there is a datum for each of them."""
    mean.values(X[:1])
    q = int(mean.columns(X[:1]).shape[1])
    prior = gaussian_prior(mean.coefficients, q)
    if prior is not None and prior.mean.shape[1] not in (1, *outputs):
        raise ValueError(f"the mean's coefficients are those of {prior.mean.shape[1]} outputs")
    if prior is None and n is not None and q > max(n, X.shape[1] + 1):
        raise ValueError(f"its mean has {q} unknown coefficients for {n} observations")
    return q


def _target(parts: Fields, y: Floats, outputs: tuple[int, ...]) -> TargetScale:
    offset, scale = (parts.reals(name, *np.shape(parts[name])) for name in ("offset", "scale"))
    if not {offset.shape, scale.shape} <= {(), outputs} or not (scale > 0).all():
        raise ValueError("the offset and the scale of its target do not fit its outputs")
    with np.errstate(over="ignore"):
        largest = np.abs(offset) + scale * (1 + np.abs(y).max(initial=0.0))
    if not (largest < _LARGEST_TARGET).all():
        raise ValueError(f"its targets are larger than {_LARGEST_TARGET:g}")
    transform = LogTarget() if parts.truth("log_target") else IdentityTarget()
    return TargetScale(transform, _plain(offset), _plain(scale))


def _plain(value: Floats) -> Any:
    return float(value) if value.ndim == 0 else value


def _estimate(parts: Fields, mean: MeanModel, q: int, outputs: tuple[int, ...]) -> Estimated | None:
    if parts["coefficients"] is None and parts["coefficient_covariance"] is None:
        return None
    if not isinstance(mean.coefficients, Basis):
        raise ValueError("its mean has no coefficients")
    coefficients = parts.reals("coefficients", q, *outputs)
    check_coefficients(coefficients, q)
    covariance = check_covariance(parts.reals("coefficient_covariance", q, q), q)
    return Estimated(mean.coefficients.functions, coefficients, covariance)


def _weights(parts: Fields, n: int) -> Floats | None:
    weights = None if parts["weights"] is None else parts.reals("weights", n)
    if weights is not None and not (weights > 0).all():
        raise ValueError("the weights of its observations are not all positive")
    return weights


def _segments(parts: Fields, n: int) -> list[Indices] | None:
    if parts["segment_members"] is None and parts["segment_sizes"] is None:
        return None
    members, sizes = parts.wholes("segment_members", n), parts.wholes("segment_sizes", None)
    if not np.array_equal(np.sort(members), np.arange(n)) or sizes.sum() != n or not sizes.all():
        raise ValueError("its arrays do not fit together: segments have to hold each observation once")
    return np.split(members, np.cumsum(sizes)[:-1]) if len(sizes) else []


def _waiting(parts: Fields, segments: list[Indices] | None) -> int:
    """How many of the last segments wait to be learned from; 0 in files of earlier versions."""
    waiting = 0 if parts["waiting"] is None else parts.count("waiting")
    last = [] if segments is None or not waiting else segments[-waiting:]
    if len(last) < waiting or any(len(part) != 1 for part in last):
        raise ValueError("its arrays do not fit together: segments that wait are single points")
    return waiting


def _average(values: Any, p: int) -> Average:
    parts = Fields(values, THETA)
    precision = parts.reals("precision", p, p)
    largest = np.abs(precision).max(initial=0.0)
    if not np.allclose(precision, precision.T, rtol=1e-6, atol=1e-9 * largest):
        raise ValueError("the information about its hyper-parameters is not symmetric")
    if np.linalg.eigvalsh(precision).min(initial=0.0) < -1e-6 * largest:
        raise ValueError("the information about its hyper-parameters is negative")
    n_segments = parts.count("n_segments")
    return Average(
        RecursiveEstimate(precision, parts.reals("shift", p), n_segments, parts.reals("largest", p)),
        parts.number("log_likelihood"),
        parts.number("n_points", least=0.0),
        n_segments,
        parts.count("n_left_out"),
        parts.wholes("n_at_bound", p),
    )


def _belief(values: Any, kernel: Kernel, mean: MeanModel, d: int, q: int, outputs: tuple[int, ...]) -> Belief:
    parts = Fields(values, WATCHED)
    arrays = Fields(parts["latent"], LATENT)
    points = arrays.reals("points", None, d + 1 if isinstance(kernel, OnFunctionals) else d)
    _check_rows(kernel, points, d)
    mean = matching_mean(kernel, mean)
    root = arrays.reals("root", len(points), None)
    m, r = root.shape
    latent = Latent(
        points,
        arrays.reals("mean", m, None),
        root,
        None if arrays["unroot"] is None else arrays.reals("unroot", m, r),
        arrays.reals("strengths", r),
        arrays.reals("basis", m, q),
        parts.number("variance", above=0.0),
    )
    fits = np.allclose(latent.basis, mean.columns(points)) and np.allclose(latent.mean, mean.values(points))
    if not fits:
        raise ValueError("the mean of a belief is not that of the model")
    if latent.unroot is None and (r != m or not np.diagonal(root).all()):
        raise ValueError("the root of a belief cannot be solved with")
    natural = None
    if parts["precision"] is not None or q:
        natural = Evidence(parts.reals("precision", r + q, r + q), parts.reals("shift", r + q, None))
    location = parts.reals("location", r + q, None)
    widths = {location.shape[1], latent.mean.shape[1], *(() if natural is None else natural.shift.shape[1:])}
    if parts["outputs"] != tuple(outputs) or not widths <= {1, *outputs}:
        raise ValueError("a belief does not fit the outputs")
    scale = parts.reals("scale", r + q, r + q)
    with np.errstate(over="ignore", invalid="ignore"):
        belief = Belief.of(Whitened(latent, location, scale, natural, kernel, mean), outputs)
        if not np.isfinite(belief.mean).all() or not np.isfinite(belief.variance).all():
            raise ValueError("a belief is not finite")
    return belief
