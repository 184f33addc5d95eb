"""Constant, white and linear kernels, and the algebra of kernels: sum, product, power."""

from collections.abc import Callable
from operator import iadd, imul
from typing import Any

from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Array, add_to_diagonal, diagonals
from compositegp.kernels.evaluation import (
    Linearized,
    diagonal,
    free_hyperparameters,
    gram,
    linearize,
    no_products,
    rule,
)
from compositegp.kernels.strips import Strip, covariances_of_pairs, gram_by_strips


def _transposed(Y: Array) -> Array:
    return array_namespace(Y).matrix_transpose(Y)


def _one_derivative(
    kernel: Kernel, name: str, value: Array, derivative: Array, apply: Callable[[Array, Array], Array]
) -> Linearized:
    """Linearization of a kernel with a single hyper-parameter, which may be fixed."""
    p = len(free_hyperparameters(kernel, name))
    return Linearized(
        value,
        lambda weights, vectors: apply(weights, vectors)[..., None, :, :] if p else no_products(vectors),
        lambda: derivative[..., None, :, :][..., :p, :, :],
    )


@rule(gram, ConstantKernel)
def _constant_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    m = (X if Y is None else Y).shape[-2]
    return array_namespace(X).full((*X.shape[:-1], m), float(kernel.constant_value), dtype=X.dtype, device=X.device)


@rule(diagonal, ConstantKernel)
def _constant_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return array_namespace(X).full(X.shape[:-1], float(kernel.constant_value), dtype=X.dtype, device=X.device)


@rule(linearize, ConstantKernel)
def _constant_linearize(kernel: Kernel, X: Array) -> Linearized:
    value = _constant_gram(kernel, X)
    return _one_derivative(
        kernel,
        "constant_value",
        value,
        value,
        lambda weights, vectors: weights @ (float(kernel.constant_value) * vectors),
    )


@rule(gram, WhiteKernel)
def _white_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    m = (X if Y is None else Y).shape[-2]
    K = array_namespace(X).zeros((*X.shape[:-1], m), dtype=X.dtype, device=X.device)
    _add_gram(K, kernel, X, Y)
    return K


@rule(diagonal, WhiteKernel)
def _white_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    level = float(kernel.noise_level) if noise else 0.0
    return array_namespace(X).full(X.shape[:-1], level, dtype=X.dtype, device=X.device)


@rule(linearize, WhiteKernel)
def _white_linearize(kernel: Kernel, X: Array) -> Linearized:
    value = _white_gram(kernel, X)
    return _one_derivative(
        kernel, "noise_level", value, value, lambda weights, vectors: _white_product(kernel, weights, vectors)
    )


def _white_product(kernel: Kernel, weights: Array, vectors: Array) -> Array:
    return float(kernel.noise_level) * diagonals(weights)[..., None] * vectors


@rule(gram, DotProduct)
def _linear_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    return X @ _transposed(X if Y is None else Y) + kernel.sigma_0**2


@rule(diagonal, DotProduct)
def _linear_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return array_namespace(X).sum(X * X, axis=-1) + kernel.sigma_0**2


@rule(linearize, DotProduct)
def _linear_linearize(kernel: Kernel, X: Array) -> Linearized:
    value = _linear_gram(kernel, X)
    derivative = array_namespace(X).full(value.shape, 2 * kernel.sigma_0**2, dtype=X.dtype, device=X.device)
    return _one_derivative(
        kernel, "sigma_0", value, derivative, lambda weights, vectors: weights @ (2 * kernel.sigma_0**2 * vectors)
    )


@rule(gram, Sum)
def _sum_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    found = gram_by_strips(kernel, X) if Y is None else None
    if found is not None:
        return found
    first, second = _costlier_first(kernel)
    K = gram(first, X, Y)
    _add_gram(K, second, X, Y)
    return K


@rule(covariances_of_pairs, Sum)
def _sum_of_pairs(kernel: Kernel, X: Array) -> Strip | None:
    first, second = _costlier_first(kernel)
    return covariances_of_pairs(first, X) if type(second) is WhiteKernel else _of_both(kernel, X, iadd)


