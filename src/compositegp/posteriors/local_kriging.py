"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import (
    Floats,
    Indices,
    blas_threads_for,
    current_device,
    diagonals,
    fetch,
    keep_freed_memory,
    like,
    psd_root,
    solve_lower,
)
from compositegp.composite import Observations, Stack, batches, factor_covariance, segment
from compositegp.kernels import diagonal, gram, in_length_scales
from compositegp.means import Estimated, gaussian_prior
from compositegp.posteriors.belief import Marginals
from compositegp.posteriors.neighbor_search import Neighbours
from compositegp.validation import check_count, check_points

_TASK_GROUPS = 64
_UNTOLD = 1e-10  # eigenvalue of a scaled information matrix under which it tells nothing
_HELD_NEIGHBOURS = 2**22  # indices of neighbours held at once
_FEW_COLUMNS, _GROUP = 4, 32
_CLOSE = 0.5  # radius of a group, over the distance from its centre to the last of its observations, at most
_SMALLER = 4  # times that groups which are not close together are made smaller
_CANDIDATES = 2  # nearest points of the centre of a group, for each point wanted, among which the group chooses


def default_group_size(n_columns: int) -> int:
    """Test points that may share their nearest observations: many where a few columns let them be close together."""
    return _GROUP if n_columns <= _FEW_COLUMNS else 1


def nearest(
    kernel: Kernel,
    X: Any,
    y: Any,
    Z: Any,
    *,
    size: int = 256,
    group_size: int = 1,
    mean: Any = None,
    noise_variance: Any = None,
    n_jobs: int | None = None,
) -> Marginals:
    """Predict each latent value at `Z` from the observations nearest to it.

    The test points are taken in groups; the `size` observations nearest to a group are the one term of its composite,
    so that each group has the exact Gaussian process given those (local kriging). Nearness is measured in the kernel's
    length scales. Larger groups share the work of a factorisation.

    Parameters
    ----------
    kernel, X, y, Z, noise_variance
        As for `posterior`.
    size : int
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
    """
    data = Observations.checked(kernel, X, y, mean=mean, noise_variance=noise_variance)
    points = check_points(Z, "Z", data.X.shape[1])
    size, group_size = check_count(size, "size"), check_count(group_size, "group_size")
    return NearestPredictor(data).predict(points, size, group_size, n_jobs=n_jobs)


