"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    Array,
    Floats,
    Indices,
    blas_threads_for,
    current_device,
    fetch,
    in_batches,
    keep_freed_memory,
    like,
    psd_root,
    run_tasks,
    solve_lower,
    solve_upper,
    warn_caller,
)
from compositegp.composite import (
    FactoredStack,
    Observations,
    Stack,
    batches,
    factor_covariance,
    partition,
    whiten_by_covariance,
)
from compositegp.functionals import Functionals, OnFunctionals, Places, atoms_of, lift
from compositegp.kernels import (
    diagonal,
    gram,
    in_length_scales,
    length_scale_factors,
    noise_variance,
    squared_distances,
)
from compositegp.means import Estimated, NormalEquations, check_coefficients, covariance_root, gaussian_prior
from compositegp.posteriors.belief import Belief, Marginals, check_finite, empty_marginals
from compositegp.posteriors.neighbor_search import NeighborSearch, shares_inside
from compositegp.posteriors.surroundings import WINDOWS, Neighborhood, Surrounded, join_surrounded, neighborhood
from compositegp.validation import check_count, check_kernel, check_points

N_NEIGHBORS = 512
"""Observations that a test point is predicted from, unless a user says otherwise."""

WIDE_LIMIT = 4096
"""Observations that a functional over several points is predicted from, at most."""

