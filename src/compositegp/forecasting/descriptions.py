"""What a model learned, in words."""

from typing import Any

import numpy as np

from compositegp.forecasting.fitted_series import FittedSeries
from compositegp.forecasting.target_scales import scale_in_words, scale_name


def describe(series: FittedSeries) -> list[str]:
    """One line for each effect and each part of the kernel, with relative standard errors where they are known."""
    rows = series.effects(series.grid.points) * series.estimate.mean
    lines = []
    for name, columns in series.effects.columns.items():
        size = float(rows[:, columns].sum(axis=1).std())
        if name != "level":
            lines.append(f"{name}: moves the series by {size:.3g} (standard deviation over the latest values)")
    errors = iter(series.recursion.standard_errors)
    step = series.timeline.step
    for name, part in series.parts.items():
        count = len(part.theta)
        own = [next(errors) for _ in range(count)]
        lines.append(f"{name}: " + _words(name, np.exp(part.theta), own, step))
    if series.members:
        lines.append(
            f"forecasts: averaged over {len(series.members)} kernels, {_shares(series)}; above is the likeliest"
        )
    scale = scale_in_words(scale_name(series.transform))
    tails = (
        "normal" if series.scale.log_df > 4 else f"as of Student's t with {np.exp(series.scale.log_df):.1f} degrees"
    )
    average = series.recursion.average
    if average.n_segments > 1:  # the first is the fit
        left_out = f", {average.n_left_out} of which told nothing" if average.n_left_out else ""
        lines.append(
            f"hyper-parameters: averaged over the fit and {average.n_segments - 1} later segment(s){left_out}"
        )
    return [*lines, f"scale of the target: {scale}; tails of errors: {tails}"]


def _shares(series: FittedSeries) -> str:
    """The parts that not all the kernels have, and the weight of those that have them."""
    names = list(dict.fromkeys(name for one in series.members for name in one.names))
    shares = {name: sum(one.weight for one in series.members if name in one.names) for name in names}
    open_ = [f"{share:.0%} with {name}" for name, share in shares.items() if share < 1 - 1e-9]
    return ", ".join(open_) if open_ else "all with these parts"


def _words(name: str, values: Any, errors: list[float], step: Any) -> str:
    """A part of the kernel in words, from its name, variance, smoothness and length."""
    texts = [f"{value:.3g}{_error(error)}" for value, error in zip(values, errors, strict=True)]
    lengths = [f"{_duration(value * step)}{_error(error)}" for value, error in zip(values, errors, strict=True)]
    if len(values) == 1:
        return f"variance {texts[0]}"
    if len(values) == 2:
        forgotten = "slope damped" if name == "damped trend" else "forgotten"
        return f"variance {texts[0]}, {forgotten} over {lengths[1]}"
    return f"variance {texts[0]}, smoothness {texts[1]} of its period, drifts over {lengths[2]}"


def _duration(duration: Any) -> str:
    """A duration in the largest unit of which it has at least two."""
    for name, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if duration.total_seconds() >= 2 * length:
            return f"{duration.total_seconds() / length:.3g} {name}"
    return f"{duration.total_seconds():.3g} seconds"


def _error(error: float) -> str:
    """A relative standard error in words; none where it is not known."""
    if np.isnan(error):
        return ""
    return f" (± {error:.0%})" if error < 1 else " (hardly known)"
