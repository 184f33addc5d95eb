"""How functionals are made: values, derivatives, averages, weighted sums and parts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from compositegp.backend import Floats
from compositegp.functionals.functional_list import VALUE, Functionals, find_functionals, join, of_points
from compositegp.functionals.part_kernels import WHOLE
from compositegp.validation import check_count, check_points, check_targets

_MOST_POINTS = 10**6  # of a box


def at(X: Any) -> Functionals:
    """The values f(x): what points alone mean.

    Parameters
    ----------
    X : array or data frame of shape (M, d)

    Returns
    -------
    Functionals

    Examples
    --------
    >>> at([[0.0], [1.0]])
    Functionals(2 of 1 column)
    """
    found = find_functionals(X)
    if found is not None:
        return found
    names = tuple(X.columns) if hasattr(X, "columns") else None
    return of_points(check_points(X, "X").copy(), names)


def derivative(X: Any, column: Any) -> Functionals:
    """The derivatives ∂f/∂x_column.

    Parameters
    ----------
    X : array or data frame of shape (M, d), or Functionals
        Points, or functionals without derivatives, such as averages and parts.
    column : int or str
        The column, counted from zero, or its name where `X` has names.

    Returns
    -------
    Functionals

    Examples
    --------
    >>> from compositegp import prior
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior(RBF(2.0), derivative([[0.0]], 0)).variance
    array([0.25])
    """
    base = at(X)
    number = _column_number(base, column)
    if (base.columns != VALUE).any():
        raise ValueError("X has derivatives already, and second derivatives are not available. Give points.")
    return replace(base, columns=np.full(len(base.points), number, dtype=np.intp))


def average(sets: Any, weights: Sequence[ArrayLike] | None = None) -> Functionals:
    """Averages of f over sets of points: over boxes, intervals, polygons, days.

    Parameters
    ----------
    sets : list of arrays of shape (a, d), or array of shape (M, a, d)
        The points of each set, such as those of `box`; a single array (a, d) is one set. Functionals, such as parts,
        may take the place of points.
    weights : list of arrays of shape (a,), optional
        Weights of the points of each set, none negative; they are divided by their sum. By default all are equal.

    Returns
    -------
    Functionals

    Examples
    --------
    >>> average([[[0.0], [0.5], [1.0]], [[7.0], [8.0]]])
    Functionals(2 of 1 column)
    """
    members = _sets_of(sets)
    given = [None] * len(members) if weights is None else list(weights)
    if len(given) != len(members):
        raise ValueError(f"weights has {len(given)} array(s) for {len(members)} set(s). Give one for each.")
    found = []
    for number, (points, own) in enumerate(zip(members, given, strict=True)):
        base = points if isinstance(points, Functionals) else of_points(check_points(points, f"sets[{number}]"))
        shares = np.ones(len(base)) if own is None else check_targets(own, len(base), f"weights[{number}]")
        if (shares < 0).any() or not shares.sum() > 0:
            raise ValueError(
                f"weights[{number}] must not be negative, and not all zero. Use combine for a contrast."
            )
        found.append(combine(base, shares / shares.sum()))
    return join(found)


def combine(X: Any, weights: ArrayLike) -> Functionals:
    """Weighted sums of values of f: a contrast, a total, a difference from a baseline.

    Parameters
    ----------
    X : array or data frame of shape (n, d), or Functionals
        Points, or n functionals: derivatives in several columns make a directional derivative.
    weights : array of shape (n,), or (M, n) for M sums

    Returns
    -------
    Functionals

    Examples
    --------
    >>> combine([[0.0], [1.0]], [-1.0, 1.0])  # f(1) − f(0)
    Functionals(1 of 1 column)
    """
    base = at(X)
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim not in (1, 2) or values.shape[-1] != len(base) or not np.isfinite(values).all():
        raise ValueError(
            f"weights must be finite numbers of shape ({len(base)},), one for each of X, or (M, {len(base)}) for M "
            f"sums; found shape {values.shape}."
        )
    rows, chosen = np.nonzero(np.atleast_2d(values))
    empty = np.setdiff1d(np.arange(len(np.atleast_2d(values))), rows)
    if len(empty):
        raise ValueError(f"weights are all zero for sum {empty[0]}: it is zero whatever f is. Leave it out.")
    atoms = base[chosen]
    own = atoms.weights * np.repeat(np.atleast_2d(values)[rows, chosen], atoms.counts)
    per_sum = np.bincount(rows, atoms.counts, len(np.atleast_2d(values))).astype(np.intp)
    return replace(atoms, weights=own, starts=np.concatenate([[0], np.cumsum(per_sum)]).astype(np.intp))


def part(X: Any, name: str) -> Functionals:
    """What one part of a sum kernel, or the mean function, contributes to f.

    Parameters
    ----------
    X : array or data frame of shape (M, d), or Functionals
    name : str
        "mean" for the mean function; else where the part is in the kernel, as in ``kernel.get_params()``: "k1__k2" is
        ``kernel.k1.k2``. "kernel" is all but the mean. `part_names` lists the parts of a kernel.

    Returns
    -------
    Functionals

    Examples
    --------
    >>> from compositegp import prior
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior(1.0 * RBF(1.0) + 3.0 * RBF(10.0), part([[0.0]], "k2")).variance
    array([3.])
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f'name must be that of a part, such as "k1__k2" or "mean"; found {name!r}.')
    base = at(X)
    if base.part_names != (WHOLE,):
        raise ValueError(f"X is of the parts {', '.join(map(repr, base.part_names))} already. Give points.")
    return replace(base, part_names=(name,))


