"""The kernel that is used where a user gives none."""

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from compositegp.backend import Floats, spread_rows
from compositegp.learning.starting_values import SAMPLE, data_scale, starting_kernel


def default_kernel(n_columns: int) -> Kernel:
    """Matérn 3/2 with one length scale for each column, and noise."""
    length_scale = np.ones(n_columns) if n_columns > 1 else 1.0
    return ConstantKernel(1.0) * Matern(length_scale, nu=1.5) + WhiteKernel(1.0)


def at_scale(kernel: Kernel, X: Floats, residuals: Floats) -> Kernel:
    """A kernel with hyper-parameters of the scale of some data; as it is where the data do not vary."""
    if not np.ptp(residuals, axis=0).any():
        return kernel
    some = [spread_rows(len(X), SAMPLE)]
    return starting_kernel(kernel, data_scale(X, residuals.reshape(len(X), -1), some))
