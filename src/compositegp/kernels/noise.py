"""The noise of a kernel: the variance that its white part adds to an observation, and its derivative."""

from functools import singledispatch

from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Exponentiation, Kernel, Product, Sum, WhiteKernel

from compositegp.backend import Array
from compositegp.kernels.evaluation import Linearized, diagonal, free_hyperparameters, rule
from compositegp.kernels.wrapper import KernelWrapper

_STEP = 1e-3  # in log θ, of the differences by which an unusual place of noise in a kernel is differentiated


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


@singledispatch
def noise_jacobian(kernel: Kernel, X: Array) -> Array:
    """Derivative of `noise_variance` in ``kernel.theta``.

    Of a WhiteKernel in a sum it is read from the kernel. Noise in another place, such as a product, is differentiated
    by differences of fourth order.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)

    Returns
    -------
    array of shape (..., p, n)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> noise_jacobian(RBF() + WhiteKernel(0.5), np.zeros((2, 1)))
    array([[0. , 0. ],
           [0.5, 0.5]])
    """
    xp, theta = array_namespace(X), kernel.theta
    noise = noise_variance(kernel, X)
    if not len(theta) or not bool(xp.any(noise > 0)):
        return xp.zeros((*X.shape[:-2], len(theta), X.shape[-2]), dtype=X.dtype, device=X.device)

    def at(number: int, steps: int) -> Array:
        moved = theta.copy()
        moved[number] += steps * _STEP
        return noise_variance(kernel.clone_with_theta(moved), X)

    slopes = [
        (8 * (at(number, 1) - at(number, -1)) - (at(number, 2) - at(number, -2))) / (12 * _STEP)
        for number in range(len(theta))
    ]
    return xp.stack(slopes, axis=-2)


@rule(noise_jacobian, WhiteKernel)
def _white_jacobian(kernel: Kernel, X: Array) -> Array:
    free = len(free_hyperparameters(kernel, "noise_level"))
    return noise_variance(kernel, X)[..., None, :][..., :free, :]


@rule(noise_jacobian, Sum)
def _sum_jacobian(kernel: Kernel, X: Array) -> Array:
    xp = array_namespace(X)
    return xp.concat([noise_jacobian(kernel.k1, X), noise_jacobian(kernel.k2, X)], axis=-2)


def with_noise_factors(linearized: Linearized, kernel: Kernel, X: Array, factors: Array) -> Linearized:
    """A linearized Gram matrix whose noise is multiplied by factors of the points, shape (..., n)."""
    xp = array_namespace(X)
    added = noise_variance(kernel, X) * (factors - 1)
    slopes = noise_jacobian(kernel, X) * (factors - 1)[..., None, :]
    eye = xp.eye(X.shape[-2], dtype=X.dtype, device=X.device)

    def products(weights: Array, vectors: Array) -> Array:
        own = xp.linalg.diagonal(weights)[..., None, :] * slopes
        return linearized.products(weights, vectors) + own[..., None] * vectors[..., None, :, :]

    def jacobian() -> Array:
        return linearized.jacobian() + slopes[..., None] * eye

    return Linearized(linearized.value + added[..., None] * eye, products, jacobian)
