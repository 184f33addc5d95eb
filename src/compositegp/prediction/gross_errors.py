"""Gross errors among the targets: a few values that all the others contradict, and to which a fit bends."""

import numpy as np

from compositegp.backend import Booleans, Floats, Indices

_FEW = 0.02  # of the targets: if more are as far, errors have a heavy tail or the target has many equal values
_FAR = 20.0  # usual errors beyond which an error is gross; those of 29 of 31 public tables are within 12
_MOST = 0.8  # of the sum of squares of all the errors: with less, the others are as good as before
_NEAR, _OUTSIDE = 10.0, 10.0  # usual errors, and usual deviations of a target, beyond both of which it is gross too
_HALF = 0.5  # of the variance of the targets: then the kernel was learned from these few
_NORMAL_MEDIAN = 0.6745  # of the absolute value of a standard normal variable


def gross_errors(standardized: Floats, targets: Floats) -> Indices:
    """Which of some errors are gross: few, far beyond all the others, and with most of the squares.

    Either they are most of the squared errors, or their targets have most of the variance: then the kernel, which is
    learned from these, may follow them so closely that their neighbors are as far off as they are.

    Parameters
    ----------
    standardized : array of shape (m, t)
        Errors of m targets that were predicted without themselves, over the model's standard deviations. Where there
        are gross errors, the model takes them for noise, so that these are much larger than the usual errors.
    targets : array of shape (m, t)

    Returns
    -------
    int array
        Rows, the largest error first; empty where no errors are gross.

    Examples
    --------
    >>> errors = np.random.default_rng(0).normal(size=(200, 1))
    >>> gross_errors(errors, errors)
    array([], dtype=int64)
    >>> errors[[7, 30], 0] = 100.0, -200.0
    >>> gross_errors(errors, errors)
    array([30,  7])
    """
    errors = _in_usual_sizes(standardized)
    outside = _in_usual_sizes(targets - np.median(targets, axis=0)) if len(targets) else errors
    for gross, sizes, share in (
        (errors > _FAR, errors, _MOST),
        ((errors > _NEAR) & (outside > _OUTSIDE), outside, _HALF),
    ):
        if _are_few_and_most(gross, sizes, share):
            rows = np.flatnonzero(gross)
            beyond = rows[outside[rows] > _OUTSIDE]  # the others are thrown off by these
            rows = beyond if len(beyond) else rows
            return np.asarray(rows[np.argsort(-errors[rows], kind="stable")])
    return np.zeros(0, dtype=np.intp)


def _in_usual_sizes(values: Floats) -> Floats:
    """The largest size in each row (m,), over what is usual; zeros where the usual size is zero."""
    usual = np.median(np.abs(values), axis=0) / _NORMAL_MEDIAN if len(values) else np.zeros(values.shape[1])
    return np.asarray(np.abs(values / np.where(usual > 0, usual, np.inf)).max(axis=1, initial=0.0))


def _are_few_and_most(gross: Booleans, sizes: Floats, share: float) -> bool:
    squares = sizes**2
    return bool(gross.any() and gross.mean() <= _FEW and squares[gross].sum() >= share * squares.sum())
