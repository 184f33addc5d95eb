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

from compositegp.backend import Array, fuses_radial, like, radial_gram, radial_products
from compositegp.kernels.distances import (
    of_each_pair,
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
from compositegp.kernels.strips import Strip, covariances_of_pairs

_LEAST_EXPONENT = -700.0  # exponents of e below this are as good as −∞


class Profile(NamedTuple):
    """A radial kernel as functions of the squared distance s, in its own unit of length. All may overwrite s.

    Attributes
    ----------
    unit : float
        The unit of length, in length scales.
    value : callable
        φ(s).
    value_and_slope : callable
        φ(s) and −2 φ′(s). With s = Σ_i (x_i − x′_i)²/ℓ_i², the derivative of the kernel in log ℓ_i is the slope times
        (x_i − x′_i)²/ℓ_i².
    curvature : callable or None
        4 φ″(s), for the covariance of derivatives; zero at s = 0 where it has a pole that the factors before it cancel.
        None for a process that has no derivative.
    """

    unit: float
    value: Callable[[Array], Array]
    value_and_slope: Callable[[Array], tuple[Array, Array]]
    curvature: Callable[[Array], Array] | None


def exp(A: Array) -> Array:
    """Exponential of an array that is no longer needed, in place where NumPy allows it; zero from exp(−700) on.

    NumPy takes many times as long where the result is too small for a normal number, as it is for points that are many
    length scales apart.
    """
    if not isinstance(A, np.ndarray):
        return array_namespace(A).exp(A)
    if A.size and A.min() < _LEAST_EXPONENT:
        np.maximum(A, _LEAST_EXPONENT, out=A)
        np.exp(A, out=A)
        A -= math.exp(_LEAST_EXPONENT)  # which changes no number above 1e-288
        return A
    return np.exp(A, out=A)


def sqrt(A: Array) -> Array:
    """Square root of an array that is no longer needed, in place where NumPy allows it."""
    return np.sqrt(A, out=A) if isinstance(A, np.ndarray) else array_namespace(A).sqrt(A)


def _gaussian(s: Array) -> Array:
    s *= -0.5
    return exp(s)


def _gaussian_and_slope(s: Array) -> tuple[Array, Array]:
    value = _gaussian(s)
    return value, value


def _matern12(s: Array) -> Array:
    r = sqrt(s)
    r *= -1
    return exp(r)


def _matern12_and_slope(s: Array) -> tuple[Array, Array]:
    xp = array_namespace(s)
    r = sqrt(s)
    value = exp(-r)
    return value, value / xp.where(r > 0, r, xp.full((), math.inf, dtype=r.dtype, device=r.device))


def _matern32(s: Array) -> Array:
    return _matern32_and_slope(s)[0]


def _matern32_and_slope(s: Array) -> tuple[Array, Array]:
    r = sqrt(s)
    decay = exp(-r)
    r += 1
    r *= decay
    return r, decay


def _matern52(s: Array) -> Array:
    return _matern52_and_slope(s)[0]


def _matern52_and_slope(s: Array) -> tuple[Array, Array]:
    r = s**0.5
    decay = exp(-r)
    r += 1
    s /= 3
    s += r
    s *= decay
    decay /= 3
    r *= decay
    return s, r


def _matern32_curvature(s: Array) -> Array:
    xp = array_namespace(s)
    r = sqrt(s)
    return exp(-r) / xp.where(r > 0, r, xp.full((), math.inf, dtype=r.dtype, device=r.device))


def _matern52_curvature(s: Array) -> Array:
    return exp(-sqrt(s)) / 3


PROFILES = {
    0.5: Profile(1.0, _matern12, _matern12_and_slope, None),
    1.5: Profile(math.sqrt(1 / 3), _matern32, _matern32_and_slope, _matern32_curvature),
    2.5: Profile(math.sqrt(1 / 5), _matern52, _matern52_and_slope, _matern52_curvature),
    math.inf: Profile(1.0, _gaussian, _gaussian_and_slope, _gaussian),
}


def profile_of(kernel: Kernel) -> Profile | None:
    """The profile of an RBF or Matérn kernel; None where its smoothness has no fast form."""
    return PROFILES.get(_smoothness(kernel))


def _smoothness(kernel: Kernel) -> float:
    return float(getattr(kernel, "nu", math.inf))


def in_units(kernel: Kernel, unit: float, X: Array) -> Array:
    """Points in units of a radial kernel's length scales, times the unit of its profile."""
    length_scale = unit * np.asarray(kernel.length_scale, dtype=np.float64)
    if length_scale.ndim and length_scale.size not in (1, X.shape[-1]):
        raise ValueError(
            f"kernel {kernel} has {length_scale.size} length scales, but the points have {X.shape[-1]} "
            "column(s). Give one length scale, or one for each column."
        )
    return X / like(length_scale, X)


@rule(gram, RBF)
@rule(gram, Matern)
def _radial_gram(kernel: Kernel, X: Array, Y: Array | None = None) -> Array:
    profile = profile_of(kernel)
    if profile is None:
        return gram.dispatch(object)(kernel, X, Y)
    scaled = in_units(kernel, profile.unit, X)
    others = None if Y is None else in_units(kernel, profile.unit, Y)
    if fuses_radial(scaled, _smoothness(kernel)):
        return radial_gram(scaled, others, _smoothness(kernel))
    if others is None:
        return of_each_pair(scaled, lambda s: (profile.value(s),))[0]
    return profile.value(squared_distances(scaled, others))


@rule(covariances_of_pairs, RBF)
@rule(covariances_of_pairs, Matern)
def _radial_of_pairs(kernel: Kernel, X: Array) -> Strip | None:
    profile = profile_of(kernel)
    if profile is None:
        return None
    scaled = in_units(kernel, profile.unit, X)
    return lambda some, others: profile.value(squared_distances(scaled[..., some, :], scaled[..., others, :]))


@rule(linearize, RBF)
@rule(linearize, Matern)
def _radial_linearize(kernel: Kernel, X: Array) -> Linearized:
    profile = profile_of(kernel)
    if profile is None:
        return linearize.dispatch(object)(kernel, X)
    scaled = in_units(kernel, profile.unit, X)
    free = bool(free_hyperparameters(kernel, "length_scale"))
    if fuses_radial(scaled, _smoothness(kernel)):
        return _fused_linearize(kernel, profile, scaled, free)
    return _linearize_in_passes(kernel, profile, scaled, free)


def _fused_linearize(kernel: Kernel, profile: Profile, scaled: Array, free: bool) -> Linearized:
    """Linearization whose products are computed from the points, in one pass, and not from matrices in memory."""
    xp, smoothness = array_namespace(scaled), _smoothness(kernel)

    def afresh(weights: Array, vectors: Array) -> Array:
        found = radial_products(scaled, smoothness, weights, vectors)
        if not free:
            return found[..., :1, :, :]
        if kernel.anisotropic:
            return found
        return xp.concat([found[..., :1, :, :], found[..., 1:, :, :].sum(-3)[..., None, :, :]], axis=-3)

    return Linearized(
        radial_gram(scaled, None, smoothness),
        lambda weights, vectors: afresh(weights, vectors)[..., 1:, :, :] if free else no_products(vectors),
        lambda: _linearize_in_passes(kernel, profile, scaled, free).jacobian(),
        afresh,
    )


def _linearize_in_passes(kernel: Kernel, profile: Profile, scaled: Array, free: bool) -> Linearized:
    """Linearization from matrices of the squared distances and of the slopes."""
    xp = array_namespace(scaled)
    if not free:
        (value,) = of_each_pair(scaled, lambda s: (profile.value(s),))
        return Linearized.of_matrices(value, [])
    if not kernel.anisotropic:
        value, derivative = of_each_pair(scaled, lambda s: _with_derivative(profile, s))
        return Linearized.of_matrices(value, [lambda: derivative])
    value, slope = of_each_pair(scaled, profile.value_and_slope)

    def products(weights: Array, vectors: Array) -> Array:
        return squared_difference_products(weights * slope, scaled, vectors)

    def jacobian() -> Array:
        columns = range(scaled.shape[-1])
        return xp.stack([slope * squared_differences(scaled, column) for column in columns], axis=-3)

    return Linearized(value, products, jacobian)


def _with_derivative(profile: Profile, s: Array) -> tuple[Array, Array]:
    """Values and derivatives in the log of a single length scale, at squared distances that are overwritten."""
    value, slope = profile.value_and_slope(array_namespace(s).asarray(s, copy=True))
    s *= slope
    return value, s


@rule(diagonal, RBF)
@rule(diagonal, Matern)
@rule(diagonal, RationalQuadratic)
@rule(diagonal, ExpSineSquared)
def _unit_diagonal(kernel: Kernel, X: Array, *, noise: bool = True) -> Array:
    return array_namespace(X).ones(X.shape[:-1], dtype=X.dtype, device=X.device)


@rule(covariances_of_pairs, RationalQuadratic)
@rule(covariances_of_pairs, ExpSineSquared)
def _of_pairs(kernel: Kernel, X: Array) -> Strip:
    return lambda some, others: gram(kernel, X[..., some, :], X[..., others, :])


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
    return Linearized.of_matrices(
        value, [derivatives[name] for name in free_hyperparameters(kernel, "alpha", "length_scale")]
    )


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
    return Linearized.of_matrices(
        value, [derivatives[name] for name in free_hyperparameters(kernel, "length_scale", "periodicity")]
    )
