"""Design of segmentations: which choice of terms meets a tolerance at the least cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.analysis.excess_error import observed_covariance
from compositegp.analysis.linear_predictor import predictor
from compositegp.analysis.plans import Clock, Plan, flops, local_composite, plans
from compositegp.analysis.problem import nearest_to, without_data
from compositegp.backend import Floats, Indices
from compositegp.composite import SCHEMES, Composite, Observations, segment
from compositegp.kernels import diagonal, gram
from compositegp.posteriors import NearestPredictor, default_group_size
from compositegp.validation import check_count


@dataclass(frozen=True, eq=False)
class Candidate:
    """A plan with its error and its cost.

    Attributes
    ----------
    plan : Plan
    mse : float
        Mean squared error, under the model, at the test points that were looked at.
    excess : float
        What it is above the exact Gaussian process's, over that.
    claimed : float
        Variance that the belief claims, over the mean squared error: under one is over-confident.
    flops : float
        To predict all the test points.
    seconds : float
        The same on this machine, on one core.
    """

    plan: Plan
    mse: float
    excess: float
    claimed: float
    flops: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """The trade-off between error and cost.

    Attributes
    ----------
    best : Candidate
        The cheapest that meets the tolerance within the budget; where none does, the most accurate within the budget
        (or, if all are too dear, of all).
    candidates : list of Candidate
        All, cheapest first.
    exact_mse : float
        Mean squared error of the exact Gaussian process on the neighbourhood.
    meets_tolerance : bool
        Whether `best` does.
    n_points : int
        Observations in a neighbourhood: fewer than there are, where excess errors are those within it.
    """

    best: Candidate
    candidates: list[Candidate]
    exact_mse: float
    meets_tolerance: bool
    n_points: int

    @property
    def frontier(self) -> list[Candidate]:
        """The candidates that no cheaper one is as accurate as."""
        found: list[Candidate] = []
        for candidate in self.candidates:
            if not found or candidate.mse < found[-1].mse:
                found.append(candidate)
        return found

    def __repr__(self) -> str:
        frontier = self.frontier
        lines = [f"{'':2}{'plan':28s} {'excess error':>12s} {'claimed/actual':>14s} {'flops':>9s} {'seconds':>9s}"]
        for candidate in self.candidates:
            mark = "→" if candidate is self.best else "·" if candidate in frontier else " "
            lines.append(
                f"{mark} {candidate.plan!s:28s} {candidate.excess:12.2%} {candidate.claimed:14.2f} "
                f"{candidate.flops:9.1e} {candidate.seconds:9.3g}"
            )
        return "\n".join([*lines, "→ chosen; · no cheaper plan is as accurate"])


def choose_segmentation(
    kernel: Kernel,
    X: Any,
    Z: Any,
    *,
    tolerance: float = 0.05,
    budget: float | None = None,
    schemes: Sequence[str] = SCHEMES,
    sizes: Sequence[int] = (128, 256, 512, 1024),
    conditioning_sizes: Sequence[int] = (0, 256),
    neighbours: Sequence[int] = (64, 256, 512),
    group_size: int = 128,
    n_groups: int = 2,
    n_points: int = 4096,
    noise_variance: Any = None,
    random_state: Any = 0,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Design:
    """Compare ways to split the data and predict, by their error under the model and their cost; no data are needed.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d)
        The test points that are to be predicted.
    tolerance : float
        Excess mean squared error, over the exact Gaussian process's, that is allowed.
    budget : float, optional
        Seconds, on one core of this machine, that predicting all of `Z` may take.
    schemes, sizes, conditioning_sizes : sequences
        Of `segment`, and of `conditioning_sets`: all combinations are compared.
    neighbours : sequence of int
        Sizes of nearest sets to compare with.
    group_size : int
        Test points that a composite predicts together.
    n_groups : int
        Groups of test points to look at, spread over `Z`.
    n_points : int
        Observations nearest to a group that stand for all, where there are more: errors are those of what each plan has
        there. What lies beyond is taken to matter to none of them.
    noise_variance : None, number or array of shape (n,)
    random_state : int, RandomState or None
        For ``random`` segments.
    report : callable
        Called with the number of plans done, and of all.

    Returns
    -------
    Design
    """
    data, tests = without_data(kernel, X, Z, noise_variance)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be a positive number, such as 0.05; found {tolerance!r}.")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be a positive number of seconds; found {budget!r}.")
    group_size, n_points = check_count(group_size, "group_size"), check_count(n_points, "n_points")
    compared = plans(len(data.X), schemes, sizes, conditioning_sizes, neighbours)
    if not compared:
        raise ValueError(
            f"there is nothing to compare: with {len(data.X)} observation(s), sizes and neighbours must have smaller "
            "numbers than that."
        )
    places = [
        _Place(data, tests[group], n_points)
        for group in _spread(segment(tests, group_size, kernel=data.kernel), check_count(n_groups, "n_groups"))
    ]
    exact = float(np.concatenate([place.exact for place in places]).mean())
    clock = Clock(data, tests, group_size)
    candidates = []
    for number, plan in enumerate(compared):
        report(number, len(compared))
        segments = [] if plan.prediction == "nearest" else plan.segments(data, random_state)
        found = [place.errors(plan, segments) for place in places]
        mse, claimed = (float(np.concatenate(parts).mean()) for parts in zip(*found, strict=True))
        work = flops(plan, len(data.X), len(tests), group_size, tests.shape[1]), clock.seconds(plan, len(tests))
        candidates.append(Candidate(plan, mse, max(mse / exact - 1, 0.0), claimed / mse, *work))
    report(len(compared), len(compared))
    candidates.sort(key=lambda candidate: (candidate.seconds, candidate.mse))
    best = _choose(candidates, tolerance, budget)
    return Design(best, candidates, exact, best.excess <= tolerance, min(n_points, len(data.X)))


def _choose(candidates: list[Candidate], tolerance: float, budget: float | None) -> Candidate:
    affordable = [candidate for candidate in candidates if budget is None or candidate.seconds <= budget]
    for candidate in affordable:  # cheapest first
        if candidate.excess <= tolerance:
            return candidate
    return min(affordable or candidates, key=lambda candidate: candidate.mse)


def _spread(groups: list[Indices], count: int) -> list[Indices]:
    """Some of the groups, evenly."""
    return [groups[int(place)] for place in np.linspace(0, len(groups) - 1, min(count, len(groups)))]


class _Place:
    """A group of test points with the observations around it, on which plans are compared."""

    def __init__(self, data: Observations, Z: Floats, n_points: int) -> None:
        self._data, self._Z = data, Z
        self._near = nearest_to(data, Z, n_points)
        self._here = data.take(self._near)
        self._covariance = observed_covariance(self._here, slice(0, len(self._near)))
        self._cross = gram(data.kernel, self._here.X, Z)
        self.exact = predictor(self._here, Z, Composite.full(len(self._near)), None).claimed_variance

    def errors(self, plan: Plan, segments: list[Indices]) -> tuple[Floats, Floats]:
        """Mean squared errors of a plan at each test point, and the variances that it claims."""
        shared = default_group_size(self._Z.shape[1])
        if plan.prediction == "nearest":  # an exact GP on its neighbours: it claims what it does
            variance = NearestPredictor(self._here).predict(self._Z, plan.n_neighbors, shared).variance
            return variance, variance
        composite = local_composite(self._data, plan, segments, self._near)
        found = predictor(self._here, self._Z, composite, None)
        weights = found.coefficients
        # E[(z − w y)²] = σ_z² − 2 w Σ_yz + w Σ_yy wᵀ
        mse = diagonal(self._data.kernel, self._Z, noise=False) - 2 * np.einsum("mn,nm->m", weights, self._cross)
        mse = mse + np.einsum("mn,mn->m", weights @ self._covariance, weights)
        return np.asarray(mse), found.claimed_variance
