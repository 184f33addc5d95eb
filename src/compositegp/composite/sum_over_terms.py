"""One pass over the terms of a composite, on one core or several."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, blas_threads_for, current_device, in_batches, keep_freed_memory, run_tasks
from compositegp.composite.likelihood import Score, score
from compositegp.composite.observations import Observations
from compositegp.composite.terms import Composite, Stack
from compositegp.means import MeanModel, as_mean, gaussian_prior

# Matrix elements of one parallel task: several tasks even of 1,024 points, so that no thread waits.
_TASK_ELEMENTS = 2**18


def total_score(
    observations: Observations,
    composite: Composite,
    coefficients: Floats,
    *,
    probes: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Score:
    """Score of all the terms of a composite, and of the prior of the mean's coefficients."""
    total = score_terms(observations, composite, coefficients, probes=probes, seed=seed, n_jobs=n_jobs)
    return with_coefficient_prior(check_finite(total, observations.kernel), observations.mean, coefficients)


def score_terms(
    observations: Observations,
    composite: Composite,
    coefficients: Floats,
    *,
    probes: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Score:
    """Score of all the terms of a composite.

    The terms are grouped and added up in the same way for any `n_jobs`, so that the result is the same to the last bit.
    A task receives only its own points. On a device there is one task, with large batches.
    """
    if current_device() is None:
        tasks = ((_score, (*task, coefficients, probes, seed)) for task in _tasks(observations, composite))
        scores: list[Score] = run_tasks(tasks, 1 if n_jobs is None and _is_little(composite) else n_jobs)
        return reduce(Score.plus, scores)
    stacks = (_score(observations, stack, coefficients, probes, seed) for stack in composite.stacks)
    return reduce(Score.plus, stacks)


def check_finite(total: Score, kernel: Kernel) -> Score:
    """The same score; a LinAlgError says what to do if it is not finite."""
    if np.isfinite(total.log_likelihood) and np.isfinite(total.gradient).all():
        return total
    raise LinAlgError(
        f"Kernel {kernel} gives a likelihood or a gradient that is not finite. Scale the inputs, or choose "
        "hyper-parameters of their size."
    )


def with_coefficient_prior(score: Score, mean: MeanModel, coefficients: Floats) -> Score:
    """A score with the Gaussian prior of the mean's coefficients, if they have one."""
    prior = gaussian_prior(mean.coefficients, len(coefficients))
    if prior is None:
        return score
    log_likelihood = score.log_likelihood - prior.penalty(coefficients)
    return score._replace(normal=score.normal.with_prior(prior), log_likelihood=log_likelihood)


def _is_little(composite: Composite) -> bool:
    """Whether the terms are so few, and so small, that threads would wait for each other more than they work."""
    return bool(sum(stack.indices.size * stack.indices.shape[1] for stack in composite.stacks) <= _TASK_ELEMENTS)


def _tasks(observations: Observations, composite: Composite) -> Iterator[tuple[Observations, Stack]]:
    for stack in composite.stacks:
        blocks, n = stack.indices.shape
        step = max(1, _TASK_ELEMENTS // n**2)
        for start in range(0, blocks, step):
            yield restrict(observations, stack[start : start + step])


def restrict(observations: Observations, stack: Stack) -> tuple[Observations, Stack]:
    """The observations of some blocks alone, and the blocks counted in them."""
    indices = stack.indices.ravel()
    part = replace(observations.take(indices), mean=as_mean(None))  # the columns already hold the mean
    return part, replace(stack, indices=np.arange(len(indices)).reshape(stack.indices.shape))


def _matrices(observations: Observations, probes: int) -> int:
    """How many times more matrices of a block are in memory than usual: the Jacobian and the probes need some."""
    p, n_columns = len(observations.kernel.theta), observations.X.shape[1]
    return 1 + (p // 3 if probes < 0 else (1 + 2 * n_columns) * max(probes, 1) // 64)


def _score(observations: Observations, stack: Stack, coefficients: Floats, probes: int, seed: int) -> Score:
    n = stack.indices.shape[1]
    keep_freed_memory()
    with blas_threads_for(0):  # even for large blocks: the same bits in every process
        each = n**2 * _matrices(observations, probes) if current_device() is not None else n**2
        parts = in_batches(
            len(stack),
            each,
            lambda blocks: score(observations, stack[blocks], coefficients, probes=probes, seed=seed),
        )
        return reduce(Score.plus, parts)