# Found by benchmarks/estimator.py on the satellite field and benchmarks/scale.py profile.
_TASK_GROUPS = 16  # groups of test points in one parallel task
_HELD_NEIGHBORS = 2**22  # indices of neighbors held at once
_FEW_COLUMNS = 4  # up to this many columns test points that are close together share their neighbors
_GROUP = 128  # test points that share their neighbors, at most
_CLOSE = 0.5  # largest radius of a group, over the distance from its center to the last of its observations
_MANY, _CLOSER = 32, 0.25  # the same of a group of more test points than this: they may be near the rim of a gap
_SMALLER = 2  # groups that are not close together are made this many times smaller, again and again
# In many columns: test points that may share their neighbors, and how many they then have, over those of one point.
_SHARED = ((8, 1.0), (16, 1.5), (8, 1.5), (16, 2.0))
_SHARING_LOSS = 0.001  # expected log score, in nats, that sharing may cost there
_OWN, _OWN_SHARE = (
    48,
    0.9,
)  # nearest observations of a test point, of which its group has this share, or it is alone
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
    return _MANY if n_columns <= _FEW_COLUMNS else 1


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
    the kernel's length scales. Larger groups share the work of a factorisation.

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
        observations and the prior that the `Basis` has: universal kriging in a moving neighbourhood. With an
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
    return NearestPredictor(data).predict(points, size, group_size, n_jobs=n_jobs)


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

    def predict(self, Z: Floats, size: int, group_size: int | None, *, n_jobs: int | None = None) -> Marginals:
        """Predict each latent value at `Z`: see `nearest`; without a group size, in groups where they pay."""
        found = self._predict(Z, size, self._sharing(Z, size, group_size, n_jobs), n_jobs, False)
        return Marginals(found.mean, found.variance)

    def predict_surrounded(
        self, Z: Floats, size: int, group_size: int | None, *, n_jobs: int | None = None
    ) -> Surrounded:
        """Predict each latent value at `Z`, and describe the neighborhood that it is predicted from."""
        return self._predict(Z, size, self._sharing(Z, size, group_size, n_jobs), n_jobs, True)

    def means(self, Z: Floats, size: int, group_size: int | None, *, n_jobs: int | None = None) -> Floats:
        """Means alone at `Z`: one solve for a group in the place of one for each of its test points."""
        result = np.empty((len(Z), *self.data.outputs))
        for own, part in self._each_group(_means, Z, size, self._sharing(Z, size, group_size, n_jobs), n_jobs):
            result[own] = part.reshape(*own.shape, *self.data.outputs)
        check_finite(self.data.kernel, result, np.zeros(0))
        return result

    def _sharing(self, Z: Floats, size: int, group_size: int | None, n_jobs: int | None) -> "_Sharing":
        """How test points share their neighbors."""
        if group_size is not None:
            return _Sharing(group_size, size, _CLOSE)
        if Z.shape[1] <= _FEW_COLUMNS:
            return _Sharing(_GROUP, size, _CLOSE)
        return _Sharing(*self.shared(Z, size, n_jobs), np.inf)

    def _predict(
        self, Z: Floats, size: int, sharing: "_Sharing", n_jobs: int | None, surroundings: bool
    ) -> Surrounded:
        around = Neighborhood(np.empty((len(Z), self.data.n_outputs, len(WINDOWS))), np.empty(len(Z)))
        result = Surrounded(np.empty((len(Z), *self.data.outputs)), np.empty(len(Z)), around)
        for own, part in self._each_group(_predict, Z, size, sharing, n_jobs, surroundings):
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
        size: int,
        sharing: "_Sharing",
        n_jobs: int | None,
        *options: Any,
    ) -> Iterator[tuple[Indices, Any]]:
        """Rows of `Z`, shape (groups, g), and what the function says of them given the observations of each group."""
        for tasks in self._tasks(Z, min(size, len(self.data.X)), sharing, n_jobs):
            if current_device() is None:
                calls = (
                    (function, (self.data.take(near.ravel()), _blocks(*near.shape), Z[own], *options))
                    for own, near in tasks
                )
                found = run_tasks(calls, n_jobs)
            else:
                found = [function(self.data, _stack(near), Z[own], *options) for own, near in tasks]
            yield from zip([own for own, _ in tasks], found, strict=True)

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
        alone = self._predict(Z[rows], size, _Sharing(1, size, _CLOSE), n_jobs, False).variance + noise
        together = np.empty(len(Z))
        for count, share in sorted(_SHARED, key=lambda one: one[1] ** 3 / one[0]):
            most = min(round(share * size), len(self.data.X))
            members = sorted(parts[count], key=len, reverse=True)
            tasks = list(_tasks(members, self._sets(tests, members, most, n_jobs), 1))
            found = run_tasks(
                ((_predict, (self.data, _stack(near), Z[own], False)) for own, near in tasks),
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
        self, Z: Floats, size: int, sharing: "_Sharing", n_jobs: int | None
    ) -> Iterator[list[tuple[Any, Any]]]:
        """Some tasks at a time: their rows of `Z` (groups, g), and the observations to predict from (groups, n)."""
        places = Places.of(self.data.kernel, Z, lambda centers, radii: self._covers(centers, radii, size, n_jobs))
        tests = in_length_scales(self.data.kernel, Z[places.first])
        group_size, most, close = sharing.group_size, min(sharing.size, len(self.data.X)), sharing.close
        if group_size == 1 and places.shared is None:
            yield from self._tasks_alone(tests, size, n_jobs)
            return
        groups = self._groups(tests, size, group_size, n_jobs, close) if len(tests) else []
        step = max(1, _HELD_NEIGHBORS // (_CANDIDATES * most))
        for start in range(0, len(groups), step):
            members = groups[start : start + step]
            sets = self._sets(tests, members, most, n_jobs)
            if np.isinf(close) and group_size > 1:
                members, apart = self._served(tests, members, sets, n_jobs)
                sets = sets[[number for number, group in enumerate(members) if len(group)]]
                members = [group for group in members if len(group)]
                if len(apart):
                    alone = list(apart[:, None])
                    yield list(_tasks(alone, self._sets(tests, alone, size, n_jobs)))
            if members:
                yield list(_tasks([places.rows(group) for group in members], sets))
        for row in places.wide:
            near = self._near(atoms_of(self.data.kernel, Z[[row]]), size, n_jobs)
            yield [(np.array([[row]]), near[None])]

    def _tasks_alone(self, tests: Floats, size: int, n_jobs: int | None) -> Iterator[list[tuple[Any, Any]]]:
        """The same for test points that share nothing; on a device the neighbors stay there."""
        step = max(1, _HELD_NEIGHBORS // size)
        for start in range(0, len(tests), step):
            rows = np.arange(start, min(start + step, len(tests)))[:, None]
            near = self._search.nearest_there(tests[rows[:, 0]], size, n_jobs)
            near = near[:, ::-1] if isinstance(near, np.ndarray) else near.flip(1)
            most = _TASK_GROUPS if current_device() is None else len(rows)
            parts = (slice(first, first + most) for first in range(0, len(rows), most))
            yield [(rows[part], near[part]) for part in parts]

    def _covers(self, centers: Floats, radii: Floats, size: int, n_jobs: int | None) -> Any:
        """Whether the neighborhood of a center is wide enough for points that far from it, as for those of a group."""
        return radii <= _CLOSE * self._search.distance_to(centers, size, n_jobs)

    def _served(
        self, tests: Floats, groups: list[Indices], sets: Any, n_jobs: int | None
    ) -> tuple[list[Indices], Indices]:
        """Groups without the test points whose own nearest observations are not among those of the group; and these."""
        rows = np.concatenate(groups)
        nearest = self._search.nearest_there(tests[rows], min(_OWN, sets.shape[1]), n_jobs)
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

    def around(self, rows: Indices, skip: int, size: int, n_jobs: int | None) -> Any:
        """Observations around some of the observations, each without itself and its `skip` nearest.

        Returns
        -------
        int array of shape (len(rows), size), the farthest first
        """
        points = self._search.points[rows]
        near = self._search.nearest(points, skip + size + 1, n_jobs)
        # Itself is the first, or among duplicates that are as near: it is taken out wherever it is.
        itself = near == rows[:, None]
        itself[~itself.any(axis=1), -1] = True
        others = near[~itself].reshape(len(rows), skip + size)
        return others[:, : skip - 1 if skip else None : -1] if skip else others[:, ::-1]

    def distances(self, rows: Indices, others: Indices) -> Floats:
        """Distances between pairs of observations, in length scales: shape (m,)."""
        points = self._search.points
        return np.asarray(np.sqrt(((points[rows] - points[others]) ** 2).sum(axis=1)))

    def union(self, Z: Floats, size: int, group_size: int) -> Indices:
        """The observations that any group of `Z` is predicted from, ascending."""
        size = min(size, len(self.data.X))
        return np.unique(
            np.concatenate(
                [
                    fetch(chosen).ravel()
                    for tasks in self._tasks(Z, size, _Sharing(group_size, size, _CLOSE), None)
                    for _, chosen in tasks
                ]
            )
        )

    def _groups(
        self, tests: Floats, size: int, group_size: int, n_jobs: int | None, close: float = _CLOSE
    ) -> list[Indices]:
        """Groups of test points (in length scales) that are close together: smaller ones where large ones are not."""
        if np.isinf(close):
            return sorted(partition(tests, group_size), key=len, reverse=True)
        groups: list[Indices] = []
        rest = np.arange(len(tests))
        while group_size > 1 and len(rest):
            near, rest = self._close(tests, rest, size, group_size, n_jobs)
            groups += near
            group_size //= _SMALLER
        return sorted(groups, key=len, reverse=True) + list(rest[:, None])

    def _close(
        self, tests: Floats, rows: Indices, size: int, group_size: int, n_jobs: int | None
    ) -> tuple[list[Indices], Indices]:
        """Groups of some of the test points that are close together, and the points of those that are not."""
        groups = [rows[group] for group in partition(tests[rows], group_size)]
        centres = np.stack([tests[group].mean(axis=0) for group in groups])
        reach = self._search.distance_to(centres, size, n_jobs)
        radii = [
            np.sqrt(((tests[group] - centre) ** 2).sum(axis=1).max())
            for group, centre in zip(groups, centres, strict=True)
        ]
        close = np.array(radii) <= (_CLOSER if group_size > _MANY else _CLOSE) * reach
        far = [group for group, near in zip(groups, close, strict=True) if not near]
        return [group for group, near in zip(groups, close, strict=True) if near], np.concatenate([rows[:0], *far])

    def _sets(self, tests: Floats, groups: list[Indices], size: int, n_jobs: int | None) -> Any:
        """Observations nearest to each group, the farthest first: shape (groups, size)."""
        alone = len(groups[0]) == 1
        count = min(len(self.data.X), size if alone else _CANDIDATES * size)
        if current_device() is not None:
            found = self._search.nearest_to_groups(tests, groups, count, size)
            if found is not None:
                return found.flip(1)
        centres = np.stack([tests[group].mean(axis=0) for group in groups])
        candidates = self._search.nearest(centres, count, n_jobs)
        if count == size:
            return candidates[:, ::-1]
        sets = np.empty((len(groups), size), dtype=np.intp)
        for chosen, group, near in zip(sets, groups, candidates, strict=True):
            distances, _ = KDTree(tests[group]).query(self._search.points[near])
            chosen[:] = near[np.argsort(distances, kind="stable")[:size][::-1]]
        return sets


class _Sharing(NamedTuple):
    """How test points share their neighbors.

    Attributes
    ----------
    group_size : int
        Test points that share them, at most.
    size : int
        How many observations a group has.
    close : float
        Largest radius of a group, over the distance from its center to the last of its observations. Infinite: groups
        may be wide, and test points whose nearest observations a group lacks are predicted alone.
    """

    group_size: int
    size: int
    close: float


def _tasks(members: list[Indices], sets: Any, at_once: int = _TASK_GROUPS) -> Iterator[tuple[Any, Any]]:
    """Groups of equal size, some at a time: their test points (groups, g) and observations (groups, size)."""
    most = at_once if current_device() is None else len(members)
    sizes = np.array([len(own) for own in members])
    for g in np.unique(sizes):
        alike = np.flatnonzero(sizes == g)
        for start in range(0, len(alike), most):
            numbers = alike[start : start + most]
            yield np.stack([members[number] for number in numbers]), sets[numbers]


def _stack(sets: Any) -> Stack:
    """One term for each group of observations: `sets` of shape (groups, n)."""
    return Stack(sets, tuple(sets.shape[1:]), np.ones((len(sets), 1)), np.arange(len(sets)))


def _blocks(groups: int, n: int) -> Stack:
    """The same where the observations of the groups follow each other."""
    return _stack(np.arange(groups * n).reshape(groups, n))


def predict_from(data: Observations, sets: Any, Z: Floats) -> Surrounded:
    """Predict each of M test points from its own set of observations, the farthest first: `sets` of shape (M, n)."""
    found = _predict(data, _stack(sets), Z[:, None, :], True)
    around = Neighborhood(found.surroundings.scales[:, 0], found.surroundings.log_variance[:, 0])
    return Surrounded(found.mean[:, 0].reshape(-1, *data.outputs), found.variance[:, 0], around)


def _predict(data: Observations, stack: Stack, Z: Floats, surroundings: bool) -> Surrounded:
    """Means (groups, g, t), variances (groups, g) and surroundings at test points of shape (groups, g, d)."""
    n, shape = stack.indices.shape[1], Z.shape[:2]
    around = Neighborhood(np.empty((*shape, data.n_outputs, len(WINDOWS))), np.empty(shape))
    result = Surrounded(np.empty((*shape, data.n_outputs)), np.empty(shape), around)

    def work(blocks: slice) -> _Whitened:
        return _whiten(data, stack[blocks], Z[blocks])

    def conclude(blocks: slice, found: _Whitened) -> None:
        own, V = Z[blocks], found.covariances
        result.mean[blocks], sensitivity_root, coefficients = _conditional_mean(data, found.columns, V, own)
        left = np.maximum(diagonal(data.kernel, own, noise=False) - fetch((V * V).sum(1)), 0.0)
        result.variance[blocks] = left + (sensitivity_root**2).sum(axis=-1)
        if surroundings:
            errors, points = _standardized_errors(data, found.columns, coefficients), data.rows("X", stack[blocks])
            near = _surroundings(data, points, own, errors, found.pivots)
            around.scales[blocks], around.log_variance[blocks] = near

    keep_freed_memory()
    with blas_threads_for(0):
        if current_device() is None:  # small batches fit into a cache, and what is left of them is little
            conclude(slice(None), _joined(in_batches(len(stack), n * max(n, shape[1]), work)))
        else:
            in_batches(len(stack), n * max(n, shape[1]), lambda blocks: conclude(blocks, work(blocks)))
    return result


class _Whitened(NamedTuple):
    """What is left of blocks when their covariances Σ = C Cᵀ are factorised.

    Attributes
    ----------
    columns : array of shape (blocks, n, q + t)
        C⁻¹ [F y].
    covariances : array of shape (blocks, n, g)
        C⁻¹ times the covariances with test points.
    pivots : array of shape (blocks, n)
        Diagonal of C.
    """

    columns: Array
    covariances: Array
    pivots: Array


def _whiten(data: Observations, stack: Stack, Z: Floats) -> _Whitened:
    """Factorise the covariances of some blocks, with test points (blocks, g, d)."""
    points = data.rows("X", stack)
    columns, q = data.rows("columns", stack), data.columns.shape[1]
    both = array_namespace(points).concat([columns, gram(data.kernel, points, like(Z, points))], axis=-1)
    pivots, solved = whiten_by_covariance(data, stack, gram(data.kernel, points), both)
    return _Whitened(solved[..., :q], solved[..., q:], pivots)


def _joined(parts: list[_Whitened]) -> _Whitened:
    """Those of several batches, one after the other."""
    return parts[0] if len(parts) == 1 else _Whitened(*map(np.concatenate, zip(*parts, strict=True)))


def _means(data: Observations, stack: Stack, Z: Floats) -> Floats:
    """Means (groups, g, t) alone at test points of shape (groups, g, d)."""
    n, shape = stack.indices.shape[1], Z.shape[:2]
    result = np.empty((*shape, data.n_outputs))

    def work(blocks: slice) -> None:
        part = stack[blocks]
        points = data.rows("X", part)
        lower, _ = factor_covariance(data, part, gram(data.kernel, points))
        weights, coefficients = _weights(data, lower, solve_lower(lower, data.rows("columns", part)))
        result[blocks] = _weighted(data, points, weights, coefficients, Z[blocks])

    keep_freed_memory()
    with blas_threads_for(0):
        in_batches(len(stack), n * max(n, shape[1]), work)
    return result


def _weights(data: Observations, lower: Array, columns: Array) -> tuple[Array, Floats]:
    """Σ_kk⁻¹(y − μ) of each block, shape (blocks, n, t), and the coefficients of the mean, from C⁻¹ [F y]."""
    coefficients, _ = coefficients_in_blocks(data, columns)
    return solve_upper(lower, _standardized_errors(data, columns, coefficients)), coefficients


def _weighted(data: Observations, points: Array, weights: Array, coefficients: Floats, Z: Floats) -> Floats:
    """Means (blocks, g, t) at test points (blocks, g, d): μ + Σ_zk Σ_kk⁻¹(y − μ)."""
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(*Z.shape[:2], -1)
    mean = mean + fetch(gram(data.kernel, like(Z, points), points) @ weights)
    if data.mean.coefficients is not None:
        mean = mean + data.mean.columns(flat).reshape(*Z.shape[:2], -1) @ coefficients
    return np.asarray(mean)


def _standardized_errors(data: Observations, columns: Array, coefficients: Floats) -> Array:
    """U = C⁻¹(y − μ), shape (blocks, n, t), from C⁻¹ [F y] and the coefficients of the mean."""
    q = data.basis.shape[1]
    return columns[..., q:] - columns[..., :q] @ like(coefficients, columns)


def _surroundings(data: Observations, X: Array, Z: Floats, errors: Array, pivots: Array) -> Neighborhood:
    """Neighborhoods of test points (groups, g, d): each takes its own nearest observations of the group's.

    The observations are at `X`, shape (groups, n, d), with their errors and pivots where they were computed.
    """
    most = min(max(WINDOWS), errors.shape[1])
    if Z.shape[1] == 1:  # the observations are sorted, the farthest first
        last = errors.shape[1] - most
        u, roots = fetch(errors[:, last:])[:, ::-1], fetch(pivots[:, last:])[:, ::-1]
        found = neighborhood(u, roots)
        return Neighborhood(found.scales[:, None], found.log_variance[:, None])
    if not isinstance(X, np.ndarray):
        return _surroundings_there(data, X, _scaled(data, Z), errors, pivots, most)
    together = _scaled(data, np.concatenate([Z, X], axis=1))
    distances = squared_distances(together[:, : Z.shape[1]], together[:, Z.shape[1] :])
    if most < distances.shape[-1]:
        some = np.argpartition(distances, most - 1, axis=-1)[..., :most]
        order = np.argsort(np.take_along_axis(distances, some, axis=-1), axis=-1, kind="stable")
        near = np.take_along_axis(some, order, axis=-1)
    else:
        near = np.argsort(distances, axis=-1, kind="stable")
    blocks = np.arange(len(near))[:, None, None]
    return neighborhood(errors[blocks, near], pivots[blocks, near])


def _scaled(data: Observations, points: Floats) -> Floats:
    """Points (groups, n, d) in the length scales of the kernel."""
    return in_length_scales(data.kernel, points.reshape(-1, points.shape[-1])).reshape(*points.shape[:2], -1)


def _surroundings_there(
    data: Observations, X: Array, tests: Floats, errors: Array, pivots: Array, most: int
) -> Neighborhood:
    """The same on a device, for test points in length scales."""
    factors = length_scale_factors(data.kernel, X.shape[-1])
    if factors is None:
        scaled = in_length_scales(data.kernel, fetch(X).reshape(-1, X.shape[-1]))
        points = like(scaled.reshape(*X.shape[:2], -1), X)
    else:
        points = X * like(factors, X)
    near = squared_distances(like(tests, X), points).topk(most, dim=-1, largest=False).indices
    blocks = like(np.arange(len(tests)), X)[:, None, None]
    return neighborhood(fetch(errors[blocks, near]), fetch(pivots[blocks, near]))


def _conditional_mean(data: Observations, columns: Array, V: Array, Z: Floats) -> tuple[Floats, Floats, Floats]:
    """Means (blocks, g, t) given each block, a root (blocks, g, q) of what the error of β adds, and β (blocks, q, t).

    From C⁻¹ [F y], shape (blocks, n, q + t), and C⁻¹ Σ_kz, shape (blocks, n, g).
    """
    q = data.basis.shape[1]
    explained = fetch(V.mT @ columns)  # Σ_zk Σ_kk⁻¹ [F y]
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(*Z.shape[:2], -1) + explained[..., q:]
    if data.mean.coefficients is None:
        return np.asarray(mean), np.zeros((*Z.shape[:2], 0)), np.zeros((1, 0, data.n_outputs))
    sensitivity = data.mean.columns(flat).reshape(*Z.shape[:2], -1) - explained[..., :q]
    coefficients, root = coefficients_in_blocks(data, columns)
    return np.asarray(mean + sensitivity @ coefficients), np.asarray(sensitivity @ root), coefficients


def exact_marginals(data: Observations, factored: FactoredStack, Z: Floats) -> Marginals:
    """Predict each latent value at `Z` by the exact Gaussian process given one block, which has been factorised.

    No algebra over the test points is needed, so that dense test points and data without noise are no difficulty.
    """
    result = empty_marginals(len(Z), data.outputs)
    n = factored.innovations.shape[1]
    with blas_threads_for(n):
        for part in batches(len(Z), n):
            points = Z[None, part]
            V = solve_lower(factored.lower, gram(data.kernel, factored.points, like(points, factored.points)))
            mean, sensitivity_root, _ = _conditional_mean(data, factored.innovations, V, points)
            informed = fetch((V * V).sum(1))[0]
            variance = np.maximum(diagonal(data.kernel, Z[part], noise=False) - informed, 0.0)
            result.mean[part] = mean[0].reshape(-1, *data.outputs)
            result.variance[part] = variance + (sensitivity_root[0] ** 2).sum(axis=-1)
    check_finite(data.kernel, result.mean, result.variance)
    return result


def exact_means(data: Observations, factored: FactoredStack, Z: Floats) -> Floats:
    """Means alone at `Z` by the exact Gaussian process given one block: n operations a test point, and not n²."""
    result = np.empty((len(Z), data.n_outputs))
    n = factored.innovations.shape[1]
    with blas_threads_for(n):
        weights, coefficients = _weights(data, factored.lower, factored.innovations)
        for part in batches(len(Z), n):
            result[part] = _weighted(data, factored.points, weights, coefficients, Z[None, part])[0]
    check_finite(data.kernel, result, np.zeros(0))
    return result.reshape(-1, *data.outputs)


def exact_belief(data: Observations, factored: FactoredStack, Z: Floats) -> Belief:
    """Joint belief about the latent values at `Z` by the exact Gaussian process given one block."""
    with blas_threads_for(max(len(Z), factored.innovations.shape[1])):
        points = Z[None]
        V = solve_lower(factored.lower, gram(data.kernel, factored.points, like(points, factored.points)))
        mean, sensitivity_root, _ = _conditional_mean(data, factored.innovations, V, points)
        covariance = gram(data.kernel, Z, Z) - fetch(V.mT @ V)[0]
        check_finite(data.kernel, mean, covariance)
        root = psd_root(covariance)
        root = np.concatenate([root, sensitivity_root[0]], axis=1)
    return Belief(mean[0].reshape(-1, *data.outputs), root)


def coefficients_in_blocks(data: Observations, columns: Array) -> tuple[Floats, Floats]:
    """The mean's coefficients in each block, shape (blocks, q, t), and a root of their covariance, (blocks, q, q).

    From C⁻¹ [F y], shape (blocks, n, q + t).
    """
    q = data.basis.shape[1]
    if data.mean.coefficients is None:
        return np.zeros((1, 0, data.n_outputs)), np.zeros((1, 0, 0))
    products = fetch(columns[..., :q].mT @ columns)
    return coefficients_from(data, NormalEquations(products[..., :q], products[..., q:]))


def coefficients_from(data: Observations, normal: NormalEquations) -> tuple[Floats, Floats]:
    """The same from the normal equations of each block.

    Those of the whole where they were estimated elsewhere, else from the block's own observations and the prior.
    """
    known, q = data.mean.coefficients, data.basis.shape[1]
    if isinstance(known, Estimated):
        root = covariance_root(known.covariance)
        return check_coefficients(known.coefficients, q)[None], root[None]
    own = normal.with_prior(gaussian_prior(known, q))
    root = own.covariance_root
    return np.asarray(root @ (np.swapaxes(root, -1, -2) @ own.moment)), root


def predict_prefixes(
    data: Observations, sets: Any, rows: Indices, skips: tuple[int, ...], *, n_jobs: int | None = None
) -> list[Surrounded]:
    """Predict some of the observations from sets of others, without the K nearest of each, for every K.

    One factorisation of a set, its observations being ordered from far to near, gives all of them: the first n − K rows
    of C⁻¹ are those of the first n − K observations alone. # THEORY: every prefix of a factorisation is a prediction

    Parameters
    ----------
    data : Observations
    sets : int array of shape (m, n)
        Observations around each, the farthest first, without itself.
    rows : int array of shape (m,)
        The observations to predict.
    skips : tuple of int
        Values of K, each less than n.

    Returns
    -------
    list of Surrounded, one for each K
    """
    step = _TASK_GROUPS if current_device() is None else len(rows)
    tasks = (
        (_prefixes, (data.take(near.ravel()), _blocks(*near.shape), data.X[own, None], skips))
        for own, near in (
            (rows[start : start + step], sets[start : start + step]) for start in range(0, len(rows), step)
        )
    )
    parts = run_tasks(tasks, n_jobs if current_device() is None else 1)
    return [join_surrounded([part[number] for part in parts], data.outputs) for number in range(len(skips))]


def _prefixes(data: Observations, stack: Stack, Z: Floats, skips: tuple[int, ...]) -> list[Surrounded]:
    n = stack.indices.shape[1]

    def work(blocks: slice) -> _Whitened:
        return _Whitened(*map(fetch, _whiten(data, stack[blocks], Z[blocks])))

    keep_freed_memory()
    with blas_threads_for(0):
        columns, V, pivots = _joined(in_batches(len(stack), n * n, work))
    prior, result = diagonal(data.kernel, Z, noise=False), []
    for skip in skips:
        rest = slice(0, n - skip)
        mean, root, beta = _conditional_mean(data, columns[:, rest], V[:, rest], Z)
        variance = np.maximum(prior - (V[:, rest] ** 2).sum(1), 0.0) + (root**2).sum(-1)
        errors = _standardized_errors(data, columns[:, rest], beta)[:, ::-1]
        around = neighborhood(errors, pivots[:, rest][:, ::-1])
        result.append(Surrounded(mean[:, 0], variance[:, 0], around))
    return result


def normal_equations(data: Observations, sets: Any, *, n_jobs: int | None = None) -> NormalEquations:
    """Normal equations of the mean's coefficients in each of some sets of observations (m, n): (m, q, q), (m, q, t)."""
    step = _TASK_GROUPS if current_device() is None else len(sets)
    tasks = (
        (_normal, (data.take(near.ravel()), _blocks(*near.shape)))
        for near in (sets[start : start + step] for start in range(0, len(sets), step))
    )
    parts = run_tasks(tasks, n_jobs if current_device() is None else 1)
    return NormalEquations(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _normal(data: Observations, stack: Stack) -> NormalEquations:
    n, q = stack.indices.shape[1], data.basis.shape[1]

    def work(blocks: slice) -> NormalEquations:
        points = data.rows("X", stack[blocks])
        lower, _ = factor_covariance(data, stack[blocks], gram(data.kernel, points))
        columns = solve_lower(lower, data.rows("columns", stack[blocks]))
        products = fetch(columns[..., :q].mT @ columns)
        return NormalEquations(products[..., :q], products[..., q:])

    keep_freed_memory()
    with blas_threads_for(0):
        found = in_batches(len(stack), n * n, work)
    return NormalEquations(*(np.concatenate(values) for values in zip(*found, strict=True)))
