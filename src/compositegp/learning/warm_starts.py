"""Where kernels of a comparison begin: at the length scales, variance and noise of kernels learned before them."""

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, Sum, WhiteKernel

from compositegp.backend import Floats
from compositegp.kernels import DataScale, metric, noise_variance
from compositegp.learning.starting_values import starting_kernel, starting_points

_LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # length scales to try, in units of those of a kernel of another smoothness
_MAIN_SHARE = 0.9  # of the variance that one part of a sum begins with, where the parts do not share it equally
_FINER = (1.0, 0.25)  # length scales of the other parts then, in units of those of their donors


def warm_starts(kernel: Kernel, learned: list[Kernel], scale: DataScale) -> list[Floats]:
    """Values of ``kernel.theta`` to begin from, given kernels that were learned from the same data.

    Length scales, variance and noise carry over. A kernel of another smoothness may begin at some multiples of the
    length scales, or at the scale of the data. In a sum each part begins at the kernel of its own form, where there is
    one, and the parts share the variance: equally, or one of them has most of it, the others being as coarse or finer.

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
    alike = [other for other in learned if _form(other) == _form(kernel)]
    if alike:
        return [_within(kernel, alike[-1].theta)]
    signals = [part for part in _parts(kernel).values() if not isinstance(part, WhiteKernel)]
    donors = [_donor(part, learned) for part in signals]
    lengths = _LENGTHS if None in donors else (1.0,)
    found = []
    others = learned[-1:] if _form(learned[0]) == _form(learned[-1]) else [learned[0], learned[-1]]
    for other in others:
        given = [donor or other for donor in donors]
        for shares in _shares(len(signals)):
            for finer in _FINER if len(set(shares)) > 1 else (1.0,):
                fine = [finer if share < max(shares) else 1.0 for share in shares]
                found += [
                    _start(kernel, given, shares, [length * one for one in fine], scale) for length in lengths
                ]
    if None in donors:
        found += [_within(kernel, theta) for theta in starting_points(kernel, scale)]
    return list(np.unique(found, axis=0))


def is_sum(kernel: Kernel) -> bool:
    """Whether a kernel has several parts beside noise."""
    return sum(not isinstance(part, WhiteKernel) for part in _parts(kernel).values()) > 1


def _start(
    kernel: Kernel, donors: list[Kernel], shares: list[float], lengths: list[float], scale: DataScale
) -> Floats:
    """θ with each part of a sum at multiples of its donor's length scales, with its share of the donor's variance."""
    started, remaining = clone(kernel), iter(zip(donors, shares, lengths, strict=True))
    d = len(scale.spreads)
    noises = [float(noise_variance(donor, np.zeros((1, d)))[0]) for donor in donors] or [0.0]
    # Noise of the part with the largest share; of equal parts the least, since the rougher takes some for signal.
    noise = min(noises) if len(set(shares)) < 2 else noises[int(np.argmax(shares))]
    for name, part in _parts(kernel).items():
        if isinstance(part, WhiteKernel):
            if noise > 0 and not isinstance(part.noise_level_bounds, str):
                part = clone(part).set_params(noise_level=noise)
        else:
            donor, share, length = next(remaining)
            variance, inverse_squares = metric(donor, d)
            known = inverse_squares > 0
            spreads = np.where(known, length / np.sqrt(np.where(known, inverse_squares, 1.0) * d), scale.spreads)
            part = starting_kernel(part, DataScale(spreads, share * (variance or scale.variance)))
        started = started.set_params(**{name: part}) if name else part
    return _within(kernel, started.theta)


def _within(kernel: Kernel, theta: Floats) -> Floats:
    return np.clip(theta, kernel.bounds[:, 0], kernel.bounds[:, 1])


def _shares(count: int) -> list[list[float]]:
    """Shares of the variance that the parts of a sum may begin with."""
    equal = [[1.0 / max(count, 1)] * count]
    if count < 2:
        return equal
    rest = (1 - _MAIN_SHARE) / (count - 1)
    return [*equal, *([_MAIN_SHARE if part == main else rest for part in range(count)] for main in range(count))]


def _parts(kernel: Kernel, name: str = "") -> dict[str, Kernel]:
    """The parts of a sum, by their names in ``kernel.get_params()``; a kernel that is no sum has the name ''."""
    if not isinstance(kernel, Sum):
        return {name: kernel}
    before = f"{name}__" if name else ""
    return _parts(kernel.k1, f"{before}k1") | _parts(kernel.k2, f"{before}k2")


def _donor(part: Kernel, learned: list[Kernel]) -> Kernel | None:
    """The learned kernel that has this part and, beside it, noise alone."""
    for other in learned:
        signals = [own for own in _parts(other).values() if not isinstance(own, WhiteKernel)]
        if len(signals) == 1 and _form(signals[0]) == _form(part):
            return other
    return None


def _form(kernel: Kernel) -> tuple[str, tuple[bool, ...]]:
    """A kernel without the values of its free hyper-parameters."""
    fixed = tuple(bool(parameter.fixed) for parameter in kernel.hyperparameters)
    return repr(kernel.clone_with_theta(np.zeros(len(kernel.theta)))), fixed
