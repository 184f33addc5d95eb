"""The arguments of fit and predict, checked like in scikit-learn; rows without a target are left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from compositegp.backend import Floats, warn_caller
from compositegp.functionals import Functionals, find_functionals
from compositegp.posteriors import Gaps
from compositegp.validation import check_noise_variance

_NO_NUMBERS = ("Timestamp", "Timedelta", "Period", "datetime", "NAType", "it has values of type")  # in messages


class Training(NamedTuple):
    """Training data with every target observed.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array of shape (n,), or (n, t) for t outputs
    noise_variance : array of shape (n,) or None
    groups : array of shape (n,) or None
        Labels of segments.
    weights : array of shape (n,) or None
        The kernel's noise is divided by them; `noise_variance` is divided already.
    functionals : Functionals or None
        What was observed, where it is not f at points; X has their centers.
    gaps : Gaps or None
        Observations that are hidden from each, as around points that will be predicted.
    """

    X: Floats
    y: Floats
    noise_variance: Floats | None
    groups: npt.NDArray[Any] | None = None
    weights: Floats | None = None
    functionals: Functionals | None = None
    gaps: Gaps | None = None

    def take(self, rows: Any) -> "Training":
        """Some of the rows."""
        if self.gaps is not None:
            raise ValueError(
                "gaps are of all the rows: leave out rows without a target, or of weight zero, before."
            )
        each: tuple[Any, ...] = self
        chosen: list[Any] = [None if values is None else values[rows] for values in each]
        return Training(*chosen)


def read_training(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    noise_variance: ArrayLike | None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    gaps: Gaps | None = None,
    *,
    reset: bool,
) -> Training:
    """Check training data.

    Rows with a target of NaN are not observed, and are left out with a warning. So are, without one, rows of weight
    zero.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    functionals = _read_observed(estimator, X, reset)
    if functionals is None:
        with _numbers_in("X"):
            _check_no_times(X)
            points = _own(validate_data(estimator, X, reset=reset, dtype=np.float64, order="C"), X)
    else:
        points = functionals.centers
    targets = _own(read_targets(y), y)
    check_consistent_length(points, targets)
    variances = _read_noise(estimator.alpha, noise_variance, len(points))
    weights = _read_weights(sample_weight, len(points))
    if weights is not None and variances is not None:
        variances = np.divide(variances, weights, out=np.zeros_like(variances), where=weights > 0)
    if gaps is not None and not callable(getattr(gaps, "hides", None)):
        raise ValueError(
            f"gaps must have a method hides(rows, near); found {type(gaps).__name__}. Leave it out otherwise."
        )
    training = Training(points, targets, variances, _read_groups(groups, len(points)), weights, functionals, gaps)
    if weights is not None and not weights.all():
        training, targets = training.take(weights > 0), targets[weights > 0]
    observed = ~np.isnan(targets).reshape(len(targets), -1).any(axis=1)
    if observed.all():
        return training
    missing = int((~observed).sum())
    if missing == len(targets):
        raise ValueError("Input y contains NaN in every row: nothing was observed. Check the target column.")
    warn_caller(
        f"y is NaN in {missing} of {len(targets)} rows: they are taken as not observed and left out.", UserWarning
    )
    return training.take(observed)


def _read_noise(alpha: Any, noise_variance: Any, count: int) -> Floats | None:
    """Known noise of the observations: `noise_variance` of fit, or the constructor's `alpha`."""
    if alpha is None:
        return check_noise_variance(noise_variance, count)
    if noise_variance is not None:
        raise ValueError(
            f"alpha={alpha!r} and noise_variance are both given, and mean the same: the known noise of the "
            "observations. Give one of them."
        )
    if np.ndim(alpha) and np.shape(alpha) != (count,):
        raise ValueError(
            "alpha must be a scalar or an array with same number of entries as y; found an array of shape "
            f"{np.shape(alpha)} for {count} points. Give noise that belongs to one data set to fit, as noise_variance."
        )
    return check_noise_variance(alpha, count, "alpha")


def _read_weights(sample_weight: ArrayLike | None, count: int) -> Floats | None:
    """Weights of the observations; None where they are all one."""
    if sample_weight is None:
        return None
    given = np.full(count, sample_weight) if isinstance(sample_weight, Real) else sample_weight
    weights: Floats = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (count,):
        raise ValueError(
            f"sample_weight must have one number for each of the {count} rows of X; found an array of shape "
            f"{weights.shape}."
        )
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has a negative value ({weights.min():g} at index {weights.argmin()}). The noise of an "
            "observation is divided by its weight: give 0 to leave it out."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: there is nothing to fit. Check the weights.")
    return None if (weights == 1).all() else weights


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
    if labels.dtype != object or len({type(label) for label in labels.tolist()}) == 1:
        return labels
    # Labels of several kinds have no order: each becomes the number of its first row. All NaN are one label.
    numbers: dict[Any, int] = {}
    keys = [label if label == label else np.nan for label in labels.tolist()]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def _own(values: Floats, given: ArrayLike) -> Floats:
    """Values that a user cannot change later. Read-only arrays, such as memory-mapped files, are not copied."""
    return values.copy() if values.flags.writeable and np.may_share_memory(values, given) else values


def read_targets(y: ArrayLike) -> Floats:
    """Targets as a float64 array (n,) or (n, t). NaN and masked values are allowed, infinity is not."""
    if np.ma.isMaskedArray(y):
        y = np.ma.filled(np.ma.asarray(y, dtype=np.float64), np.nan)
    with _numbers_in("y"):
        _check_no_times(y)
        values = check_array(
            y,
            ensure_2d=False,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            input_name="y",
            ensure_min_samples=1,
        )
    if values.ndim == 2 and values.shape[1] > 1:
        return np.ascontiguousarray(values)
    if values.ndim == 2:
        warn_caller(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
        )
    return np.ascontiguousarray(column_or_1d(values))


def _check_no_times(values: Any) -> None:
    """Refuse times, which would silently become nanoseconds."""
    dtypes = getattr(values, "dtypes", getattr(values, "dtype", None))
    if dtypes is None and isinstance(values, list | tuple):
        dtypes = np.asarray(values).dtype
    kinds = [str(one) for one in np.ravel(np.asarray(dtypes, dtype=object))]
    times = [
        kind for kind in kinds if kind.lower().startswith(("datetime", "timedelta", "period", "date", "duration"))
    ]
    if times:
        raise TypeError(f"it has values of type {times[0]}")


@contextmanager
def _numbers_in(name: str) -> Iterator[None]:
    """Say which argument has text, or times, where numbers should be, and what to do."""
    try:
        yield
    except TypeError as error:
        if not any(name in str(error) for name in _NO_NUMBERS):
            raise
        raise ValueError(
            f"{name} must be an array of real numbers: {error}. Give times as numbers, such as hours since the first "
            "one, and missing values as NaN."
        ) from error
    except ValueError as error:
        if not str(error).startswith("could not convert string"):
            raise
        raise ValueError(
            f"{name} has text where numbers should be: {error}. Correct it or, if it is a category, encode it first, "
            "for example by sklearn.preprocessing.OneHotEncoder."
        ) from error


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


def read_points(estimator: Any, X: Any) -> Floats:
    """Test points, with the columns that the estimator was fitted to."""
    with _numbers_in("X"):
        _check_no_times(X)
        return np.asarray(validate_data(estimator, X, reset=False, dtype=np.float64, order="C"))
