"""Invariances: the order of rows, and the origin and unit of inputs and targets, do not change what is predicted."""

from typing import Any

import numpy as np

from attack.cases import Budget, Ended, ended
from attack.figures import Figures
from attack.problems import Problem, tame
from compositegp import CompositeGPRegressor

_FIXED = 1e-5  # difference in standard deviations that rounding may make, with a kernel that is given
_LEARNED = 0.02  # that learning may make, on another way to the same place
# That rounding may make in error bars learned from errors of training points: with another origin or unit of the inputs
# it swaps neighbors that are nearly as near.
_CALIBRATED = {"order of rows": 0.02, "origin of inputs": 0.1, "unit of inputs": 0.1}
_CALIBRATED_ELSE = 0.05
_FEWEST_CALIBRATED = 100  # observations from which errors are calibrated


def invariance(budget: Budget, rows: dict[str, Figures]) -> None:
    """Each problem once as it is, and once in other units or in another order."""
    kinds = {
        "order of rows": _reordered,
        "origin of inputs": _moved,
        "unit of inputs": _scaled,
        "origin of targets": _target_moved,
        "unit of targets": _target_scaled,
    }
    for number, rng in budget.cases("invariance"):
        name = list(kinds)[number % len(kinds)]
        learned = number // len(kinds) % 3 == 0
        found = _compared(kinds[name], name, learned, rng)
        figures = rows.setdefault("other order, origin or unit", Figures())
        figures.add(found.outcome, f"--part invariance --case {number} ({name}): {found.message[:300]}")


def _compared(change: Any, name: str, learned: bool, rng: np.random.Generator) -> Ended:
    problem = _on_a_grid(tame(rng, int(rng.integers(20, 60) if learned else rng.integers(5, 300))))
    mean = [None, "constant", "linear"][int(rng.integers(3))] if name != "origin of targets" else "constant"
    changed, kernel_scale, offset, unit = change(problem, rng)
    options: dict[str, Any] = {"mean": mean}
    if not learned:
        options |= {"learning": None, "prediction": str(rng.choice(["nearest", "composite"]))}

    def predicted(data: Problem, kernel: Any) -> Any:
        model = CompositeGPRegressor(None if learned else kernel, **options)
        model.fit(data.X, data.y, noise_variance=None if learned else data.noise_variance)
        return model.predict(data.Z, return_std=True)

    one = ended(lambda: predicted(problem, problem.kernel), seconds=120.0)
    other = ended(lambda: predicted(changed, kernel_scale), seconds=120.0)
    for found in (one, other):
        if found.outcome != "right":
            return Ended("wrong" if found.outcome == "refused" else found.outcome, message=found.message)
    (mean_1, std_1), (mean_2, std_2) = one.value, other.value
    off_mean = float((np.abs((mean_2 - offset) / unit - mean_1) / std_1).max())
    off_std = float(np.abs(std_2 / unit / std_1 - 1).max())
    off, allowed = max(off_mean, off_std), _LEARNED if learned else _FIXED
    calibrated = len(problem.X) >= _FEWEST_CALIBRATED and options.get("prediction") == "nearest"
    allowed_std = _CALIBRATED.get(name, _CALIBRATED_ELSE) if calibrated else allowed
    if off_mean <= allowed and off_std <= allowed_std:
        return Ended("right")
    how = "learned" if learned else f"{options['prediction']}, kernel {problem.kernel}"
    return Ended("wrong", message=f"n = {len(problem.X)}, mean {mean}, {how}: off by {off:.1e} standard deviations")


def _on_a_grid(problem: Problem) -> Problem:
    """The same with inputs that another origin does not round."""
    return problem._replace(X=np.round(problem.X * 2**10) / 2**10, Z=np.round(problem.Z * 2**10) / 2**10)


def _reordered(problem: Problem, rng: np.random.Generator) -> Any:
    order = rng.permutation(len(problem.X))
    noise = None if problem.noise_variance is None else problem.noise_variance[order]
    return problem._replace(X=problem.X[order], y=problem.y[order], noise_variance=noise), problem.kernel, 0.0, 1.0


def _moved(problem: Problem, rng: np.random.Generator) -> Any:
    origin = 2.0 ** rng.integers(0, 34, size=problem.X.shape[1])  # up to 10¹⁰
    return problem._replace(X=problem.X + origin, Z=problem.Z + origin), problem.kernel, 0.0, 1.0


def _scaled(problem: Problem, rng: np.random.Generator) -> Any:
    unit = 2.0 ** rng.integers(-30, 31)  # 10⁻⁹ to 10⁹
    return problem._replace(X=problem.X * unit, Z=problem.Z * unit), _with_lengths(problem.kernel, unit), 0.0, 1.0


def _target_moved(problem: Problem, rng: np.random.Generator) -> Any:
    offset = float(np.ptp(problem.y) * 2.0 ** rng.integers(-3, 10))
    return problem._replace(y=problem.y + offset), problem.kernel, offset, 1.0


def _target_scaled(problem: Problem, rng: np.random.Generator) -> Any:
    unit = 2.0 ** int(rng.integers(-30, 31))
    noise = None if problem.noise_variance is None else problem.noise_variance * unit**2
    kernel = problem.kernel.clone_with_theta(problem.kernel.theta)
    kernel.set_params(k1__k1__constant_value=kernel.k1.k1.constant_value * unit**2)
    kernel.set_params(k2__noise_level=kernel.k2.noise_level * unit**2)
    return problem._replace(y=problem.y * unit, noise_variance=noise), kernel, 0.0, unit


def _with_lengths(kernel: Any, unit: float) -> Any:
    scaled = kernel.clone_with_theta(kernel.theta)
    scaled.set_params(k1__k2__length_scale=scaled.k1.k2.length_scale * unit)
    return scaled
