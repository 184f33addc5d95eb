"""The noise of a kernel: the variance that its white part adds to an observation."""

from functools import singledispatch

from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum, WhiteKernel

from compositegp.backend import Array
from compositegp.kernels.evaluation import diagonal, rule
from compositegp.kernels.wrapper import KernelWrapper


@singledispatch
def noise_variance(kernel: Kernel, X: Array) -> Array:
    """Variance that the white part of a kernel adds to the diagonal of its Gram matrix.

    It equals ``diagonal(kernel, X) - diagonal(kernel, X, noise=False)``, but is read from the kernel's own terms, so
    that it keeps its digits where the kernel's variance is many orders of magnitude larger than the noise.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)

    Returns
    -------
    array of shape (..., n), never negative

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> noise_variance(1e12 * RBF() + WhiteKernel(1e-5), np.zeros((2, 1)))
    array([1.e-05, 1.e-05])
    """
    xp = array_namespace(X)
    difference = diagonal(kernel, X) - diagonal(kernel, X, noise=False)
    return xp.where(difference > 0, difference, xp.zeros_like(difference))


@rule(noise_variance, WhiteKernel)
def _white(kernel: Kernel, X: Array) -> Array:
    return diagonal(kernel, X)


@rule(noise_variance, Sum)
def _sum(kernel: Kernel, X: Array) -> Array:
    return noise_variance(kernel.k1, X) + noise_variance(kernel.k2, X)


@rule(noise_variance, Product)
def _product(kernel: Kernel, X: Array) -> Array:
    # (d1 + n1) (d2 + n2) − d1 d2, where d is noise-free and n is noise
    d1, d2 = diagonal(kernel.k1, X, noise=False), diagonal(kernel.k2, X, noise=False)
    n1, n2 = noise_variance(kernel.k1, X), noise_variance(kernel.k2, X)
    return n1 * d2 + d1 * n2 + n1 * n2


@rule(noise_variance, Exponentiation)
def _power(kernel: Kernel, X: Array) -> Array:
    # (d + n)^p − d^p = d^p ((1 + n/d)^p − 1); where n exceeds d, the plain difference loses nothing.
    xp = array_namespace(X)
    d, n = diagonal(kernel.kernel, X, noise=False), noise_variance(kernel.kernel, X)
    small = n < d
    ratio = xp.where(small, n, xp.zeros_like(n)) / xp.where(small, d, xp.ones_like(d))
    precise = d**kernel.exponent * xp.expm1(kernel.exponent * xp.log1p(ratio))
    return xp.where(small, precise, (d + n) ** kernel.exponent - d**kernel.exponent)


@rule(noise_variance, KernelWrapper)
def _view(kernel: KernelWrapper, X: Array) -> Array:
    return noise_variance(kernel.kernel, kernel.view(X))
