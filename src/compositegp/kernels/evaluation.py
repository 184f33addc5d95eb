"""What a kernel can be asked: its Gram matrix, its diagonal, and its derivative in θ.

Each question is a function dispatched on the kernel's class. A kernel that no rule is registered for, or
whose class overrides the ``__call__`` that a rule stands for, answers by its own ``__call__``.
"""

from collections.abc import Callable
from functools import singledispatch, wraps
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, fetch, like

_CHUNK = 64


class Linearized(NamedTuple):
    """A Gram matrix together with its derivative in ``kernel.theta`` (p free hyper-parameters).

    Attributes
    ----------
    value : array of shape (..., n, n)
        ``gram(kernel, X)``; not to be written to, since the derivative may refer to it.
    products : callable
        Maps weights C of shape (..., n, n) and vectors V of shape (..., n, m) to (C ∘ ∂K/∂θ_i) V, the entrywise
        product applied to the vectors, for every i: shape (..., p, n, m).
    jacobian : callable
        Returns ∂K/∂θ, of shape (..., p, n, n).
    """

    value: Array
    products: Callable[[Array, Array], Array]
    jacobian: Callable[[], Array]

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
        Its batch axes are those of `X`, or none. As in scikit-learn, a WhiteKernel part counts only where
        `Y` is left out: ``gram(kernel, X)`` is the covariance of observations, ``gram(kernel, X, X)`` of
        the noise-free latent.

    Returns
    -------
    array of shape (..., n, m), freshly allocated
    """
    return _for_each(lambda x, y: kernel(x) if y is None else kernel(x, y), X, Y)


@singledispatch
def diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    """Diagonal of ``gram(kernel, X)``, or of ``gram(kernel, X, X)`` with ``noise=False``; shape (..., n)."""
    if noise:
        return _for_each(lambda x, _: kernel.diag(x), X)
    return _for_each(lambda x, _: _latent_diagonal(kernel, x), X)


@singledispatch
def linearize(kernel: Kernel, X: Array) -> Linearized:
    """Gram matrix of a kernel at `X`, shape (..., n, d), and its derivative in ``kernel.theta``."""
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


def pullback(kernel: Kernel, X: Array, cotangent: Array) -> Array:
    """Σ_ij cotangent_ij ∂K_ij/∂θ: shape (..., p) for a cotangent of shape (..., n, n)."""
    return linearize(kernel, X).pullback(cotangent)


def jacobian(kernel: Kernel, X: Array) -> Array:
    """∂K/∂θ: shape (..., p, n, n)."""
    return linearize(kernel, X).jacobian()


def rule(question: Any, kernel_class: type[Kernel]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the answer of a kernel class to `question` (`gram`, `diagonal` or `linearize`).

    It also serves the subclasses that inherit the class's ``__call__``, and no others.
    """

    def register(answer: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(answer)
        def answer_unless_overridden(kernel: Kernel, *args: Any, **keywords: Any) -> Any:
            if type(kernel).__call__ is not kernel_class.__call__:
                return question.dispatch(object)(kernel, *args, **keywords)
            return answer(kernel, *(_as_floats(points) for points in args), **keywords)

        question.register(kernel_class, answer_unless_overridden)
        return answer

    return register


def free_hyperparameters(kernel: Kernel, *names: str) -> list[str]:
    """Those of a kernel's hyper-parameters that are not fixed; the names, in alphabetical order, are in that of θ."""
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
    stacked = np.ascontiguousarray(np.stack(results), dtype=np.float64)  # whatever the kernel returned
    return like(stacked.reshape(*X.shape[:-2], *stacked.shape[1:]), X)


def _latent_diagonal(kernel: Kernel, X: Any) -> Any:
    # Whether an unknown kernel is noise on its diagonal only k(x, y) can tell.
    chunks = [X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK)]
    return np.concatenate([np.diagonal(kernel(chunk, chunk)) for chunk in chunks])
