"""Plans: ways to split the data and predict, and the cost of each."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp.backend import Floats, Indices, RandomState, blas_threads_for
from compositegp.composite import (
    Composite,
    Latent,
    Observations,
    collect_evidence,
    conditioning_sets,
    factor_stacks,
    partition,
    segment,
)
from compositegp.kernels import in_length_scales
from compositegp.posteriors import NearestPredictor, Neighbors, default_group_size
from compositegp.prediction import CompositeSum, Nearest


@dataclass(frozen=True)
class Plan:
    """A choice of terms.

    Attributes
    ----------
    prediction : {"composite", "nearest"}
    segmentation : str or None
        Scheme of the segments; None for ``nearest``.
    segment_size, conditioning_size : int
    n_neighbors : int
        For ``nearest``.

    Examples
    --------
    >>> print(Plan("composite", "tree", 256, 128))
    tree 256 given 128
    """

    prediction: str
    segmentation: str | None = None
    segment_size: int = 0
    conditioning_size: int = 0
    n_neighbors: int = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """The plan as parameters of `CompositeGPRegressor`."""
        if self.prediction == "nearest":
            return {"prediction": Nearest(self.n_neighbors)}
        return {
            "prediction": CompositeSum(),
            "segmentation": self.segmentation,
            "segment_size": self.segment_size,
            "conditioning_size": self.conditioning_size,
        }

    @property
    def block_size(self) -> int:
        """Size of the matrices to factorize."""
        return self.n_neighbors or self.segment_size + self.conditioning_size

    def segments(self, data: Observations, random_state: RandomState) -> list[Indices]:
        """Segments of the data."""
        points = in_length_scales(data.kernel, data.X)
        return partition(points, self.segment_size, self.segmentation or "tree", random_state)

    def __str__(self) -> str:
        if self.prediction == "nearest":
            return f"nearest {self.n_neighbors}"
        given = f" given {self.conditioning_size}" if self.conditioning_size else ""
        return f"{self.segmentation} {self.segment_size}{given}"


def possible_plans(
    n: int,
    schemes: Iterable[str],
    sizes: Iterable[int],
    conditioning_sizes: Iterable[int],
    n_neighbors: Iterable[int],
) -> list[Plan]:
    """All combinations that make sense for `n` observations.

    Parameters
    ----------
    n : int
    schemes : iterable of str
        Schemes of `segment`.
    sizes, conditioning_sizes : iterables of int
        Sizes of segments, and of the sets that they are conditioned on.
    n_neighbors : iterable of int
        Sizes of nearest sets.

    Returns
    -------
    list of Plan

    Examples
    --------
    >>> print(*possible_plans(100, ["tree"], [50, 200], [0], [20]), sep=", ")
    tree 50, nearest 20
    """
    found = [
        Plan("composite", scheme, size, given)
        for scheme in schemes
        for size in sizes
        for given in conditioning_sizes
        if size < n and given < n
    ]
    return found + [Plan("nearest", n_neighbors=count) for count in n_neighbors if count < n]


def local_composite(data: Observations, plan: Plan, segments: list[Indices], near: Indices) -> Composite:
    """The part of a plan's composite in a neighborhood; its indices count the observations of the neighborhood."""
    place = np.full(len(data.X), -1)
    place[near] = np.arange(len(near))
    inside = [place[part][place[part] >= 0] for part in segments]
    numbers = np.array([number for number, part in enumerate(inside) if len(part)])
    kept = [inside[number] for number in numbers]
    if not plan.conditioning_size:
        return Composite.marginal(kept)
    given = conditioning_sets(data.X, segments, plan.conditioning_size, kernel=data.kernel, only=numbers)
    return Composite.conditional_blocks(kept, [place[part][place[part] >= 0] for part in given], numbers)


def flops(plan: Plan, n: int, n_tests: int, group_size: int, n_columns: int = 1) -> float:
    """Floating-point operations to predict `n_tests` points from `n` observations.

    Parameters
    ----------
    plan : Plan
    n, n_tests : int
    group_size : int
        Test points that a composite predicts together.
    n_columns : int
        Columns of the points.

    Returns
    -------
    float

    Examples
    --------
    >>> small, large = (flops(Plan("nearest", n_neighbors=size), 10**6, 1000, 128) for size in (256, 512))
    >>> round(large / small)
    7
    """
    size = min(plan.block_size, n)
    if plan.prediction == "nearest":
        shared = default_group_size(n_columns)
        return -(-n_tests // shared) * (size**3 / 3 + shared * size**2)
    blocks, groups, m = -(-n // plan.segment_size), -(-n_tests // group_size), min(group_size, n_tests)
    # Factorize each block; then, for each group, whiten its covariances twice and take their products.
    return blocks * size**3 / 3 + groups * blocks * (size**2 * m + size * m**2 + 2 * size * m**2)


class Clock:
    """Seconds of the parts of a plan, measured on this machine with the code that predicts.

    Parameters
    ----------
    data : Observations
    Z : array of shape (M, d)
    group_size : int

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 9, 64)[:, None]
    >>> data = Observations.checked(RBF() + WhiteKernel(), X, np.zeros(64), mean=None, noise_variance=None)
    >>> clock = Clock(data, X[:4], 4)
    >>> clock.seconds(Plan("nearest", n_neighbors=8), 4) < clock.seconds(Plan("nearest", n_neighbors=8), 10**6)
    True
    """

    def __init__(self, data: Observations, Z: Floats, group_size: int) -> None:
        self._data, self._group_size = data, group_size
        self._shared = default_group_size(data.X.shape[1])
        self._Z = Z[segment(Z, group_size, kernel=data.kernel)[0]]  # one group, as in a prediction
        self._found: dict[tuple[str, int], tuple[float, float]] = {}

    def seconds(self, plan: Plan, n_tests: int) -> float:
        """Seconds, on one core, to predict `n_tests` points by a plan."""
        n = len(self._data.X)
        key = plan.prediction, min(plan.block_size, n)
        if key not in self._found:
            self._found[key] = self._nearest(key[1]) if plan.prediction == "nearest" else self._composite(key[1])
        once, each = self._found[key]
        if plan.prediction == "nearest":
            return once + -(-n_tests // self._shared) * each
        blocks, groups = -(-n // plan.segment_size), -(-n_tests // self._group_size)
        return blocks * once + groups * blocks * each

    def _composite(self, size: int) -> tuple[float, float]:
        """Seconds to factorize a block, and to collect its evidence about a group."""
        data = self._data.take(np.arange(size))
        with blas_threads_for(size):
            latent = Latent.prior(data.kernel, self._Z, data.mean)
            factored = list(factor_stacks(data, Composite.full(size)))
            factor = _best(lambda: list(factor_stacks(data, Composite.full(size))))
            evidence = _best(lambda: collect_evidence(data.kernel, latent, factored[0]))
        return factor, evidence

    def _nearest(self, size: int) -> tuple[float, float]:
        """Seconds to build the search tree, and to predict one group."""
        began = time.perf_counter()
        predictor = NearestPredictor(self._data)
        tree = time.perf_counter() - began
        groups = segment(self._Z, self._shared, kernel=self._data.kernel)[:8]
        Z = self._Z[np.concatenate(groups)]
        return tree, _best(lambda: predictor.predict(Z, Neighbors(size), self._shared)) / len(groups)


def _best(function: Callable[[], object], repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
