"""Nearest observations: by a search tree on the processor, by all distances on a device."""

from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.spatial import KDTree

from compositegp.arrays import Array, Floats, fetch
from compositegp.devices import Device, current_device

_MOST_DISTANCES = 2**40  # computed on a device rather than left to the tree


class Neighbours:
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
        device = current_device()
        if device is not None and len(centres) * len(self.points) <= _MOST_DISTANCES:
            return self._by_distances(device, centres, count)[1]
        return self._tree.query(centres, k=[*range(1, count + 1)], workers=effective_n_jobs(n_jobs))[1]

    def distance_to(self, centres: Floats, rank: int, n_jobs: int | None) -> Floats:
        """Distance of each centre to the point of that rank, the nearest being the first: shape (m,)."""
        device = current_device()
        if device is not None and len(centres) * len(self.points) <= _MOST_DISTANCES:
            return np.asarray(self._by_distances(device, centres, rank)[0][:, -1])
        return np.asarray(self._tree.query(centres, k=[rank], workers=effective_n_jobs(n_jobs))[0][:, 0])

    def _by_distances(self, device: Device, centres: Floats, count: int) -> tuple[Any, Any]:
        if device.name not in self._sent:
            self._sent[device.name] = device.send(self.points - self.points.mean(axis=0))
        points = self._sent[device.name]
        half_squares = 0.5 * (points * points).sum(1)
        tests = device.send(centres - self.points.mean(axis=0))
        # Half the squared distance, less that of the centre, is largest where this is smallest.
        step = max(1, device.batch_elements // len(points))
        indices = np.empty((len(centres), count), dtype=np.intp)
        distances = np.empty((len(centres), count))
        for start in range(0, len(centres), step):
            part = tests[start : start + step]
            closeness = device.torch.addmm(half_squares, part, points.mT, beta=-1.0)
            found = closeness.topk(count, dim=1)
            squares = (part * part).sum(1)[:, None] - 2 * found.values
            distances[start : start + step] = fetch(squares.clamp(min=0).sqrt())
            indices[start : start + step] = fetch(found.indices)
        return distances, indices

    def __getstate__(self) -> dict[str, Any]:
        """The points alone."""
        return {"points": self.points, "_sent": {}}
