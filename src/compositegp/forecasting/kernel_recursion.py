"""The running average of a kernel's hyper-parameters over segments of new values, weighted by Fisher information.

With the average θ̄ so far, its information Λ and the score ℓ of a segment by the terms of the horizon,

    θ̄ ← argmax ℓ(θ) − ½ (θ − θ̄)ᵀ Λ (θ − θ̄),    Λ ← Λ + J,

where J is the segment's Fisher information. For a quadratic ℓ with its maximum at θ̂ this is the paper's recursion
θ̄ ← (Λ + J)⁻¹ (Λ θ̄ + J θ̂) (Section 4.1). Unlike that it never needs θ̂ itself: a week of values cannot tell short memory
from noise, or how patterns drift over months, and has its maximum far away or nowhere.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.forecasting.horizon_terms import Geometry, Windows, covariances, cut_windows
from compositegp.forecasting.memory import fisher_information, learn_memory
from compositegp.learning import Average

HORIZONS = 7  # in a segment, of series that are long enough to be learned from their horizons
_ROUNDS = 20  # of the optimizer
_FEWEST, _INCOMPLETE = 4, 8  # complete windows that suffice in a segment; incomplete ones that are taken otherwise


@dataclass(frozen=True, eq=False)
class KernelRecursion:
    """What is known about the hyper-parameters, and which values have told it.

    Attributes
    ----------
    average : Average
        Its number of segments has the fit as the first.
    standard_errors : array of shape (p,)
        Relative standard errors of the hyper-parameters.
    steps : array of int
        Steps of a horizon, from 0, whose forecasts teach.
    apart : int
        Steps between origins.
    segment : int
        Steps of a segment.
    until : int
        The first step whose value has taught nothing, or has been passed over.
    """

    average: Average
    standard_errors: Floats
    steps: Indices
    apart: int
    segment: int
    until: int

    def rows_needed(self, reach: int, block: int) -> int:
        """The first step that the next segment looks back to."""
        return self.until - reach - block

    def passed(self, until: int) -> "KernelRecursion":
        """Without what the values before a step would have told."""
        return replace(self, until=until)

    def take_in(
        self, kernel: Kernel, lags: Indices, residuals: Floats, first: int, block: int
    ) -> tuple[Kernel, "KernelRecursion", float]:
        """Learn from the next segment, all of whose values are there.

        A segment without a value to learn from, or whose covariances cannot be factorized, is left out and counted.

        Parameters
        ----------
        kernel : scikit-learn kernel of the time in steps
            With the average so far.
        lags : array of int
            That a forecast looks back.
        residuals : array of shape (N,)
            The series less its effects, from step `first` to the end of the segment; NaN where a value is missing.
        first : int
        block : int
            Steps of the horizon.

        Returns
        -------
        scikit-learn kernel
            With the new average.
        KernelRecursion
        float
            Mean square of the standardized errors of the segment's horizons under the new kernel over that under the
            old one: the unit of past errors has changed by this.
        """
        end = self.until + self.segment
        passed = self.passed(end)
        last = int(self.steps.max())
        origins = np.arange(self.until - last - 1 + self.apart, end - last, self.apart) - first
        windows = _cut(residuals, origins, Geometry(lags, self.steps))
        if not windows:
            return kernel, replace(passed, average=self.average.add(None)), 1.0
        before = self.average
        try:
            found = learn_memory(kernel, windows, _ROUNDS, precision=before.estimate.precision).kernel
            information = before.estimate.precision + fisher_information(found, windows)
            horizons = _cut(residuals, np.arange(self.until, end, block) - first, Geometry(lags, np.arange(block)))
            ratio = _mean_square(found, horizons) / _mean_square(kernel, horizons)
        except LinAlgError:
            return kernel, replace(passed, average=before.add(None)), 1.0
        points = before.n_points + sum(one.count for one in windows)
        average = Average.known(found.theta, information, before.n_segments + 1, points)
        average = average._replace(n_left_out=before.n_left_out)
        errors = self.standard_errors * _shrunk(before.estimate.precision, information)
        return found, replace(passed, average=average, standard_errors=errors), ratio


def _cut(residuals: Floats, origins: Indices, geometry: Geometry) -> list[Windows]:
    """Windows at the origins whose past is there."""
    there = origins[origins >= geometry.lags.max()]
    return cut_windows(residuals, there, geometry, _FEWEST, _INCOMPLETE) if len(there) else []


def _mean_square(kernel: Kernel, windows: list[Windows]) -> float:
    """Mean square of the standardized errors of some windows; 1 where there are none."""
    if not windows:
        return 1.0
    k, counts = covariances(kernel, max(one.reach for one in windows)), [one.count for one in windows]
    return float(np.average([one.mean_square(k) for one in windows], weights=counts))


def _shrunk(before: Floats, after: Floats) -> Floats:
    """By how much more information reduces the standard error of each hyper-parameter; 1 where there was none.

    Terms of one horizon err alike, so that an error is larger than the information says; it keeps this ratio.
    """
    old, new = np.diagonal(before), np.diagonal(after)
    known = (old > 0) & (new > 0)
    return np.where(known, np.sqrt(np.where(known, old, 1.0) / np.where(known, new, 1.0)), 1.0)
