"""Covariances of derivatives: cov(∂f/∂x_i (x), ∂f/∂x_j (x′)) = ∂²k(x, x′) / ∂x_i ∂x′_j.

For a radial kernel k = φ(s), s = Σ_c w_c Δ_c² with Δ = x − x′ and w = 1/ℓ², and with slope −2 φ′ and curvature 4 φ″:

    ∂k/∂x_i         = −slope · w_i Δ_i
    ∂k/∂x′_j        =  slope · w_j Δ_j
    ∂²k/∂x_i ∂x′_j  =  slope · w_i [i = j] − curvature · w_i Δ_i · w_j Δ_j
"""

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from compositegp.backend import Array
from compositegp.kernels.columns import OnColumns
from compositegp.kernels.distances import squared_distances
from compositegp.kernels.evaluation import gram, rule
from compositegp.kernels.sphere import OnSphere
from compositegp.kernels.stationary import in_units, profile_of
from compositegp.kernels.warped_matern import WarpedMatern


@singledispatch
def derivative(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    """Covariances between f, or one of its derivatives, at `X` and at `Y`; f is noise-free.

    Parameters
    ----------
    kernel : scikit-learn kernel
    X : array of shape (..., n, d)
    Y : array of shape (..., m, d)
        Its batch axes are those of `X`, or it has none.
    first, second : int or None
        The column in which f is differentiated at `X` and at `Y`; None is f itself.

    Returns
    -------
    array of shape (..., n, m)

    Examples
    --------
    The slope of a smooth process of length scale 2 has the variance 1/2²:

    >>> x = np.zeros((1, 1))
    >>> derivative(RBF(2.0), x, x, 0, 0)
    array([[0.25]])
    """
    if first is None and second is None:
        return gram(kernel, X, Y)
    raise ValueError(
        f"kernel {kernel} has no rule for derivatives, so that the derivative of f is not known to exist. Give it one "
        "by compositegp.kernels.rule(derivative, its class), or use RBF, RationalQuadratic or Matern(nu=1.5 or 2.5)."
    )


class _Radial(NamedTuple):
    slope: Array
    curvature: Array | None
    weights: Any  # 1/ℓ² of each column


def _combine(radial: _Radial, X: Array, Y: Array, first: int | None, second: int | None) -> Array:
    def scaled(column: int) -> Array:
        return float(radial.weights[column]) * (X[..., :, None, column] - Y[..., None, :, column])

    if second is None:
        assert first is not None
        return -radial.slope * scaled(first)
    if first is None:
        return radial.slope * scaled(second)
    assert radial.curvature is not None
    K = -radial.curvature * scaled(first) * scaled(second)
    return K + float(radial.weights[first]) * radial.slope if first == second else K


def _is_value(first: int | None, second: int | None) -> bool:
    return first is None and second is None


@rule(derivative, RBF)
@rule(derivative, Matern)
def _radial(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    profile = profile_of(kernel)
    if profile is None or profile.curvature is None:
        why = (
            "draws from it have a derivative nowhere"
            if kernel.nu <= 1
            else "only nu=1.5, 2.5 and inf have a rule for derivatives"
        )
        raise ValueError(
            f"kernel {kernel} has no derivative here: {why}. Use Matern(nu=1.5) or a smoother kernel for what is to be "
            "differentiated."
        )
    s = squared_distances(in_units(kernel, profile.unit, X), in_units(kernel, profile.unit, Y))
    both = first is not None and second is not None
    curvature = profile.curvature(array_namespace(s).asarray(s, copy=True)) if both else None
    units = profile.unit * np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), X.shape[-1])
    return _combine(_Radial(profile.value_and_slope(s)[1], curvature, units**-2.0), X, Y, first, second)


