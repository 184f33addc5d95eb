"""Where functionals are: which of them share a point, and which are spread over several."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats, Indices
from compositegp.functionals.functional_list import Functionals
from compositegp.functionals.kernel_of_functionals import OnFunctionals
from compositegp.kernels import in_length_scales

_DIGITS = 9  # of coordinates in length scales, in which rows at the same place agree


@dataclass(frozen=True, eq=False)
class Places:
    """Rows of points and functionals by place.

    What is asked for at one point, such as its value, its slopes and its parts, is at the same place and has the same
    neighbors. A functional of several points is at the place of its center if that is near enough to all of them, and
    else at no place: it is wide.

    Attributes
    ----------
    first : int array of shape (places,), or slice
        The first row of each place, ascending.
    wide : int array
        Rows of functionals that are wide.
    shared : tuple of arrays, or None
        The rows of all the places, one place after the other, and where each place starts; None where every row has
        a place of its own.
    """

    first: Any
    wide: Indices
    shared: tuple[Indices, Indices] | None

    @classmethod
    def of(cls, kernel: Kernel, Z: Floats, covers: Callable[[Floats, Floats], Booleans] | None = None) -> "Places":
        """The places of rows under a kernel, which may be lifted to functionals or not.

        `covers` says which functionals of several points, with centers (m, ·) and radii (m,) in length scales, are not
        wide; without it all of them are.
        """
        everything = np.arange(len(Z))
        numbers = kernel.numbers(Z) if isinstance(kernel, OnFunctionals) else None
        if numbers is None:
            return cls(slice(None), everything[:0], None)
        wide = np.append(kernel.functionals.counts, 1)[numbers] > 1
        if covers is not None and wide.any():
            centers = in_length_scales(kernel, Z[wide])
            wide[wide] = ~covers(centers, _radii(kernel, kernel.functionals[numbers[wide]], centers))
        rows = everything[~wide]
        if not len(rows):
            return cls(rows, everything, (rows, rows))
        keys = np.round(in_length_scales(kernel, Z[rows]), _DIGITS)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))[inverse.ravel()]  # places in the order of their first rows
        order = np.argsort(rank, kind="stable")
        starts = np.searchsorted(rank[order], np.arange(len(first) + 1))
        return cls(rows[np.sort(first)], everything[wide], (rows[order], starts))

    def rows(self, places: Indices) -> Indices:
        """The rows of some places."""
        if self.shared is None:
            return places
        order, starts = self.shared
        if not len(places):
            return places
        return np.concatenate([order[starts[place] : starts[place + 1]] for place in places])


def _radii(kernel: Kernel, functionals: Functionals, centers: Floats) -> Floats:
    """Largest distance of a point of each functional from its center, in length scales: shape (m,)."""
    points = in_length_scales(kernel, functionals.points)
    distances = np.sqrt(((points - centers[functionals.owners]) ** 2).sum(axis=1))
    return np.asarray(np.maximum.reduceat(distances, functionals.starts[:-1]))


def atoms_of(kernel: Kernel, Z: Floats) -> Floats:
    """The points that rows are about, shape (a, d): of a functional all its points."""
    if not isinstance(kernel, OnFunctionals):
        return Z
    numbers, points = kernel.numbers(Z), kernel.view(Z)
    if numbers is None:
        return np.asarray(points)
    return np.concatenate([points[numbers < 0], kernel.functionals[numbers[numbers >= 0]].points])
