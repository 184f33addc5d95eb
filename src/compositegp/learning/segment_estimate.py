"""Maximum likelihood in one segment, and the running average of such estimates."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize

from compositegp.backend import Booleans, Floats, Indices, blas_threads_for, keep_freed_memory
from compositegp.composite import Observations, Stack, score
from compositegp.kernels import at_theta
from compositegp.learning.recursive_estimate import RecursiveEstimate
from compositegp.learning.stopping import on_bound

_RESTART_SPREAD = 2.0  # standard deviation of random starts, in log θ
_REFUSED = 1e25  # value where a covariance is singular
_BOX, _SMALLEST_BOX, _MOST_BOXES = 0.5, 0.01, 20  # half widths in log θ, and number, of boxes to search in
_GAIN = 1e-3  # log likelihood that a box has to gain, or else the next is smaller
_FLAT = 0.1  # slope of the log likelihood in log θ at which a search has ended


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
    at_bound: Booleans
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
    n_at_bound: Indices

    @classmethod
    def empty(cls, p: int) -> "Average":
        """The average before any segment."""
        return cls(RecursiveEstimate.empty(p), 0.0, 0.0, 0, 0, np.zeros(p, dtype=int))

    @classmethod
    def known(cls, theta: Floats, information: Floats, n_segments: int, n_points: float) -> "Average":
        """An estimate with its Fisher information, to be averaged with further ones."""
        estimate = RecursiveEstimate(information, information @ theta, n_segments, np.diagonal(information).copy())
        return cls(estimate, 0.0, n_points, n_segments, 0, np.zeros(len(theta), dtype=int))

    def theta_or(self, start: Floats, bounds: Floats) -> Floats:
        """θ̄ within bounds; `start` for parameters that no segment has determined."""
        theta = np.where(self.estimate.known, self.estimate.theta, start)
        return np.clip(theta, bounds[:, 0], bounds[:, 1])

    def add(self, found: BlockEstimate | None) -> "Average":
        """Add the estimate of a segment; None if it failed."""
        if found is None or not np.isfinite(found.fisher).all():
            return self._replace(n_segments=self.n_segments + 1, n_left_out=self.n_left_out + 1)
        # A parameter on its bound was not determined by the segment: it is not averaged.
        inside = np.where(found.at_bound, 0.0, 1.0)
        return Average(
            self.estimate.add(found.theta, found.fisher * np.outer(inside, inside)),
            self.log_likelihood + found.log_likelihood,
            self.n_points + found.n_points,
            self.n_segments + 1,
            self.n_left_out,
            self.n_at_bound + found.at_bound,
        )


def estimate_block(
    observations: Observations, stack: Stack, coefficients: Floats, n_restarts: int, seed: int
) -> BlockEstimate | None:
    """Maximum likelihood estimate of log θ from one block, by L-BFGS-B within the kernel's bounds; None if it fails."""
    kernel = observations.kernel
    bounds = kernel.bounds

    def at(theta: Floats) -> Observations:
        return observations.with_kernel(at_theta(kernel, theta))

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            found = score(at(theta), stack, coefficients)
        except LinAlgError:
            return _REFUSED, np.zeros(len(theta))
        return -found.log_likelihood, -found.gradient

    keep_freed_memory()
    generator = np.random.default_rng([seed, int(stack.segment_numbers[0])])
    starts = [kernel.theta]
    for _ in range(n_restarts):
        starts.append(kernel.theta + _RESTART_SPREAD * generator.standard_normal(len(kernel.theta)))
    with blas_threads_for(stack.indices.shape[1]):
        best = min((_search(objective, start, bounds) for start in starts), key=lambda result: result.fun)
        if best.fun >= _REFUSED:
            return None
        try:
            exact = score(at(best.x), stack, coefficients, probes=-1)
        except LinAlgError:
            return None
    return BlockEstimate(best.x, exact.fisher, on_bound(best.x, bounds), exact.log_likelihood, exact.n_points)


def _search(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Floats) -> OptimizeResult:
    """The minimum that L-BFGS-B finds from a start, clipped into the bounds (p, 2).

    Where a step leads to a covariance that is singular, or nearly so, there is no value or one beyond all measure, and
    the line search may end where it began. While the slope is not about zero, the search goes on in a box around the
    best point. The box moves with that point, and shrinks where the point stays.
    """
    best = minimize(objective, np.clip(start, *bounds.T), jac=True, method="L-BFGS-B", bounds=bounds)
    width = _BOX
    for _ in range(_MOST_BOXES):
        # At a bound a slope that leads out of the bounds does not count.
        downhill = np.where(
            on_bound(best.x, bounds) & (best.jac * (best.x - bounds.mean(axis=1)) < 0), 0.0, best.jac
        )
        if best.fun >= _REFUSED or width < _SMALLEST_BOX or np.abs(downhill).max(initial=0.0) < _FLAT:
            break
        box = np.clip(best.x[:, None] + [-width, width], bounds[:, :1], bounds[:, 1:])
        found = minimize(objective, best.x, jac=True, method="L-BFGS-B", bounds=box)
        if found.fun > best.fun - _GAIN:
            width /= 4
        best = min(best, found, key=lambda result: result.fun)
    return best
