"""A fitted series from what a file has: each part is checked, so that what was loaded can forecast."""

import re
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.forecasting.coefficients import Information
from compositegp.forecasting.effects import Effect, Effects, column_width
from compositegp.forecasting.error_scale import SPANS, ErrorScale
from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.grid import Grid
from compositegp.forecasting.kernel_mixture import MixtureMember
from compositegp.forecasting.kernel_recursion import HORIZONS, KernelRecursion
from compositegp.forecasting.target_scales import TARGET_SCALES, scale_name
from compositegp.forecasting.timeline import Timeline
from compositegp.kernels import at_theta, check_covariances
from compositegp.learning import Average
from compositegp.storage import Fields
from compositegp.validation import are_finite, check_kernel

_TOLD = ("matrix", "moment", "prior_variance", "weight")
_ROUNDING = 1e-9  # of a sum of weights
_AS_IT_IS = "none"  # the scale of a series that is not transformed
_LARGEST = 1e100  # of a mean: its square has to be a number
_SHORTEST_SPAN = 0.5  # of a trend or a cycle, in steps
_PLAIN = (
    "kernel",
    "names",
    "center",
    "recent",
    "reach",
    "n_neighbors",
    "learned_until",
    "columns",
    "notes",
)
_NAMES = (*_PLAIN, "block", "recursion", "transform", "effects", "holidays", "information", "scale", "grid")
# A zone, and no path of a file.
_ZONE = re.compile(r"UTC[+-]\d\d:\d\d|(?!dateutil/|pytz/)[A-Za-z][\w+-]*(/[A-Za-z][\w+-]*)*")
_YEARS = (1, 9999)  # that a series may have


def to_values(series: FittedSeries) -> dict[str, Any]:
    """A series as numbers, text, arrays and a kernel: the content of a file."""
    scale = series.scale
    content = {name: getattr(series, name) for name in _PLAIN} | {
        "block": series.block,
        "recursion": {
            "information": series.recursion.average.estimate.precision,
            "n_segments": series.recursion.average.n_segments,
            "n_left_out": series.recursion.average.n_left_out,
            "n_points": series.recursion.average.n_points,
            "standard_errors": series.recursion.standard_errors,
            "steps": series.recursion.steps.astype(np.int64),
            "apart": series.recursion.apart,
            "segment": series.recursion.segment,
            "until": series.recursion.until,
        },
        "transform": scale_name(series.transform) or _AS_IT_IS,
        "effects": [
            {
                "name": effect.name,
                "kind": effect.kind,
                "column": effect.column,
                "numbers": np.asarray(effect.numbers, dtype=np.float64),
                "by_hour": effect.by_hour,
                "spread": effect.spread,
                "average": np.asarray(effect.average, dtype=np.float64),
            }
            for effect in series.effects.effects
        ],
        "holidays": series.effects.holidays.astype(np.int64),
        "information": _told(series.information),
        "members": [_together(list(some)) for _, some in groupby(series.members, key=lambda one: one.names)],
        "scale": {
            "block": float(scale.block),
            "sub_daily": bool(scale.sub_daily),
            "yearly": bool(scale.yearly),
            "limited": bool(scale.limited),
            "slopes": scale.slopes,
            "log_df": scale.log_df,
        },
        "grid": {"first": series.grid.first, "values": series.grid.values, "columns": series.grid.columns},
        "tempered": np.zeros(0) if series.tempered is None else series.tempered,
    }
    return {"timeline": series.timeline.to_dict(), "series": content}


def _told(information: Information) -> dict[str, Any]:
    return {name: getattr(information, name) for name in _TOLD}


def _together(members: list[MixtureMember]) -> dict[str, Any]:
    """Kernels of the same parts as one, with all their numbers."""
    told = [one.information for one in members]
    return {
        "kernel": members[0].kernel,
        "names": members[0].names,
        "thetas": np.array([one.theta for one in members]),
        "weights": np.array([one.weight for one in members]),
        "matrices": np.array([one.matrix for one in told]),
        "moments": np.array([one.moment for one in told]),
    }


