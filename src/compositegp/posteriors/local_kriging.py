"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    Floats,
    Indices,
    current_device,
    fetch,
    run_tasks,
    warn_caller,
)
from compositegp.composite import (
    Observations,
    partition,
)
from compositegp.functionals import Functionals, OnFunctionals, Places, atoms_of, lift
from compositegp.kernels import (
    in_length_scales,
    noise_variance,
    squared_distances,
)
from compositegp.posteriors.belief import Marginals, check_finite
from compositegp.posteriors.block_prediction import (
    block_means,
    blocks_in_a_row,
    predict_blocks,
    stack_of,
    task_blocks,
)
from compositegp.posteriors.close_groups import CLOSE, close_groups
from compositegp.posteriors.neighbor_search import NeighborSearch, shares_inside
from compositegp.posteriors.neighbors import Neighbors
from compositegp.posteriors.surroundings import WINDOWS, Neighborhood, Surrounded
from compositegp.validation import check_count, check_kernel, check_points

N_NEIGHBORS = 512
"""Observations that a test point is predicted from, unless a user says otherwise."""

WIDE_LIMIT = 4096
"""Observations that a functional over several points is predicted from, at most."""

# Found by benchmarks/estimator.py on the satellite field and benchmarks/scale.py profile.
_HELD_NEIGHBORS = 2**22  # indices of neighbors held at once
_FEW_COLUMNS = 4  # up to this many columns test points that are close together share their neighbors
_GROUP = 128  # test points that share their neighbors, at most
_TOGETHER = 32  # the same in few columns, as plans of predictions reckon
# In many columns: test points that may share their neighbors, and how many they then have, over those of one point.
_SHARED = ((8, 1.0), (16, 1.5), (8, 1.5), (16, 2.0))
_SHARING_LOSS = 0.001  # expected log score, in nats, that sharing may cost there
# A test point is alone if its group does not have this share of its nearest observations.
_OWN, _OWN_SHARE = 48, 0.9
# Groups, and points of each, by which sharing is tried, from so many test points on.
_TRIED = {256: (5, 3), 1024: (8, 8)}
_ENOUGH_TO_SHARE = min(_TRIED)
_CANDIDATES = 2  # nearest points of the center of a group that are looked at, for each one wanted


def announce_union(sites: int, near: int, count: int, size: int) -> None:
    """Say what a functional over several points is predicted from, where that is less than usual, or too much."""
    if near > WIDE_LIMIT:
        raise ValueError(
            f"A functional over {sites} points would be predicted from {near} observations, the {count} nearest to "
            f"each of its points, but the limit is {WIDE_LIMIT}. Give it fewer points, or use "
            "prediction=CompositeSum()."
        )
    if count < size:
        warn_caller(
            f"A functional over {sites} points is predicted from the {count} observations nearest to each of them, "
            f"{near} together, and not from the {size} nearest: the limit is {WIDE_LIMIT} together.",
            UserWarning,
        )


def default_group_size(n_columns: int) -> int:
    """Test points that share their nearest observations, about: many where few columns let them be close together."""
    return _TOGETHER if n_columns <= _FEW_COLUMNS else 1


def nearest(
    kernel: Kernel,
    X: Any,
    y: Any,
    Z: Any,
    *,
    n_neighbors: int = N_NEIGHBORS,
    group_size: int = 1,
    mean: Any = None,
    noise_variance: Any = None,
    n_jobs: int | None = None,
) -> Marginals:
    """Predict each latent value at `Z` from the observations nearest to it.

    The test points are taken in groups; the `n_neighbors` observations nearest to a group are the one term of its
    composite, so that each group has the exact Gaussian process given those (local kriging). Nearness is measured in
    the kernel's length scales. Larger groups share the work of a factorization.

    Parameters
    ----------
    kernel, X, y, Z, noise_variance
        As for `posterior`.
    n_neighbors : int
        Observations in a term; all of them if there are fewer.
    group_size : int
        Test points in a group, at most.
    mean : as in `posterior`
        Prior mean. Unknown coefficients (a name, or a `Basis`) are estimated in each term by itself, from its own
        observations and the prior that the `Basis` has: universal kriging in a moving neighborhood. With an
        `Estimated` they are those of the whole, and their error is added.
    n_jobs : int, optional
        Processes to use, as in joblib. The result does not depend on it.

    Returns
    -------
    Marginals
        Means and variances, shape (M,).

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> X = np.linspace(0, 100, 1000)[:, None]
    >>> nearest(RBF() + WhiteKernel(0.01), X, np.sin(X[:, 0]), [[20.0], [50.0]], n_neighbors=64).mean.round(1)
    array([ 0.9, -0.3])
    """
    kernel, (X, Z) = lift(check_kernel(kernel), X=X, Z=Z)
    data = Observations.checked(kernel, X, y, mean=mean, noise_variance=noise_variance)
    points = check_points(Z, "Z", data.X.shape[1])
    size, group_size = check_count(n_neighbors, "n_neighbors"), check_count(group_size, "group_size")
    return NearestPredictor(data).predict(points, Neighbors(size), group_size, n_jobs=n_jobs)


