"""Numbers that should fall from each size to the next: how they are printed, and where they do not."""

import itertools
from collections.abc import Iterable, Sequence


def falls(values: Iterable[float]) -> bool:
    """Whether each number is smaller than the one before.

    Examples
    --------
    >>> falls([3.0, 2.0, 1.0]), falls([3.0, 2.0, 2.0])
    (True, False)
    """
    return all(later < earlier for earlier, later in itertools.pairwise(values))


def grows(values: Iterable[float]) -> bool:
    """Whether each number is larger than the one before."""
    return falls(-value for value in values)


def apart(values: Iterable[float], decimals: int = 2) -> list[str]:
    """Numbers as text, with so many decimals that neighbors that differ are printed differently.

    Examples
    --------
    >>> apart([0.262, 0.0004, 0.0001])
    ['0.2620', '0.0004', '0.0001']
    >>> apart([0.5, 0.5])
    ['0.50', '0.50']
    """
    values = list(values)
    while True:
        texts = [f"{value:.{decimals}f}" for value in values]
        pairs = zip(itertools.pairwise(values), itertools.pairwise(texts), strict=True)
        if all(a == b or one != other for (a, b), (one, other) in pairs):
            return texts
        decimals += 1


def digits_apart(values: Iterable[float], digits: int = 3) -> list[str]:
    """Numbers as text, with so many significant digits that neighbors that differ are printed differently.

    Examples
    --------
    >>> digits_apart([186.0712, 0.064, 0.0000312])
    ['186', '0.064', '3.12e-05']
    >>> digits_apart([1.2341, 1.2342])
    ['1.2341', '1.2342']
    """
    values = list(values)
    while True:
        texts = [f"{value:.{digits}g}" for value in values]
        pairs = zip(itertools.pairwise(values), itertools.pairwise(texts), strict=True)
        if all(a == b or float(one) != float(other) for (a, b), (one, other) in pairs):
            return texts
        digits += 1


def not_falling(sizes: Sequence[int], values: Sequence[float]) -> str:
    """The steps from size to size at which numbers do not become smaller.

    Examples
    --------
    >>> not_falling([1, 2, 5, 10], [3.0, 2.0, 4.0, 4.0])
    'not from 2 to 5, 5 to 10'
    """
    steps = itertools.pairwise(zip(sizes, values, strict=True))
    found = [f"{size} to {larger}" for (size, value), (larger, later) in steps if later >= value]
    return "not from " + ", ".join(found) if found else ""


def not_growing(sizes: Sequence[int], values: Sequence[float]) -> str:
    """The steps from size to size at which numbers do not become larger."""
    return not_falling(sizes, [-value for value in values])
