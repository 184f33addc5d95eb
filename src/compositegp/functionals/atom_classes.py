"""Functionals sorted into classes of the same make, so that the covariances of a class are computed together."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from compositegp.backend import Indices
from compositegp.functionals.functional_list import VALUE, Functionals
from compositegp.functionals.part_kernels import WHOLE

POINT = 0
"""The class of plain points."""


class Run(NamedTuple):
    """Atoms of the same kind within a functional.

    Attributes
    ----------
    column : int or None
        The column of the derivative; None for values.
    part : str
    positions : int array
        Which of the atoms of the functional.
    """

    column: int | None
    part: str
    positions: Indices


class AtomClass(NamedTuple):
    """Functionals with the same number of atoms, of the same kinds in the same order.

    Attributes
    ----------
    size : int
        Atoms of each; a functional with fewer has further ones of weight zero.
    runs : tuple of Run
    """

    size: int
    runs: tuple[Run, ...]

    @property
    def is_value(self) -> bool:
        """Whether it is one atom, and that a value."""
        return self.size == 1 and self.runs[0].column is None


class Classes(NamedTuple):
    """The classes of some functionals.

    Attributes
    ----------
    kinds : tuple of AtomClass
        The first is that of plain points.
    numbers : int array of shape (M,)
        The class of each functional.
    """

    kinds: tuple[AtomClass, ...]
    numbers: Indices


@lru_cache(maxsize=64)
def classes_of(functionals: Functionals) -> Classes:
    """Sort functionals into classes. The result is kept: functionals are never changed."""
    width = functionals.n_columns + 1
    kinds = (functionals.columns - VALUE) + width * functionals.part_numbers
    keys: dict[tuple[int, tuple[int, ...]], int] = {}
    found: list[AtomClass] = [AtomClass(1, (Run(None, WHOLE, np.arange(1)),))]
    numbers = np.empty(len(functionals), dtype=np.intp)

    def number_of(count: int, own: tuple[int, ...]) -> int:
        if (count, own) not in keys:
            runs = []
            for kind in dict.fromkeys(own):
                part, column = divmod(kind, width)
                positions = np.arange(count) if len(own) == 1 else np.flatnonzero(np.array(own) == kind)
                runs.append(Run(column + VALUE if column else None, functionals.part_names[part], positions))
            keys[count, own] = len(found)
            found.append(AtomClass(count, tuple(runs)))
        return keys[count, own]

    single = functionals.counts == 1
    for kind in np.unique(kinds[functionals.starts[:-1][single]]):
        numbers[np.flatnonzero(single)[kinds[functionals.starts[:-1][single]] == kind]] = number_of(1, (int(kind),))
    for row in np.flatnonzero(~single):
        own = kinds[functionals.starts[row] : functionals.starts[row + 1]]
        if (own == own[0]).all():
            numbers[row] = number_of(_rounded(len(own)), (int(own[0]),))
        else:
            numbers[row] = number_of(len(own), tuple(int(kind) for kind in own))
    return Classes(tuple(found), numbers)


def _rounded(count: int) -> int:
    """The next of 2, 3, 4, 6, 8, 12, 16, …: so that few classes hold sets of many sizes."""
    power = 1 << (count - 1).bit_length()
    return 3 * power // 4 if count <= 3 * power // 4 else power