def from_values(timeline: Any, series: Any) -> FittedSeries:
    """The series that `to_values` wrote, checked; a ValueError says what is wrong."""
    parts = Fields(series, _NAMES, ["tempered", "members"])
    columns, names = parts.texts("columns"), parts.texts("names")
    kernel = check_kernel(parts["kernel"])
    check_covariances(kernel, np.array([[0.0], [1.0]]))
    grid = _grid(parts["grid"], 4 * len(columns))
    when = _timeline(timeline, (grid.first, grid.first + len(grid.values)))
    holidays = parts["holidays"]
    if not isinstance(holidays, np.ndarray) or holidays.ndim != 1 or holidays.dtype.kind not in "iu":
        raise ValueError("holidays must be numbers of days")
    effects = Effects([_effect(one, 4 * len(columns)) for one in _list(parts["effects"])], when, holidays)
    if not effects.effects or effects.effects[0].kind != "level":
        raise ValueError("the first effect must be the level")
    q = effects(grid.points[:1]).shape[1]
    information = _information(parts["information"], q)
    name = parts.text("transform")
    transform = TARGET_SCALES.get(None if name == _AS_IT_IS else name)
    if transform is None:
        raise ValueError(f"transform {parts['transform']!r:.60} is not known")
    transform.forward(grid.values[np.isfinite(grid.values)])
    block = parts.count("block", least=1)
    found = FittedSeries(
        when,
        block,
        transform,
        kernel,
        names,
        _recursion(parts["recursion"], kernel.theta, block, _learned_until(parts["learned_until"], grid)),
        effects,
        parts.number("center"),
        information,
        _scale(parts["scale"]),
        parts.reals("recent", len(SPANS)),
        parts.count("reach", least=1),
        parts.count("n_neighbors", least=1),
        _learned_until(parts["learned_until"], grid),
        grid,
        columns,
        parts.texts("notes"),
        _tempered(parts["tempered"], grid, _learned_until(parts["learned_until"], grid)),
        _members(parts["members"], information),
    )
    if (found.recent < 0).any():
        raise ValueError("recent, mean squares of the latest errors, must not be negative")
    for one in (found, *found.alternatives()):
        if one.names[-1:] != ["noise"] or not hasattr(one.parts["noise"], "noise_level"):
            raise ValueError("the last part of the kernel must be the noise")
        _check_mean(one)
    return found


def _information(values: Any, q: int) -> Information:
    about = Fields(values, _TOLD)
    return Information(
        about.reals("matrix", q, q),
        about.reals("moment", q),
        about.number("prior_variance", above=0.0),
        about.number("weight", above=0.0),
    )


def _members(values: Any, information: Information) -> list[MixtureMember]:
    """Kernels that forecasts are averaged over; none in the file of a long series, or of an earlier version."""
    found, q = [], len(information.moment)
    for one in _list(values or []):
        parts = Fields(one, ["kernel", "names", "thetas", "weights", "matrices", "moments"])
        kernel, names = check_kernel(parts["kernel"]), parts.texts("names")
        weights = parts.reals("weights", None)
        thetas = parts.reals("thetas", len(weights), len(kernel.theta))
        matrices = parts.reals("matrices", len(weights), q, q)
        moments = parts.reals("moments", len(weights), q)
        if (weights <= 0).any():
            raise ValueError("the weights of the kernels that forecasts are averaged over must be positive")
        low, high = kernel.bounds.T
        if (np.clip(thetas, low, high) != thetas).any():
            raise ValueError("thetas of the kernels that forecasts are averaged over must be within their bounds")
        for weight, theta, matrix, moment in zip(weights.tolist(), thetas, matrices, moments, strict=True):
            member = at_theta(kernel, theta)
            check_covariances(member, np.array([[0.0], [1.0]]))
            told = replace(information, matrix=matrix, moment=moment)
            found.append(MixtureMember(weight, member, names, theta, told))
    total = sum(one.weight for one in found)
    if found and not abs(total - 1) < _ROUNDING:
        raise ValueError(
            f"the weights of the kernels that forecasts are averaged over add up to {total:.6g}, not 1"
        )
    return found


