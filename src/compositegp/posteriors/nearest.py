"""Prediction from the nearest observations: one term for each group of test points, made for that group."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Floats, Indices, keep_freed_memory
from compositegp.composite import Observations, Stack, segment
from compositegp.composite.factors import batches, factor_covariance
from compositegp.kernels import diagonal, gram, in_length_scales
from compositegp.linalg import psd_root, solve_lower
from compositegp.means import Estimated, as_mean
from compositegp.posteriors.belief import Marginals
from compositegp.threads import blas_threads_for
from compositegp.validation import check_count, check_points

_TASK_GROUPS = 64
_HELD_NEIGHBOURS = 2**22  # indices of neighbours held at once
_CANDIDATES = 2  # nearest points of the centre of a group, for each point wanted, among which the group chooses


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
    mean : None, number, callable or Estimated
        Prior mean. Coefficients that are not known have to be learned first (`learn`); their error is added.
    n_jobs : int, optional
        Processes to use, as in joblib. The result does not depend on it.

    Returns
    -------
    Marginals
        Means and variances, shape (M,).
    """
    model = as_mean(mean)
    if model.coefficients is not None and not isinstance(model.coefficients, Estimated):
        raise ValueError(
            "mean has unknown coefficients, which a few nearest points cannot tell. Learn them first, and pass the "
            "mean that learn returns."
        )
    data = Observations.checked(kernel, X, y, mean=model, noise_variance=noise_variance)
    points = check_points(Z, "Z", data.X.shape[1])
    size, group_size = check_count(size, "size"), check_count(group_size, "group_size")
    return NearestPredictor(data).predict(points, size, group_size, n_jobs=n_jobs)


class NearestPredictor:
    """Data with a search tree: serves any number of test points, some thousand at a time.

    Parameters
    ----------
    data : Observations
        Its mean is known or `Estimated`.
    """

    def __init__(self, data: Observations) -> None:
        self.data = data
        self._scaled = in_length_scales(data.kernel, data.X)
        self._tree = KDTree(self._scaled)

    def predict(self, Z: Floats, size: int, group_size: int, *, n_jobs: int | None = None) -> Marginals:
        """Predict each latent value at `Z`: see `nearest`."""
        groups = self._groups(Z, group_size)
        size = min(size, len(self.data.X))
        result = Marginals(np.empty(len(Z)), np.empty(len(Z)))
        step = max(1, _HELD_NEIGHBOURS // (_CANDIDATES * size))
        for start in range(0, len(groups), step):
            members = groups[start : start + step]
            tasks = list(_tasks(members, self._sets(Z, members, size, n_jobs)))
            found = Parallel(n_jobs=n_jobs)(
                delayed(_predict)(self.data.take(chosen.ravel()), Z[own], len(chosen)) for own, chosen in tasks
            )
            for (own, _), (means, variances) in zip(tasks, found, strict=True):
                result.mean[own], result.variance[own] = means, variances
        return result

    def union(self, Z: Floats, size: int, group_size: int) -> Indices:
        """The observations that any group of `Z` is predicted from, ascending."""
        return np.unique(self._sets(Z, self._groups(Z, group_size), min(size, len(self.data.X)), None))

    def _groups(self, Z: Floats, group_size: int) -> list[Indices]:
        if group_size == 1:
            return list(np.arange(len(Z))[:, None])
        return segment(Z, group_size, kernel=self.data.kernel)

    def _sets(self, Z: Floats, groups: list[Indices], size: int, n_jobs: int | None) -> Any:
        """Observations nearest to each group, shape (groups, size)."""
        tests = in_length_scales(self.data.kernel, Z)
        centres = np.stack([tests[group].mean(axis=0) for group in groups])
        alone = max(len(group) for group in groups) == 1
        count = min(len(self._scaled), size if alone else _CANDIDATES * size)
        workers = effective_n_jobs(n_jobs)
        candidates = self._tree.query(centres, k=[*range(1, count + 1)], workers=workers)[1]
        if count == size:
            return candidates
        sets = np.empty((len(groups), size), dtype=np.intp)
        for chosen, group, near in zip(sets, groups, candidates, strict=True):
            distances, _ = KDTree(tests[group]).query(self._scaled[near])
            chosen[:] = near[np.argpartition(distances, size)[:size]]
        return sets


def _tasks(members: list[Indices], sets: Any) -> Iterator[tuple[Any, Any]]:
    """Groups of equal size, some at a time: their test points (groups, g) and observations (groups, size)."""
    sizes = np.array([len(own) for own in members])
    for g in np.unique(sizes):
        alike = np.flatnonzero(sizes == g)
        for start in range(0, len(alike), _TASK_GROUPS):
            numbers = alike[start : start + _TASK_GROUPS]
            yield np.stack([members[number] for number in numbers]), sets[numbers]


def _predict(data: Observations, Z: Floats, n_groups: int) -> tuple[Floats, Floats]:
    """Means and variances at test points of shape (groups, g, d)."""
    n = len(data.X) // n_groups
    indices = np.arange(len(data.X)).reshape(n_groups, n)
    stack = Stack(indices, (n,), np.ones((n_groups, 1)), np.arange(n_groups))
    means, variances = np.empty(Z.shape[:2]), np.empty(Z.shape[:2])
    keep_freed_memory()
    with blas_threads_for(n):
        for blocks in batches(n_groups, n * n):
            means[blocks], variances[blocks] = _predict_batch(data, stack[blocks], Z[blocks])
    return means, variances


def _predict_batch(data: Observations, stack: Stack, Z: Floats) -> tuple[Floats, Floats]:
    points = data.X[stack.indices]
    lower, _ = factor_covariance(data, stack, gram(data.kernel, points))
    V = solve_lower(lower, gram(data.kernel, points, Z))
    columns = solve_lower(lower, data.columns[stack.indices])
    explained = V.transpose(0, 2, 1) @ columns  # Σ_zk Σ_kk⁻¹ [F y]
    prior_variance = diagonal(data.kernel, Z, noise=False)
    variance = np.maximum(prior_variance - np.einsum("bng,bng->bg", V, V), 0.0)
    flat = Z.reshape(-1, Z.shape[-1])
    mean = data.mean.values(flat).reshape(Z.shape[:2]) + explained[..., -1]
    estimate = data.mean.coefficients
    if isinstance(estimate, Estimated):
        F_z = data.mean.columns(flat).reshape(*Z.shape[:2], -1)
        sensitivity = F_z - explained[..., :-1]
        mean = mean + sensitivity @ np.asarray(estimate.coefficients, dtype=np.float64)
        error = sensitivity @ psd_root(np.asarray(estimate.covariance, dtype=np.float64))
        variance = variance + (error**2).sum(axis=-1)
    return np.asarray(mean), np.asarray(variance)
