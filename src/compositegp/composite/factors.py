"""Small exact Gaussian processes: the factorised covariance and whitened data of each block."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from compositegp.arrays import Array, Floats, add_to_diagonal, fetch, keep_freed_memory, like
from compositegp.composite.composite import Composite, Stack
from compositegp.devices import batch_elements, current_device
from compositegp.kernels import gram
from compositegp.linalg import (
    JITTER_END,
    Factor,
    NumericalWarning,
    SingularMatrixError,
    cholesky,
    solve_lower,
)
from compositegp.means import MeanModel, as_mean
from compositegp.messages import warn_caller
from compositegp.validation import check_kernel, check_noise_variance, check_points, check_targets


@dataclass(frozen=True, eq=False)
class Observations:
    """Checked data under a model.

    Attributes
    ----------
    kernel : scikit-learn kernel
        Its white part is the noise of the observations.
    mean : MeanModel
    X : array of shape (n, d)
    columns : array of shape (n, q + 1)
        Basis functions of the mean, and last y less its known mean.
    noise_variance : array of shape (n,) or None
        Noise of each point, beside the kernel's own.
    sent : dict
        What of these is on a device already; shared by the copies with other kernels.
    """

    kernel: Kernel
    mean: MeanModel
    X: Floats
    columns: Floats
    noise_variance: Floats | None
    sent: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @classmethod
    def checked(
        cls,
        kernel: Any,
        X: Any,
        y: Any,
        *,
        mean: Any,
        noise_variance: Any,
        n_columns: int | None = None,
        names: tuple[str, str] = ("X", "y"),
    ) -> "Observations":
        """Build from what a user gives; bad input raises a ValueError that names it. The kernel is copied."""
        kernel, mean = clone(check_kernel(kernel)), as_mean(mean)
        points = check_points(X, names[0], n_columns)
        residuals = check_targets(y, len(points), names[1]) - mean.values(points)
        columns = np.concatenate([mean.columns(points), residuals[:, None]], axis=1)
        return cls(kernel, mean, points, columns, check_noise_variance(noise_variance, len(points)))

    def take(self, indices: Any) -> "Observations":
        """Some of the observations, in the order given."""
        noise = self.noise_variance
        return replace(
            self,
            X=self.X[indices],
            columns=self.columns[indices],
            noise_variance=None if noise is None else noise[indices],
            sent={},
        )

    def rows(self, name: str, stack: Stack) -> Array:
        """Rows of "X", "columns" or "noise_variance" for blocks, where the terms are worked on: (blocks, n, ...)."""
        values, device = getattr(self, name), current_device()
        if device is None:
            return values[stack.indices]
        key = (device.name, name)
        if key not in self.sent:
            if not device.holds(values.size):
                return device.send(values[stack.indices])
            self.sent[key] = device.send(values)
        return self.sent[key][device.send(stack.indices)]

    def __getstate__(self) -> dict[str, Any]:
        """What is on a device stays there."""
        return {**vars(self), "sent": {}}

    def with_kernel(self, kernel: Kernel) -> "Observations":
        """The same data under another kernel."""
        return replace(self, kernel=kernel)


@dataclass(frozen=True, eq=False)
class FactoredStack:
    """Blocks of equal size, factorised.

    Attributes
    ----------
    stack : Stack
    points : array of shape (blocks, n, d)
    lower : array of shape (blocks, n, n)
        C with C Cᵀ = Σ_kk, noise included; above the diagonal it is undefined.
    innovations : array of shape (blocks, n, q + 1)
        C⁻¹ F_k and, last, C⁻¹ (y_k − μ_k).
    """

    stack: Stack
    points: Array
    lower: Array
    innovations: Array

    def __getitem__(self, blocks: Any) -> "FactoredStack":
        rows = blocks if isinstance(blocks, slice) else like(np.flatnonzero(blocks), self.lower)
        return FactoredStack(self.stack[blocks], self.points[rows], self.lower[rows], self.innovations[rows])


def factor_stacks(observations: Observations, composite: Composite) -> Iterator[FactoredStack]:
    """Factorise the blocks of a composite, a batch at a time, so that a sum over them holds only one.

    Warns once, when all is done, if a covariance was singular and had to be given a jitter.
    """
    if composite.n_points > len(observations.X):
        raise ValueError(
            f"composite names point {composite.n_points - 1}, but X has only {len(observations.X)} point(s). "
            "Make the composite from the segments of this X."
        )
    keep_freed_memory()
    worst, where, count = 0.0, 0, 0
    for stack in composite.stacks:
        for blocks in batches(len(stack), stack.indices.shape[1] ** 2):
            factored, jitter = _factor(observations, stack[blocks])
            if jitter.any():
                count += int(np.count_nonzero(jitter))
                if jitter.max() > worst:
                    worst, where = float(jitter.max()), int(factored.stack.numbers[jitter.argmax()])
            yield factored
    if count:
        warn_caller(
            f"The covariance of {count} segment(s) under kernel {observations.kernel} is singular in double "
            f"precision; up to {worst:.0e} of its mean diagonal (segment {where}) was added as noise. Add a "
            "WhiteKernel to the kernel, or give noise_variance, to set the noise yourself.",
            NumericalWarning,
        )


def batches(count: int, elements_each: int) -> Iterator[slice]:
    """Slices of range(count) so that a batch holds a bounded number of matrix elements."""
    step = max(1, batch_elements() // max(1, elements_each))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _factor(observations: Observations, stack: Stack) -> tuple[FactoredStack, Floats]:
    points = observations.rows("X", stack)
    lower, jitter = factor_covariance(observations, stack, gram(observations.kernel, points))
    innovations = solve_lower(lower, observations.rows("columns", stack))
    return FactoredStack(stack, points, lower, innovations), jitter


def factor_covariance(observations: Observations, stack: Stack, K_kk: Array) -> Factor:
    """Cholesky factors of the Gram matrices of blocks, which are overwritten, with each point's own noise added."""
    if observations.noise_variance is not None:
        add_to_diagonal(K_kk, observations.rows("noise_variance", stack))
    try:
        return cholesky(K_kk)
    except SingularMatrixError as error:
        segment = f"segment {stack.numbers[error.index]}"
        if not np.isfinite(fetch(K_kk[error.index])).all():
            raise LinAlgError(
                f"Kernel {observations.kernel} gives a covariance that is not finite in {segment}. Scale the inputs, "
                "or choose hyper-parameters of their size."
            ) from error
        raise LinAlgError(
            f"The covariance of {segment} under kernel {observations.kernel} is not positive definite, not even with "
            f"{JITTER_END:.0e} of its mean diagonal added. Add a WhiteKernel to the kernel or raise its noise_level, "
            "remove duplicate points, or check that the kernel is one."
        ) from error
