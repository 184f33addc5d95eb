"""Random fits: beside an exact Gaussian process by dense algebra, and with whatever a user may give."""

from typing import Any

import numpy as np

from attack.cases import Budget, Ended, ended, is_sound
from attack.figures import Figures
from attack.problems import exact, tame, wild
from compositegp import CompositeGPRegressor, Nearest

_METHODS = ("nearest", "composite", "fitc", "pitc", "bcm", "rbcm", "gpoe", "grbcm")
_SAME = 1e-7  # of the data's spread, where the condition leaves that many digits
_REFITTED = 0.15  # share of the fits that are made twice, to see whether they are the same


def fits(budget: Budget, rows: dict[str, Figures]) -> None:
    """Fits with a known answer, and fits of anything."""
    for number, rng in budget.cases("fits"):
        if number % 3 == 0:
            name, found = "fits beside the exact Gaussian process", _beside_exact(rng)
        else:
            name, found = "fits of anything", _anything(rng)
        figures = rows.setdefault(name, Figures())
        figures.add(found.outcome, f"--part fits --case {number}: {found.message[:300]}")


def _beside_exact(rng: np.random.Generator) -> Ended:
    """All the observations in one term: the answer is that of the exact Gaussian process."""
    problem = tame(rng)
    method = str(rng.choice(["nearest", "composite", "bcm"]))
    known = exact(problem)
    prediction = Nearest(calibration=None) if method == "nearest" else method
    model = CompositeGPRegressor(problem.kernel, learning=None, prediction=prediction)

    def call() -> Any:
        model.fit(problem.X, problem.y, noise_variance=problem.noise_variance)
        return model.predict(problem.Z, return_std=True)

    found = ended(call)
    if found.outcome != "right":
        return Ended("wrong" if found.outcome == "refused" else found.outcome, message=found.message)
    mean, std = found.value
    scale = np.abs(problem.y).max()
    tolerance = max(_SAME, 1e-14 * known.condition)
    off = max(np.abs(mean - known.mean).max() / scale, np.abs(std**2 - known.variance).max() / known.variance.max())
    return Ended("right") if off <= tolerance else Ended("wrong", message=f"{method} is off by {off:.1e}")


def _anything(rng: np.random.Generator) -> Ended:
    """Finite numbers, no negative variance, ordered intervals, the same again: or one clear sentence."""
    problem = wild(rng)
    options: dict[str, Any] = {
        "kernel": None if rng.random() < 0.15 else problem.kernel,
        "learning": None if rng.random() < 0.6 else str(rng.choice(["composite_likelihood", "fisher_average"])),
        "prediction": str(rng.choice(_METHODS)),
        "mean": [None, "constant", "linear", 2.0][int(rng.integers(4))],
        "segment_size": int(rng.integers(1, 80)),
        "segmentation": str(rng.choice(["tree", "sequential", "interleaved", "random"])),
        "conditioning_size": int(rng.choice([0, 8, 256])),
    }

    def call() -> Any:
        model = CompositeGPRegressor(**options).fit(problem.X, problem.y)
        mean, std = model.predict(problem.Z, return_std=True)
        return [mean, std, *model.predict_interval(problem.Z, level=0.9)]

    found = ended(call, seconds=120.0)
    if found.outcome != "right":
        return found
    mean, std, lower, upper = found.value
    sound = is_sound([mean, std, lower, upper])
    if sound != "right" or (std < 0).any() or (lower > upper).any():
        return Ended(sound if sound != "right" else "wrong", message=f"{options}: mean {mean}, std {std}")
    if rng.random() < _REFITTED:
        again = ended(call, seconds=120.0)
        if again.outcome != "right" or not all(map(np.array_equal, again.value, found.value)):
            return Ended("wrong", message=f"{options}: a second fit is another one")
    return Ended("right")
