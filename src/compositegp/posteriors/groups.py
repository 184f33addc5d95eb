"""Prediction in groups: any number of test points by any composite, in bounded memory."""

import contextlib
from collections.abc import Iterable

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from compositegp.backend import Floats, Indices, blas_threads_for, current_device
from compositegp.composite import (
    Composite,
    Evidence,
    FactoredStack,
    Influence,
    Latent,
    Observations,
    collect_evidence,
    factor_stacks,
    group_by_place,
)
from compositegp.means import Basis
from compositegp.posteriors.belief import Belief, Marginals, empty_marginals
from compositegp.posteriors.composite_posterior import FactoredComposite, believe
from compositegp.posteriors.inducing import project_belief

NEGLIGIBLE = 1e-7
"""Largest change by all skipped blocks together, in prior standard deviations of a latent value."""

_EVIDENCE_ELEMENTS = 2**23  # matrix elements of the evidence about all the groups of a task


def predict_groups(
    factored: FactoredComposite, Z: Floats, group_size: int, *, n_jobs: int | None = None
) -> Marginals:
    """Predict by a composite. Test points are predicted in groups, each as one joint latent.

    Parameters
    ----------
    factored : FactoredComposite
        If it holds no factors, they are computed again for every few groups: less memory, more time.
    Z : array of shape (M, d)
    group_size : int
        Test points in a group, at most. Groups are local (`segment`, in the kernel's length scales).
    n_jobs : int, optional
        Processes to use, as in joblib.

    Returns
    -------
    Marginals
    """
    data, composite = factored.data, factored.composite
    if current_device() is not None or composite.n_blocks == 1:
        n_jobs = 1  # one block is best factorized once, by all the cores
    groups = group_by_place(data.kernel, Z, group_size)
    width = group_size + data.columns.shape[1]
    step = max(1, _EVIDENCE_ELEMENTS // width**2)
    if n_jobs not in (None, 1):  # few tasks, because each factorizes again, but enough to keep the cores busy
        step = max(1, min(step, -(-len(groups) // (2 * effective_n_jobs(n_jobs)))))
    tasks = [groups[start : start + step] for start in range(0, len(groups), step)]
    with blas_threads_for(0) if len(tasks) > 1 else contextlib.nullcontext():  # joblib may use threads
        found = Parallel(n_jobs=n_jobs if len(tasks) > 1 else 1)(
            delayed(_predict)(
                data,
                composite,
                factored.stacks if n_jobs in (None, 1) else (),
                Z[np.concatenate(task)],
                [len(group) for group in task],
            )
            for task in tasks
        )
    return _in_order(tasks, found, len(Z), data.outputs)


def project_groups(about_u: Belief, data: Observations, Z: Floats, group_size: int) -> Marginals:
    """Predict from a belief about inducing variables, some test points at a time."""
    result = empty_marginals(len(Z), data.outputs)
    with blas_threads_for(group_size):
        for start in range(0, len(Z), group_size):
            part = slice(start, start + group_size)
            belief = project_belief(about_u, data.kernel, Z[part], data.mean)
            result.mean[part], result.variance[part] = belief.mean, belief.variance
    return result


def _predict(
    data: Observations,
    composite: Composite,
    stacks: Iterable[FactoredStack],
    Z: Floats,
    sizes: list[int],
) -> list[Marginals]:
    """Beliefs about groups of the given sizes, which follow each other in `Z`."""
    parts = np.split(Z, np.cumsum(sizes)[:-1])
    with blas_threads_for(max(composite.largest_block, *sizes) if composite.n_blocks == 1 else 0):
        latents = [Latent.prior(data.kernel, part, data.mean) for part in parts]
        totals = gather(data, composite, stacks or factor_stacks(data, composite), latents)
        beliefs = (believe(data, latent, total) for latent, total in zip(latents, totals, strict=True))
        return [Marginals(belief.mean, belief.variance) for belief in beliefs]


def gather(
    data: Observations,
    composite: Composite,
    stacks: Iterable[FactoredStack],
    latents: list[Latent],
    n_blocks: int | None = None,
) -> list[Evidence]:
    """Evidence of a composite about each of several latents, each block being factorized once.

    A block is skipped for a latent if a bound shows that it cannot matter. All skipped blocks together change less than
    `NEGLIGIBLE`, even if all of `n_blocks` were skipped (by default the number of blocks of this composite).
    """
    totals = [Evidence.none(latent) for latent in latents]
    matters = np.ones((len(latents), composite.n_blocks), dtype=bool)
    # Every block, near or far, gives evidence about coefficients of the mean that are part of the latent.
    if not isinstance(data.mean.coefficients, Basis):
        influence = Influence(data, composite)
        for number, latent in enumerate(latents):
            matters[number] = influence.bounds(latent) > NEGLIGIBLE / (n_blocks or composite.n_blocks)
    start = 0
    for factored in stacks:
        here = matters[:, start : start + len(factored.stack)]
        start += len(factored.stack)
        for number in map(int, np.flatnonzero(here.any(axis=1))):
            part = factored if here[number].all() else factored[here[number]]
            totals[number] = totals[number].plus(collect_evidence(data.kernel, latents[number], part))
    return totals


def _in_order(
    tasks: list[list[Indices]], found: list[list[Marginals]], count: int, outputs: tuple[int, ...]
) -> Marginals:
    result = empty_marginals(count, outputs)
    for groups, marginals in zip(tasks, found, strict=True):
        for group, part in zip(groups, marginals, strict=True):
            result.mean[group], result.variance[group] = part.mean, part.variance
    return result
