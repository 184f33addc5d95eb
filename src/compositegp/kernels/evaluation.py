"""Values and derivatives of kernels: the Gram matrix, its diagonal, and its derivative in θ.

Each question is a function dispatched on the kernel's class, and `rule` registers the answer of a class. A kernel
without a rule, or whose class overrides the ``__call__`` that a rule stands for, answers by its own ``__call__``.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch, wraps
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, fetch, like

_CHUNK = 64  # points whose covariances an unknown kernel computes at once, to find its noise-free diagonal


class Linearized(NamedTuple):
    """A Gram matrix together with its derivative in ``kernel.theta`` (p free hyper-parameters).

    Attributes
    ----------
    value : array of shape (..., n, n)
        ``gram(kernel, X)``. Do not overwrite it: the derivative may refer to it.
    products : callable
        Maps weights C of shape (..., n, n) and vectors V of shape (..., n, m) to (C ∘ ∂K/∂θ_i) V, the entrywise
        product applied to the vectors, for every i: shape (..., p, n, m).
    jacobian : callable
        Returns ∂K/∂θ, of shape (..., p, n, n).
    afresh : callable or None
        As `products`, with (C ∘ K) V before the others: shape (..., 1 + p, n, m). It computes the kernel again from the
        points, so that `value` may be overwritten where it is there.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> found = linearize(2.0 * RBF(1.0), np.array([[0.0], [1.0]]))
    >>> found.jacobian().shape, found.pullback(np.eye(2))
    ((2, 2, 2), array([4., 0.]))
    """

    value: Array
    products: Callable[[Array, Array], Array]
    jacobian: Callable[[], Array]
    afresh: Callable[[Array, Array], Array] | None = None

    @classmethod
    def of_matrices(cls, value: Array, derivatives: Sequence[Callable[[], Array]]) -> "Linearized":
        """From a Gram matrix and functions that each return one ∂K/∂θ_i, in the order of θ."""
        xp = array_namespace(value)

        def products(weights: Array, vectors: Array) -> Array:
            if not derivatives:
                return no_products(vectors)
            return xp.stack([(weights * matrix()) @ vectors for matrix in derivatives], axis=-3)

        def jacobian() -> Array:
            if not derivatives:
                return no_products(value)
            return xp.stack([matrix() for matrix in derivatives], axis=-3)

        return cls(value, products, jacobian)

    def pullback(self, cotangent: Array) -> Array:
        """Σ_ij C_ij ∂K_ij/∂θ for a cotangent C of shape (..., n, n), not necessarily symmetric: shape (..., p)."""
        xp = array_namespace(cotangent)
        ones = xp.ones((*cotangent.shape[:-1], 1), dtype=cotangent.dtype, device=cotangent.device)
        return xp.sum(self.products(cotangent, ones), axis=(-2, -1))


@singledispatch
def gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    """Gram matrix of a kernel.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)
    Y : array of shape (..., m, d), optional
        Its batch axes are those of `X`, or it has none. As in scikit-learn, a WhiteKernel part counts only where `Y`
        is left out: ``gram(kernel, X)`` is the covariance of observations, ``gram(kernel, X, X)`` that of the
        noise-free latent.

    Returns
    -------
    array of shape (..., n, m), which a caller may overwrite

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> gram(RBF(1.0) + WhiteKernel(0.5), np.array([[0.0], [2.0]])).round(3)
    array([[1.5  , 0.135],
           [0.135, 1.5  ]])
    """
    return _for_each(lambda x, y: kernel(x) if y is None else kernel(x, y), X, Y)


@singledispatch
def diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    """Diagonal of the Gram matrix of a kernel.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)
    noise : bool
        True for ``gram(kernel, X)``, False for the noise-free ``gram(kernel, X, X)``.

    Returns
    -------
    array of shape (..., n)

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> diagonal(RBF(1.0) + WhiteKernel(0.5), np.zeros((2, 1)), noise=False)
    array([1., 1.])
    """
    if noise:
        return _for_each(lambda x, _: kernel.diag(x), X)
    return _for_each(lambda x, _: _latent_diagonal(kernel, x), X)


@singledispatch
def linearize(kernel: Kernel, X: Array) -> Linearized:
    """Gram matrix of a kernel, and its derivative in ``kernel.theta``.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)

    Returns
    -------
    Linearized

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> linearize(2.0 * RBF(1.0), np.zeros((3, 1))).jacobian()[0]  # in the log of the variance
    array([[2., 2., 2.],
           [2., 2., 2.],
           [2., 2., 2.]])
    """
    both = [kernel(fetch(x), eval_gradient=True) for x in X.reshape(-1, *X.shape[-2:])]
    n = X.shape[-2]
    value = np.ascontiguousarray(np.stack([K for K, _ in both]), dtype=np.float64)
    value = like(value, X).reshape(*X.shape[:-1], n)
    gradient = np.ascontiguousarray(np.stack([np.moveaxis(G, -1, 0) for _, G in both]), dtype=np.float64)
    gradient = like(gradient, X).reshape(*X.shape[:-2], -1, n, n)
    return Linearized(
        value,
        lambda weights, vectors: (weights[..., None, :, :] * gradient) @ vectors[..., None, :, :],
        lambda: gradient,
    )


def rule(
    question: Any, kernel_class: type[Kernel], *, inherited: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register how a class of kernels answers a question; a decorator.

    Parameters
    ----------
    question : function
        One that this package dispatches on the kernel's class, such as `gram`.
    kernel_class : subclass of scikit-learn's Kernel
    inherited : bool
        Whether the answer also serves subclasses that override the class's ``__call__``. By default these get the
        answer for unknown kernels.

    Returns
    -------
    decorator of the function that answers

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> class Doubled(RBF):
    ...     def __call__(self, X, Y=None, eval_gradient=False):
    ...         found = super().__call__(X, Y, eval_gradient)
    ...         return tuple(2 * part for part in found) if eval_gradient else 2 * found
    >>> @rule(gram, Doubled)
    ... def _doubled(kernel, X, Y=None):
    ...     return 2 * gram(RBF(kernel.length_scale), X, Y)
    >>> gram(Doubled(), np.zeros((1, 1)))
    array([[2.]])
    """

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(answer)
        def answer_unless_overridden(kernel: Kernel, *args: Any, **keywords: Any) -> Any:
            if not inherited and type(kernel).__call__ is not kernel_class.__call__:
                return question.dispatch(object)(kernel, *args, **keywords)
            return answer(kernel, *(_as_floats(points) for points in args), **keywords)

        question.register(kernel_class, answer_unless_overridden)
        return answer

    return register


