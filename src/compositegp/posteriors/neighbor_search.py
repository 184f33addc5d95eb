"""Nearest observations: by a search tree on the processor, by all distances on a device."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.linalg import LinAlgError
from scipy.spatial import KDTree

from compositegp.backend import (
    Array,
    Floats,
    Indices,
    available_threads,
    batch_elements,
    current_device,
    fetch,
    fused_squared_distances,
    in_batches,
    is_fused,
    like,
    points_within,
)
from compositegp.kernels import squared_distances

_LEAF = 32  # points in a leaf of a tree
_SPARE = 16  # candidates beyond those wanted, among which the nearest are found by exact distances
_MANY_POINTS = 2**16  # points from which a bound is found before the nearest are looked for, on a device
_SAMPLE = 2**14  # points by which the bound is found
_LOST_DIGITS = 1e-12  # squared distance, over the squared size of the data, under which rounding decides


FEWEST_NEAR = 8
"""Observations near each point of a functional, at least, that it is predicted from."""
_HELD_POSITIONS = 2**22  # positions of neighbors held at once


class NeighborSearch:
    """Points among which the nearest are looked for.

    Parameters
    ----------
    points : array of shape (n, d)
        In the unit in which nearness is measured.
    """

    def __init__(self, points: Floats) -> None:
        self.points = points
        self._sent: dict[str, _Sent] = {}

    def prepare(self) -> None:
        """Build the tree, unless a device takes its place."""
        if current_device() is None:
            _ = self._tree

    @cached_property
    def _tree(self) -> KDTree:
        # As fast to search as the default tree or faster, and made in half the time.
        return KDTree(self.points, leafsize=_LEAF, balanced_tree=False)

    def nearest(self, centers: Floats, count: int, n_jobs: int | None) -> Any:
        """Positions of the `count` points nearest to each of m centers, nearest first: shape (m, count)."""
        return self.at_ranks(centers, np.arange(count), n_jobs)

    def at_ranks(self, centers: Floats, ranks: Indices, n_jobs: int | None) -> Any:
        """Positions of the points of some ranks in nearness to each of m centers: shape (m, len(ranks)).

        The nearest has rank 0; ranks ascend.
        """
        return fetch(self.at_ranks_there(centers, ranks, n_jobs))

    def at_ranks_there(self, centers: Floats, ranks: Indices, n_jobs: int | None) -> Array:
        """The same with the positions left on the device in use, where they were found."""
        found = self._by_distances(centers, int(ranks[-1]) + 1)
        if found is not None:
            return found[1] if len(ranks) == found[1].shape[1] else found[1][:, like(ranks, found[1])]
        indices = self._tree.query(centers, k=(ranks + 1).tolist(), workers=_workers(n_jobs))[1]
        if indices.max(initial=0) == len(self.points):  # the tree's mark for a point at an infinite distance
            raise LinAlgError(
                "Distances between the observations and the test points are beyond double precision. Scale the inputs."
            )
        return indices

    def union(self, sites: Floats, count: int, most: int, n_jobs: int | None) -> tuple[Indices, int]:
        """Positions of the points near any of some sites, ascending, and how many of the nearest each site has.

        Each has the `count` nearest or, where all of them together would be more than `most`, half as many, again and
        again, but not fewer than `FEWEST_NEAR`: then there are more than `most`.
        """
        count = min(count, len(self.points))
        while True:
            found = self._union(sites, count, n_jobs)
            if len(found) <= most or count <= FEWEST_NEAR:
                return found, count
            count = max(FEWEST_NEAR, count // 2)

    def _union(self, sites: Floats, count: int, n_jobs: int | None) -> Indices:
        seen = np.zeros(len(self.points), dtype=bool)
        step = max(1, _HELD_POSITIONS // count)
        for start in range(0, len(sites), step):
            seen[self.nearest(sites[start : start + step], count, n_jobs)] = True
        return np.flatnonzero(seen)

    def distance_to(self, centers: Floats, rank: int, n_jobs: int | None) -> Floats:
        """Distance of each center to the point of that rank, the nearest being the first: shape (m,)."""
        found = self._by_distances(centers, rank)
        if found is not None:
            return np.asarray(np.sqrt(fetch(found[0][:, -1])))
        return np.asarray(self._tree.query(centers, k=[rank], workers=_workers(n_jobs))[0][:, 0])

    def nearest_to_groups(
        self, tests: Floats, groups: list[Indices], candidates: int, ranks: Indices
    ) -> Array | None:
        """Positions of points by their nearness to any of the members of groups, found on the device in use.

        Parameters
        ----------
        tests : array of shape (m, d)
        groups : list of int arrays
            The members of each group, none empty.
        candidates : int
            Nearest points of the center of a group among which they are.
        ranks : int array of shape (count,)
            Which of these are wanted, ascending; the nearest has rank 0.

        Returns
        -------
        array of shape (groups, count) on the device, or None where there is none, or it is not up to it
        """
        sizes = np.array([len(group) for group in groups])
        rows, starts = np.concatenate(groups), np.cumsum(sizes) - sizes
        found = self._by_distances(np.add.reduceat(tests[rows], starts) / sizes[:, None], candidates)
        device = current_device()
        if found is None or device is None:
            return None
        sent, near = self._sent[device.name], found[1]
        # A small group has some of its members twice, which changes no nearest distance.
        padded = rows[starts[:, None] + np.arange(sizes.max()) % sizes[:, None]]
        members = device.send(tests[padded] - sent.middle)

        def nearest(part: slice) -> Array:
            distances = squared_distances(sent.points[near[part]], members[part]).amin(2)
            order = distances.topk(int(ranks[-1]) + 1, dim=1, largest=False).indices
            return near[part].gather(1, order if order.shape[1] == len(ranks) else order[:, like(ranks, order)])

        return device.torch.cat(in_batches(len(groups), candidates * padded.shape[1], nearest))

    def _by_distances(self, centers: Floats, count: int) -> tuple[Array, Array] | None:
        """Squared distances and positions of the nearest, on the device; None where there is none, or not up to it."""
        device = current_device()
        if device is None or not len(centers):
            return None
        if device.name not in self._sent:
            self._sent[device.name] = _Sent.of(device, self.points)
        sent = self._sent[device.name]
        found = sent.nearest(device.send(centers - sent.middle), count)
        return None if found is None else (found[0], found[1])

    def __getstate__(self) -> dict[str, Any]:
        """The points alone."""
        return {"points": self.points, "_sent": {}}


@dataclass(frozen=True, eq=False)
class _Sent:
    """Points on a device.

    Attributes
    ----------
    middle : array of shape (d,)
        Which was subtracted, so that products of coordinates keep their digits.
    points : array of shape (n, d)
    turned : array of shape (d, n)
        The same, a column after the other.
    half_squares : array of shape (n,)
    """

    middle: Floats
    points: Array
    turned: Array
    half_squares: Array

    @classmethod
    def of(cls, device: Any, points: Floats) -> "_Sent":
        middle = points.mean(axis=0)
        sent = device.send(points - middle)
        return cls(middle, sent, sent.mT.contiguous(), 0.5 * (sent * sent).sum(1))

    def nearest(self, tests: Array, count: int) -> tuple[Array, Array] | None:
        """Squared distances and positions of the nearest of test points (m, d); None where rounding decides."""
        torch, n = _torch(), len(self.points)
        fused = is_fused(tests)
        each = n if not fused or n < _MANY_POINTS else _SAMPLE + 4 * _capacity(n, count)[1]
        method = self._in_one_pass if fused else self._by_products
        found = in_batches(len(tests), each, lambda part: method(tests[part], count))
        values, near = (torch.cat(parts) for parts in zip(*found, strict=True))
        if not fused and float(values[:, -1].min()) < _LOST_DIGITS * float(self.half_squares.max()):
            return None  # products of coordinates cannot tell so near points apart
        return values, near

    def _in_one_pass(self, tests: Array, count: int) -> tuple[Array, Array]:
        """The nearest by exact distances, which are compared with a bound and never all in memory."""
        n = len(self.points)
        if n < _MANY_POINTS:
            return self._among_all(tests, count)
        rank, capacity = _capacity(n, count)
        sample = fused_squared_distances(tests, self.points[:: n // _SAMPLE])
        bounds = sample.topk(rank, dim=1, largest=False).values[:, -1].contiguous()
        counts, positions, distances = points_within(self.turned, tests.mT.contiguous(), bounds, capacity)
        found = distances.topk(count, dim=1, largest=False)
        values, near = found.values, positions.gather(1, found.indices).long()
        missed = _torch().nonzero((counts < count) | (counts > capacity))[:, 0]
        if len(missed):  # the sample did not tell how dense the points are there
            step = max(1, batch_elements() // n)
            for start in range(0, len(missed), step):
                rows = missed[start : start + step]
                values[rows], near[rows] = self._among_all(tests[rows], count)
        return values, near

    def _among_all(self, tests: Array, count: int) -> tuple[Array, Array]:
        found = fused_squared_distances(tests, self.points).topk(count, dim=1, largest=False)
        return found.values, found.indices

    def _by_products(self, tests: Array, count: int) -> tuple[Array, Array]:
        """The nearest by products of coordinates; exact distances decide among the last of them."""
        torch, points, wanted = _torch(), self.points, min(len(self.points), count + _SPARE)
        # The smaller half the squared distance, less that of the test point, the larger is this.
        closeness = torch.addmm(self.half_squares, tests, points.mT, beta=-1.0)
        near = _above_a_bound(closeness, wanted) if len(points) >= _MANY_POINTS else None
        if near is None:
            near = closeness.topk(wanted, dim=1).indices
        exact = ((points[near.clamp(min=0)] - tests[:, None]) ** 2).sum(2)
        exact[near < 0] = torch.inf
        found = exact.topk(count, dim=1, largest=False)
        return found.values, near.gather(1, found.indices)


def shares_inside(sets: Array, numbers: Indices, nearest: Array) -> Floats:
    """Share of the nearest points of test points that are among those of their groups, on the device of the sets.

    Parameters
    ----------
    sets : int array of shape (groups, n)
    numbers : int array of shape (m,)
        The group of each test point.
    nearest : int array of shape (m, k)

    Returns
    -------
    array of shape (m,)
    """
    torch = _torch()
    own = torch.sort(sets, dim=1).values[torch.asarray(numbers, device=sets.device)]
    places = torch.searchsorted(own, nearest.contiguous()).clamp(max=sets.shape[1] - 1)
    return np.asarray(fetch((own.gather(1, places) == nearest).double().mean(1)))


def _capacity(n: int, count: int) -> tuple[int, int]:
    """The rank in a sample that bounds the nearest `count` of n points, and how many points may be within the bound."""
    step = n // _SAMPLE
    share = count / step
    rank = int(np.ceil(share + 4 * np.sqrt(share) + 4))
    return rank, min(n, int(np.ceil(step * (rank + 6 * np.sqrt(rank) + 6))))


def _above_a_bound(closeness: Array, wanted: int) -> Array | None:
    """Positions of at least the `wanted` largest values of each row, −1 for none; None if a row has too few.

    A sample of the columns bounds the values that matter, so that one comparison takes the place of a sort of them all.
    """
    torch = _torch()
    step = closeness.shape[1] // _SAMPLE
    share = wanted / step
    rank = int(np.ceil(share + 5 * np.sqrt(share) + 5))
    bound = closeness[:, ::step].topk(rank, dim=1).values[:, -1:]
    rows, columns = torch.nonzero(closeness >= bound, as_tuple=True)
    counts = torch.bincount(rows, minlength=len(closeness))
    least, most = int(counts.min()), int(counts.max())
    if least < wanted:
        return None
    starts = torch.cumsum(counts, 0) - counts
    near = torch.full((len(closeness), most), -1, dtype=columns.dtype, device=columns.device)
    near[rows, torch.arange(len(rows), device=rows.device) - starts[rows]] = columns
    return near


def _torch() -> Any:
    import torch

    return torch


def _workers(n_jobs: int | None) -> int:
    return available_threads() if n_jobs is None else effective_n_jobs(n_jobs)
