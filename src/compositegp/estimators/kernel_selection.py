"""The last word on a kernel: of those that the likelihood finds nearly as good, the one that predicts best.

The likelihood is that of a Gaussian process. Data that are not Gaussian, such as values on a grid or with outliers, may
have a most likely kernel that predicts worse than another once errors are calibrated. So the best few are tried on the
terms on which predictions are made: training points, each from its nearest observations, with calibrated errors.
"""

from dataclasses import replace

import numpy as np

from compositegp.backend import Floats
from compositegp.composite import Observations
from compositegp.learning import ComparedKernel, KernelComparison
from compositegp.means import Basis, Estimated, as_mean
from compositegp.prediction import PredictionMethod

_CLOSE = 0.1  # log likelihood a point behind the best, up to which a kernel is tried
_FINALISTS = 3  # kernels that are tried, at most
_STANDARD_ERRORS = 2.0  # by which another kernel has to be better than the most likely one
_SHARE = 0.01  # of the score, by which it has to be better at least


def by_held_out_errors(
    comparison: KernelComparison,
    data: Observations,
    prediction: PredictionMethod,
    *,
    heavy_tails: bool,
    n_jobs: int | None,
) -> KernelComparison:
    """The comparison, with another kernel chosen where it clearly predicts training points better.

    Parameters
    ----------
    comparison : KernelComparison
        By likelihood.
    data : Observations
        Its kernel does not matter.
    prediction : PredictionMethod
    heavy_tails : bool
        Whether errors may have heavy tails.
    n_jobs : int or None

    Returns
    -------
    KernelComparison
        With the mean CRPS of the kernels that were tried, in the model's unit of the target.
    """
    likely = sorted(comparison, key=lambda row: (not row.chosen, -row.difference))
    finalists = [row for row in likely if row.chosen or row.difference >= -_CLOSE][:_FINALISTS]
    if len(finalists) < 2:
        return comparison
    candidates = [_under(row, data) for row in finalists]
    found = prediction.held_out_crps(candidates, heavy_tails=heavy_tails, n_jobs=n_jobs)
    if found is None:
        return comparison
    scores = {row.name: score for row, score in zip(finalists, found, strict=True)}
    first = finalists[0]
    best = min(
        finalists, key=lambda row: (not _is_better(scores[row.name], scores[first.name]), _mean(scores, row))
    )
    chosen = best if _is_better(scores[best.name], scores[first.name]) else first
    rows = [replace(row, chosen=row is chosen, crps=_mean(scores, row)) for row in comparison]
    return replace(comparison, rows=tuple(sorted(rows, key=lambda row: not row.chosen)))


def _under(row: ComparedKernel, data: Observations) -> Observations:
    """The data under a kernel of the comparison, with the mean at the coefficients that it was compared at."""
    under = data.with_kernel(row.kernel)
    basis = data.mean.coefficients
    if not isinstance(basis, Basis):
        return under
    coefficients = row.mean_coefficients.reshape(-1, *data.outputs)
    known = np.zeros((len(coefficients), len(coefficients)))
    return under.with_mean(as_mean(Estimated(basis.functions, coefficients, known)))


def _is_better(one: Floats, other: Floats) -> bool:
    """Whether the mean of scores is smaller by more than chance and more than a trifle."""
    gain = other - one
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > max(_STANDARD_ERRORS * error, _SHARE * other.mean()))


def _mean(scores: dict[str, Floats], row: ComparedKernel) -> float:
    return float(scores[row.name].mean()) if row.name in scores else float("nan")
