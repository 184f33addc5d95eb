"""Coverage: how many new observations lie in 95 % intervals, on data that were drawn from a known process."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from attack.cases import Budget, Ended, ended
from attack.figures import Figures
from compositegp import CompositeGPRegressor

LEVEL = 0.95
PROMISE = (0.93, 0.97)
"""Coverage that 95 % intervals of new observations should have."""
_ERRORS = 2.5  # standard errors beyond the promise from which a figure counts as wrong
_TESTS = 200  # new observations of a data set


class Setting(NamedTuple):
    """Data sets that are alike.

    Attributes
    ----------
    n, d : int
        Observations and columns.
    truth : str
        Kernel that the data are drawn from; it sees two columns at most where there are many, and ``noise`` is none.
    noise : float
        Variance of the noise; that of the signal is 1.
    """

    n: int
    d: int
    truth: str
    noise: float

    @property
    def name(self) -> str:
        """As a row of a table."""
        return f"{self.n} × {self.d} | {self.truth} | {self.noise:g}"


SETTINGS = (
    *(Setting(50, d, truth, 0.1) for d in (1, 2, 5) for truth in ("Matérn 1/2", "Matérn 3/2", "RBF")),
    *(Setting(50, 5, truth, 0.001) for truth in ("Matérn 1/2", "RBF")),
    Setting(200, 2, "Matérn 3/2", 0.1),
    Setting(200, 5, "Matérn 3/2", 0.1),
    Setting(600, 2, "Matérn 3/2", 0.1),
    Setting(50, 10, "RBF of two columns", 0.25),
    Setting(120, 50, "RBF of two columns", 0.25),
    Setting(50, 5, "noise", 1.0),
    Setting(120, 50, "noise", 1.0),
)
_KERNELS: dict[str, Kernel] = {
    "Matérn 1/2": Matern(nu=0.5),
    "Matérn 3/2": Matern(nu=1.5),
    "RBF": RBF(),
    "RBF of two columns": RBF(),
}


def coverage(budget: Budget, rows: dict[str, Figures]) -> None:
    """Data sets of every setting in turn, until the time is over."""
    found: dict[str, list[float]] = {}
    figures = rows.setdefault("coverage of 95 % intervals", Figures())
    for number, rng in budget.cases("coverage"):
        settings = SETTINGS[4:5] if budget.most is not None else [SETTINGS[number % len(SETTINGS)]]
        for setting in settings:
            outcome = _covered(setting, rng)
            if outcome.outcome != "right":
                figures.add(outcome.outcome, f"--part coverage --case {number} ({setting.name}): {outcome.message}")
                continue
            figures.add("right")
            found.setdefault(setting.name, []).append(outcome.value)
    figures.measures = found
    if budget.only is None and budget.most is None:
        for name, values in found.items():
            low, high = interval(values)
            if high < PROMISE[0] or low > PROMISE[1]:
                figures.add("wrong", f"{name}: covers {np.mean(values):.3f} in {len(values)} data sets", tried=0)


def interval(values: list[float]) -> tuple[float, float]:
    """The coverage that some data sets show, give or take its error."""
    error = _standard_error(values)
    return float(np.mean(values) - _ERRORS * error), float(np.mean(values) + _ERRORS * error)


def _standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 2 else np.inf


def as_coverage_table(found: dict[str, list[float]]) -> str:
    """Coverage by setting, as a table in Markdown."""
    lines = [
        "| rows × columns | truth | noise | 95 % intervals cover | least | data sets |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {np.mean(values):.3f} ± {_standard_error(values):.3f} | {min(values):.2f} | {len(values)} |"
        for name, values in found.items()
    ]
    return "\n".join(lines)


def _covered(setting: Setting, rng: np.random.Generator) -> Ended:
    X, y, Z, new = _drawn(setting, rng)

    def call() -> Any:
        model = CompositeGPRegressor().fit(X, y)
        lower, upper = model.predict_interval(Z, level=LEVEL)
        return float(np.mean((lower <= new) & (new <= upper)))

    return ended(call, seconds=300.0)


def _drawn(setting: Setting, rng: np.random.Generator) -> Iterator[Any]:
    points = rng.uniform(0, 4 if setting.d < 3 else 2.5, size=(setting.n + _TESTS, setting.d))
    y = np.sqrt(setting.noise) * rng.normal(size=len(points))
    if setting.truth != "noise":
        seen = points[:, :2] if "two columns" in setting.truth else points
        covariance = _KERNELS[setting.truth](seen) + 1e-8 * np.eye(len(points))
        y = y + np.linalg.cholesky(covariance) @ rng.normal(size=len(points))
    n = setting.n
    return iter((points[:n], y[:n], points[n:], y[n:]))
