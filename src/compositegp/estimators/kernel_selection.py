"""The last word on a kernel: of those that the likelihood finds nearly as good, the one that predicts best.

The likelihood is that of a Gaussian process. Data that are not Gaussian, such as values on a grid or with outliers, may
have a most likely kernel that predicts worse than another once errors are calibrated. So the best few are tried on the
terms on which predictions are made: training points, each from its nearest observations, with calibrated errors. Where
the gaps are known that will be predicted, these are training points in such gaps: kernels that are alike among the data
may differ much there.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from compositegp.backend import Floats, Indices
from compositegp.composite import Observations, partition
from compositegp.kernels import in_length_scales
from compositegp.learning import ComparedKernel, KernelComparison
from compositegp.means import Basis, Estimated, as_mean
from compositegp.posteriors import Gaps
from compositegp.prediction import HeldOutScores, PredictionMethod

_CLOSE = 0.1  # log likelihood a point behind the best, up to which a kernel is tried
_FINALISTS = 3  # kernels that are tried, at most
_STANDARD_ERRORS = 2.0  # by which another kernel has to be better than the most likely one
_SHARE = 0.01  # of the score, by which it has to be better at least
_PATCHES = 40  # patches of points whose errors are alike, over which a standard error is found


def by_held_out_errors(
    comparison: KernelComparison,
    data: Observations,
    prediction: PredictionMethod,
    *,
    heavy_tails: bool,
    n_jobs: int | None,
    gaps: Gaps | None = None,
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
    gaps : Gaps, optional
        Observations that are hidden from each training point, as around the points that will be predicted.

    Returns
    -------
    KernelComparison
        With the mean CRPS of the kernels that were tried, in the model's unit of the target.
    """
    likely = sorted(comparison, key=lambda row: (not row.chosen, -row.difference))
    finalists = [row for row in likely if row.chosen or row.difference >= -_CLOSE][:_FINALISTS]
    if len(finalists) < 2:
        return comparison
    options: dict[str, Any] = {} if gaps is None else {"gaps": gaps}
    scores: dict[str, HeldOutScores] = {}
    for row in finalists:
        found = prediction.held_out_crps(_under(row, data), heavy_tails=heavy_tails, n_jobs=n_jobs, **options)
        if found is None:
            return comparison
        scores[row.name] = found
    first = finalists[0]
    places = in_length_scales(first.kernel, data.X)

    def is_better(row: ComparedKernel) -> bool:
        return _is_better(scores[row.name], scores[first.name], places)

    best = min(finalists, key=lambda row: (not is_better(row), _mean(scores, row)))
    chosen = best if is_better(best) else first
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


def _is_better(one: HeldOutScores, other: HeldOutScores, places: Floats) -> bool:
    """Whether the mean of scores is smaller by more than chance and more than a trifle."""
    rows, mine, theirs = np.intersect1d(one.rows, other.rows, return_indices=True)
    gain = other.crps[theirs] - one.crps[mine]
    patches = [np.array([number]) for number in range(len(rows))]
    if one.together:
        patches = partition(places[rows], -(-len(rows) // _PATCHES))
    error = _standard_error(gain, patches)
    return bool(gain.mean() > max(_STANDARD_ERRORS * error, _SHARE * other.crps[theirs].mean()))


def _standard_error(values: Floats, patches: list[Indices]) -> float:
    """Standard error of a mean of values that are alike in a patch, and independent of those of other patches."""
    sums = np.array([(values[patch] - values.mean()).sum() for patch in patches])
    k = len(patches)
    return float(np.sqrt(k / (k - 1) * (sums**2).sum()) / len(values)) if k > 1 else np.inf


def _mean(scores: dict[str, HeldOutScores], row: ComparedKernel) -> float:
    return float(scores[row.name].crps.mean()) if row.name in scores else float("nan")
