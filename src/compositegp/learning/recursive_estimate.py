"""The recursion of the paper for hyper-parameters: estimates of segments, weighted by Fisher information."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Booleans, Floats, invert_information, pseudo_invert_information


@dataclass(frozen=True, eq=False)
class RecursiveEstimate:
    """A running estimate θ̄ of p parameters from segments, each with its own estimate and Fisher information.

    Estimates of different segments add up in any order and grouping: `add` one segment's, or `merge` two estimates,
    as a cluster does when it reduces them.

    Attributes
    ----------
    precision : array of shape (p, p)
        Λ, the sum of the segments' Fisher information.
    shift : array of shape (p,)
        s, the sum of Fisher information times estimate.
    n_segments : int
        Segments added.
    largest : array of shape (p,)
        Largest information that a single segment has brought about each parameter.

    Examples
    --------
    >>> estimate = RecursiveEstimate.empty(1).add([1.0], [[1.0]]).add([2.0], [[3.0]])
    >>> float(estimate.theta[0]), float(estimate.covariance[0, 0])
    (1.75, 0.25)
    """

    precision: Floats
    shift: Floats
    n_segments: int
    largest: Floats

    @classmethod
    def empty(cls, n_parameters: int) -> "RecursiveEstimate":
        """The estimate before any segment."""
        return cls(np.zeros((n_parameters, n_parameters)), np.zeros(n_parameters), 0, np.zeros(n_parameters))

    def add(self, theta: ArrayLike, fisher: ArrayLike) -> "RecursiveEstimate":
        """Estimate with one more segment: its own `theta`, shape (p,), and `fisher` information, shape (p, p)."""
        theta, fisher = np.asarray(theta, dtype=np.float64), np.asarray(fisher, dtype=np.float64)
        if theta.shape != self.shift.shape or fisher.shape != self.precision.shape:
            raise ValueError(
                f"theta and fisher must have shapes {self.shift.shape} and {self.precision.shape}; found "
                f"{theta.shape} and {fisher.shape}."
            )
        if not (np.isfinite(theta).all() and np.isfinite(fisher).all()):
            raise ValueError("theta and fisher must be finite. Leave out a segment whose estimate failed.")
        if np.linalg.eigvalsh(fisher).min(initial=0.0) < -1e-8 * np.abs(fisher).max(initial=0.0):
            raise ValueError("fisher has a negative eigenvalue: it is not a Fisher information.")
        # Liu et al. (2018), Section 4.1: Λ_k = Λ_{k−1} + J_k, s_k = s_{k−1} + J_k θ̂_k
        return RecursiveEstimate(
            self.precision + fisher,
            self.shift + fisher @ theta,
            self.n_segments + 1,
            np.maximum(self.largest, np.diagonal(fisher)),
        )

    def merge(self, other: "RecursiveEstimate") -> "RecursiveEstimate":
        """Estimate from the segments of both."""
        if other.shift.shape != self.shift.shape:
            raise ValueError(f"estimates of {len(self.shift)} and {len(other.shift)} parameters do not merge.")
        return RecursiveEstimate(
            self.precision + other.precision,
            self.shift + other.shift,
            self.n_segments + other.n_segments,
            np.maximum(self.largest, other.largest),
        )

    @property
    def known(self) -> Booleans:
        """Which parameters at least one segment has information about: a boolean array of shape (p,)."""
        return np.diagonal(self.precision) > 0

    @property
    def theta(self) -> Floats:
        """θ̄ = Λ⁻¹ s, shape (p,); NaN for a parameter that no segment has information about."""
        return self._solve()[0]

    @property
    def covariance(self) -> Floats:
        """Λ⁻¹, the error covariance of θ̄, shape (p, p).

        Infinite for a parameter that the segments do not determine, or cannot distinguish from another.
        """
        return self._solve()[1]

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of θ̄, shape (p,)."""
        return np.sqrt(np.diagonal(self.covariance))

    def _solve(self) -> tuple[Floats, Floats]:
        theta = np.where(self.known, pseudo_invert_information(self.precision) @ self.shift, np.nan)
        return theta, invert_information(self.precision)
