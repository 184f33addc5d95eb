"""Where kernels of a comparison begin: at the length scales, variance and noise of kernels learned before them."""

from collections.abc import Callable

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from compositegp.backend import Floats
from compositegp.kernels import DataScale, form_of, metric, noise_variance
from compositegp.learning.starting_values import parts_of_sum, starting_kernel, starting_points

_LENGTHS = (0.25, 1.0, 4.0)  # length scales to try, in units of those of a kernel of another smoothness
# Changes of log amplitudes and of log length scales, by which a start is refined.
_MOVES = ((1.39, 0.69), (1.39, 0.35), (0.69, 0.17))
_WIDE = 3.0  # variance of a kernel, over that of the data, from which another kernel may begin with less
_MAIN_SHARE = 0.9  # of the variance that one part of a sum begins with; with nearly all of it, it would keep it
_FINER = (1.0, 0.25)  # length scales of the other parts then, in units of those of their donors


def warm_starts(kernel: Kernel, learned: list[Kernel], scale: DataScale) -> list[Floats]:
    """Values of ``kernel.theta`` to begin from, given kernels that were learned from the same data.

    Length scales, variance and noise carry over. A kernel of another smoothness may begin at some multiples of the
    length scales, with the variance of the other or one nearer to that of the data, or at the scale of the data. In a
    sum each part begins at the kernel of its own form, where there is one, and the parts share the variance: equally,
    or one of them has most of it and the others are as coarse, or finer.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its bounds are kept. Hyper-parameters that have no scale, such as an exponent, begin where they are.
    learned : list of scikit-learn kernels
        At least one.
    scale : DataScale
        For what the learned kernels do not have.

    Returns
    -------
    list of arrays of shape (p,)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> scale, first = DataScale(np.ones(1), 1.0), 4.0 * Matern(2.0) + WhiteKernel(0.5)
    >>> starts = warm_starts(1.0 * RBF() + WhiteKernel(), [first], scale)
    >>> [round(float(value), 3) for value in np.exp(starts[-1])]
    [4.0, 8.0, 0.5]
    """
    form, forms, bounds = form_of(kernel), [form_of(other) for other in learned], kernel.bounds
    if form in forms:
        alike = [other.theta for other, own in zip(learned, forms, strict=True) if own == form]
        return [np.clip(alike[-1], *bounds.T)]
    signals = [part for part in parts_of_sum(kernel).values() if not isinstance(part, WhiteKernel)]
    donors = [_donor(part, learned) for part in signals]
    lengths = _LENGTHS if None in donors else (1.0,)
    found = []
    others = [learned[0], learned[-1]] if None in donors and forms[0] != forms[-1] else learned[-1:]
    for other in others:
        given = [donor or other for donor in donors]
        # The rougher a kernel, the larger the variance by which it explains smooth data.
        variance = metric(other, len(scale.spreads))[0]
        limits = [np.inf]
        if None in donors and variance > _WIDE * scale.variance:
            limits.append(float(np.sqrt(variance * scale.variance)))
        for shares in _shares(len(signals)):
            for finer in _FINER if len(set(shares)) > 1 else (1.0,):
                fine = [finer if share < max(shares) else 1.0 for share in shares]
                found += [
                    _start(kernel, given, shares, [length * one for one in fine], scale, most)
                    for length in lengths
                    for most in limits
                ]
    if None in donors:
        found += starting_points(kernel, scale)
    return list(np.unique(np.clip(found, *bounds.T), axis=0))


def is_sum(kernel: Kernel) -> bool:
    """Whether a kernel has several parts beside noise."""
    return sum(not isinstance(part, WhiteKernel) for part in parts_of_sum(kernel).values()) > 1


