"""Nearest observations: by a search tree on the processor, by all distances on a device."""

from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.linalg import LinAlgError
from scipy.spatial import KDTree

from compositegp.backend import Array, Floats, Indices, available_threads, current_device, fetch, in_batches

_MOST_DISTANCES = 2**40  # computed on a device rather than left to the tree
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
        self._sent: dict[str, Array] = {}

    def prepare(self) -> None:
        """Build the tree, unless a device takes its place."""
        if current_device() is None:
            _ = self._tree

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self.points)

    def nearest(self, centres: Floats, count: int, n_jobs: int | None) -> Any:
        """Positions of the `count` points nearest to each of m centres, nearest first: shape (m, count)."""
        found = self._by_distances(centres, count)
        if found is not None:
            return found[1]
        indices = self._tree.query(centres, k=[*range(1, count + 1)], workers=_workers(n_jobs))[1]
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

    def distance_to(self, centres: Floats, rank: int, n_jobs: int | None) -> Floats:
        """Distance of each centre to the point of that rank, the nearest being the first: shape (m,)."""
        found = self._by_distances(centres, rank)
        if found is not None:
            return np.asarray(found[0][:, -1])
        return np.asarray(self._tree.query(centres, k=[rank], workers=_workers(n_jobs))[0][:, 0])

    def _by_distances(self, centres: Floats, count: int) -> tuple[Floats, Any] | None:
        """Distances and positions of the nearest, on the device; None where there is none, or it is not up to it."""
        device = current_device()
        if device is None or len(centres) * len(self.points) > _MOST_DISTANCES:
            return None
        middle = self.points.mean(axis=0)
        if device.name not in self._sent:
            self._sent[device.name] = device.send(self.points - middle)
        points = self._sent[device.name]
        half_squares = 0.5 * (points * points).sum(1)
        lost = _LOST_DIGITS * float(half_squares.max())
        tests = device.send(centres - middle)
        found = in_batches(
            len(centres), len(points), lambda part: _nearest(points, half_squares, tests[part], count)
        )
        if min((float(values[:, -1].min()) for values, _ in found), default=np.inf) < lost:
            return None  # products of coordinates cannot tell so near points apart
        torch = device.torch
        distances = fetch(torch.cat([values for values, _ in found]).sqrt())
        indices = fetch(torch.cat([near for _, near in found]))
        return distances, indices

    def __getstate__(self) -> dict[str, Any]:
        """The points alone."""
        return {"points": self.points, "_sent": {}}


def _nearest(points: Array, half_squares: Array, tests: Array, count: int) -> tuple[Array, Array]:
    """Squared distances and positions of the points nearest to each test point, on the device of all three."""
    torch, wanted = _torch(), min(len(points), count + _SPARE)
    # The smaller half the squared distance, less that of the test point, the larger is this.
    closeness = torch.addmm(half_squares, tests, points.mT, beta=-1.0)
    near = _above_a_bound(closeness, wanted) if len(points) >= _MANY_POINTS else None
    if near is None:
        near = closeness.topk(wanted, dim=1).indices
    exact = ((points[near.clamp(min=0)] - tests[:, None]) ** 2).sum(2)
    exact[near < 0] = torch.inf
    found = exact.topk(count, dim=1, largest=False)
    return found.values, near.gather(1, found.indices)


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
