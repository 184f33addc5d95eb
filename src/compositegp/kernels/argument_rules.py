"""What the arguments of a kernel may be: scikit-learn's constructors take anything, and fail when they are used."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, KernelOperator, PairwiseKernel
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from compositegp.backend import Floats
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.evaluation import gram
from compositegp.kernels.wrapper import KernelWrapper
from compositegp.validation import are_finite, is_real

_MAY_BE_ZERO = ("constant_value", "noise_level", "sigma_0", "gamma")  # other hyper-parameters divide


def check_arguments(kernel: Kernel) -> None:
    """Check the arguments of a kernel; a ValueError names the one that is wrong.

    Hyper-parameters are finite and not negative, bounds are in order, and kernels stand where kernels belong. Kernels
    inside the kernel have to be checked on their own.

    Parameters
    ----------
    kernel : scikit-learn kernel

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> check_arguments(RBF("wide"))
    Traceback (most recent call last):
    ValueError: length_scale of kernel RBF must be finite numbers above zero; found 'wide'
    """
    kind = type(kernel).__name__
    for name, value in kernel.get_params(deep=False).items():
        said = _complaint(kernel, name, value)
        if said is not None:
            raise ValueError(f"{name} of kernel {kind} must be {said}; found {value!r:.60}")
    _check_theta(kernel, kind)


def check_covariances(kernel: Kernel, X: Floats) -> None:
    """Check that a kernel fits some points: it gives finite covariances of the first of them.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (n, d)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> check_covariances(RBF(1e-300), np.array([[0.0], [1.0]]))
    """
    with np.errstate(over="ignore", invalid="ignore"):
        covariance = np.asarray(gram(kernel, X[:2]))
    if not np.isfinite(covariance).all() or (np.diagonal(covariance) < 0).any():
        raise ValueError(f"kernel {kernel!r:.80} gives no covariances of the points")


def _check_theta(kernel: Kernel, kind: str) -> None:
    """Hyper-parameters and bounds have to agree in number."""
    try:
        with np.errstate(divide="ignore"):  # the logarithm of a hyper-parameter that is zero
            fits = np.shape(kernel.bounds)[:1] == np.shape(kernel.theta) or not len(kernel.theta)
    except Exception as error:
        raise ValueError(f"the arguments of kernel {kind} do not fit together ({error})") from error
    if not fits:
        raise ValueError(f"kernel {kind} has bounds for another number of hyper-parameters than it has")


def _complaint(kernel: Kernel, name: str, value: Any) -> str | None:
    """What an argument should be, if it is not."""
    if isinstance(value, Kernel):
        return None
    if _is_kernel_argument(kernel, name):
        return "a kernel"
    if name.endswith("_bounds"):
        return None if _are_bounds(value) else '"fixed" or pairs of a lower and an upper bound above zero'
    if hasattr(type(kernel), f"hyperparameter_{name}"):
        positive = name not in _MAY_BE_ZERO
        fits = are_finite(value) and np.size(value) and np.ndim(value) <= 1
        if not fits or np.min(value) < 0 or (positive and np.min(value) == 0):
            return "finite numbers above zero" if positive else "a finite number of at least zero"
        return None
    if isinstance(kernel, OnColumns):
        return None if _are_columns(value) else "column numbers counted from zero"
    if isinstance(kernel, Exponentiation):
        return None if is_real(value) and 0 < value < np.inf else "a finite number above zero"
    if isinstance(kernel, PairwiseKernel):
        return _pairwise_complaint(name, value)
    if name == "nu":
        return None if is_real(value) and value > 0 else "a number above zero"
    if hasattr(value, "check"):  # it has rules of its own
        value.check()
        return None
    plain = value is None or isinstance(value, str | bool) or are_finite(value)
    return None if plain else "finite numbers or text"


def _is_kernel_argument(kernel: Kernel, name: str) -> bool:
    if isinstance(kernel, KernelOperator):
        return name in ("k1", "k2")
    return isinstance(kernel, Exponentiation | KernelWrapper) and name == "kernel"


def _pairwise_complaint(name: str, value: Any) -> str | None:
    if name == "metric":
        known = isinstance(value, str) and value in PAIRWISE_KERNEL_FUNCTIONS
        return None if known else f"one of {', '.join(sorted(PAIRWISE_KERNEL_FUNCTIONS))}"
    keywords = value is None or (isinstance(value, dict) and all(map(are_finite, value.values())))
    return None if keywords else "keywords with finite numbers"


def _are_bounds(value: Any) -> bool:
    if isinstance(value, str):
        return value == "fixed"
    try:
        pairs = np.asarray(value)
    except ValueError:  # ragged
        return False
    if pairs.dtype.kind not in "iuf" or not pairs.size or pairs.shape[-1] != 2 or pairs.ndim > 2:
        return False
    lower, upper = pairs[..., 0], pairs[..., 1]
    return bool(((lower >= 0) & (lower <= upper)).all())


def _are_columns(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim <= 1 and value.size > 0 and value.dtype.kind in "iu" and bool((value >= 0).all())
    items = value if isinstance(value, list | tuple) else [value]
    whole = (isinstance(item, int | np.integer) and not isinstance(item, bool) and item >= 0 for item in items)
    return bool(len(items)) and all(whole)
