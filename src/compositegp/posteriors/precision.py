"""The inverse of one covariance: what all the data say about each observation without itself and its neighbors."""

from dataclasses import dataclass

import numpy as np

from compositegp.backend import (
    Array,
    Floats,
    Indices,
    blas_threads_for,
    cholesky,
    diagonals,
    fetch,
    invert_lower,
    like,
    lower_of_weighted_inverse,
    solve_lower,
    solve_upper,
)
from compositegp.composite import FactoredStack, Observations, batches
from compositegp.kernels import noise_variance
from compositegp.posteriors.local_kriging import coefficients_in_blocks
from compositegp.posteriors.surroundings import WINDOWS, Neighborhood, Surrounded, join_surrounded, neighborhood


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
            ones = like(np.ones((1, n)), factored.lower)
            lower = lower_of_weighted_inverse(invert_lower(1.0 * factored.lower), ones)[0]
            diagonal = 1.0 * diagonals(lower)
            matrix = lower + lower.mT
            view = diagonals(matrix)
            view -= diagonal
        coefficients, root = coefficients_in_blocks(data, factored.innovations)
        return cls(data, matrix, solved, coefficients[0], root[0])

    def around(self, near: Indices) -> Neighborhood:
        """Neighborhoods of test points from their nearest observations, nearest first: `near` of shape (m, w)."""
        found = [
            neighborhood(self._errors(columns), pivots)
            for columns, pivots in (self._whitened(near[part]) for part in batches(len(near), near.shape[1] ** 2))
        ]
        return Neighborhood(*(np.concatenate(values) for values in zip(*found, strict=True)))

    def without(self, rows: Indices, near: Indices, skip: int) -> Surrounded:
        """Predict some of the observations without themselves and their `skip` nearest.

        Parameters
        ----------
        rows : int array of shape (m,)
        near : int array of shape (m, k)
            The observations nearest to each of them, itself left out, nearest first.
        skip : int
            Less than k.
        """
        width = min(near.shape[1], skip + max(WINDOWS))
        sets = np.concatenate([near[:, :skip], rows[:, None], near[:, skip:width]], axis=1)
        own = noise_variance(self.data.kernel, self.data.X[rows])
        noise = own if self.data.noise_variance is None else own + self.data.noise_variance[rows]
        targets = self.data.targets[rows].reshape(len(rows), -1)
        parts, q = [], len(self.coefficients)
        for part in batches(len(rows), sets.shape[1] ** 2):
            columns, pivots = self._whitened(sets[part])
            errors = self._errors(columns)
            spread = pivots[:, skip]
            mean = targets[part] - spread[:, None] * errors[:, skip]
            uncertain = spread[:, None] * columns[:, skip, :q] @ self.root
            variance = np.maximum(spread**2 - noise[part], 0.0) + (uncertain**2).sum(axis=1)
            around = neighborhood(errors[:, skip + 1 :], pivots[:, skip + 1 :])
            parts.append(Surrounded(mean, variance, around))
        return join_surrounded(parts, self.data.outputs)

    def _whitened(self, sets: Indices) -> tuple[Floats, Floats]:
        """L⁻¹ (P [F y])_A, shape (m, a, q + t), and 1 / L_ii, shape (m, a), for sets A of shape (m, a)."""
        chosen = like(sets, self.matrix)
        with blas_threads_for(0):
            lower, _ = cholesky(self.matrix[chosen[:, :, None], chosen[:, None, :]])
            columns = solve_lower(lower, self.solved[chosen])
        return fetch(columns), 1 / fetch(diagonals(lower))

    def _errors(self, columns: Floats) -> Floats:
        q = len(self.coefficients)
        return np.asarray(columns[..., q:] - columns[..., :q] @ self.coefficients)
