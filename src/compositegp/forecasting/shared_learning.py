"""Series that learn from each other: one kernel by the windows of all of them.

The log density under a kernel is a sum over windows, whichever series they are from. Its maximum over the windows of
many series is, to first order, the paper's average of their estimates by Fisher information (Section 4.1, with series
in place of segments): θ̄ = (Σ J_s)⁻¹ Σ J_s θ_s. Unlike that average it holds where the series' own estimates are far
apart, as they are when short series mistake short memory for noise or for medium memory.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats
from compositegp.forecasting.horizon_terms import Windows, covariances
from compositegp.forecasting.memory import learn_memory

_MOST_WINDOWS = 4000  # of all series together
_STARTS = 8  # kernels of single series from which the best is taken to begin with
_VARIANCES = ("constant_value", "noise_level")  # hyper-parameters in the squared unit of a series


class Member(NamedTuple):
    """A series that learns with others.

    Attributes
    ----------
    kernel : scikit-learn kernel of the time in steps
        Its own estimate; all members have kernels of the same parts.
    unit : float
        Standard deviation of the series: variances are compared in its square.
    windows : list of Windows
    """

    kernel: Kernel
    unit: float
    windows: list[Windows]


def common_thetas(members: Sequence[Member]) -> list[Floats]:
    """Hyper-parameters of a kernel that all members share, in the unit of each and within its bounds.

    Parameters
    ----------
    members : sequence of Member

    Returns
    -------
    list of arrays of shape (p,)
    """
    windows = _together(members)
    are_variances = variances_of(members[0].kernel)
    starts = members[:: max(1, len(members) // _STARTS)]
    shifts = [np.where(are_variances, 2 * np.log(member.unit), 0.0) for member in members]
    begun = [member.kernel.clone_with_theta(_within(member.kernel.theta, member.kernel)) for member in starts]
    units = [member.unit for member in starts]
    scores = [_score(kernel, unit, windows, are_variances) for kernel, unit in zip(begun, units, strict=True)]
    best = int(np.argmax(scores))
    scaled = [Windows(one.geometry, units[best] * one.past, units[best] * one.ahead) for one in windows]
    found = learn_memory(begun[best], scaled, 40).kernel.theta - np.where(
        are_variances, 2 * np.log(units[best]), 0.0
    )
    return [_within(found + shift, member.kernel) for member, shift in zip(members, shifts, strict=True)]


def variances_of(kernel: Kernel) -> Booleans:
    """Which free hyper-parameters are variances: a boolean array of shape (p,)."""
    free = [one for one in kernel.hyperparameters if not one.fixed]
    return np.array([one.name.endswith(_VARIANCES) for one in free])


def _within(theta: Floats, kernel: Kernel) -> Floats:
    return np.asarray(np.clip(theta, *kernel.bounds.T))


def _score(kernel: Kernel, unit: float, windows: Sequence[Windows], are_variances: Booleans) -> float:
    """Log density of windows of unit variance."""
    theta = kernel.theta - np.where(are_variances, 2 * np.log(unit), 0.0)
    k = covariances(kernel.clone_with_theta(theta), max(one.geometry.reach for one in windows))
    try:
        return sum(one.score(k)[0] for one in windows)
    except LinAlgError:
        return -np.inf


def _together(members: Sequence[Member]) -> list[Windows]:
    """Windows of all members in units of their standard deviations; those of one geometry are one batch."""
    share = max(1, -(-sum(one.past.shape[1] for member in members for one in member.windows) // _MOST_WINDOWS))
    found: defaultdict[tuple[bytes, bytes], list[Windows]] = defaultdict(list)
    for member in members:
        for one in member.windows:
            key = one.geometry.lags.tobytes(), one.geometry.steps.tobytes()
            found[key].append(
                Windows(one.geometry, one.past[:, ::share] / member.unit, one.ahead[:, ::share] / member.unit)
            )
    return [
        Windows(
            batch[0].geometry,
            np.concatenate([one.past for one in batch], axis=1),
            np.concatenate([one.ahead for one in batch], axis=1),
        )
        for batch in found.values()
    ]
