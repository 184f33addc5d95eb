"""Conditioning sets on a device: exact distances to all the earlier points, for many segments at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Floats, Indices, fetch, in_batches
from compositegp.kernels import in_length_scales, length_scale_factors, squared_distances


class EarlierPointsThere:
    """Finds the nearest earlier points of segments among points that stay on a device.

    Parameters
    ----------
    device : Device
    X : array of shape (n, d)
    segments : sequence of int arrays
    starts : int array of shape (segments + 1,)
        Where each segment starts in the order of the segments.
    """

    def __init__(self, device: Any, X: Floats, segments: Sequence[Indices], starts: Indices) -> None:
        self._device, self._X, self._starts = device, X, starts
        self._order = np.concatenate(list(segments))
        self._sent = device.send(X[self._order])

    def of(self, numbers: Indices, kernel: Kernel | None, size: int, pool: int) -> list[Indices]:
        """The `size` earlier points nearest to any point of each segment, of the `pool` nearest to its center.

        Parameters
        ----------
        numbers : int array
            Segments that have points, and more than `size` earlier points.
        kernel : scikit-learn kernel or None
            Distances are in its length scales.
        size, pool : int

        Returns
        -------
        list of int arrays, ascending
        """
        points = self._scaled(kernel)
        starts, stops = self._starts[numbers], self._starts[numbers + 1]
        widest = int((stops - starts).max(initial=0))
        # A shorter segment is filled up with its last point, which changes no nearest distance.
        own = np.minimum(starts[:, None] + np.arange(widest), stops[:, None] - 1)
        last = int(starts.max(initial=0))
        pool = min(pool, last)
        found = in_batches(
            len(numbers),
            2 * last + pool * widest,
            lambda part: self._nearest(points, own[part], stops[part] - starts[part], starts[part], size, pool),
        )
        return [row for rows in found for row in np.sort(self._order[rows], axis=1)]

    def _nearest(
        self, points: Array, own: Indices, lengths: Indices, starts: Indices, size: int, pool: int
    ) -> Indices:
        send, torch = self._device.send, self._device.torch
        inside = points[send(own)]
        filled = send(np.arange(own.shape[1]) < lengths[:, None])[..., None]
        centers = (inside * filled).sum(1) / filled.sum(1)
        first, bound = points[: int(starts.max())], send(starts)[:, None]
        distances = squared_distances(centers[None], first)[0]
        distances.masked_fill_(torch.arange(len(first), device=first.device) >= bound, torch.inf)
        near = distances.topk(pool, dim=1, largest=False, sorted=False).indices
        nearest = squared_distances(points[near], inside).amin(2)
        nearest.masked_fill_(near >= bound, torch.inf)
        chosen = nearest.topk(size, dim=1, largest=False, sorted=False).indices
        return np.asarray(fetch(near.gather(1, chosen)))

    def _scaled(self, kernel: Kernel | None) -> Array:
        if kernel is None:
            return self._sent
        factors = length_scale_factors(kernel, self._X.shape[1])
        if factors is None:
            return self._device.send(in_length_scales(kernel, self._X[self._order]))
        return self._sent * self._device.send(factors)
