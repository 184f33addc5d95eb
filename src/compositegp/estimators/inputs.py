"""The arguments of fit and predict, checked like in scikit-learn; rows without a target are left out."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from compositegp.backend import Floats, warn_caller
from compositegp.functionals import Functionals, find_functionals
from compositegp.validation import check_noise_variance


class Training(NamedTuple):
    """Training data with every target observed.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,), or (n, t) for t outputs
    noise_variance : array of shape (n,) or None
    groups : array of shape (n,) or None
        Labels of segments.
    functionals : Functionals or None
        What was observed, where it is not f at points; X has their centers.
    """

    X: Floats
    y: Floats
    noise_variance: Floats | None
    groups: npt.NDArray[Any] | None = None
    functionals: Functionals | None = None


def read_training(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    noise_variance: ArrayLike | None,
    groups: ArrayLike | None = None,
    *,
    reset: bool,
) -> Training:
    """Check training data; rows with a target of NaN are not observed, and are left out with a warning."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    functionals = _read_observed(estimator, X, reset)
    if functionals is None:
        points = _own(validate_data(estimator, X, reset=reset, dtype=np.float64, order="C"), X)
    else:
        points = functionals.centers
    targets = _own(read_targets(y), y)
    check_consistent_length(points, targets)
    variances = check_noise_variance(noise_variance, len(points))
    labels = _read_groups(groups, len(points))
    observed = ~np.isnan(targets).reshape(len(targets), -1).any(axis=1)
    if observed.all():
        return Training(points, targets, variances, labels, functionals)
    missing = int((~observed).sum())
    if missing == len(targets):
        raise ValueError("Input y contains NaN in every row: nothing was observed. Check the target column.")
    warn_caller(
        f"y is NaN in {missing} of {len(targets)} rows: they are taken as not observed and left out.", UserWarning
    )
    return Training(
        points[observed],
        targets[observed],
        None if variances is None else variances[observed],
        None if labels is None else labels[observed],
        None if functionals is None else functionals[observed],
    )


def _read_observed(estimator: Any, X: Any, reset: bool) -> Functionals | None:
    """Observed functionals; with `reset` the estimator learns the number and the names of their columns."""
    found = find_functionals(X)
    if found is None or not reset:
        return read_functionals(estimator, X)
    estimator.n_features_in_ = found.n_columns
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if found.feature_names is not None:
        estimator.feature_names_in_ = np.array(found.feature_names, dtype=object)
    return found


def _read_groups(groups: ArrayLike | None, count: int) -> npt.NDArray[Any] | None:
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (count,):
        raise ValueError(
            f"groups must have one label for each of the {count} rows of X; found an array of shape {labels.shape}."
        )
    return labels


def _own(values: Floats, given: ArrayLike) -> Floats:
    """Values that a user cannot change later. Read-only arrays, such as memory-mapped files, are not copied."""
    return values.copy() if values.flags.writeable and np.may_share_memory(values, given) else values


def read_targets(y: ArrayLike) -> Floats:
    """Targets as a float64 array (n,) or (n, t). NaN and masked values are allowed, infinity is not."""
    if np.ma.isMaskedArray(y):
        y = np.ma.filled(np.ma.asarray(y, dtype=np.float64), np.nan)
    values = check_array(
        y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y", ensure_min_samples=1
    )
    if values.ndim == 2 and values.shape[1] > 1:
        return np.ascontiguousarray(values)
    return np.ascontiguousarray(column_or_1d(values, warn=True))


def read_functionals(estimator: Any, X: Any) -> Functionals | None:
    """Functionals of points with the columns that the estimator was fitted to; None for points."""
    found = find_functionals(X)
    if found is None:
        return None
    n_columns = getattr(estimator, "n_features_in_", found.n_columns)
    if found.n_columns != n_columns:
        raise ValueError(
            f"X has functionals of points with {found.n_columns} column(s), but {type(estimator).__name__} was fitted "
            f"to {n_columns}. Give the same columns in the same order."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and found.feature_names is not None and list(names) != list(found.feature_names):
        raise ValueError(
            f"X has functionals of points with the columns {', '.join(map(str, found.feature_names))}, but "
            f"{type(estimator).__name__} was fitted to {', '.join(map(str, names))}. Give these, in this order."
        )
    return found


def read_points(estimator: Any, X: ArrayLike) -> Floats:
    """Test points, with the columns that the estimator was fitted to."""
    return np.asarray(validate_data(estimator, X, reset=False, dtype=np.float64, order="C"))
