"""Where functionals enter: at the border of a public function, the kernel and all the points are lifted, or none."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.functionals.functional_list import Functionals, find_functionals, join
from compositegp.functionals.kernel_of_functionals import OnFunctionals
from compositegp.functionals.mean_of_functionals import lift_mean
from compositegp.functionals.part_kernels import check_part
from compositegp.means import MeanModel
from compositegp.validation import check_kernel, check_points


class Lifted(NamedTuple):
    """A kernel of functionals, with rows that name them.

    Attributes
    ----------
    kernel : scikit-learn kernel
    points : list of arrays
        What was given, in the same order: rows of d + 1 columns. Where nothing is a functional, kernel and points are
        as they were given.
    """

    kernel: Kernel
    points: list[Any]


def lift(kernel: Kernel, **given: Any) -> Lifted:
    """Lift a kernel and points to functionals, if any of the points are functionals.

    Parameters
    ----------
    kernel : scikit-learn kernel
        It may be lifted already: its functionals keep their numbers.
    **given : array of shape (n, d), Functionals, list of Functionals or None
        By the names of the arguments, for messages.

    Returns
    -------
    Lifted

    Examples
    --------
    >>> from compositegp import functionals as F
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> lift(RBF(), X=[[0.0], [1.0]], Z=F.derivative([[3.0]], 0)).points
    [array([[ 0., -1.],
           [ 1., -1.]]), array([[3., 0.]])]
    """
    found = {name: find_functionals(points) for name, points in given.items()}
    named = [one for one in found.values() if one is not None]
    _check_names(given)
    if not named and not isinstance(kernel, OnFunctionals):
        return Lifted(kernel, list(given.values()))
    table = _extended(kernel, named)
    rows: list[Any] = []
    count = len(table) - sum(len(one) for one in named)
    for name, points in given.items():
        own = found[name]
        if own is not None:
            rows.append(_rows(own.centers, np.arange(count, count + len(own))))
            count += len(own)
        else:
            rows.append(None if points is None else _plain(points, name, table.n_columns))
    lifted = lifted_kernel(check_kernel(kernel), table)
    for name in table.part_names:
        check_part(lifted.kernel, name)
    return Lifted(lifted, rows)


def lifted_kernel(kernel: Kernel, functionals: Functionals) -> OnFunctionals:
    """A kernel, lifted or not, on some functionals."""
    return OnFunctionals(kernel.kernel if isinstance(kernel, OnFunctionals) else kernel, functionals)


def matching_mean(kernel: Kernel, mean: MeanModel) -> MeanModel:
    """A mean of what a kernel is of: of points, or of rows where it is lifted."""
    return lift_mean(mean, kernel.functionals) if isinstance(kernel, OnFunctionals) else mean


def matching_kernel(kernel: Kernel, other: Kernel | None) -> Kernel:
    """A kernel, lifted to the functionals of another kernel where that is lifted."""
    return lifted_kernel(kernel, other.functionals) if isinstance(other, OnFunctionals) else kernel


def plain_kernel(kernel: Kernel) -> Kernel:
    """The kernel of points inside a kernel that may be lifted."""
    return kernel.kernel if isinstance(kernel, OnFunctionals) else kernel


def plain_points(kernel: Kernel, X: Floats) -> Floats:
    """Points, and centers of functionals where the kernel is lifted: shape (n, d)."""
    return np.asarray(kernel.view(X)) if isinstance(kernel, OnFunctionals) else X


def _check_names(given: dict[str, Any]) -> None:
    """Refuse data frames whose columns have other names, or another order, than those of one before."""
    first: tuple[str, list[Any]] | None = None
    for name, points in given.items():
        if isinstance(points, Functionals) or not hasattr(points, "columns"):
            continue
        columns = list(points.columns)
        if first is not None and columns != first[1]:
            raise ValueError(
                f"{name} has the columns {columns}, but {first[0]} has {first[1]}. "
                "Give the same ones in the same order."
            )
        first = first or (name, columns)


def _extended(kernel: Kernel, named: list[Functionals]) -> Functionals:
    return join([kernel.functionals, *named]) if isinstance(kernel, OnFunctionals) else join(named)


def _rows(points: Floats, numbers: Indices) -> Floats:
    return np.concatenate([points, numbers[:, None].astype(np.float64)], axis=1)


def _plain(points: Any, name: str, d: int) -> Floats:
    checked = np.asarray(points)
    if checked.ndim == 2 and checked.shape[1] == d + 1:
        return check_points(points, name)  # rows already
    checked = check_points(points, name, d)
    return _rows(checked, np.full(len(checked), -1))
