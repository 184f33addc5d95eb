"""Kernels of a distance: RBF, Matérn, rational quadratic, periodic."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import (
    RBF,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
)

from compositegp.arrays import Array
from compositegp.kernels.distances import (
    squared_difference_products,
    squared_differences,
    squared_distances,
)
from compositegp.kernels.evaluation import (
    Linearized,
    diagonal,
    free_hyperparameters,
    gram,
    linearize,
    no_products,
    rule,
)


class Profile(NamedTuple):
    """A radial kernel with unit length scale, as functions of the squared distance s.

    Attributes
    ----------
    value : callable
        φ(s). May overwrite its argument.
    slope : callable
        −2 φ′(s), from s and φ(s). With s = Σ_i (x_i − x′_i)²/ℓ_i², the derivative of the kernel in log ℓ_i
        is the slope times (x_i − x′_i)²/ℓ_i².
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]


def exp(A: Array) -> Array:
    """Exponential of an array that is no longer needed, in place where NumPy allows it."""
    return np.exp(A, out=A) if isinstance(A, np.ndarray) else array_namespace(A).exp(A)


def sqrt(A: Array) -> Array:
    """Square root of an array that is no longer needed, in place where NumPy allows it."""
    return np.sqrt(A, out=A) if isinstance(A, np.ndarray) else array_namespace(A).sqrt(A)


def _gaussian(s: Array) -> Array:
    s *= -0.5
    return exp(s)


def _matern12(s: Array) -> Array:
    r = sqrt(s)
    r *= -1
    return exp(r)


def _matern12_slope(s: Array, value: Array) -> Array:
    xp = array_namespace(s)
    return value / xp.where(s > 0, xp.sqrt(s), xp.asarray(math.inf, dtype=s.dtype))


def _matern32(s: Array) -> Array:
    s *= 3
    r = sqrt(s)
    decay = exp(-r)
    r += 1
    decay *= r
    return decay


def _matern52(s: Array) -> Array:
    s *= 5
    r = sqrt(s)
    decay = exp(-r)
    decay *= 1 + r + r * r / 3
    return decay


PROFILES = {
    0.5: Profile(_matern12, _matern12_slope),
    1.5: Profile(_matern32, lambda s, _: 3 * exp(-sqrt(3 * s))),
    2.5: Profile(_matern52, lambda s, _: 5 / 3 * (1 + sqrt(5 * s)) * exp(-sqrt(5 * s))),
    math.inf: Profile(_gaussian, lambda _, value: value),
}


def _profile(kernel: Kernel) -> Profile | None:
    return PROFILES.get(getattr(kernel, "nu", math.inf))


def _in_length_scales(kernel: Kernel, X: Array) -> Array:
    length_scale = np.asarray(kernel.length_scale, dtype=np.float64)
    if length_scale.ndim and length_scale.size not in (1, X.shape[-1]):
        raise ValueError(
            f"kernel {kernel} has {length_scale.size} length scales, but the points have {X.shape[-1]} "
            "column(s). Give one length scale, or one for each column."
        )
    if isinstance(X, np.ndarray):
        return X / length_scale
    return X / array_namespace(X).asarray(length_scale, dtype=X.dtype, device=X.device)


@rule(gram, RBF)
@rule(gram, Matern)
def _radial_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    profile = _profile(kernel)
    if profile is None:
        return gram.dispatch(object)(kernel, X, Y)
    scaled = _in_length_scales(kernel, X)
    return profile.value(squared_distances(scaled, scaled if Y is None else _in_length_scales(kernel, Y)))


@rule(linearize, RBF)
@rule(linearize, Matern)
def _radial_linearize(kernel: Kernel, X: Array) -> Linearized:
    profile = _profile(kernel)
    if profile is None:
        return linearize.dispatch(object)(kernel, X)
    xp = array_namespace(X)
    scaled = _in_length_scales(kernel, X)
    s = squared_distances(scaled, scaled)
    value = profile.value(xp.asarray(s, copy=True))
    free = bool(free_hyperparameters(kernel))

    def products(weights: Array, vectors: Array) -> Array:
        if not free:
            return no_products(vectors)
        weights = weights * profile.slope(s, value)
        if kernel.anisotropic:
            return squared_difference_products(weights, scaled, vectors)
        weights *= s
        return (weights @ vectors)[..., None, :, :]

    def jacobian() -> Array:
        if not free:
            return xp.zeros((*X.shape[:-2], 0, *s.shape[-2:]), dtype=value.dtype)
        slope = profile.slope(s, value)
        if not kernel.anisotropic:
            return (slope * s)[..., None, :, :]
        columns = range(X.shape[-1])
        return xp.stack([slope * squared_differences(scaled, column) for column in columns], axis=-3)

    return Linearized(value, products, jacobian)


@rule(diagonal, RBF)
@rule(diagonal, Matern)
@rule(diagonal, RationalQuadratic)
@rule(diagonal, ExpSineSquared)
def _unit_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return array_namespace(X).ones(X.shape[:-1], dtype=X.dtype)


@rule(gram, RationalQuadratic)
def _rational_quadratic_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    base = squared_distances(X, X if Y is None else Y)
    base /= 2 * kernel.alpha * kernel.length_scale**2
    base += 1
    return base**-kernel.alpha


@rule(linearize, RationalQuadratic)
def _rational_quadratic_linearize(kernel: Kernel, X: Array) -> Linearized:
    xp = array_namespace(X)
    half = squared_distances(X, X) / (2 * kernel.length_scale**2)
    base = 1 + half / kernel.alpha
    value = base**-kernel.alpha
    derivatives = {
        "alpha": lambda: value * (half / base - kernel.alpha * xp.log(base)),
        "length_scale": lambda: 2 * half * value / base,
    }
    return _from_derivatives(value, [derivatives[name] for name in free_hyperparameters(kernel)])


@rule(gram, ExpSineSquared)
def _periodic_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    xp = array_namespace(X)
    phase = sqrt(squared_distances(X, X if Y is None else Y))
    phase *= math.pi / kernel.periodicity
    wave = np.sin(phase, out=phase) if isinstance(phase, np.ndarray) else xp.sin(phase)
    wave *= wave
    wave *= -2 / kernel.length_scale**2
    return exp(wave)


@rule(linearize, ExpSineSquared)
def _periodic_linearize(kernel: Kernel, X: Array) -> Linearized:
    xp = array_namespace(X)
    phase = math.pi / kernel.periodicity * sqrt(squared_distances(X, X))
    sine = xp.sin(phase)
    scale = 4 / kernel.length_scale**2
    value = exp(-0.5 * scale * sine**2)
    derivatives = {
        "length_scale": lambda: scale * sine**2 * value,
        "periodicity": lambda: scale * phase * xp.cos(phase) * sine * value,
    }
    return _from_derivatives(value, [derivatives[name] for name in free_hyperparameters(kernel)])


def _from_derivatives(value: Array, derivatives: list[Callable[[], Array]]) -> Linearized:
    """Linearization from the few matrices ∂K/∂θ_i, each made when it is asked for."""
    xp = array_namespace(value)

    def products(weights: Array, vectors: Array) -> Array:
        if not derivatives:
            return no_products(vectors)
        return xp.stack([(weights * matrix()) @ vectors for matrix in derivatives], axis=-3)

    def jacobian() -> Array:
        if not derivatives:
            return xp.zeros((*value.shape[:-2], 0, *value.shape[-2:]), dtype=value.dtype)
        return xp.stack([matrix() for matrix in derivatives], axis=-3)

    return Linearized(value, products, jacobian)
