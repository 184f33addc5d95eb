"""The paper's learning: maximum likelihood in each segment, averaged by Fisher information."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from compositegp.arrays import Floats, keep_freed_memory
from compositegp.composite import Observations, Stack, score
from compositegp.learning.passes import restrict
from compositegp.learning.recursive import RecursiveEstimate
from compositegp.learning.terms import Terms
from compositegp.threads import blas_threads_for

_BATCH = 16  # segments estimated before the standard errors are looked at again
_ON_BOUND = 1e-6  # distance from a bound, in log θ, at which an estimate sits on it
_RESTART_SPREAD = 2.0  # standard deviation of random starts, in log θ


class BlockEstimate(NamedTuple):
    """Maximum likelihood in one segment.

    Attributes
    ----------
    theta : array of shape (p,)
    fisher : array of shape (p, p)
        At the estimate.
    at_bound : boolean array of shape (p,)
    log_likelihood : float
    n_points : float
    """

    theta: Floats
    fisher: Floats
    at_bound: Any
    log_likelihood: float
    n_points: float


class Average(NamedTuple):
    """Running average of the segments read so far.

    Attributes
    ----------
    estimate : RecursiveEstimate
    log_likelihood : float
        Sum of the segments' own maxima.
    n_points : float
    n_segments : int
    n_left_out : int
    n_at_bound : array of shape (p,)
    """

    estimate: RecursiveEstimate
    log_likelihood: float
    n_points: float
    n_segments: int
    n_left_out: int
    n_at_bound: Floats

    @classmethod
    def empty(cls, p: int) -> "Average":
        """Before any segment."""
        return cls(RecursiveEstimate.empty(p), 0.0, 0.0, 0, 0, np.zeros(p, dtype=int))

    @classmethod
    def known(cls, theta: Floats, covariance: Floats, n_segments: int, n_points: float) -> "Average":
        """An estimate with an error covariance, infinite where nothing is known, to be averaged with further ones."""
        finite = np.flatnonzero(np.isfinite(np.diagonal(covariance)))
        precision = np.zeros_like(covariance)
        precision[np.ix_(finite, finite)] = np.linalg.pinv(covariance[np.ix_(finite, finite)], hermitian=True)
        estimate = RecursiveEstimate(precision, precision @ theta, n_segments, np.diagonal(precision).copy())
        return cls(estimate, 0.0, n_points, n_segments, 0, np.zeros(len(theta), dtype=int))

    def theta_or(self, start: Floats, bounds: Floats) -> Floats:
        """θ̄ within bounds; where nothing is known, where it began."""
        theta = np.where(self.estimate.known, self.estimate.theta, start)
        return np.clip(theta, bounds[:, 0], bounds[:, 1])

    def add(self, found: BlockEstimate | None) -> "Average":
        """Add a segment's estimate; None is one that failed."""
        if found is None or not np.isfinite(found.fisher).all():
            return self._replace(n_segments=self.n_segments + 1, n_left_out=self.n_left_out + 1)
        # A parameter on its bound says only that the segment knows no better: it is not averaged.
        inside = np.where(found.at_bound, 0.0, 1.0)
        return Average(
            self.estimate.add(found.theta, found.fisher * np.outer(inside, inside)),
            self.log_likelihood + found.log_likelihood,
            self.n_points + found.n_points,
            self.n_segments + 1,
            self.n_left_out,
            self.n_at_bound + found.at_bound,
        )


def averages(
    observations: Observations,
    terms: Terms,
    order: Any,
    coefficients: Floats,
    *,
    n_restarts: int,
    seed: int,
    n_jobs: int | None,
) -> Iterator[Average]:
    """Running average after each segment, segments being read in the given order."""
    average = Average.empty(len(observations.kernel.theta))
    for start in range(0, len(order), _BATCH):
        composite = terms.take(order[start : start + _BATCH], observations.kernel)
        blocks = [stack[number : number + 1] for stack in composite.stacks for number in range(len(stack))]
        found = Parallel(n_jobs=n_jobs)(
            delayed(estimate_block)(*restrict(observations, block), coefficients, n_restarts, seed)
            for block in blocks
        )
        for estimate in found:
            average = average.add(estimate)
            yield average


def estimate_block(
    observations: Observations, stack: Stack, coefficients: Floats, n_restarts: int, seed: int
) -> BlockEstimate | None:
    """Maximum likelihood estimate of log θ from one block, by L-BFGS-B within the kernel's bounds; None if it fails."""
    kernel = observations.kernel
    bounds = kernel.bounds

    def at(theta: Floats) -> Observations:
        return observations.with_kernel(kernel.clone_with_theta(theta))

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            found = score(at(theta), stack, coefficients)
        except LinAlgError:
            return 1e25, np.zeros(len(theta))
        return -found.log_likelihood, -found.gradient

    keep_freed_memory()
    generator = np.random.default_rng([seed, int(stack.numbers[0])])
    starts = [kernel.theta]
    for _ in range(n_restarts):
        starts.append(kernel.theta + _RESTART_SPREAD * generator.standard_normal(len(kernel.theta)))
    with blas_threads_for(stack.indices.shape[1]):
        results = [
            minimize(objective, np.clip(start, *bounds.T), jac=True, method="L-BFGS-B", bounds=bounds)
            for start in starts
        ]
        best = min(results, key=lambda result: result.fun)
        if best.fun >= 1e25:
            return None
        try:
            exact = score(at(best.x), stack, coefficients, probes=-1)
        except LinAlgError:
            return None
    at_bound = (best.x - bounds[:, 0] < _ON_BOUND) | (bounds[:, 1] - best.x < _ON_BOUND)
    return BlockEstimate(best.x, exact.fisher, at_bound, exact.log_likelihood, exact.n_points)
