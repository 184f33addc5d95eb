"""The small exact Gaussian processes: factorized covariance and whitened data of each block."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.linalg import LinAlgError

from compositegp.backend import (
    JITTER_END,
    Array,
    Booleans,
    Factor,
    Floats,
    NumericalWarning,
    SingularMatrixError,
    add_to_diagonal,
    batch_elements,
    cholesky,
    cholesky_and_inverse,
    each_batch,
    fetch,
    keep_freed_memory,
    like,
    pivots_and_solve,
    solve_lower,
    warn_caller,
)
from compositegp.composite.observations import Observations
from compositegp.composite.terms import Composite, Stack
from compositegp.kernels import gram

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FactoredStack:
    """Blocks of equal size, factorized.

    Attributes
    ----------
    stack : Stack
    points : array of shape (blocks, n, d)
    lower : array of shape (blocks, n, n)
        C with C Cᵀ = Σ_kk, noise included; above the diagonal it is undefined.
    innovations : array of shape (blocks, n, q + t)
        C⁻¹ F_k, followed by C⁻¹ (y_k − μ_k) of the t outputs.
    """

    stack: Stack
    points: Array
    lower: Array
    innovations: Array

    def __getitem__(self, blocks: slice | Booleans) -> "FactoredStack":
        rows = blocks if isinstance(blocks, slice) else like(np.flatnonzero(blocks), self.lower)
        return FactoredStack(self.stack[blocks], self.points[rows], self.lower[rows], self.innovations[rows])


def factor_stacks(observations: Observations, composite: Composite) -> Iterator[FactoredStack]:
    """Factorize the blocks of a composite, one batch at a time, so that only one batch is in memory.

    After the last batch it warns once if a covariance was singular and needed a jitter.
    """
    if composite.n_points > len(observations.X):
        raise ValueError(
            f"composite names point {composite.n_points - 1}, but X has only {len(observations.X)} point(s). "
            "Make the composite from the segments of this X."
        )
    keep_freed_memory()
    worst, where, count = 0.0, 0, 0
    for stack in composite.stacks:
        parts = each_batch(len(stack), stack.indices.shape[1] ** 2, partial(_factor_part, observations, stack))
        for factored, jitter in parts:
            if jitter.any():
                count += int(np.count_nonzero(jitter))
                if jitter.max() > worst:
                    worst, where = float(jitter.max()), int(factored.stack.segment_numbers[jitter.argmax()])
            yield factored
    if count:
        warn_caller(
            f"The covariance of {count} segment(s) under kernel {observations.kernel} is singular in double "
            f"precision; up to {worst:.0e} of its mean diagonal (segment {where}) was added as noise. Add a "
            "WhiteKernel to the kernel, or give noise_variance, to set the noise yourself.",
            NumericalWarning,
        )


def batches(count: int, elements_each: int) -> Iterator[slice]:
    """Slices of range(count), each a batch with a bounded number of matrix elements."""
    step = max(1, batch_elements() // max(1, elements_each))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _factor_part(observations: Observations, whole: Stack, blocks: slice) -> tuple[FactoredStack, Floats]:
    stack = whole[blocks]
    points = observations.rows("X", stack)
    lower, jitter = factor_covariance(observations, stack, gram(observations.kernel, points))
    innovations = solve_lower(lower, observations.rows("columns", stack))
    return FactoredStack(stack, points, lower, innovations), jitter


def factor_covariance(observations: Observations, stack: Stack, K_kk: Array) -> Factor:
    """Cholesky factors of the Gram matrices of blocks plus the noise of each point; overwrites the matrices."""
    return _factor_by(cholesky, observations, stack, K_kk)


def factor_and_invert_covariance(observations: Observations, stack: Stack, K_kk: Array) -> tuple[Factor, Array]:
    """The same, and the inverses of the factors."""
    return _factor_by(cholesky_and_inverse, observations, stack, K_kk)


def whiten_by_covariance(
    observations: Observations, stack: Stack, K_kk: Array, columns: Array
) -> tuple[Array, Array]:
    """Diagonals of the factors C alone, and C⁻¹ times columns (blocks, n, m), without C; overwrites both.

    The Gram matrices may be those of `upper_gram`.
    """
    return _factor_by(lambda covariances: pivots_and_solve(covariances, columns), observations, stack, K_kk)


def _factor_by(method: Callable[[Array], T], observations: Observations, stack: Stack, K_kk: Array) -> T:
    added = observations.added_noise(stack)
    if added is not None:
        add_to_diagonal(K_kk, added)
    try:
        return method(K_kk)
    except SingularMatrixError as error:
        segment = f"segment {stack.segment_numbers[error.index]}"
        if not np.isfinite(fetch(K_kk[error.index])).all():
            raise LinAlgError(
                f"Kernel {observations.kernel} gives a covariance that is not finite in {segment}. Scale the inputs, "
                "or choose hyper-parameters of their size."
            ) from error
        raise LinAlgError(
            f"The covariance of {segment} under kernel {observations.kernel} is not positive definite, not even with "
            f"{JITTER_END:.0e} of its mean diagonal added. Add a WhiteKernel to the kernel or raise its noise_level, "
            "remove duplicate points, or check that the kernel is positive definite."
        ) from error
