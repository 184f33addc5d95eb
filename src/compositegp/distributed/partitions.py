"""Partitions: the rows of a Dask collection, as arrays with segments, on the machine that stores them."""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import dask
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats, Indices
from compositegp.composite import Spreads, boundaries_of, partition, segments_of_tree
from compositegp.kernels import in_length_scales
from compositegp.predictive import IdentityTarget, TargetTransform

_SPLIT_EVERY = 8  # one task adds up this many results


class KeptTree:
    """The search tree of a part, built when it is first asked for and kept where it was; one kernel at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kernel: Kernel | None = None
        self._tree: KDTree | None = None

    def of(self, points: Floats, kernel: Kernel) -> KDTree:
        """The tree of points in the length scales of a kernel; the points are always the same."""
        with self._lock:
            if self._tree is None or self._kernel != kernel:
                self._tree = KDTree(in_length_scales(kernel, points), balanced_tree=False)
                self._kernel = kernel
            return self._tree

    def __reduce__(self) -> tuple[type["KeptTree"], tuple[()]]:
        """Nothing travels: the tree is built anew elsewhere."""
        return KeptTree, ()


@dataclass(frozen=True, eq=False)
class Part:
    """Observations of one partition, and their segments.

    Attributes
    ----------
    number : int
        Which partition.
    X : array of shape (n, d)
    y : array of shape (n,)
    segments : sequence of int arrays
    n_missing : int
        Rows that were left out because their target is missing.
    search : KeptTree
    """

    number: int
    X: Floats
    y: Floats
    segments: Sequence[Indices]
    n_missing: int
    search: KeptTree = field(default_factory=KeptTree, repr=False)


class Summary(NamedTuple):
    """Facts about a part that the client needs.

    Attributes
    ----------
    n_points, n_missing : int
    sizes : int array
        Points of each segment.
    least, most : arrays of shape (d,)
        Bounds of each column; infinite if the part is empty.
    """

    n_points: int
    n_missing: int
    sizes: Indices
    least: Floats
    most: Floats


def parts_of(
    data: Any, y: Any, target: Hashable, segment_size: int, scheme: str, transform: TargetTransform | None = None
) -> tuple[list[Any], list[Any] | None]:
    """Parts (delayed) of a Dask data frame or of two Dask arrays, and the names of the columns, if there are any."""
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        names = _columns(data, y, target)
        build = dask.delayed(_from_frame)
        frames = enumerate(data.to_delayed())
        options = segment_size, scheme, transform or IdentityTarget()
        return [build(frame, number, names, target, *options) for number, frame in frames], names
    if not (hasattr(data, "to_delayed") and hasattr(y, "to_delayed") and hasattr(y, "chunks")):
        raise ValueError(
            "X must be a Dask data frame, with the name of one of its columns as target, or X and y Dask arrays; found "
            f"{type(data).__name__} and {type(y).__name__}. Use CompositeGPRegressor for data in memory, or make it a "
            "Dask collection: dask.dataframe.from_pandas, read_parquet or dask.array.from_array."
        )
    if data.ndim != 2 or y.ndim != 1 or data.chunks[0] != y.chunks[0] or len(data.chunks[1]) != 1:
        raise ValueError(
            f"X and y must be chunked alike along the rows, and X not along its columns; found chunks {data.chunks} "
            f"and {y.chunks}. Use rechunk."
        )
    build = dask.delayed(_from_arrays)
    pairs = zip(data.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
    options = segment_size, scheme, transform or IdentityTarget()
    return [build(x, t, number, None, *options) for number, (x, t) in enumerate(pairs)], None


def _columns(data: Any, y: Any, target: Hashable) -> list[Any]:
    """The columns of a frame without its target; all must be numbers."""
    if y is not None:
        raise ValueError(
            "y is for arrays. A data frame has its target as a column: name it by target, and give no y."
        )
    if not (isinstance(target, Hashable) and target in data.columns):
        raise ValueError(f"target must be one of the columns {list(data.columns)}; found {target!r}.")
    names = [name for name in data.columns if name != target]
    if not names:
        raise ValueError(f"X has only the target column {target!r}: there is no column to predict it from.")
    check_numeric(data, [*names, target], "X")
    return names


def check_numeric(frame: Any, names: list[Any], what: str) -> None:
    """Check that columns of a frame are numbers; text, dates and categories are not."""
    from pandas.api.types import is_numeric_dtype

    wrong = {name: frame.dtypes[name] for name in names if not is_numeric_dtype(frame.dtypes[name])}
    if wrong:
        found = ", ".join(f"{name} ({dtype})" for name, dtype in wrong.items())
        raise ValueError(
            f"{what} has columns that are not numbers: {found}. Leave them out, or turn them into numbers (a date into "
            "the days since another) first."
        )


def _from_frame(
    frame: Any,
    number: int,
    names: list[Any],
    target: Hashable,
    segment_size: int,
    scheme: str,
    transform: TargetTransform,
) -> Part:
    X, y = (part.to_numpy(dtype=np.float64, na_value=np.nan) for part in (frame[names], frame[target]))
    return _from_arrays(X, y, number, names, segment_size, scheme, transform)


def _from_arrays(
    X: ArrayLike,
    y: ArrayLike,
    number: int,
    names: list[Any] | None,
    segment_size: int,
    scheme: str,
    transform: TargetTransform,
) -> Part:
    points, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    observed = ~np.isnan(targets)
    points, targets = np.ascontiguousarray(points[observed]), np.ascontiguousarray(targets[observed])
    if not np.isfinite(targets).all():
        raise ValueError(f"partition {number} has infinite targets. Drop those rows.")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=0))
    if len(bad):
        which = ", ".join(str(column if names is None else names[column]) for column in bad)
        raise ValueError(
            f"partition {number} has missing or infinite values in column(s) {which}. Drop those rows, or fill them in."
        )
    segments: Sequence[Indices] = []
    if len(points) and scheme == "tree":
        segments = segments_of_tree(points, segment_size, Spreads.of(points))
    elif len(points):
        segments = partition(points, segment_size, scheme, 0)
    return Part(number, points, transform.forward(targets), segments, int(np.count_nonzero(~observed)))


def summarize(part: Part) -> Summary:
    """Facts about a part that the client needs."""
    d = part.X.shape[1]
    return Summary(
        len(part.X),
        part.n_missing,
        np.diff(boundaries_of(part.segments)),
        part.X.min(axis=0) if len(part.X) else np.full(d, np.inf),
        part.X.max(axis=0) if len(part.X) else np.full(d, -np.inf),
    )


def sample_of(part: Part, numbers: Indices) -> tuple[list[Floats], list[Floats]]:
    """Points and targets of some segments."""
    chosen = [part.segments[number] for number in numbers]
    return [part.X[indices] for indices in chosen], [part.y[indices] for indices in chosen]


def points_of(part: Part) -> tuple[Floats, Floats]:
    """Points and targets of a part."""
    return part.X, part.y


def add_up(results: list[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """One delayed result from many: a tree of sums, whose shape depends only on their number."""
    together = dask.delayed(combine)
    while True:
        results = [
            together(results[start : start + _SPLIT_EVERY]) for start in range(0, len(results), _SPLIT_EVERY)
        ]
        if len(results) == 1:
            return results[0]
