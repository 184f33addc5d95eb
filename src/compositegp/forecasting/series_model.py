"""The model of a series: what repeats is in the mean, and what is left is correlated over short and long times."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Kernel, Matern, WhiteKernel

from compositegp.backend import Floats
from compositegp.forecasting.seasons import Season
from compositegp.kernels import OnColumns
from compositegp.means import Basis, PeriodicLevels

_CYCLES_FOR_A_PROFILE = 4
_LONGEST_PATTERN = 1024  # steps of a season whose drift the segments can tell
_PROFILE_FREEDOM = 3.0  # standard deviation of a level of the profile beforehand, over that of the series


def mean_of(seasons: list[Season], places: Floats, values: Floats) -> Any:
    """The mean: a profile of the longest season that the data show several times, else a constant."""
    span = places[-1] - places[0] + 1
    for season in reversed(seasons):
        # Its levels have to tell the hours of the shortest season apart.
        fine = season.period / season.phases <= seasons[0].period / 4
        if fine and span >= _CYCLES_FOR_A_PROFILE * season.period:
            prior = np.full(season.phases, values.mean())
            # A level that no datum tells stays near the overall mean.
            covariance = (_PROFILE_FREEDOM * (values.std() or 1.0)) ** 2 * np.eye(season.phases)
            return Basis(PeriodicLevels(season.period, season.phases), prior, covariance)
    return "constant"


def kernel_of(seasons: list[Season], variance: float, n_extra: int) -> Kernel:
    """The kernel: short and medium memory, seasons that drift, further columns, and noise; times are in steps."""
    shortest = seasons[0].period if seasons else 24.0
    # Never exactly one, which would ask for the data's own scale.
    share = variance * 1.0001 / (3 + len(seasons))
    kernel = ConstantKernel(share, _bounds(share)) * _on_time(Matern(3.01, (0.5, 2 * shortest), nu=0.5), n_extra)
    medium = ConstantKernel(share, _bounds(share))
    kernel = kernel + medium * _on_time(Matern(2.01 * shortest, (shortest, 60 * shortest), nu=0.5), n_extra)
    for season in seasons:
        if season.period <= _LONGEST_PATTERN:
            drift = RBF(14.01 * season.period, (3 * season.period, 200 * season.period))
            shape = ExpSineSquared(1.01, season.period, (0.1, 10.0), periodicity_bounds="fixed")
            kernel = kernel + ConstantKernel(share, _bounds(share)) * _on_time(shape * drift, n_extra)
    if n_extra:
        columns = list(range(1, 1 + n_extra))
        kernel = kernel + ConstantKernel(share, _bounds(share)) * OnColumns(RBF(np.ones(n_extra)), columns)
    return kernel + WhiteKernel(0.2 * share, (1e-4 * share, 10 * share))


def describe(kernel: Kernel, seasons: list[Season], step: Any, errors: Floats | None) -> list[str]:
    """The learned kernel in words, with relative standard errors where they are known."""
    theta = iter(np.exp(kernel.theta))
    wrong = iter(np.full(len(kernel.theta), np.nan) if errors is None else errors)

    def value(unit: Any = None) -> str:
        number, error = next(theta), next(wrong)
        text = f"{number:.3g}" if unit is None else _duration(number * unit)
        return text + _error(error)

    words = [f"short memory: variance {value()}, forgotten over {value(step)}"]
    words.append(f"medium memory: variance {value()}, forgotten over {value(step)}")
    for season in seasons:
        if season.period <= _LONGEST_PATTERN:
            pattern = f"{season.name} pattern: variance {value()}, smoothness {value()} of its period"
            words.append(f"{pattern}, drifts over {value(step)}")
    rest = list(zip(theta, wrong, strict=True))
    if len(rest) > 1:
        words.append(
            f"further columns: variance {rest[0][0]:.3g}, length scales "
            + ", ".join(f"{v:.3g}" for v, _ in rest[1:-1])
        )
    noise, error = rest[-1]
    words.append(f"noise: variance {noise:.3g}{_error(error)}")
    return words


def _duration(duration: Any) -> str:
    """A duration in its own unit."""
    for name, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if duration.total_seconds() >= 2 * length:
            return f"{duration.total_seconds() / length:.3g} {name}"
    return f"{duration.total_seconds():.3g} seconds"


def _error(error: float) -> str:
    """A relative standard error in words."""
    if np.isnan(error):
        return ""
    return f" (± {error:.0%})" if error < 1 else " (hardly known)"


def _on_time(kernel: Kernel, n_extra: int) -> Kernel:
    return OnColumns(kernel, [0]) if n_extra else kernel


def _bounds(value: float) -> tuple[float, float]:
    return 1e-4 * value, 1e3 * value