class NearestPredictor:
    """Data with a search tree: serves any number of test points, some thousand at a time.

    Parameters
    ----------
    data : Observations
    search : NeighborSearch, optional
        Of the same points under the same kernel, where there is one already.
    """

    def __init__(self, data: Observations, search: NeighborSearch | None = None) -> None:
        self.data = data
        self._search = NeighborSearch(in_length_scales(data.kernel, data.X)) if search is None else search
        self._search.prepare()

    def with_data(self, data: Observations) -> "NearestPredictor":
        """The same points with another mean or kernel, by the same search tree: nearness stays what it is here."""
        return NearestPredictor(data, self._search)

    def lifted(self, functionals: Functionals) -> "NearestPredictor":
        """The same data and tree, under the model lifted to functionals."""
        return NearestPredictor(self.data.lifted(functionals), self._search)

    def predict(
        self, Z: Floats, neighbors: Neighbors, group_size: int | None, *, n_jobs: int | None = None
    ) -> Marginals:
        """Predict each latent value at `Z`: see `nearest`; without a group size, in groups where they pay."""
        found = self._predict(Z, neighbors, self._sharing(Z, neighbors, group_size, n_jobs), n_jobs, False)
        return Marginals(found.mean, found.variance)

    def predict_surrounded(
        self, Z: Floats, neighbors: Neighbors, group_size: int | None, *, n_jobs: int | None = None
    ) -> Surrounded:
        """Predict each latent value at `Z`, and describe the neighborhood that it is predicted from."""
        return self._predict(Z, neighbors, self._sharing(Z, neighbors, group_size, n_jobs), n_jobs, True)

    def means(
        self, Z: Floats, neighbors: Neighbors, group_size: int | None, *, n_jobs: int | None = None
    ) -> Floats:
        """Means alone at `Z`: one solve for a group in the place of one for each of its test points."""
        result = np.empty((len(Z), *self.data.outputs))
        sharing = self._sharing(Z, neighbors, group_size, n_jobs)
        for own, part in self._each_group(block_means, Z, neighbors, sharing, n_jobs):
            result[own] = part.reshape(*own.shape, *self.data.outputs)
        check_finite(self.data.kernel, result, np.zeros(0))
        return result

    def _sharing(self, Z: Floats, neighbors: Neighbors, group_size: int | None, n_jobs: int | None) -> "_Sharing":
        """How test points share their neighbors."""
        if group_size is not None:
            return _Sharing(group_size, neighbors, CLOSE)
        if Z.shape[1] <= _FEW_COLUMNS:
            return _Sharing(_GROUP, neighbors, CLOSE)
        count, most = self.shared(Z, neighbors.size, n_jobs)
        return _Sharing(count, Neighbors(most), np.inf)

    def _predict(
        self, Z: Floats, neighbors: Neighbors, sharing: "_Sharing", n_jobs: int | None, surroundings: bool
    ) -> Surrounded:
        around = Neighborhood(np.empty((len(Z), self.data.n_outputs, len(WINDOWS))), np.empty(len(Z)))
        result = Surrounded(np.empty((len(Z), *self.data.outputs)), np.empty(len(Z)), around)
        for own, part in self._each_group(predict_blocks, Z, neighbors, sharing, n_jobs, surroundings):
            result.mean[own] = part.mean.reshape(*own.shape, *self.data.outputs)
            result.variance[own] = part.variance
            if surroundings:
                around.scales[own], around.log_variance[own] = part.surroundings
        check_finite(self.data.kernel, result.mean, result.variance)
        return result

    def _each_group(
        self,
        function: Callable[..., Any],
        Z: Floats,
        neighbors: Neighbors,
        sharing: "_Sharing",
        n_jobs: int | None,
        *options: Any,
    ) -> Iterator[tuple[Indices, Any]]:
        """Rows of `Z`, shape (groups, g), and what the function says of them given the observations of each group."""
        for tasks in self._tasks(Z, neighbors.within(len(self.data.X)), sharing, n_jobs):
            rows: list[Indices] = []
            calls = self._calls(function, Z, tasks, rows, options)
            if current_device() is None:
                found = run_tasks(calls, n_jobs)
            else:
                found = [call(*arguments) for call, arguments in calls]
            yield from zip(rows, found, strict=True)

    def _calls(
        self,
        function: Callable[..., Any],
        Z: Floats,
        tasks: Iterator[tuple[Any, Any]],
        rows: list[Indices],
        options: tuple[Any, ...],
    ) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
        """The calls of some tasks, one by one; the rows of `Z` that each is about are appended to `rows`."""
        for own, near in tasks:
            rows.append(own)
            if current_device() is None:
                yield function, (self.data.take(near.ravel()), blocks_in_a_row(*near.shape), Z[own], *options)
            else:
                yield function, (self.data, stack_of(near), Z[own], *options)

    def shared(self, Z: Floats, size: int, n_jobs: int | None = None) -> tuple[int, int]:
        """Test points that may share their neighbors in many columns, and how many neighbors they then have.

        In many columns test points are never very close together. A group that has more observations than a single
        point has still costs less than its points alone. The cheapest of some choices is taken that costs no more than
        `_SHARING_LOSS` of expected log score at a few groups that are tried.
        """
        if len(Z) < _ENOUGH_TO_SHARE or size >= len(self.data.X) or isinstance(self.data.kernel, OnFunctionals):
            return 1, size
        tests = in_length_scales(self.data.kernel, Z)
        largest = max(count for count, _ in _SHARED)
        groups = partition(tests, largest)
        n_groups, n_points = _TRIED[max(least for least in _TRIED if least <= len(Z))]
        tried = [groups[int(number)] for number in np.linspace(0, len(groups) - 1, n_groups)]
        parts = {count: [group[partition(tests[group], count)[0]] for group in tried] for count, _ in _SHARED}
        rows = np.concatenate([part[:n_points] for part in parts[min(parts)]])
        noise = noise_variance(self.data.kernel, Z[rows]) + np.finfo(np.float64).tiny
        few = Neighbors(size)
        alone = self._predict(Z[rows], few, _Sharing(1, few, CLOSE), n_jobs, False).variance + noise
        together = np.empty(len(Z))
        for count, share in sorted(_SHARED, key=lambda one: one[1] ** 3 / one[0]):
            most = min(round(share * size), len(self.data.X))
            members = sorted(parts[count], key=len, reverse=True)
            tasks = list(_tasks(members, self._sets(tests, members, Neighbors(most), n_jobs), 1))
            found = run_tasks(
                ((predict_blocks, (self.data, stack_of(near), Z[own], False)) for own, near in tasks),
                None if n_jobs is None and current_device() is None else 1,
            )
            for (own, _), part in zip(tasks, found, strict=True):
                together[own] = part.variance
            if 0.5 * float(np.mean(np.log((together[rows] + noise) / alone))) <= _SHARING_LOSS:
                return count, most
        return 1, size

    def nearest(self, Z: Floats, count: int, n_jobs: int | None) -> Any:
        """The `count` observations nearest to each test point, nearest first: shape (M, count)."""
        return self._search.nearest(in_length_scales(self.data.kernel, Z), count, n_jobs)

    def _tasks(
        self, Z: Floats, neighbors: Neighbors, sharing: "_Sharing", n_jobs: int | None
    ) -> Iterator[Iterator[tuple[Any, Any]]]:
        """Some tasks at a time: their rows of `Z` (groups, g), and the observations to predict from (groups, n).

        They are made one by one, while others are being worked on.
        """
        size = neighbors.size
        places = Places.of(self.data.kernel, Z, lambda centers, radii: self._covers(centers, radii, size, n_jobs))
        tests = in_length_scales(self.data.kernel, Z[places.first])
        group_size, most, close = sharing.group_size, sharing.neighbors.within(len(self.data.X)), sharing.close
        if group_size == 1 and places.shared is None:
            yield from self._tasks_alone(tests, neighbors, n_jobs)
            return
        groups = self._groups(tests, size, sharing, n_jobs) if len(tests) else []
        step = max(1, _HELD_NEIGHBORS // (_CANDIDATES * most.size))
        for start in range(0, len(groups), step):
            members = groups[start : start + step]
            sets = self._sets(tests, members, most, n_jobs)
            if np.isinf(close) and group_size > 1:
                sets = sets[np.arange(len(members))]
                members, apart = self._served(tests, members, sets, n_jobs)
                sets = sets[[number for number, group in enumerate(members) if len(group)]]
                members = [group for group in members if len(group)]
                if len(apart):
                    alone = list(apart[:, None])
                    yield _tasks(alone, self._sets(tests, alone, neighbors, n_jobs))
            if members:
                yield _tasks([places.rows(group) for group in members], sets)
        for row in places.wide:
            near = self._near(atoms_of(self.data.kernel, Z[[row]]), size, n_jobs)
            yield iter([(np.array([[row]]), near[None])])

    def _tasks_alone(
        self, tests: Floats, neighbors: Neighbors, n_jobs: int | None
    ) -> Iterator[Iterator[tuple[Any, Any]]]:
        """The same for test points that share nothing; on a device the neighbors stay there."""
        step = max(1, _HELD_NEIGHBORS // neighbors.size)
        ranks = neighbors.ranks(len(self.data.X))
        for start in range(0, len(tests), step):
            rows = np.arange(start, min(start + step, len(tests)))[:, None]
            near = self._search.at_ranks_there(tests[rows[:, 0]], ranks, n_jobs)
            near = near[:, ::-1] if isinstance(near, np.ndarray) else near.flip(1)
            most = task_blocks(neighbors.size) if current_device() is None else len(rows)
            parts = (slice(first, first + most) for first in range(0, len(rows), most))
            yield iter([(rows[part], near[part]) for part in parts])

    def _covers(self, centers: Floats, radii: Floats, size: int, n_jobs: int | None) -> Any:
        """Whether the neighborhood of a center is wide enough for points that far from it, as for those of a group."""
        return radii <= CLOSE * self._search.distance_to(centers, size, n_jobs)

    def _served(
        self, tests: Floats, groups: list[Indices], sets: Any, n_jobs: int | None
    ) -> tuple[list[Indices], Indices]:
        """Groups without the test points whose own nearest observations are not among those of the group; and these."""
        rows = np.concatenate(groups)
        nearest = self._search.at_ranks_there(tests[rows], np.arange(min(_OWN, sets.shape[1])), n_jobs)
        starts = np.cumsum([0, *(len(group) for group in groups)])
        if not isinstance(sets, np.ndarray) and not isinstance(nearest, np.ndarray):
            numbers = np.repeat(np.arange(len(groups)), np.diff(starts))
            inside = shares_inside(sets, numbers, nearest) >= _OWN_SHARE
            kept = np.split(inside, starts[1:-1])
            return [group[own] for group, own in zip(groups, kept, strict=True)], rows[~inside]
        sets, nearest = fetch(sets), fetch(nearest)
        served, apart = [], [rows[:0]]
        for group, near, start in zip(groups, sets, starts, strict=False):
            inside = np.isin(nearest[start : start + len(group)], near).mean(axis=1) >= _OWN_SHARE
            served.append(group[inside])
            apart.append(group[~inside])
        return served, np.concatenate(apart)

    def _near(self, points: Floats, size: int, n_jobs: int | None) -> Indices:
        """Observations near any of the points of a functional, the farthest first."""
        sites = np.unique(in_length_scales(self.data.kernel, points), axis=0)
        near, count = self._search.union(sites, size, WIDE_LIMIT, n_jobs)
        announce_union(len(sites), len(near), count, size)
        distances, _ = KDTree(sites).query(self._search.points[near])
        return np.asarray(near[np.argsort(-distances, kind="stable")])

    def around(self, rows: Indices, skip: int, neighbors: Neighbors, n_jobs: int | None) -> Any:
        """Observations around some of the observations, each without itself and its `skip` nearest.

        Returns
        -------
        int array of shape (len(rows), size), the farthest first
        """
        ranks = skip + neighbors.ranks(len(self.data.X) - skip - 1)
        # One more than the nearest, since itself is among them, and those behind it move up by one.
        first = int(np.count_nonzero(ranks == skip + np.arange(len(ranks))))
        looked = np.concatenate([np.arange(skip + first + 1), ranks[first:] + 1])
        near = self._search.at_ranks(self._search.points[rows], looked, n_jobs)
        # Itself is the first, or among duplicates that are as near: it is taken out wherever it is.
        itself = near == rows[:, None]
        itself[~itself.any(axis=1), skip + first] = True
        others = near[~itself].reshape(len(rows), -1)
        return others[:, skip:][:, ::-1]

    def distances(self, rows: Indices, others: Indices) -> Floats:
        """Distances between pairs of observations, in length scales: shape (m,)."""
        points = self._search.points
        return np.asarray(np.sqrt(((points[rows] - points[others]) ** 2).sum(axis=1)))

    def union(self, Z: Floats, neighbors: Neighbors, group_size: int) -> Indices:
        """The observations that any group of `Z` is predicted from, ascending."""
        neighbors = neighbors.within(len(self.data.X))
        return np.unique(
            np.concatenate(
                [
                    fetch(chosen).ravel()
                    for tasks in self._tasks(Z, neighbors, _Sharing(group_size, neighbors, CLOSE), None)
                    for _, chosen in tasks
                ]
            )
        )

    def _groups(self, tests: Floats, size: int, sharing: "_Sharing", n_jobs: int | None) -> list[Indices]:
        """Groups of test points (in length scales), the largest first."""
        if np.isinf(sharing.close):
            return sorted(partition(tests, sharing.group_size), key=len, reverse=True)
        return close_groups(
            tests, sharing.group_size, lambda centers: self._search.distance_to(centers, size, n_jobs)
        )

    def _sets(self, tests: Floats, groups: list[Indices], neighbors: Neighbors, n_jobs: int | None) -> Any:
        """Observations of each group, the farthest first: shape (groups, size)."""
        n = len(self.data.X)
        ranks = neighbors.ranks(n)
        centers = np.stack([tests[group].mean(axis=0) for group in groups])
        if len(groups[0]) == 1:
            return self._search.at_ranks(centers, ranks, n_jobs)[:, ::-1]
        count = min(n, _CANDIDATES * neighbors.size)
        if current_device() is not None:
            found = self._search.nearest_to_groups(tests, groups, max(count, int(ranks[-1]) + 1), ranks)
            if found is not None:
                return found.flip(1)
        looked = np.concatenate([np.arange(count), ranks[ranks >= count]])
        candidates = self._search.at_ranks(centers, looked, n_jobs)
        return _GroupSets(tests, groups, self._search.points, candidates, count, ranks)


@dataclass(frozen=True, eq=False)
class _GroupSets:
    """Observations of groups of test points, which are put in order when they are asked for.

    Ranks are those of the distance from any member of a group; of observations that are farther away than `count`
    others they hardly differ from those of the distance from its center.

    Attributes
    ----------
    tests : array of shape (m, d)
        In length scales.
    groups : list of int arrays
    points : array of shape (n, d)
        The observations.
    candidates : int array of shape (groups, k)
        The `count` nearest to the center of each group, and those of the larger ranks that are wanted.
    count : int
    ranks : int array of shape (size,)
    """

    tests: Floats
    groups: list[Indices]
    points: Floats
    candidates: Indices
    count: int
    ranks: Indices

    @property
    def shape(self) -> tuple[int, int]:
        """Groups, and observations of each."""
        return len(self.groups), len(self.ranks)

    def __getitem__(self, numbers: Indices) -> Indices:
        """The observations of some groups, the farthest first: shape (len(numbers), size)."""
        inside = self.ranks[self.ranks < self.count]
        sets = np.empty((len(numbers), len(self.ranks)), dtype=np.intp)
        for chosen, number in zip(sets, numbers, strict=True):
            near = self.candidates[number, : self.count]
            distances = squared_distances(self.tests[self.groups[number]], self.points[near]).min(axis=0)
            first = near[np.argsort(distances, kind="stable")[inside]]
            chosen[:] = np.concatenate([first, self.candidates[number, self.count :]])[::-1]
        return sets


class _Sharing(NamedTuple):
    """How test points share their neighbors.

    Attributes
    ----------
    group_size : int
        Test points that share them, at most.
    neighbors : Neighbors
        The observations that a group has.
    close : float
        Largest radius of a group, over the distance from its center to the last of its observations. Infinite: groups
        may be wide, and test points whose nearest observations a group lacks are predicted alone.
    """

    group_size: int
    neighbors: Neighbors
    close: float


def _tasks(members: list[Indices], sets: Any, at_once: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Groups of equal size, some at a time: their test points (groups, g) and observations (groups, size)."""
    at_once = task_blocks(sets.shape[1]) if at_once is None else at_once
    most = at_once if current_device() is None else len(members)
    sizes = np.array([len(own) for own in members])
    for g in np.unique(sizes):
        alike = np.flatnonzero(sizes == g)
        for start in range(0, len(alike), most):
            numbers = alike[start : start + most]
            yield np.stack([members[number] for number in numbers]), sets[numbers]
