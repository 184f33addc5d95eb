"""A kernel at other values of θ, many times a second."""

from copy import copy

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum, WhiteKernel

from compositegp.backend import Floats
from compositegp.kernels.evaluation import free_hyperparameters

_OWN = {ConstantKernel: "constant_value", WhiteKernel: "noise_level", RBF: "length_scale", Matern: "length_scale"}


def at_theta(kernel: Kernel, theta: Floats) -> Kernel:
    """``kernel.clone_with_theta(theta)``, for the usual kernels in a twentieth of the time.

    Parameters
    ----------
    kernel : scikit-learn kernel
        It stays as it is. What is not in θ, such as bounds, is shared with it.
    theta : array of shape (p,)

    Returns
    -------
    scikit-learn kernel

    Examples
    --------
    >>> at_theta(1.0 * RBF([1.0, 1.0]) + WhiteKernel(), np.log([4.0, 2.0, 3.0, 0.5]))
    2**2 * RBF(length_scale=[2, 3]) + WhiteKernel(noise_level=0.5)
    """
    found, used = _filled(kernel, np.asarray(theta, dtype=np.float64), 0)
    if used != len(theta):
        raise ValueError(f"theta has {len(theta)} entries, but kernel {kernel} has {used} free hyper-parameters.")
    return found


def _filled(kernel: Kernel, theta: Floats, start: int) -> tuple[Kernel, int]:
    """The kernel with its values from `start` on, and where those of the next one begin."""
    if type(kernel) in (Sum, Product):
        found = copy(kernel)
        found.k1, start = _filled(kernel.k1, theta, start)
        found.k2, start = _filled(kernel.k2, theta, start)
        return found, start
    name = _OWN.get(type(kernel))
    if name is None:
        stop = start + kernel.n_dims
        return kernel.clone_with_theta(theta[start:stop]), stop
    found = copy(kernel)
    if free_hyperparameters(kernel, name):
        count = np.size(getattr(kernel, name))
        value = np.exp(theta[start : start + count])
        setattr(found, name, value if count > 1 else value[0])
        start += count
    return found, start
