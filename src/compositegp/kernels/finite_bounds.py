"""Bounds of hyper-parameters as positive, finite numbers, whose logarithms learning works with."""

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

_LEAST, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


def with_finite_bounds(kernel: Kernel) -> Kernel:
    """A kernel without infinite bounds: they become the least and the largest positive numbers there are.

    A lower bound of zero or less, which scikit-learn accepts, is no bound on a positive number either. A kernel whose
    bounds are all positive and finite is returned as it is, another one is copied.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> np.isfinite(with_finite_bounds(WhiteKernel(noise_level_bounds=(-np.inf, np.inf))).bounds).all()
    np.True_
    """
    changed = {}
    for name, bounds in kernel.get_params().items():
        if name.endswith("_bounds") and not isinstance(bounds, str):
            finite = np.clip(np.asarray(bounds, dtype=np.float64), _LEAST, _LARGEST)
            if not np.array_equal(finite, bounds, equal_nan=True):
                changed[name] = finite if finite.ndim > 1 else tuple(finite.tolist())
    return clone(kernel).set_params(**changed) if changed else kernel
