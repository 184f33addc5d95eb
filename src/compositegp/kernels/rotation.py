"""A Matérn kernel in the plane with a long and a short length scale along axes of any direction."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Hyperparameter, StationaryKernelMixin

from compositegp.backend import Array, Floats, like
from compositegp.kernels.bounds import largest_covariance
from compositegp.kernels.data_scale import DataScale, typical_values
from compositegp.kernels.distances import squared_difference_products, squared_differences, squared_distances
from compositegp.kernels.evaluation import Linearized, free_hyperparameters, linearize, rule
from compositegp.kernels.length_scales import metric
from compositegp.kernels.storable import register_storable
from compositegp.kernels.warped_matern import WarpedMatern

_SMALL = 1e-4  # |log stretch| under which series take the place of quotients
_NAMES = ("length_scale", "slant", "stretch")


@register_storable
class RotatedMatern(StationaryKernelMixin, WarpedMatern):  # type: ignore[misc]
    """Matérn kernel of two columns whose level lines are ellipses of any direction.

    With a = log stretch, b = log slant and S = [[a, b], [b, −a]], the kernel is that of the distance
    ‖exp(−S) (x − x′)‖ / length_scale. It has ``length_scale · √ratio`` along the direction `angle`, and
    ``length_scale / √ratio`` across it. In these parameters there is nothing special about equal axes, where an angle
    would not be known, nor about an angle of 180° and 0°.

    Parameters
    ----------
    length_scale : float
        Geometric mean of the long and the short one.
    stretch : float
        Over 1: longer along the first column than along the second.
    slant : float
        Over 1: longer along the diagonal where both columns rise than along the one where one falls.
    nu : {0.5, 1.5, 2.5, inf}
        Smoothness; infinity is the RBF kernel.
    length_scale_bounds, stretch_bounds, slant_bounds : (float, float) or "fixed"

    Attributes
    ----------
    angle : float
        Direction of the long axis in degrees, counter-clockwise from the first column, from 0 to 180.
    ratio : float
        Long over short length scale, at least 1.

    Examples
    --------
    >>> kernel = RotatedMatern.at_angle(30.0, ratio=4.0, length_scale=2.0)
    >>> round(kernel.angle, 6), round(kernel.ratio, 6)
    (30.0, 4.0)
    """

    def __init__(
        self,
        length_scale: float = 1.0,
        stretch: float = 1.0,
        slant: float = 1.0,
        nu: float = 1.5,
        length_scale_bounds: Any = (1e-5, 1e5),
        stretch_bounds: Any = (0.05, 20.0),
        slant_bounds: Any = (0.05, 20.0),
    ) -> None:
        self.length_scale = length_scale
        self.stretch = stretch
        self.slant = slant
        self.nu = nu
        self.length_scale_bounds = length_scale_bounds
        self.stretch_bounds = stretch_bounds
        self.slant_bounds = slant_bounds

    @classmethod
    def at_angle(cls, angle: float, ratio: float, length_scale: float = 1.0, **options: Any) -> "RotatedMatern":
        """The kernel with a long axis of a direction in degrees, and a ratio of long to short length scale."""
        if not ratio >= 1:
            raise ValueError(f"ratio is long over short length scale, at least 1; found {ratio!r}.")
        size, double = 0.5 * math.log(ratio), 2 * math.radians(angle)
        return cls(length_scale, math.exp(size * math.cos(double)), math.exp(size * math.sin(double)), **options)

    @property
    def angle(self) -> float:
        """Direction of the long axis, in degrees from 0 to 180."""
        return math.degrees(0.5 * math.atan2(math.log(self.slant), math.log(self.stretch))) % 180.0

    @property
    def ratio(self) -> float:
        """Long over short length scale."""
        return math.exp(2 * math.hypot(math.log(self.stretch), math.log(self.slant)))

    @property
    def hyperparameter_stretch(self) -> Hyperparameter:
        """Of the columns against each other."""
        return Hyperparameter("stretch", "numeric", self.stretch_bounds)

    @property
    def hyperparameter_slant(self) -> Hyperparameter:
        """Of the diagonals against each other."""
        return Hyperparameter("slant", "numeric", self.slant_bounds)

    def flat(self, X: Array) -> Array:
        """Points whose first two columns are those that are turned; here the points themselves (..., n, 2)."""
        if X.shape[-1] != 2:
            raise ValueError(
                f"kernel {self} needs two columns; found {X.shape[-1]}. Choose them by OnColumns(kernel, [0, 1])."
            )
        return X

    def flat_slope(self, X: Array, column: int) -> Array:
        """Derivative of the flat points in a column of X."""
        return X * 0 + like(np.eye(2)[column], X)

    def view(self, X: Array) -> Array:
        """Points turned and stretched, so that distances have the same meaning in all directions."""
        return self._turned(self.flat(X))

    def view_slope(self, X: Array, column: int) -> Array:
        """Derivative of the view, which is linear in the flat points."""
        return self._turned(self.flat_slope(X, column))

    def _turned(self, flat: Array) -> Array:
        a, b = math.log(self.stretch), math.log(self.slant)
        size = math.hypot(a, b)
        part = math.sinh(size) / size if size > 0 else 1.0
        matrix = np.eye(flat.shape[-1])
        matrix[:2, :2] = math.cosh(size) * np.eye(2) - part * np.array([[a, b], [b, -a]])
        return flat @ like(matrix, flat)

    @property
    def chart(self) -> tuple[object, ...]:
        """What decides the view."""
        return ("rotation", self.stretch, self.slant)

    def __repr__(self) -> str:
        return (
            f"RotatedMatern(length_scale={self.length_scale:.3g}, angle={self.angle:.3g}, ratio={self.ratio:.3g}, "
            f"nu={self.nu:.3g})"
        )


@rule(linearize, RotatedMatern)
def _linearize(kernel: RotatedMatern, X: Array) -> Linearized:
    profile, xp = kernel.profile, array_namespace(X)
    unit = profile.unit * kernel.length_scale
    flat, view = kernel.flat(X) / unit, kernel.view(X) / unit
    value, slope = profile.value_and_slope(squared_distances(view, view))
    columns = xp.concat([flat[..., :2], flat[..., :1] + flat[..., 1:2], flat[..., 2:]], axis=-1)
    free = free_hyperparameters(kernel, *_NAMES)
    mixing = like(_by_squared_differences(kernel, columns.shape[-1])[[_NAMES.index(name) for name in free]], X)

    def mixed(parts: Array) -> Array:
        flattened = xp.reshape(parts, (*parts.shape[:-2], parts.shape[-2] * parts.shape[-1]))
        return xp.reshape(mixing @ flattened, (*parts.shape[:-3], len(free), *parts.shape[-2:]))

    def products(weights: Array, vectors: Array) -> Array:
        return mixed(squared_difference_products(weights * slope, columns, vectors))

    def jacobian() -> Array:
        each = range(columns.shape[-1])
        return mixed(xp.stack([slope * squared_differences(columns, column) for column in each], axis=-3))

    return Linearized(value, products, jacobian)


def _by_squared_differences(kernel: RotatedMatern, n_columns: int) -> Floats:
    """Derivatives over the slope of the profile, as sums of squared differences: shape (3, columns).

    The columns are x, y, x + y and, where there is a third one that is not turned, z. The squared distance is
    δᵀ exp(−2 S) δ + δ_z² = c |δ|² − h (a (δ_x² − δ_y²) + b 2 δ_x δ_y) + δ_z², with s² = a² + b², c = cosh 2s and
    h = sinh(2s)/s.
    """
    a, b = math.log(kernel.stretch), math.log(kernel.slant)
    size = math.hypot(a, b)
    c = math.cosh(2 * size)
    h = math.sinh(2 * size) / size if size > _SMALL else 2 + 4 / 3 * size**2
    g = (2 * c - h) / size**2 if size > _SMALL else 8 / 3 + 16 / 15 * size**2
    x2, y2, both, *rest = np.eye(n_columns)
    squares, difference, product = x2 + y2, x2 - y2, both - x2 - y2
    along = a * difference + b * product
    length_scale = sum(rest, c * squares - h * along)
    slant = -0.5 * (2 * h * b * squares - b * g * along - h * product)
    stretch = -0.5 * (2 * h * a * squares - a * g * along - h * difference)
    return np.array([length_scale, slant, stretch])


@rule(metric, RotatedMatern, inherited=True)
def _metric(kernel: RotatedMatern, d: int) -> tuple[float, Floats]:
    # Of equal axes: for where learning begins. Nearness itself is that of the views.
    return metric(kernel.inside, d)


@rule(largest_covariance, RotatedMatern)
def _largest(kernel: RotatedMatern, gaps: Floats) -> Floats:
    return largest_covariance(kernel.inside, gaps / math.sqrt(kernel.ratio))


@rule(typical_values, RotatedMatern, inherited=True)
def _typical(kernel: RotatedMatern, scale: DataScale) -> dict[str, Any]:
    return {"length_scale": scale.length_scale(1)}