def _check_mean(series: FittedSeries) -> None:
    """The mean at the latest observations must be a value that the target can have: else forecasts are no numbers."""
    with np.errstate(all="ignore"):
        location = series.center + series.effects(series.grid.points) @ series.estimate.mean
        known = ~np.isnan(series.grid.columns).any(axis=1)
        values = series.transform.inverse(location[known])
    there = np.concatenate([series.estimate.mean, location[known], values])
    if not are_finite(there) or np.abs(there).max(initial=0.0) > _LARGEST:
        raise ValueError("the coefficients of the effects give no finite mean at the latest observations")
    try:
        series.transform.forward(values)
    except ValueError:
        raise ValueError("the coefficients of the effects give a mean that the target cannot have") from None


def _learned_until(value: Any, grid: Grid) -> int:
    end = grid.first + len(grid.values)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not grid.first < value <= end:
        raise ValueError("learned_until must be a step of the latest observations")
    return int(value)


def _recursion(values: Any, theta: Floats, block: int, learned_until: int) -> KernelRecursion:
    names = ["information", "n_segments", "n_left_out", "n_points", "standard_errors", "steps", "apart", "segment"]
    parts, p = Fields(values, [*names, "until"]), len(theta)
    information = parts.reals("information", p, p)
    scale = float(np.abs(information).max(initial=0.0))
    if np.abs(information - information.T).max(initial=0.0) > 1e-8 * scale or (
        np.linalg.eigvalsh(information).min(initial=0.0) < -1e-8 * scale
    ):
        raise ValueError("information about the hyper-parameters must be symmetric and not negative")
    errors = parts.reals("standard_errors", p, infinite=True)
    steps, apart, segment = parts["steps"], parts.count("apart", least=1), parts.count("segment", least=1)
    if not isinstance(steps, np.ndarray) or steps.dtype.kind not in "iu" or steps.ndim != 1 or not len(steps):
        raise ValueError("steps must be whole numbers")
    until = parts["until"]
    wrong = isinstance(until, bool) or not isinstance(until, int | np.integer) or (errors < 0).any()
    if wrong or (steps < 0).any() or (steps >= block).any() or max(apart, segment) > HORIZONS * block:
        raise ValueError("the numbers of the running average of the hyper-parameters are out of range")
    if not learned_until - segment < until <= learned_until:
        raise ValueError("until must be a step of the latest segment")
    average = Average.known(
        theta, information, parts.count("n_segments", least=1), parts.number("n_points", least=0.0)
    )
    average = average._replace(n_left_out=parts.count("n_left_out"))
    return KernelRecursion(average, errors, steps.astype(np.intp), apart, segment, int(until))


def _grid(values: Any, width: int) -> Grid:
    parts = Fields(values, ["first", "values", "columns"])
    first = parts["first"]
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or abs(int(first)) > 2**52:
        raise ValueError("first must be a whole number of steps")
    series, columns = parts["values"], parts["columns"]
    for name, array, ndim in (("values", series, 1), ("columns", columns, 2)):
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.ndim != ndim:
            raise ValueError(f"{name} of the latest observations must be numbers")
        if np.isinf(array).any():
            raise ValueError(f"{name} of the latest observations must be finite or missing")
    if not len(series) or not np.isfinite(series[-1]) or columns.shape != (len(series), width):
        raise ValueError("the latest observations are missing or of the wrong shape")
    return Grid(int(first), series, columns)