@rule(diagonal, Sum)
def _sum_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.k1, X, noise=noise) + diagonal(kernel.k2, X, noise=noise)


@rule(linearize, Sum)
def _sum_linearize(kernel: Kernel, X: Array) -> Linearized:
    xp = array_namespace(X)
    first = linearize(kernel.k1, X)
    if type(kernel.k2) is WhiteKernel and first.afresh is not None:
        return _with_noise(kernel.k2, X, first)
    second = linearize(kernel.k2, X)
    if first.afresh is not None and second.afresh is not None:
        return _sum_afresh(first, second)
    if type(kernel.k2) is WhiteKernel:
        value = xp.asarray(first.value, copy=True)
        add_to_diagonal(value, float(kernel.k2.noise_level))
    else:
        value = first.value + second.value
    return Linearized(
        value,
        lambda weights, vectors: xp.concat(
            [first.products(weights, vectors), second.products(weights, vectors)], axis=-3
        ),
        lambda: xp.concat([first.jacobian(), second.jacobian()], axis=-3),
    )


def _with_noise(white: Kernel, X: Array, first: Linearized) -> Linearized:
    """Linearization of a sum with white noise, whose matrix is never made."""
    xp, p = array_namespace(X), len(free_hyperparameters(white, "noise_level"))
    again = first.afresh
    assert again is not None
    add_to_diagonal(first.value, float(white.noise_level))

    def afresh(weights: Array, vectors: Array) -> Array:
        own, found = _white_product(white, weights, vectors)[..., None, :, :], again(weights, vectors)
        return xp.concat([found[..., :1, :, :] + own, found[..., 1:, :, :], own[..., :p, :, :]], axis=-3)

    return Linearized(
        first.value,
        lambda weights, vectors: afresh(weights, vectors)[..., 1:, :, :],
        lambda: xp.concat([first.jacobian(), _white_linearize(white, X).jacobian()], axis=-3),
        afresh,
    )


def _sum_afresh(first: Linearized, second: Linearized) -> Linearized:
    """Linearization of a sum of kernels that are computed again for their products."""
    xp, one, two = array_namespace(first.value), first.afresh, second.afresh
    assert one is not None
    assert two is not None

    def afresh(weights: Array, vectors: Array) -> Array:
        left, right = one(weights, vectors), two(weights, vectors)
        both = left[..., :1, :, :] + right[..., :1, :, :]
        return xp.concat([both, left[..., 1:, :, :], right[..., 1:, :, :]], axis=-3)

    value = first.value
    value += second.value
    return Linearized(
        value,
        lambda weights, vectors: afresh(weights, vectors)[..., 1:, :, :],
        lambda: xp.concat([first.jacobian(), second.jacobian()], axis=-3),
        afresh,
    )


@rule(gram, Product)
def _product_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    found = gram_by_strips(kernel, X) if Y is None else None
    if found is not None:
        return found
    first, second = _costlier_first(kernel)
    K = gram(first, X, Y)
    K *= float(second.constant_value) if type(second) is ConstantKernel else gram(second, X, Y)
    return K


@rule(covariances_of_pairs, Product)
def _product_of_pairs(kernel: Kernel, X: Array) -> Strip | None:
    return _of_both(kernel, X, imul)


@rule(diagonal, Product)
def _product_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.k1, X, noise=noise) * diagonal(kernel.k2, X, noise=noise)


@rule(linearize, Product)
def _product_linearize(kernel: Kernel, X: Array) -> Linearized:
    if type(kernel.k1) is ConstantKernel:
        return _scaled_linearize(kernel, X)
    xp = array_namespace(X)
    first, second = linearize(kernel.k1, X), linearize(kernel.k2, X)
    return Linearized(
        first.value * second.value,
        lambda weights, vectors: xp.concat(
            [
                first.products(weights * second.value, vectors),
                second.products(weights * first.value, vectors),
            ],
            axis=-3,
        ),
        lambda: xp.concat(
            [
                first.jacobian() * second.value[..., None, :, :],
                second.jacobian() * first.value[..., None, :, :],
            ],
            axis=-3,
        ),
    )