class NearestPredictor:
    """Data with a search tree: serves any number of test points, some thousand at a time.

    Parameters
    ----------
    data : Observations
    """

    def __init__(self, data: Observations) -> None:
        self.data = data
        self._neighbours = Neighbours(in_length_scales(data.kernel, data.X))
        self._neighbours.prepare()

    def predict(self, Z: Floats, size: int, group_size: int, *, n_jobs: int | None = None) -> Marginals:
        """Predict each latent value at `Z`: see `nearest`."""
        size = min(size, len(self.data.X))
        tests = in_length_scales(self.data.kernel, Z)
        result = Marginals(np.empty(len(Z)), np.empty(len(Z)))
        step = max(1, _HELD_NEIGHBOURS // (_CANDIDATES * size))
        groups = self._groups(tests, size, group_size, n_jobs)
        for start in range(0, len(groups), step):
            members = groups[start : start + step]
            tasks = list(_tasks(members, self._sets(tests, members, size, n_jobs)))
            if current_device() is None:
                with blas_threads_for(0):  # of threads, if that is what joblib is told to use
                    found = Parallel(n_jobs=n_jobs)(
                        delayed(_predict)(self.data.take(chosen.ravel()), _blocks(*chosen.shape), Z[own])
                        for own, chosen in tasks
                    )
            else:
                found = [_predict(self.data, _stack(chosen), Z[own]) for own, chosen in tasks]
            for (own, _), (means, variances) in zip(tasks, found, strict=True):
                result.mean[own], result.variance[own] = means, variances
        return result

    def union(self, Z: Floats, size: int, group_size: int) -> Indices:
        """The observations that any group of `Z` is predicted from, ascending."""
        size, tests = min(size, len(self.data.X)), in_length_scales(self.data.kernel, Z)
        return np.unique(self._sets(tests, self._groups(tests, size, group_size, None), size, None))

    def _groups(self, tests: Floats, size: int, group_size: int, n_jobs: int | None) -> list[Indices]:
        """Groups of test points (in length scales) that are close together: smaller ones where large ones are not."""
        groups: list[Indices] = []
        rest = np.arange(len(tests))
        for at_most in (group_size, group_size // _SMALLER):
            if at_most > 1 and len(rest):
                near, rest = self._close(tests, rest, size, at_most, n_jobs)
                groups += near
        return sorted(groups, key=len, reverse=True) + list(rest[:, None])

    def _close(
        self, tests: Floats, rows: Indices, size: int, group_size: int, n_jobs: int | None
    ) -> tuple[list[Indices], Indices]:
        """Groups of some of the test points that are close together, and the points of those that are not."""
        groups = [rows[group] for group in segment(tests[rows], group_size)]
        centres = np.stack([tests[group].mean(axis=0) for group in groups])
        reach = self._neighbours.distance_to(centres, size, n_jobs)
        radii = [
            np.sqrt(((tests[group] - centre) ** 2).sum(axis=1).max())
            for group, centre in zip(groups, centres, strict=True)
        ]
        close = np.array(radii) <= _CLOSE * reach
        far = [group for group, near in zip(groups, close, strict=True) if not near]
        return [group for group, near in zip(groups, close, strict=True) if near], np.concatenate([rows[:0], *far])

    def _sets(self, tests: Floats, groups: list[Indices], size: int, n_jobs: int | None) -> Any:
        """Observations nearest to each group, shape (groups, size)."""
        centres = np.stack([tests[group].mean(axis=0) for group in groups])
        alone = len(groups[0]) == 1
        count = min(len(self.data.X), size if alone else _CANDIDATES * size)
        candidates = self._neighbours.nearest(centres, count, n_jobs)
        if count == size:
            return candidates
        sets = np.empty((len(groups), size), dtype=np.intp)
        for chosen, group, near in zip(sets, groups, candidates, strict=True):
            distances, _ = KDTree(tests[group]).query(self._neighbours.points[near])
            chosen[:] = near[np.argpartition(distances, size)[:size]]
        return sets


def _tasks(members: list[Indices], sets: Any) -> Iterator[tuple[Any, Any]]:
    """Groups of equal size, some at a time: their test points (groups, g) and observations (groups, size)."""
    most = _TASK_GROUPS if current_device() is None else len(members)
    sizes = np.array([len(own) for own in members])
    for g in np.unique(sizes):
        alike = np.flatnonzero(sizes == g)
        for start in range(0, len(alike), most):
            numbers = alike[start : start + most]
            yield np.stack([members[number] for number in numbers]), sets[numbers]


def _stack(sets: Any) -> Stack:
    """One term for each group of observations: `sets` of shape (groups, n)."""
    return Stack(sets, sets.shape[1:], np.ones((len(sets), 1)), np.arange(len(sets)))


def _blocks(groups: int, n: int) -> Stack:
    """The same where the observations of the groups follow each other."""
    return _stack(np.arange(groups * n).reshape(groups, n))


def predict_from(data: Observations, sets: Any, Z: Floats) -> Marginals:
    """Predict each of M test points from its own set of observations: `sets` of shape (M, n) hold their indices."""
    mean, variance = _predict(data, _stack(sets), Z[:, None, :])
    return Marginals(mean[:, 0], variance[:, 0])


def _predict(data: Observations, stack: Stack, Z: Floats) -> tuple[Floats, Floats]:
    """Means and variances at test points of shape (groups, g, d)."""
    n = stack.indices.shape[1]
    means, variances = np.empty(Z.shape[:2]), np.empty(Z.shape[:2])
    coefficients = _Coefficients(data)
    keep_freed_memory()
    with blas_threads_for(0):
        for blocks in batches(len(stack), n * n):
            means[blocks], variances[blocks] = _predict_batch(data, coefficients, stack[blocks], Z[blocks])
    return means, variances


def _predict_batch(
    data: Observations, coefficients: "_Coefficients", stack: Stack, Z: Floats
) -> tuple[Floats, Floats]:
    points = data.rows("X", stack)
    lower, _ = factor_covariance(data, stack, gram(data.kernel, points))
    V = solve_lower(lower, gram(data.kernel, points, like(Z, points)))
    columns = solve_lower(lower, data.rows("columns", stack))
    explained = fetch(V.mT @ columns)  # Σ_zk Σ_kk⁻¹ [F y]
    normal, informed = fetch(columns.mT @ columns), fetch((V * V).sum(1))
    prior_variance = diagonal(data.kernel, Z, noise=False)
    variance = np.maximum(prior_variance - informed, 0.0)
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(Z.shape[:2]) + explained[..., -1]
    if data.mean.coefficients is None:
        return np.asarray(mean), np.asarray(variance)
    sensitivity = data.mean.columns(flat).reshape(*Z.shape[:2], -1) - explained[..., :-1]
    estimates, root = coefficients.estimate(normal)
    mean = mean + (sensitivity @ estimates[..., None])[..., 0]
    return np.asarray(mean), np.asarray(variance + ((sensitivity @ root) ** 2).sum(axis=-1))


class _Coefficients:
    """The mean's coefficients in each block: those of the whole, or estimated from the block's own observations."""

    def __init__(self, data: Observations) -> None:
        self._known = data.mean.coefficients
        q = data.columns.shape[1] - 1
        self._prior = None
        if isinstance(self._known, Estimated):
            self._root = psd_root(np.asarray(self._known.covariance, dtype=np.float64))
        else:
            self._prior = gaussian_prior(self._known, q)

    def estimate(self, normal: Floats) -> tuple[Floats, Floats]:
        """Coefficients, shape (blocks, q), and a root of their covariance, (blocks, q, q).

        From the blocks' normal equations of [F y], shape (blocks, q + 1, q + 1).
        """
        blocks, q = len(normal), normal.shape[-1] - 1
        if isinstance(self._known, Estimated):
            coefficients = np.asarray(self._known.coefficients, dtype=np.float64)
            return np.broadcast_to(coefficients, (blocks, q)), np.broadcast_to(
                self._root, (blocks, *self._root.shape)
            )
        information, right = normal[:, :-1, :-1], normal[:, :-1, -1]
        if self._prior is not None:
            precision, location = self._prior
            information, right = information + precision, right + precision @ location
        units = diagonals(information)
        units = np.divide(1.0, np.sqrt(units), out=np.zeros_like(units), where=units > 0)
        values, vectors = np.linalg.eigh(units[:, :, None] * information * units[:, None, :])
        # What the observations of a term do not tell, as a slope along a line that they are all on, stays at zero.
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > _UNTOLD)
        root = units[:, :, None] * vectors * np.sqrt(inverse)[:, None, :]
        return np.asarray((root @ (root.transpose(0, 2, 1) @ right[..., None]))[..., 0]), root
