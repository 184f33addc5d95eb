"""The model of a map in words: noise, sill, ranges, drift."""

import numpy as np

from compositegp.analysis import (
    Direction,
    directions_of,
    length_scale_along,
    summarize_variogram,
    value_with_error,
)
from compositegp.backend import Floats
from compositegp.estimators import CompositeGPRegressor


def variogram_directions(
    regressor: CompositeGPRegressor, sphere: bool, has_time: bool, latitude: float, time_unit: str
) -> list[Direction]:
    """The directions in which a map's range is told."""
    return directions_of(
        regressor.kernel_,
        regressor.n_features_in_,
        sphere=sphere,
        has_time=has_time,
        latitude=latitude,
        time_unit=time_unit,
    )


def theta_covariance(regressor: CompositeGPRegressor) -> Floats | None:
    """Error covariance of the kernel's hyper-parameters; None where they were not learned."""
    errors = regressor.theta_standard_errors_
    if errors is None or not np.isfinite(errors).all():
        return None
    result = regressor.learning_result_
    return np.diag(errors**2) if result is None else result.theta_covariance


def length_scales(
    regressor: CompositeGPRegressor, sphere: bool, has_time: bool, latitude: float, time_unit: str
) -> dict[str, str]:
    """How long a length scale of a map's kernel is, with its unit, by the names of directions."""
    directions = variogram_directions(regressor, sphere, has_time, latitude, time_unit)
    return {one.name: f"{length_scale_along(regressor.kernel_, one):.3g} {one.unit}".strip() for one in directions}


def describe(
    regressor: CompositeGPRegressor,
    sphere: bool,
    has_time: bool,
    covariates: tuple[str, ...],
    unit: str,
    n_learned: int,
    latitude: float,
    time_unit: str,
) -> list[str]:
    """Sentences about what a map's model has learned."""
    directions = variogram_directions(regressor, sphere, has_time, latitude, time_unit)
    summary = summarize_variogram(regressor.kernel_, directions, theta_covariance(regressor))
    scale = "the logarithm's square" if regressor.target_transform == "log" else f"{unit or 'unit'}²"
    how = "chords between points of the sphere, in km" if sphere else "in the unit of the coordinates"
    lines = [
        f"Learned from {n_learned} observations. Distances are {how}.",
        f"Nugget (variance of noise): {value_with_error(*summary.nugget)} {scale}.",
        f"Sill (variance in all): {value_with_error(*summary.sill)} {scale}.",
    ]
    units = {one.name: one.unit for one in directions}
    for name, pair in summary.ranges.items():
        lines.append(
            f"Practical range (5 % of the correlation is left), {name}: {value_with_error(*pair)} {units[name]}".strip()
            + "."
        )
    if covariates:
        slopes = _drift(regressor)
        parts = [f"{name} {value_with_error(*pair)}" for name, pair in zip(covariates, slopes, strict=True)]
        lines.append(f"Drift: {', '.join(parts)} for each unit.")
    comparison = regressor.kernel_comparison_
    if comparison is not None:
        lines.append(f"Of {len(comparison)} kernels the data chose {comparison.best.name}.")
    return lines


def _drift(regressor: CompositeGPRegressor) -> list[tuple[float, float]]:
    coefficients = np.asarray(regressor.mean_coefficients_)[1:]
    errors = np.sqrt(np.diagonal(regressor.mean_covariance_))[1:]
    return [(float(value), float(error)) for value, error in zip(coefficients, errors, strict=True)]