def _tempered(array: Any, grid: Grid, learned_until: int) -> Floats | None:
    """Values with tempered outliers, of the rows that have taught; None where a file has none."""
    if array is None or (isinstance(array, np.ndarray) and array.shape == (0,)):
        return None
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != np.float64
        or array.shape != (learned_until - grid.first,)
    ):
        raise ValueError("tempered must be a number for each value that has taught")
    if np.isinf(array).any() or (np.isnan(array) != np.isnan(grid.values[: len(array)])).any():
        raise ValueError("tempered must be finite where a value was observed")
    return array


def _effect(values: Any, width: int) -> Effect:
    parts = Fields(values, ["name", "kind", "column", "numbers", "by_hour", "spread"], ["average"])
    kind, numbers = parts.text("kind"), parts.reals("numbers", None)
    needed = {"level": 0, "trend": 2, "day": 0, "week": 1, "year": 1, "cycle": 1, "column": len(numbers)}
    needed |= {"standard day": 0, "standard week": 1}
    if needed.get(kind) != len(numbers):
        raise ValueError(f"effect {parts['name']!r:.60} is of no known kind")
    wrong = {
        "trend": not (numbers[-1:] >= _SHORTEST_SPAN).all(),
        "year": not (numbers[:1] >= 1).all() or not (numbers[:1] <= 100).all(),
        "cycle": not (numbers[:1] >= _SHORTEST_SPAN).all(),
        "column": not 1 <= len(numbers) <= 1000,
    }
    column = parts.count("column")
    if wrong.get(kind) or (kind == "column" and not 1 <= column <= width):
        raise ValueError(f"the numbers of effect {parts['name']!r:.60} are out of range")
    spread = parts.number("spread", above=0.0)
    average = np.zeros(0) if parts["average"] is None else parts.reals("average", None)
    found = Effect(parts.text("name"), kind, column, numbers, parts.truth("by_hour"), spread)
    if len(average) and (kind != "column" or len(average) != column_width(numbers)):
        raise ValueError(f"the averages of effect {parts['name']!r:.60} are of the wrong number")
    return replace(found, average=average)


def _scale(values: Any) -> ErrorScale:
    parts = Fields(values, ["block", "sub_daily", "yearly", "limited", "slopes", "log_df"])
    found = ErrorScale(
        parts.number("block", above=0.0),
        parts.truth("sub_daily"),
        parts.truth("yearly"),
        parts.truth("limited"),
        parts.reals("slopes", None),
        parts.number("log_df", above=np.log(2.0), infinite=True),
    )
    if len(found.slopes) not in (0, found.n_features):
        raise ValueError("the slopes of the scale of errors are of the wrong number")
    return found


def _list(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError("a list was expected")
    return values


def _timeline(values: Any, ends: Any) -> Timeline:
    parts = Fields(values, ["origin", "step", "zone", "unit", "months"])
    zone = None if parts["zone"] is None else parts.text("zone")
    if zone is not None:
        if not _ZONE.fullmatch(zone):
            raise ValueError(f"zone {zone!r:.60} is no name of a time zone")
        pd.Timestamp(0, tz=zone)  # an error if there is no such zone
    origin = pd.Timestamp(parts.text("origin"))
    if origin is pd.NaT or str(origin.tz) != "UTC":
        raise ValueError(f"origin {parts['origin']!r:.60} is no time in UTC")
    unit, months = parts.text("unit"), parts.count("months")
    if unit not in ("time", "day", "month", "month end", "business day") or (
        unit.startswith("month") != (months > 0)
    ):
        raise ValueError(f"unit {unit!r:.60} is none that a step can have")
    timeline = Timeline(origin, pd.Timedelta(parts.count("step", least=1), unit="ns"), zone, unit, months)
    for place in ends:
        years = place * (timeline.step / pd.Timedelta(days=365.25))
        if not _YEARS[0] + 1 < origin.year + years < _YEARS[1] - 1:
            raise ValueError(f"an observation is {years:.3g} years from {origin}")
    return timeline
