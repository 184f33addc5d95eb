"""Prediction from many small blocks of observations, each with its own test points."""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

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
    run_tasks,
    solve_lower,
)
from compositegp.composite import Observations, Stack, factor_covariance, whiten_by_covariance
from compositegp.kernels import (
    diagonal,
    gram,
    in_length_scales,
    length_scale_factors,
    squared_distances,
    upper_gram,
)
from compositegp.means import NormalEquations
from compositegp.posteriors.block_coefficients import (
    conditional_mean,
    kriging_weights,
    standardized_errors,
    weighted_means,
)
from compositegp.posteriors.surroundings import WINDOWS, Neighborhood, Surrounded, join_surrounded, neighborhood

_TASK_BLOCKS = 32  # blocks in one parallel task, at most: benchmarks/estimator.py, and benchmarks/scale.py profile
# Matrix elements of one parallel task, about: few large blocks, so that threads end together.
_TASK_ELEMENTS = 2**20


def task_blocks(n: int) -> int:
    """Blocks of n observations in one parallel task.

    Examples
    --------
    >>> task_blocks(64), task_blocks(512), task_blocks(2048)
    (32, 4, 1)
    """
    return max(1, min(_TASK_BLOCKS, _TASK_ELEMENTS // n**2))


def stack_of(sets: Any) -> Stack:
    """One term for each group of observations: `sets` of shape (groups, n)."""
    return Stack(sets, tuple(sets.shape[1:]), np.ones((len(sets), 1)), np.arange(len(sets)))


def blocks_in_a_row(groups: int, n: int) -> Stack:
    """The same where the observations of the groups follow each other."""
    return stack_of(np.arange(groups * n).reshape(groups, n))


def predict_from(data: Observations, sets: Any, Z: Floats) -> Surrounded:
    """Predict each of M test points from its own set of observations, the farthest first: `sets` of shape (M, n)."""
    found = predict_blocks(data, stack_of(sets), Z[:, None, :], True)
    around = Neighborhood(found.surroundings.scales[:, 0], found.surroundings.log_variance[:, 0])
    return Surrounded(found.mean[:, 0].reshape(-1, *data.outputs), found.variance[:, 0], around)


def predict_blocks(data: Observations, stack: Stack, Z: Floats, surroundings: bool) -> Surrounded:
    """Means (groups, g, t), variances (groups, g) and surroundings at test points of shape (groups, g, d)."""
    n, shape = stack.indices.shape[1], Z.shape[:2]
    around = Neighborhood(np.empty((*shape, data.n_outputs, len(WINDOWS))), np.empty(shape))
    result = Surrounded(np.empty((*shape, data.n_outputs)), np.empty(shape), around)

    def work(blocks: slice) -> _Whitened:
        return _whiten(data, stack[blocks], Z[blocks])

    def conclude(blocks: slice, found: _Whitened) -> None:
        own, V = Z[blocks], found.covariances
        result.mean[blocks], sensitivity_root, coefficients = conditional_mean(data, found.columns, V, own)
        left = np.maximum(diagonal(data.kernel, own, noise=False) - fetch((V * V).sum(1)), 0.0)
        result.variance[blocks] = left + (sensitivity_root**2).sum(axis=-1)
        if surroundings:
            errors, points = standardized_errors(data, found.columns, coefficients), data.rows("X", stack[blocks])
            near = _surroundings(data, points, own, errors, found.pivots)
            around.scales[blocks], around.log_variance[blocks] = near

    keep_freed_memory()
    with blas_threads_for(0):
        if current_device() is None:  # in small batches; what is left of them is little
            conclude(slice(None), _joined(in_batches(len(stack), n * max(n, shape[1]), work)))
        else:
            in_batches(len(stack), n * max(n, shape[1]), lambda blocks: conclude(blocks, work(blocks)))
    return result


class _Whitened(NamedTuple):
    """What is left of blocks when their covariances Σ = C Cᵀ are factorized.

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
    """Factorize the covariances of some blocks, with test points (blocks, g, d)."""
    points = data.rows("X", stack)
    columns, q = data.rows("columns", stack), data.columns.shape[1]
    both = array_namespace(points).concat([columns, gram(data.kernel, points, like(Z, points))], axis=-1)
    pivots, solved = whiten_by_covariance(data, stack, upper_gram(data.kernel, points), both)
    return _Whitened(solved[..., :q], solved[..., q:], pivots)


def _joined(parts: list[_Whitened]) -> _Whitened:
    """Those of several batches, one after the other."""
    return parts[0] if len(parts) == 1 else _Whitened(*map(np.concatenate, zip(*parts, strict=True)))


def block_means(data: Observations, stack: Stack, Z: Floats) -> Floats:
    """Means (groups, g, t) alone at test points of shape (groups, g, d)."""
    n, shape = stack.indices.shape[1], Z.shape[:2]
    result = np.empty((*shape, data.n_outputs))

    def work(blocks: slice) -> None:
        part = stack[blocks]
        points = data.rows("X", part)
        lower, _ = factor_covariance(data, part, gram(data.kernel, points))
        weights, coefficients = kriging_weights(data, lower, solve_lower(lower, data.rows("columns", part)))
        result[blocks] = weighted_means(data, points, weights, coefficients, Z[blocks])

    keep_freed_memory()
    with blas_threads_for(0):
        in_batches(len(stack), n * max(n, shape[1]), work)
    return result


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
    distances = squared_distances(_scaled(data, Z), _scaled(data, X))
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


def predict_prefixes(
    data: Observations, sets: Any, rows: Indices, skips: tuple[int, ...], *, n_jobs: int | None = None
) -> list[Surrounded]:
    """Predict some of the observations from sets of others, without the K nearest of each, for every K.

    One factorization of a set, its observations being ordered from far to near, gives all of them: the first n − K rows
    of C⁻¹ are those of the first n − K observations alone (docs/theory.md).

    Parameters
    ----------
    data : Observations
    sets : int array of shape (m, n)
        Observations around each, the farthest first, without itself.
    rows : int array of shape (m,)
        The observations to predict.
    skips : tuple of int
        Values of K, each less than n.
    n_jobs : int, optional

    Returns
    -------
    list of Surrounded, one for each K
    """
    step = task_blocks(sets.shape[1]) if current_device() is None else len(rows)
    tasks = (
        (_prefixes, (data.take(near.ravel()), blocks_in_a_row(*near.shape), data.X[own, None], skips))
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
        mean, root, beta = conditional_mean(data, columns[:, rest], V[:, rest], Z)
        variance = np.maximum(prior - (V[:, rest] ** 2).sum(1), 0.0) + (root**2).sum(-1)
        errors = standardized_errors(data, columns[:, rest], beta)[:, ::-1]
        around = neighborhood(errors, pivots[:, rest][:, ::-1])
        result.append(Surrounded(mean[:, 0], variance[:, 0], around))
    return result


def normal_equations(data: Observations, sets: Any, *, n_jobs: int | None = None) -> NormalEquations:
    """Normal equations of the mean's coefficients in each of some sets of observations (m, n): (m, q, q), (m, q, t)."""
    step = task_blocks(sets.shape[1]) if current_device() is None else len(sets)
    tasks = (
        (_normal, (data.take(near.ravel()), blocks_in_a_row(*near.shape)))
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
