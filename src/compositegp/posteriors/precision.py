"""The inverse of one covariance: what all the data say about each observation without itself and its neighbors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from compositegp.backend import (
    Array,
    Floats,
    Indices,
    blas_threads_for,
    current_device,
    fetch,
    half_of_weighted_inverse,
    invert_lower,
    like,
    pivots_and_solve,
    run_tasks,
    solve_upper,
)
from compositegp.composite import FactoredStack, Observations, batches
from compositegp.posteriors.block_coefficients import coefficients_in_blocks
from compositegp.posteriors.surroundings import WINDOWS, Neighborhood, Surrounded, join_surrounded, neighborhood

_TASK_SETS = 16  # sets of observations in one task, at most


@dataclass(frozen=True, eq=False)
class Precision:
    """The precision matrix P = Σ⁻¹ of all the observations, and P [F y].

    Let A be some observations, nearest first, and P_AA = L Lᵀ. Then 1 / L_ii is the standard deviation of the i-th of
    them given all that are not in A and those that come after it in A, and L⁻¹ (P (y − μ))_A are its standardized
    errors. So predictions without the K nearest cost a factorization of K and a few more points, whatever n is.

    Attributes
    ----------
    data : Observations
    matrix : array of shape (n, n)
    solved : array of shape (n, q + t)
        P times the basis functions of the mean, followed by P times the targets.
    coefficients : array of shape (q, t)
        Of the mean.
    root : array of shape (q, q)
        Of their covariance.
    """

    data: Observations
    matrix: Array
    solved: Array
    coefficients: Floats
    root: Floats

    @classmethod
    def of(cls, data: Observations, factored: FactoredStack) -> "Precision":
        """From the factor of the covariance of all the data."""
        n = len(data.X)
        with blas_threads_for(n):
            solved = solve_upper(factored.lower, factored.innovations)[0]
            half = half_of_weighted_inverse(invert_lower(1.0 * factored.lower), None)[0]
            matrix = half + half.mT
        coefficients, root = coefficients_in_blocks(data, factored.innovations)
        return cls(data, matrix, solved, coefficients[0], root[0])

    def around(self, near: Indices, n_jobs: int | None = None) -> Neighborhood:
        """Neighborhoods of test points from their nearest observations, nearest first: `near` of shape (m, w)."""

        def work(part: slice) -> Neighborhood:
            columns, pivots = self._whitened(near[part])
            return neighborhood(self._errors(columns), pivots)

        found = _in_tasks(work, near, n_jobs)
        return Neighborhood(*(np.concatenate(values) for values in zip(*found, strict=True)))

    def without(
        self, rows: Indices, near: Indices, skips: tuple[int, ...], n_jobs: int | None = None
    ) -> list[Surrounded]:
        """Predict some of the observations without themselves and their K nearest, for every K.

        With the observation itself first in A and w = L⁻¹ e₁, its variance without the K nearest is Σ w² over the first
        K + 1 rows, and its error Σ w u: one factorization answers for every K.

        Parameters
        ----------
        rows : int array of shape (m,)
        near : int array of shape (m, k)
            The observations nearest to each of them, itself left out, nearest first.
        skips : tuple of int
            Values of K, each less than k.
        n_jobs : int, optional
            None: threads on all cores. A number: one core.

        Returns
        -------
        list of Surrounded, one for each K
        """
        width = min(near.shape[1], max(skips) + max(WINDOWS))
        sets = np.concatenate([rows[:, None], near[:, :width]], axis=1)
        noise = self.data.noise[rows]
        targets = self.data.targets_of(rows).reshape(len(rows), -1)

        def work(part: slice) -> list[Surrounded]:
            columns, pivots = self._whitened(sets[part], itself=True)
            w, columns = columns[..., 0], columns[..., 1:]
            errors = self._errors(columns)
            found = []
            for skip in skips:
                first = slice(0, skip + 1)
                mean = targets[part] - np.einsum("mk,mkt->mt", w[:, first], errors[:, first])
                uncertain = np.einsum("mk,mkq->mq", w[:, first], columns[:, first, : len(self.root)]) @ self.root
                variance = np.maximum((w[:, first] ** 2).sum(axis=1) - noise[part], 0.0)
                around = neighborhood(errors[:, skip + 1 :], pivots[:, skip + 1 :])
                found.append(Surrounded(mean, variance + (uncertain**2).sum(axis=1), around))
            return found

        parts = zip(*_in_tasks(work, sets, n_jobs), strict=True)
        return [join_surrounded(list(part), self.data.outputs) for part in parts]

    def _whitened(self, sets: Indices, itself: bool = False) -> tuple[Floats, Floats]:
        """L⁻¹ (P [F y])_A, shape (m, a, q + t), and 1 / L_ii, shape (m, a), for sets A of shape (m, a).

        With `itself` the first column is L⁻¹ e₁.
        """
        found = []
        with blas_threads_for(0):
            for part in batches(len(sets), sets.shape[1] ** 2):
                chosen = like(sets[part], self.matrix)
                columns = self.solved[chosen]
                if itself:
                    unit = np.zeros((*chosen.shape, 1))
                    unit[:, 0] = 1.0
                    columns = array_namespace(columns).concat([like(unit, columns), columns], axis=2)
                pivots, solved = pivots_and_solve(_submatrices(self.matrix, chosen), columns)
                found.append((fetch(solved), 1 / fetch(pivots)))
        columns, deviations = (np.concatenate(values) for values in zip(*found, strict=True))
        return columns, deviations

    def _errors(self, columns: Floats) -> Floats:
        q = len(self.coefficients)
        return np.asarray(columns[..., q:] - columns[..., :q] @ self.coefficients)


def _in_tasks(work: Callable[[slice], Any], sets: Indices, n_jobs: int | None) -> list[Any]:
    """Results of work on some sets of observations (m, a) at a time; on a device, on as many as it has memory for."""
    if current_device() is not None:
        return [work(part) for part in batches(len(sets), sets.shape[1] ** 2)]
    starts = range(0, len(sets), _TASK_SETS)
    return run_tasks(
        ((work, (slice(start, start + _TASK_SETS),)) for start in starts), None if n_jobs is None else 1
    )


def _submatrices(matrix: Array, sets: Array) -> Array:
    """Rows and columns of a matrix in each of some sets (m, a): shape (m, a, a)."""
    if not isinstance(matrix, np.ndarray):
        return matrix[sets[:, :, None], sets[:, None, :]]
    found = np.empty((*sets.shape, sets.shape[1]))
    numbers, row = np.empty(found.shape[1:], dtype=np.intp), matrix.shape[1]
    for chosen, out in zip(sets.astype(np.intp, copy=False), found, strict=True):
        np.add((chosen * row)[:, None], chosen, out=numbers)
        matrix.take(numbers, out=out, mode="wrap")
    return found