def is_part_of(kernel: Kernel, whole: Kernel) -> bool:
    """Whether all that a kernel has beside noise is among the parts of a sum.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> whole = 1.0 * RBF(2.0) + 1.0 * Matern(nu=0.5) + WhiteKernel()
    >>> is_part_of(3.0 * RBF() + WhiteKernel(), whole), is_part_of(1.0 * Matern(nu=1.5), whole)
    (True, False)
    """
    own, others = (
        [form_of(part) for part in parts_of_sum(one).values() if not isinstance(part, WhiteKernel)]
        for one in (kernel, whole)
    )
    return len(own) < len(others) and all(form in others for form in own)


def refined(kernel: Kernel, theta: Floats, value: float, likelihood: Callable[[Floats], float]) -> Floats:
    """A better start near θ, whose likelihood is given: all amplitudes, or all length scales, larger or smaller.

    Far from its maximum the likelihood of a smooth kernel is no parabola, and these two numbers decide how far.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> def likelihood(theta):
    ...     return -float(((theta - [1.4, 0.5]) ** 2).sum())
    >>> refined(1.0 * RBF(), np.zeros(2), likelihood(np.zeros(2)), likelihood).round(2)
    array([1.39, 0.51])
    """
    bounds, lengths, amplitudes = (
        kernel.bounds,
        *(_belong(kernel, end) for end in ("length_scale", "constant_value")),
    )
    for amplitude, length in _MOVES:
        for moves in (length * lengths, amplitude * amplitudes):
            for trial in (theta - moves, theta + moves):
                trial = np.clip(trial, *bounds.T)
                found = value if (trial == theta).all() else likelihood(trial)
                if found > value:
                    theta, value = trial, found
                    break
    return theta


def _belong(kernel: Kernel, end: str) -> Floats:
    """One for each of θ that belongs to a hyper-parameter whose name ends so, and zero for the others: shape (p,)."""
    free = [one for one in kernel.hyperparameters if not one.fixed]
    return np.repeat([float(one.name.endswith(end)) for one in free], [one.n_elements for one in free])


def _start(
    kernel: Kernel, donors: list[Kernel], shares: list[float], lengths: list[float], scale: DataScale, most: float
) -> Floats:
    """θ, in no bounds, with each part at multiples of its donor's lengths and its share of its variance, at `most`."""
    remaining, found = iter(zip(donors, shares, lengths, strict=True)), []
    d = len(scale.spreads)
    noises = [float(noise_variance(donor, np.zeros((1, d)))[0]) for donor in donors] or [0.0]
    # Noise of the part with the largest share; of equal parts the least, since the rougher takes some for signal.
    noise = min(noises) if len(set(shares)) < 2 else noises[int(np.argmax(shares))]
    for part in parts_of_sum(kernel).values():
        if isinstance(part, WhiteKernel):
            if noise > 0 and not isinstance(part.noise_level_bounds, str):
                part = clone(part).set_params(noise_level=noise)
        else:
            donor, share, length = next(remaining)
            variance, inverse_squares = metric(donor, d)
            known = inverse_squares > 0
            spreads = np.where(known, length / np.sqrt(np.where(known, inverse_squares, 1.0) * d), scale.spreads)
            part = starting_kernel(part, DataScale(spreads, share * min(variance or scale.variance, most)))
        found.append(part.theta)
    return np.concatenate(found)


def _shares(count: int) -> list[list[float]]:
    """Shares of the variance that the parts of a sum may begin with."""
    equal = [[1.0 / max(count, 1)] * count]
    if count < 2:
        return equal
    rest = (1 - _MAIN_SHARE) / (count - 1)
    return [*equal, *([_MAIN_SHARE if part == main else rest for part in range(count)] for main in range(count))]


def _donor(part: Kernel, learned: list[Kernel]) -> Kernel | None:
    """The learned kernel that has this part and, beside it, noise alone."""
    form = form_of(part)
    for other in learned:
        signals = [own for own in parts_of_sum(other).values() if not isinstance(own, WhiteKernel)]
        if len(signals) == 1 and form_of(signals[0]) == form:
            return other
    return None
