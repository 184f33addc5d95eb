"""Linear functionals of f as weighted sums: of values of f, of its derivatives and of its parts, at points."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Booleans, Floats, Indices
from compositegp.functionals.part_kernels import MEAN, WHOLE
from compositegp.storage import storable
from compositegp.validation import are_finite

VALUE = -1
"""In the place of a column: f itself, not a derivative."""


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Functionals:
    """M linear functionals of f. The m-th is Σ weight · D f_part(x) over its own atoms, where D is 1 or ∂/∂x_column.

    Make them with `at`, `derivative`, `average`, `combine` and `part`. They are accepted wherever test points are, and
    in the place of observed points.

    Attributes
    ----------
    points : array of shape (atoms, d)
    columns : int array of shape (atoms,)
        The column of a derivative; −1 for a value.
    part_numbers : int array of shape (atoms,)
        Which of `part_names`.
    weights : array of shape (atoms,)
    starts : int array of shape (M + 1,)
        The atoms of the m-th are those from ``starts[m]`` up to ``starts[m + 1]``.
    part_names : tuple of str
    feature_names : tuple or None
        Names of the columns, where the points had them.

    Examples
    --------
    >>> from compositegp import functionals as F
    >>> F.derivative([[0.0, 1.0], [2.0, 3.0]], column=1)
    Functionals(2 of 2 columns)
    >>> len(F.join([F.at([[0.0], [1.0]]), F.average([[[0.0], [0.5], [1.0]]])]))
    3
    """

    points: Floats
    columns: Indices
    part_numbers: Indices
    weights: Floats
    starts: Indices
    part_names: tuple[str, ...] = (WHOLE,)
    feature_names: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_columns(self) -> int:
        """D."""
        return int(self.points.shape[1])

    @cached_property
    def counts(self) -> Indices:
        """Number of atoms of each, shape (M,)."""
        return np.diff(self.starts)

    @cached_property
    def owners(self) -> Indices:
        """The functional that each atom belongs to, shape (atoms,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def centers(self) -> Floats:
        """Means of the points, weighted by the size of their weights: shape (M, d)."""
        sizes = np.abs(self.weights)
        totals = np.bincount(self.owners, sizes, len(self))
        sizes = np.where((totals > 0)[self.owners], sizes, 1.0)
        totals = np.bincount(self.owners, sizes, len(self))
        sums = [np.bincount(self.owners, sizes * column, len(self)) for column in self.points.T]
        # A single point stays what it is, to the last digit.
        return np.where(
            (self.counts == 1)[:, None], self.points[self.starts[:-1]], np.stack(sums, 1) / totals[:, None]
        )

    @cached_property
    def has_mean(self) -> Booleans:
        """Atoms to which the mean function belongs: those of f itself and of the part "mean"; shape (atoms,)."""
        return np.array([name in (WHOLE, MEAN) for name in self.part_names])[self.part_numbers]

    @cached_property
    def has_noise(self) -> Booleans:
        """Atoms that are values of f itself, which an observation adds noise to; shape (atoms,)."""
        whole = np.array([name == WHOLE for name in self.part_names])
        return np.asarray(whole[self.part_numbers] & (self.columns == VALUE))

    @cached_property
    def is_point(self) -> Booleans:
        """Those that are f at a single point, shape (M,)."""
        first = self.starts[:-1]
        return np.asarray((self.counts == 1) & self.has_noise[first] & (self.weights[first] == 1))

    @property
    def constants(self) -> Floats:
        """What each makes of a mean that is 1 everywhere: shape (M,)."""
        own = self.weights * (self.has_mean & (self.columns == VALUE))
        return np.asarray(np.bincount(self.owners, own, len(self)), dtype=np.float64)

    def __getitem__(self, chosen: Any) -> "Functionals":
        """Some of them, in the order given."""
        rows = np.atleast_1d(np.arange(len(self))[chosen])
        counts = self.counts[rows]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._of_atoms(np.repeat(self.starts[:-1][rows], counts) + within, counts)

    def _of_atoms(self, atoms: Indices, counts: Indices) -> "Functionals":
        return replace(
            self,
            points=self.points[atoms],
            columns=self.columns[atoms],
            part_numbers=self.part_numbers[atoms],
            weights=self.weights[atoms],
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        )

    @cached_property
    def keys(self) -> list[bytes]:
        """What each is made of, for comparison: equal functionals have equal keys."""
        parts = [self.part_names[number].encode() for number in self.part_numbers]
        found = []
        for start, stop in pairwise(self.starts):
            own = slice(start, stop)
            arrays = (self.points[own] + 0.0, self.columns[own], self.weights[own])  # adding zero makes −0 a 0
            found.append(b"|".join([*(array.tobytes() for array in arrays), *parts[own]]))
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("functionals are no array of numbers")

    def check(self) -> None:
        """Check the arrays, such as those of a file; a ValueError says what is wrong."""
        count, d = np.shape(self.points) if np.ndim(self.points) == 2 else (0, 0)
        wholes = (self.columns, self.part_numbers, self.starts)
        fits = d > 0 and are_finite(self.points) and are_finite(self.weights) and np.shape(self.weights) == (count,)
        fits = fits and all(isinstance(one, np.ndarray) and one.dtype.kind in "iu" for one in wholes)
        if (
            not fits
            or self.columns.shape != (count,)
            or self.part_numbers.shape != (count,)
            or not len(self.starts)
        ):
            raise ValueError("functionals must have finite points and weights, and a column and a part for each")
        names = isinstance(self.part_names, tuple) and all(isinstance(name, str) for name in self.part_names)
        inside = self.columns.min(initial=VALUE) >= VALUE and self.columns.max(initial=VALUE) < d
        known = (
            names
            and self.part_numbers.min(initial=0) >= 0
            and self.part_numbers.max(initial=0) < len(self.part_names)
        )
        ordered = self.starts[0] == 0 and self.starts[-1] == count and (np.diff(self.starts) > 0).all()
        if not inside or not known or not ordered:
            raise ValueError("functionals name columns, parts or points that are not there")

    def __sklearn_clone__(self) -> "Functionals":
        return self  # never changed

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The arrays by their names, for files."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"Functionals({len(self)} of {self.n_columns} column{'' if self.n_columns == 1 else 's'})"


def join(functionals: Sequence[Functionals]) -> Functionals:
    """Functionals one after the other.

    Parameters
    ----------
    functionals : sequence of Functionals

    Returns
    -------
    Functionals

    Examples
    --------
    >>> from compositegp import functionals as F
    >>> F.join([F.at([[0.0]]), F.derivative([[0.0]], 0)])
    Functionals(2 of 1 column)
    """
    lists = list(functionals)
    if not lists or not all(isinstance(one, Functionals) for one in lists):
        raise ValueError(f"functionals must be a list of functionals, at least one; found {functionals!r:.80}.")
    widths = {one.n_columns for one in lists}
    if len(widths) > 1:
        raise ValueError(
            f"functionals are of points with {' and '.join(map(str, sorted(widths)))} columns. Give all the same."
        )
    names = tuple(dict.fromkeys(name for one in lists for name in one.part_names))
    numbers = [np.array([names.index(name) for name in one.part_names])[one.part_numbers] for one in lists]
    features = {one.feature_names for one in lists if one.feature_names is not None}
    if len(features) > 1:
        raise ValueError(f"functionals are of points with different columns: {' and '.join(map(str, features))}.")
    counts = np.concatenate([one.counts for one in lists])
    return Functionals(
        np.concatenate([one.points for one in lists]),
        np.concatenate([one.columns for one in lists]),
        np.concatenate(numbers).astype(np.intp),
        np.concatenate([one.weights for one in lists]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        names,
        next(iter(features), None),
    )


def find_functionals(Z: Any) -> Functionals | None:
    """Functionals from a user's argument: from them, or from a list of them; None for points."""
    if isinstance(Z, Functionals):
        return Z
    if isinstance(Z, list | tuple) and any(isinstance(one, Functionals) for one in Z):
        strange = [one for one in Z if not isinstance(one, Functionals)]
        if strange:
            raise ValueError(
                f"a list of functionals has something else among them: {strange[0]!r:.80}. Write functionals.at(X) for "
                "points."
            )
        return join(list(Z))
    return None


def of_points(points: Floats, feature_names: tuple[Any, ...] | None = None) -> Functionals:
    """F at points that have been checked, shape (M, d)."""
    count = len(points)
    return Functionals(
        points,
        np.full(count, VALUE, dtype=np.intp),
        np.zeros(count, dtype=np.intp),
        np.ones(count),
        np.arange(count + 1),
        (WHOLE,),
        feature_names,
    )


PointsLike: TypeAlias = ArrayLike | Functionals | Sequence[Functionals]
"""What functions take as points: points (n, d), functionals, or a list of functionals."""
