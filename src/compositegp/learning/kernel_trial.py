"""The kernel that predicts best where predictions are wanted: compared kernels on observations that are held out."""

from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError
from scoringrules import crps_normal

from compositegp.backend import Booleans, Indices
from compositegp.composite import Observations
from compositegp.learning.kernel_comparison import ComparedKernel, KernelComparison
from compositegp.means import Basis, Estimated, as_mean
from compositegp.posteriors import predict_gaps, rows_in_gaps

_LIKELY = 0.1  # log likelihood a point behind the best, up to which a kernel is tried
_NEIGHBORS = 256  # observations that each is predicted from: more change the order of kernels little


def choose_by_prediction(
    comparison: KernelComparison, data: Observations, held_out: Booleans, n_jobs: int | None
) -> KernelComparison:
    """The same comparison with another choice: the kernel with the least CRPS on observations that are held out.

    A likelihood is about observations among others, and says little about wide gaps. Kernels that are much less likely
    than the best are not tried.

    Parameters
    ----------
    comparison : KernelComparison
    data : Observations
        Its kernel decides about the places where predictions are compared.
    held_out : boolean array of shape (n,)
        Observations that are predicted from the others.
    n_jobs : int or None
    """
    rows = rows_in_gaps(data.with_kernel(comparison.first_kernel), held_out)
    likely = [row for row in comparison if row.difference >= -_LIKELY]
    scores = {row.name: _score(row, data, held_out, rows, n_jobs) for row in likely}
    best = min(scores, key=lambda name: scores[name])
    ordered = sorted(comparison, key=lambda row: row.name != best)  # the others stay in their order
    return replace(comparison, rows=tuple(replace(row, chosen=row.name == best) for row in ordered))


def _score(row: ComparedKernel, data: Observations, held_out: Booleans, rows: Indices, n_jobs: int | None) -> float:
    """Mean CRPS of Gaussian predictions of some observations."""
    mean, basis = data.mean, data.mean.coefficients
    if isinstance(basis, Basis):
        coefficients = np.reshape(row.mean_coefficients, (-1, *data.outputs))
        mean = as_mean(Estimated(basis.functions, coefficients, np.zeros((len(coefficients),) * 2)))
    under = data.with_kernel(row.kernel).with_mean(mean)
    try:
        found = predict_gaps(under, held_out, rows, _NEIGHBORS, n_jobs)
    except LinAlgError:
        return np.inf
    some = under.take(rows)
    std = np.sqrt(found.variance + some.noise)
    scores = crps_normal(some.targets.reshape(len(std), -1), found.mean.reshape(len(std), -1), std[:, None])
    return float(np.mean(scores))