@rule(derivative, RationalQuadratic)
def _rational(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    alpha, weight = kernel.alpha, kernel.length_scale**-2.0
    base = 1 + squared_distances(X, Y) * (weight / (2 * alpha))
    slope = base ** (-alpha - 1)
    curvature = (alpha + 1) / alpha * slope / base
    return _combine(_Radial(slope, curvature, np.full(X.shape[-1], weight)), X, Y, first, second)


@rule(derivative, ExpSineSquared)
def _periodic(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    xp = array_namespace(X)
    value, r = gram(kernel, X, Y), xp.sqrt(squared_distances(X, Y))
    # φ(r) = exp(−2 sin²(π r/p) / ℓ²): φ_r = −a sin(u) φ with u = 2π r/p, and slope = −φ_r / r
    rate = 2 * math.pi / kernel.periodicity
    a = rate / kernel.length_scale**2
    away = r > 0
    safe = xp.where(away, r, xp.ones_like(r))
    slope = value * xp.where(away, a * xp.sin(rate * r) / safe, xp.full_like(r, a * rate))
    second_in_r = value * (a**2 * xp.sin(rate * r) ** 2 - a * rate * xp.cos(rate * r))
    curvature = xp.where(away, (second_in_r + slope) / safe**2, xp.zeros_like(r))
    return _combine(_Radial(slope, curvature, np.ones(X.shape[-1])), X, Y, first, second)


@rule(derivative, DotProduct)
def _linear(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    K = _zeros(X, Y)
    if second is None:
        K += Y[..., None, :, first]
    elif first is None:
        K += X[..., :, None, second]
    elif first == second:
        K += 1.0
    return K


@rule(derivative, ConstantKernel)
@rule(derivative, WhiteKernel)
def _flat(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    return gram(kernel, X, Y) if _is_value(first, second) else _zeros(X, Y)


@rule(derivative, Sum)
def _sum(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    return derivative(kernel.k1, X, Y, first, second) + derivative(kernel.k2, X, Y, first, second)


@rule(derivative, Product)
def _product(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    # The product rule at X, and at Y: each derivative falls on one of the two factors.
    ways = {(i, j) for i in (first, None) for j in (second, None)}
    return sum(
        derivative(kernel.k1, X, Y, i, j)
        * derivative(kernel.k2, X, Y, None if i == first else first, None if j == second else second)
        for i, j in sorted(ways, key=str)
    )


@rule(derivative, Exponentiation)
def _power(kernel: Kernel, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    p, inner = kernel.exponent, kernel.kernel
    value = gram(inner, X, Y)
    K = p * value ** (p - 1) * derivative(inner, X, Y, first, second)
    if first is not None and second is not None and p != 1:
        slopes = derivative(inner, X, Y, first, None) * derivative(inner, X, Y, None, second)
        K = K + p * (p - 1) * value ** (p - 2) * slopes
    return K


@rule(derivative, OnColumns)
def _columns(kernel: OnColumns, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    columns = kernel.view(np.arange(X.shape[-1])[None, :])[0]

    def places(column: int | None) -> list[int | None]:
        return [None] if column is None else [int(place) for place in np.flatnonzero(columns == column)]

    X_own, Y_own = kernel.view(X), kernel.view(Y)
    K = _zeros(X, Y)
    for i in places(first):
        for j in places(second):
            K = K + derivative(kernel.kernel, X_own, Y_own, i, j)
    return K


@rule(derivative, OnSphere)
@rule(derivative, WarpedMatern)
def _warped(kernel: Any, X: Array, Y: Array, first: int | None = None, second: int | None = None) -> Array:
    if _is_value(first, second):
        return gram(kernel, X, Y)
    # The chain rule: a column moves all the columns of the view.
    V, W = kernel.view(X), kernel.view(Y)
    along = None if first is None else kernel.view_slope(X, first)
    across = None if second is None else kernel.view_slope(Y, second)
    K = _zeros(X, Y)
    for i in [None] if along is None else range(V.shape[-1]):
        for j in [None] if across is None else range(W.shape[-1]):
            part = derivative(kernel.inside, V, W, i, j)
            if along is not None:
                part = part * along[..., :, None, i]
            K = K + (part if across is None else part * across[..., None, :, j])
    return K


def _zeros(X: Array, Y: Array) -> Array:
    shape = (*X.shape[:-1], Y.shape[-2])
    return array_namespace(X).zeros(shape, dtype=X.dtype, device=X.device)