def free_hyperparameters(kernel: Kernel, *names: str) -> list[str]:
    """Those of a kernel's hyper-parameters that are not fixed. θ has them in alphabetical order, so name them in it.

    Parameters
    ----------
    kernel : scikit-learn kernel
    *names : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RationalQuadratic
    >>> free_hyperparameters(RationalQuadratic(alpha_bounds="fixed"), "alpha", "length_scale")
    ['length_scale']
    """
    return [name for name in names if not isinstance(getattr(kernel, f"{name}_bounds"), str)]


def _as_floats(points: Array | None) -> Array | None:
    return points.astype(np.float64) if isinstance(points, np.ndarray) and points.dtype != np.float64 else points


def no_products(vectors: Array) -> Array:
    """Products of a kernel without free hyper-parameters: shape (..., 0, n, m)."""
    shape = (*vectors.shape[:-2], 0, *vectors.shape[-2:])
    return array_namespace(vectors).zeros(shape, dtype=vectors.dtype, device=vectors.device)


def _for_each(function: Callable[..., Any], X: Array, Y: Array | None = None) -> Array:
    sets = [fetch(x) for x in X.reshape(-1, *X.shape[-2:])]
    if Y is None or Y.ndim == 2:
        results = [function(x, None if Y is None else fetch(Y)) for x in sets]
    else:
        results = [function(x, fetch(y)) for x, y in zip(sets, Y.reshape(-1, *Y.shape[-2:]), strict=True)]
    stacked = np.ascontiguousarray(np.stack(results), dtype=np.float64)  # of any type that the kernel returned
    return like(stacked.reshape(*X.shape[:-2], *stacked.shape[1:]), X)


def _latent_diagonal(kernel: Kernel, X: Any) -> Any:
    # Only k(x, y) says how much of an unknown kernel's diagonal is noise.
    chunks = [X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK)]
    return np.concatenate([np.diagonal(kernel(chunk, chunk)) for chunk in chunks])