def box(low: ArrayLike, high: ArrayLike, size: int = 8) -> tuple[Floats, Floats]:
    """Points and weights by which an average over a box is computed: those of Gauss and Legendre in each column.

    The average of a polynomial of degree up to 2 · size − 1 is exact; a function that wiggles within the box needs a
    larger `size`.

    Parameters
    ----------
    low, high : float or arrays of shape (d,)
        Ends of the box, or of an interval. A column of zero width has one point.
    size : int
        Points in each column.

    Returns
    -------
    points : array of shape (a, d)
    weights : array of shape (a,)
        For `average`; their sum is one.

    Examples
    --------
    >>> points, weights = box([0.0, 0.0], [1.0, 2.0], size=3)
    >>> points.shape, float((weights * points[:, 0] ** 2).sum().round(12))
    ((9, 2), 0.333333333333)
    """
    ends = np.stack([np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in (low, high)])
    if ends.ndim != 2 or not np.isfinite(ends).all() or (ends[0] > ends[1]).any():
        raise ValueError(f"low must not be above high, and both finite; found {low!r:.80} and {high!r:.80}.")
    size = check_count(size, "size")
    nodes, shares = np.polynomial.legendre.leggauss(size)
    wide_columns = int((ends[1] > ends[0]).sum())
    if size**wide_columns > _MOST_POINTS:
        raise ValueError(
            f"size={size} points in each of {wide_columns} columns are {size**wide_columns:,} in all, more than "
            f"{_MOST_POINTS:,}. Give a smaller size, a box that is wide in fewer columns, or points of your own."
        )
    columns, weights = [], []
    for bottom, top in ends.T:
        wide = top > bottom
        columns.append(bottom + (top - bottom) * (nodes + 1) / 2 if wide else np.array([bottom]))
        weights.append(shares / 2 if wide else np.ones(1))
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*columns, indexing="ij")], axis=1)
    return grid, np.prod(np.stack([axis.ravel() for axis in np.meshgrid(*weights, indexing="ij")]), axis=0)


def _sets_of(sets: Any) -> list[Any]:
    if isinstance(sets, Functionals) or hasattr(sets, "columns"):
        return [at(sets)]
    if isinstance(sets, np.ndarray):
        return [sets] if sets.ndim == 2 else list(sets)
    if not isinstance(sets, Sequence) or isinstance(sets, str) or not len(sets):
        raise ValueError(f"sets must be a list of point sets, each of shape (a, d); found {sets!r:.80}.")
    if all(isinstance(one, Functionals) for one in sets):
        return list(sets)
    return [sets] if np.ndim(sets[0]) == 1 and not hasattr(sets[0], "columns") else list(sets)


def _column_number(base: Functionals, column: Any) -> int:
    if isinstance(column, str):
        if base.feature_names is None or column not in base.feature_names:
            known = (
                "which has no names: give its number" if base.feature_names is None else list(base.feature_names)
            )
            raise ValueError(f"column {column!r} is not among the columns of X, {known}.")
        return base.feature_names.index(column)
    number = check_count(column, "column", least=0)
    if number >= base.n_columns:
        raise ValueError(f"column is {number}, but the points have {base.n_columns} column(s), counted from zero.")
    return number
