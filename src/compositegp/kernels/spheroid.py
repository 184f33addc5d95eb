"""A Matérn kernel on the sphere with one range along the parallels and another along the meridians."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Hyperparameter

from compositegp.backend import Array, Floats
from compositegp.kernels.bounds import largest_covariance
from compositegp.kernels.data_scale import DataScale, typical_values
from compositegp.kernels.evaluation import Linearized, free_hyperparameters, linearize, rule
from compositegp.kernels.length_scales import metric
from compositegp.kernels.sphere import EARTH_RADIUS, OnSphere
from compositegp.kernels.storable import register_storable
from compositegp.kernels.warped_matern import WarpedMatern


@register_storable
class MaternOnSphere(WarpedMatern):
    """Matérn kernel of longitude and latitude, in degrees, that may have another range to the north than to the east.

    It is the Matérn kernel of the points of the sphere after their distance from the plane of the equator is multiplied
    by `flattening`. So it is valid over the whole globe, and does not change when the globe is turned about its axis.
    With a flattening of 1 it is ``OnSphere(Matern(length_scale, nu=nu))``. At latitude φ the length scale is
    `length_scale` to the east, and ``length_scale / √(sin²φ + flattening² cos²φ)`` to the north.

    Parameters
    ----------
    length_scale : float
        In kilometers, along the parallels.
    flattening : float
        Over 1: shorter along the meridians.
    nu : {0.5, 1.5, 2.5, inf}
        Smoothness; infinity is the RBF kernel.
    length_scale_bounds, flattening_bounds : (float, float) or "fixed"

    Examples
    --------
    >>> kernel = MaternOnSphere(500.0, flattening=2.0)
    >>> kernel([[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).round(2)  # a degree to the east, and one to the north
    array([[0.94, 0.82]])
    """

    def __init__(
        self,
        length_scale: float = 1.0,
        flattening: float = 1.0,
        nu: float = 1.5,
        length_scale_bounds: Any = (1e-5, 1e5),
        flattening_bounds: Any = (0.05, 20.0),
    ) -> None:
        self.length_scale = length_scale
        self.flattening = flattening
        self.nu = nu
        self.length_scale_bounds = length_scale_bounds
        self.flattening_bounds = flattening_bounds

    @property
    def hyperparameter_flattening(self) -> Hyperparameter:
        """Factor on the distance from the plane of the equator."""
        return Hyperparameter("flattening", "numeric", self.flattening_bounds)

    def view(self, X: Array) -> Array:
        """Points in space (..., n, 3) of longitudes and latitudes (..., n, 2), stretched along the axis."""
        return self._stretched(OnSphere(self).view(X))

    def view_slope(self, X: Array, column: int) -> Array:
        """Derivative of the stretched points by degrees of longitude (column 0) or latitude (1): (..., n, 3)."""
        return self._stretched(OnSphere(self).view_slope(X, column))

    def _stretched(self, points: Array) -> Array:
        return array_namespace(points).concat([points[..., :2], self.flattening * points[..., 2:]], axis=-1)

    @property
    def chart(self) -> tuple[object, ...]:
        """What decides the view."""
        return ("spheroid", self.flattening)

    def is_stationary(self) -> bool:
        """False: it is not a function of differences of longitude and latitude."""
        return False

    @property
    def requires_vector_input(self) -> bool:
        """True: it takes longitudes and latitudes."""
        return True

    def __repr__(self) -> str:
        numbers = f"length_scale={self.length_scale:.3g}, flattening={self.flattening:.3g}, nu={self.nu:.3g}"
        return f"MaternOnSphere({numbers})"


@rule(linearize, MaternOnSphere)
def _linearize(kernel: MaternOnSphere, X: Array) -> Linearized:
    # The kernel of the sphere's points with the length scales ℓ, ℓ and ℓ / flattening.
    _ = kernel.profile  # which checks the smoothness
    length_scales = kernel.length_scale / np.array([1.0, 1.0, kernel.flattening])
    found = linearize(kernel.matern(length_scales), OnSphere(kernel).view(X))
    free = free_hyperparameters(kernel, "flattening", "length_scale")

    def own(derivatives: Array) -> Array:
        xp = array_namespace(derivatives)
        by_name = {
            "flattening": lambda: -derivatives[..., 2, :, :],
            "length_scale": lambda: xp.sum(derivatives, axis=-3),
        }
        return xp.stack([by_name[name]() for name in free], axis=-3) if free else derivatives[..., :0, :, :]

    return Linearized(found.value, lambda C, V: own(found.products(C, V)), lambda: own(found.jacobian()))


@rule(metric, MaternOnSphere, inherited=True)
def _metric(kernel: MaternOnSphere, d: int) -> tuple[float, Floats]:
    # In degrees, as they are at the equator: for where learning begins. Nearness itself is that of the views.
    return 1.0, np.full(d, (np.deg2rad(EARTH_RADIUS) / kernel.length_scale) ** 2)


@rule(largest_covariance, MaternOnSphere)
def _largest(kernel: MaternOnSphere, gaps: Floats) -> Floats:
    # Points whose latitudes differ have at least this chord; longitudes say nothing, because 180° is −180°.
    chords = np.zeros((len(gaps), 3))
    chords[:, 0] = 2 * EARTH_RADIUS * np.sin(np.deg2rad(np.minimum(gaps[:, 1], 180.0)) / 2)
    return largest_covariance(kernel.inside, chords * min(1.0, kernel.flattening))


@rule(typical_values, MaternOnSphere, inherited=True)
def _typical(kernel: MaternOnSphere, scale: DataScale) -> dict[str, Any]:
    spread = min(np.deg2rad(float(np.hypot(*scale.spreads))), 1.0) * EARTH_RADIUS
    return {"length_scale": spread}
