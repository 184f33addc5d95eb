"""Design of segmentations: the choice of terms that meets a tolerance at the lowest cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from compositegp.analysis import actual_mse, neighborhood, observed_covariance, predictor, without_data
from compositegp.backend import Floats, Indices, RandomState
from compositegp.composite import SCHEMES, Composite, Observations, segment
from compositegp.design.plans import Clock, Plan, flops, local_composite, possible_plans
from compositegp.posteriors import NearestPredictor, Neighbors, default_group_size
from compositegp.validation import check_count


@dataclass(frozen=True, eq=False)
class Candidate:
    """A plan with its error and its cost.

    Attributes
    ----------
    plan : Plan
    mse : float
        Mean squared error, under the model, at the test points that were compared.
    excess : float
        Its excess over the error of the exact Gaussian process, as a part of that error.
    claimed : float
        Variance that the belief claims, divided by the mean squared error: below one is over-confident.
    flops : float
        Floating-point operations to predict all the test points.
    seconds : float
        Seconds for that on one core of this machine. What ``fit`` learns is not in it: hyper-parameters, and the errors
        of `Nearest` that it calibrates error bars by.

    Examples
    --------
    >>> candidate = Candidate(Plan("nearest", n_neighbors=64), 1.2, 0.2, 1.0, 1e7, 0.5)
    >>> candidate.plan.parameters
    {'prediction': Nearest(n_neighbors=64)}
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
        The cheapest that meets the tolerance within the budget. If none does: the most accurate within the budget, or
        of all if none is within the budget.
    candidates : list of Candidate
        All of them, cheapest first.
    exact_mse : float
        Mean squared error of the exact Gaussian process on the neighborhood.
    meets_tolerance : bool
        Whether `best` does.
    n_points : int
        Observations in a neighborhood. If there are more in all, excess errors are those within neighborhoods.

    Examples
    --------
    >>> plans = [Plan("nearest", n_neighbors=size) for size in (8, 16, 32)]
    >>> errors_and_seconds = [(1.5, 0.1), (1.6, 0.2), (1.1, 0.3)]
    >>> found = [Candidate(p, mse, mse - 1, 1.0, 1e6, s) for p, (mse, s) in zip(plans, errors_and_seconds)]
    >>> [str(c.plan) for c in Design(found[0], found, 1.0, False, 100).frontier]
    ['nearest 8', 'nearest 32']
    """

    best: Candidate
    candidates: list[Candidate]
    exact_mse: float
    meets_tolerance: bool
    n_points: int

    @property
    def frontier(self) -> list[Candidate]:
        """The Pareto frontier: each candidate is more accurate than all cheaper ones."""
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
    X: ArrayLike,
    Z: ArrayLike,
    *,
    tolerance: float = 0.05,
    budget: float | None = None,
    schemes: Sequence[str] = SCHEMES,
    sizes: Sequence[int] = (128, 256, 512, 1024),
    conditioning_sizes: Sequence[int] = (0, 256),
    n_neighbors: Sequence[int] = (64, 256, 512),
    group_size: int = 128,
    n_groups: int = 2,
    n_points: int = 4096,
    noise_variance: ArrayLike | None = None,
    random_state: RandomState = 0,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Design:
    """Compare ways to split the data and predict, by their error under the model and by their cost.

    No targets are needed: errors are averaged over data that the model would produce.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)
    Z : array of shape (M, d)
        The test points that are to be predicted.
    tolerance : float
        Largest allowed excess of the mean squared error, as a part of the error of the exact Gaussian process.
    budget : float, optional
        Seconds, on one core of this machine, that predicting all of `Z` may take.
    schemes, sizes, conditioning_sizes : sequences
        Arguments of `segment` and of `conditioning_sets`; all combinations are compared.
    n_neighbors : sequence of int
        Sizes of the nearest sets to compare with.
    group_size : int
        Test points that a composite predicts together.
    n_groups : int
        Groups of test points, spread over `Z`, for which errors are computed.
    n_points : int
        Errors are computed from this number of observations, those nearest to a group. Observations further
        away are assumed not to matter to any plan.
    noise_variance : None, number or array of shape (n,)
    random_state : int, RandomState or None
        For ``random`` segments.
    report : callable
        Called with the number of plans done, and the number of all.

    Returns
    -------
    Design

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> X, Z = np.arange(300.0)[:, None], np.array([[150.5], [151.5]])
    >>> kernel = Matern(10.0, nu=1.5) + WhiteKernel(0.1)
    >>> options = {"sizes": [20], "conditioning_sizes": [0], "n_neighbors": [100]}
    >>> design = choose_segmentation(kernel, X, Z, tolerance=0.01, **options)
    >>> design.meets_tolerance, str(design.best.plan)
    (True, 'nearest 100')
    """
    data, tests = without_data(kernel, X, Z, noise_variance)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be a positive number, such as 0.05; found {tolerance!r}.")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be a positive number of seconds; found {budget!r}.")
    unknown = [scheme for scheme in schemes if scheme not in SCHEMES]
    if unknown:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}; found {unknown[0]!r}.")
    group_size, n_points = check_count(group_size, "group_size"), check_count(n_points, "n_points")
    compared = possible_plans(len(data.X), schemes, sizes, conditioning_sizes, n_neighbors)
    if not compared:
        raise ValueError(
            f"there is nothing to compare: with {len(data.X)} observation(s), sizes and n_neighbors must have smaller "
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
        self._near = neighborhood(data, Z, n_points)
        self._here = data.take(self._near)
        self._covariance = observed_covariance(self._here)  # shared by all plans
        self.exact = predictor(self._here, Z, Composite.full(len(self._near)), None).claimed_variance

    def errors(self, plan: Plan, segments: list[Indices]) -> tuple[Floats, Floats]:
        """Mean squared errors of a plan at each test point, and the variances that it claims."""
        if plan.prediction == "nearest":  # an exact GP on its neighbors, whose claimed variance is its actual error
            shared = default_group_size(self._Z.shape[1])
            variance = NearestPredictor(self._here).predict(self._Z, Neighbors(plan.n_neighbors), shared).variance
            return variance, variance
        found = predictor(self._here, self._Z, local_composite(self._data, plan, segments, self._near), None)
        return actual_mse(self._here, self._Z, found.coefficients, self._covariance), found.claimed_variance
