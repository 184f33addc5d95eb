"""Predictions of test points that are in partitions themselves: points and predictions stay where they are."""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.composite import Evidence, group_by_place
from compositegp.distributed.partitioned_prediction import (
    MESSAGE,
    Candidates,
    PartitionedModel,
    Warned,
    believed,
    candidates,
    nearest_of,
    predict_candidates,
    reach,
)
from compositegp.distributed.partitions import Part, Summary, add_up
from compositegp.kernels import in_length_scales, is_warped
from compositegp.posteriors import Marginals, Surrounded

_BOUNDING = 2  # nearest partitions that bound how far the neighbors of a test point are


def predict_lazily(
    model: PartitionedModel,
    chunks: list[Any],
    size: int,
    finish: Callable[[Floats, Surrounded], Floats],
    width: int,
) -> Any:
    """Predictions by the nearest observations, as a Dask array that is computed where the test points are.

    Only the bounds of the partitions, and how far the farthest neighbor of any of their points may be, come to the
    client.

    Parameters
    ----------
    model : PartitionedModel
    chunks : list of delayed arrays of shape (m, d)
        Test points.
    size : int
        Observations that a test point is predicted from.
    finish : callable
        Of points and what was found about them: the numbers that are wanted, shape (m, width).
    width : int

    Returns
    -------
    Dask array of shape (M, width)
    """
    import dask.array as da

    size = min(size, sum(summary.n_points for summary in model.summaries))
    most = max(1, MESSAGE // (size * (len(model.summaries[0].least) + 2)))
    bounds = dask.compute(*[dask.delayed(_bounds)(chunk, model.kernel) for chunk in chunks])
    pieces: list[tuple[int, Any, Floats]] = []
    for chunk, (count, low, high) in zip(chunks, bounds, strict=True):
        gaps = _gaps(model, low, high) if count else np.empty(0)
        for start in range(0, count, most):
            pieces.append((min(most, count - start), dask.delayed(_rows)(chunk, start, start + most), gaps))
    reaches = [
        dask.delayed(_least_reach)([model.parts[owner] for owner in _nearest(gaps)], model.kernel, piece, size)
        for _, piece, gaps in pieces
    ]
    farthest = dask.compute(*[dask.delayed(np.max)(each) for each in reaches])
    arrays = [da.zeros((0, width))]
    for (count, piece, gaps), far_each, far in zip(pieces, reaches, farthest, strict=True):
        owners = np.flatnonzero((gaps <= far) & (gaps < np.inf))
        answers = [
            dask.delayed(_candidates_within)(
                model.parts[owner], int(owner), model.kernel, piece, far_each, model.summaries[owner], size
            )
            for owner in owners
        ]
        found = add_up(answers, partial(nearest_of, size=size))
        wanted = dask.delayed(_finished)(found, model.kernel, model.mean, piece, finish)
        arrays.append(da.from_delayed(wanted, shape=(count, width), dtype=np.float64))
    return da.concatenate(arrays)


def add_evidence_lazily(
    model: PartitionedModel,
    chunks: list[Any],
    group_size: int,
    finish: Callable[[Floats, Marginals], Floats],
    width: int,
) -> Any:
    """Predictions by the evidence of all segments, as a Dask array; only numbers of test points come to the client.

    Parameters
    ----------
    model, chunks, finish, width
        As in `predict_lazily`.
    group_size : int
        Test points of a chunk that are predicted together, at most.

    Returns
    -------
    Dask array of shape (M, width)
    """
    import dask.array as da

    counts = dask.compute(*[dask.delayed(len)(chunk) for chunk in chunks])
    most = group_size * model.groups_at_once(group_size)
    arrays = [da.zeros((0, width))]
    for chunk, count in zip(chunks, counts, strict=True):
        for start in range(0, count, most):
            piece = dask.delayed(_rows)(chunk, start, start + most)
            groups = dask.delayed(_groups)(model.kernel, piece, group_size)
            evidence = model.evidence(dask.delayed(_members)(piece, groups))
            wanted = dask.delayed(_believed)(evidence, model.kernel, model.mean, piece, groups, finish)
            arrays.append(da.from_delayed(wanted, shape=(min(most, count - start), width), dtype=np.float64))
    return da.concatenate(arrays)


def _groups(kernel: Kernel, points: Floats, group_size: int) -> list[Any]:
    return group_by_place(kernel, points, group_size)


def _members(points: Floats, groups: list[Any]) -> list[Floats]:
    return [points[group] for group in groups]


def _believed(
    evidence: tuple[list[Evidence], Warned],
    kernel: Kernel,
    mean: Any,
    points: Floats,
    groups: list[Any],
    finish: Callable[[Floats, Marginals], Floats],
) -> Floats:
    from distributed.worker import warn  # on a worker it warns in the clients, elsewhere as usual

    totals, warned = evidence
    for text, category in warned:
        warn(text, category)
    result = Marginals(np.empty(len(points)), np.empty(len(points)))
    for group, total in zip(groups, totals, strict=True):
        belief = believed(kernel, mean, points[group], total)
        result.mean[group], result.variance[group] = belief.mean, belief.variance
    return finish(points, result)


def _bounds(points: Floats, kernel: Kernel) -> tuple[int, Floats, Floats]:
    """Number of points, and the corners of their bounding box in length scales."""
    if not len(points):
        return 0, np.empty(0), np.empty(0)
    scaled = in_length_scales(kernel, points)
    return len(points), scaled.min(axis=0), scaled.max(axis=0)


def _rows(points: Floats, start: int, stop: int) -> Floats:
    return points[start:stop]


def _gaps(model: PartitionedModel, low: Floats, high: Floats) -> Floats:
    """Distance of each partition's bounding box to that of test points, in length scales; infinite if it is empty."""
    gaps = np.full(len(model.parts), np.inf)
    for owner, summary in enumerate(model.summaries):
        if summary.n_points:
            gaps[owner] = _distances(model.kernel, summary, low[None], high[None])[0]
    return gaps


def _distances(kernel: Kernel, summary: Summary, low: Floats, high: Floats) -> Floats:
    """Distances (m,) of a partition's bounding box to boxes with corners (m, d) in length scales."""
    if is_warped(kernel):  # a box of coordinates says nothing about distances: any partition may be near
        return np.zeros(len(low))
    least, most = in_length_scales(kernel, np.stack([summary.least, summary.most]))
    outside = np.maximum(least - high, 0.0) + np.maximum(low - most, 0.0)
    return np.asarray(np.sqrt((outside**2).sum(axis=1)))


def _nearest(gaps: Floats) -> list[int]:
    order = np.argsort(gaps, kind="stable")[:_BOUNDING]
    return [int(owner) for owner in order if gaps[owner] < np.inf]


def _least_reach(parts: list[Part], kernel: Kernel, points: Floats, size: int) -> Floats:
    """Upper bound on the distance of the neighbors of each test point: shape (m,)."""
    tests = in_length_scales(kernel, points)
    return np.asarray(np.min([reach(part, kernel, tests, size) for part in parts], axis=0))


def _candidates_within(
    part: Part, owner: int, kernel: Kernel, points: Floats, far: Floats, summary: Summary, size: int
) -> Candidates:
    """The nearest observations of a partition, for those test points that it may have neighbors of."""
    tests = in_length_scales(kernel, points)
    rows = np.flatnonzero(_distances(kernel, summary, tests, tests) <= far)
    return candidates(part, owner, kernel, tests[rows], rows, size)


def _finished(
    found: Candidates, kernel: Kernel, mean: Any, points: Floats, finish: Callable[[Floats, Surrounded], Floats]
) -> Floats:
    return finish(points, predict_candidates(found, kernel, mean, points))
