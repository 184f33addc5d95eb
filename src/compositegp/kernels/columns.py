"""A kernel on some of the columns, so that space, time and covariates can each have their own kernel."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array
from compositegp.kernels.wrapper import KernelWrapper


class OnColumns(KernelWrapper):
    """A kernel that sees only some columns of its inputs.

    Parameters
    ----------
    kernel : scikit-learn kernel
        The kernel to apply.
    columns : int or list of int
        The columns, counted from zero, that it is applied to.

    Examples
    --------
    A space × time model of points (longitude, latitude, hour):

    >>> from sklearn.gaussian_process.kernels import RBF, Matern
    >>> kernel = OnColumns(Matern(nu=1.5), [0, 1]) * OnColumns(RBF(), 2)
    >>> kernel(np.zeros((4, 3))).shape
    (4, 4)
    """

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel = kernel
        self.columns = columns

    def is_stationary(self) -> bool:
        """Whether the kernel inside is stationary."""
        return bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        return f"OnColumns({self.kernel}, {self.columns})"

    def view(self, X: Array) -> Array:
        """The columns of `X`, shape (..., n, d), that the kernel sees."""
        columns = np.atleast_1d(self.columns)
        if columns.ndim != 1 or not columns.size or columns.dtype.kind not in "iu" or columns.min() < 0:
            raise ValueError(f"columns must be column numbers counted from zero; found {self.columns!r}.")
        if columns.max() >= X.shape[-1]:
            raise ValueError(
                f"kernel {self} needs column {columns.max()}, but the points have {X.shape[-1]} column(s), "
                "counted from zero. Give the points all the columns that the kernel names."
            )
        return X[..., columns if isinstance(X, np.ndarray) else columns.tolist()]
