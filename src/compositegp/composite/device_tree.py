"""The tree of segments on a device: all the branches of a level are cut at once."""

from typing import Any

import numpy as np

from compositegp.backend import Array, Floats, Indices, fetch

_SAMPLE = 4096  # points, at most, by which the direction of a cut is found


def order_by_tree(device: Any, points: Floats, starts: Indices, stops: Indices, directions: Any) -> Indices:
    """Order of points in which segments follow each other, as the tree of `segment` cuts them.

    Parameters
    ----------
    device : Device
    points : array of shape (n, d)
        In the unit in which nearness is measured.
    starts, stops : int arrays of shape (segments,)
        Where each segment starts and stops in the order.
    directions : callable
        Maps XᵀX of the centered points of some branches, shape (branches, d, d), to directions across which these are
        cut, (branches, d).

    Returns
    -------
    int array of shape (n,), ascending within a segment
    """
    torch = device.torch
    sent, order = device.send(points), torch.arange(len(points), device=device.name)
    sent = sent - sent.mean(0)  # so that coordinates along a direction keep their digits
    branches = np.array([[0, len(starts)]])
    while (branches[:, 1] - branches[:, 0] > 1).any():
        first, last = starts[branches[:, 0]], stops[branches[:, 1] - 1]
        lengths = device.send(last - first)
        across = device.send(directions(fetch(_products(_samples(device, sent, order, first, last)))))
        branch = torch.repeat_interleave(torch.arange(len(branches), device=device.name), lengths)
        position = torch.zeros(len(order), dtype=sent.dtype, device=device.name)
        for column in range(sent.shape[1]):
            position.addcmul_(sent[order, column], across[branch, column])
        by_position = torch.argsort(position, stable=True)
        order = order[by_position[torch.argsort(branch[by_position], stable=True)]]
        branches = _halved(branches)
    segment = torch.repeat_interleave(torch.arange(len(starts), device=device.name), device.send(stops - starts))
    return np.asarray(fetch(torch.sort(segment * len(order) + order).values % len(order)))


def _samples(device: Any, points: Array, order: Array, first: Indices, last: Indices) -> Array:
    """Points of each branch at even distances in the order: shape (branches, s, d)."""
    count = int(min(_SAMPLE, (last - first).min()))
    places = first[:, None] + (np.arange(count) * (last - first)[:, None]) // count
    return points[order[device.send(places)]]


def _products(samples: Array) -> Array:
    """XᵀX of centered points (b, s, d), in a unit in which no square overflows: shape (b, d, d)."""
    centered = samples - samples.mean(1, keepdim=True)
    largest = centered.abs().amax((1, 2), keepdim=True)
    centered /= largest.where(largest > 0, 1.0)
    return centered.mT @ centered


def _halved(branches: Indices) -> Indices:
    """Both halves of each branch; a branch of one segment is its own half."""
    middle = branches.sum(axis=1) // 2
    left, right = np.stack([branches[:, 0], middle], axis=1), np.stack([middle, branches[:, 1]], axis=1)
    both = np.stack([left, right], axis=1).reshape(-1, 2)
    return both[both[:, 1] > both[:, 0]]