def _scaled_linearize(kernel: Kernel, X: Array) -> Linearized:
    """Linearization of a constant times a kernel, without the constant's matrix."""
    xp = array_namespace(X)
    scale, inner = float(kernel.k1.constant_value), linearize(kernel.k2, X)
    if inner.afresh is not None:
        return _scaled_afresh(kernel, X, inner)
    value = scale * inner.value
    constant = _one_derivative(
        kernel.k1, "constant_value", value, value, lambda weights, vectors: (weights * value) @ vectors
    )
    return Linearized(
        value,
        lambda weights, vectors: xp.concat(
            [constant.products(weights, vectors), scale * inner.products(weights, vectors)], axis=-3
        ),
        lambda: xp.concat([constant.jacobian(), scale * inner.jacobian()], axis=-3),
    )


def _scaled_afresh(kernel: Kernel, X: Array, inner: Linearized) -> Linearized:
    """The same for a kernel that is computed again for its products."""
    xp, scale, again = array_namespace(X), float(kernel.k1.constant_value), inner.afresh
    p = len(free_hyperparameters(kernel.k1, "constant_value"))
    assert again is not None

    def afresh(weights: Array, vectors: Array) -> Array:
        found = again(weights, scale * vectors)
        return xp.concat([*[found[..., :1, :, :]] * (1 + p), found[..., 1:, :, :]], axis=-3)

    def jacobian() -> Array:
        own = gram(kernel, X)[..., None, :, :]
        return xp.concat([own[..., :p, :, :], scale * inner.jacobian()], axis=-3)

    value = inner.value
    value *= scale
    return Linearized(value, lambda weights, vectors: afresh(weights, vectors)[..., 1:, :, :], jacobian, afresh)


@rule(gram, Exponentiation)
def _power_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    return gram(kernel.kernel, X, Y) ** kernel.exponent


@rule(diagonal, Exponentiation)
def _power_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return diagonal(kernel.kernel, X, noise=noise) ** kernel.exponent


@rule(linearize, Exponentiation)
def _power_linearize(kernel: Kernel, X: Array) -> Linearized:
    base = linearize(kernel.kernel, X)
    slope = kernel.exponent * base.value ** (kernel.exponent - 1)
    return Linearized(
        base.value**kernel.exponent,
        lambda weights, vectors: base.products(weights * slope, vectors),
        lambda: base.jacobian() * slope[..., None, :, :],
    )


def _of_both(kernel: Kernel, X: Array, combine: Callable[[Array, Any], Array]) -> Strip | None:
    """Covariances of pairs from those of both parts, combined in place."""
    first, second = _costlier_first(kernel)
    one = covariances_of_pairs(first, X)
    if one is None:
        return None
    if type(second) is ConstantKernel:
        constant = float(second.constant_value)
        return lambda some, others: combine(one(some, others), constant)
    two = covariances_of_pairs(second, X)
    return None if two is None else lambda some, others: combine(one(some, others), two(some, others))


def _costlier_first(kernel: Kernel) -> tuple[Kernel, Kernel]:
    cheap = (ConstantKernel, WhiteKernel)
    return (kernel.k2, kernel.k1) if type(kernel.k1) in cheap else (kernel.k1, kernel.k2)


def _add_gram(K: Array, kernel: Kernel, X: Array, Y: Array | None) -> None:
    """Add a kernel's Gram matrix to `K` in place; of noise only the diagonal is touched."""
    if type(kernel) is WhiteKernel:
        if Y is None:
            add_to_diagonal(K, float(kernel.noise_level))
    elif type(kernel) is ConstantKernel:
        K += float(kernel.constant_value)
    else:
        K += gram(kernel, X, Y)
