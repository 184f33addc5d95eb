"""A Matérn kernel on the sphere with a long and a short length scale along axes of any direction."""

import math
from typing import Any

import numpy as np

from compositegp.backend import Array, Floats, like
from compositegp.kernels.bounds import largest_covariance
from compositegp.kernels.data_scale import DataScale, typical_values
from compositegp.kernels.evaluation import rule
from compositegp.kernels.length_scales import metric
from compositegp.kernels.rotation import RotatedMatern
from compositegp.kernels.sphere import OnSphere
from compositegp.kernels.spheroid import MaternOnSphere
from compositegp.kernels.storable import register_storable


@register_storable
class RotatedMaternOnSphere(RotatedMatern):
    """Matérn kernel of longitude and latitude, in degrees, whose level lines are ellipses of any direction.

    It is the kernel `RotatedMatern` of a map of the surroundings of a center: points of the sphere, in kilometers, have
    a coordinate to the east and one to the north, as seen from the center, and a third one, their height over the
    plane that touches the sphere there. The first two are turned and stretched. So it is valid over the whole globe,
    and directions are those at the center. It is meant for regions that are small against the globe.

    Parameters
    ----------
    length_scale : float
        In kilometers: geometric mean of the long and the short one.
    stretch : float
        Over 1: longer to the east than to the north.
    slant : float
        Over 1: longer to the northeast than to the northwest.
    nu : {0.5, 1.5, 2.5, inf}
        Smoothness; infinity is the RBF kernel.
    longitude, latitude : float
        Of the center, in degrees. They are not learned.
    length_scale_bounds, stretch_bounds, slant_bounds : (float, float) or "fixed"

    Attributes
    ----------
    angle : float
        Direction of the long axis in degrees, counter-clockwise from east, from 0 to 180.
    ratio : float
        Long over short length scale, at least 1.

    Examples
    --------
    >>> kernel = RotatedMaternOnSphere.at_angle(45.0, 4.0, 500.0, longitude=10.0, latitude=50.0)
    >>> kernel([[10.0, 50.0]], [[11.0, 50.6], [9.0, 50.6]]).round(2)  # 98 km to the northeast, and to the northwest
    array([[0.99, 0.85]])
    """

    def __init__(
        self,
        length_scale: float = 1.0,
        stretch: float = 1.0,
        slant: float = 1.0,
        nu: float = 1.5,
        longitude: float = 0.0,
        latitude: float = 0.0,
        length_scale_bounds: Any = (1e-5, 1e5),
        stretch_bounds: Any = (0.05, 20.0),
        slant_bounds: Any = (0.05, 20.0),
    ) -> None:
        super().__init__(length_scale, stretch, slant, nu, length_scale_bounds, stretch_bounds, slant_bounds)
        self.longitude = longitude
        self.latitude = latitude

    @property
    def frame(self) -> Floats:
        """Unit vectors to the east, to the north and up at the center, in the columns: shape (3, 3)."""
        longitude, latitude = math.radians(self.longitude), math.radians(self.latitude)
        east = np.array([-math.sin(longitude), math.cos(longitude), 0.0])
        out = np.array([math.cos(longitude), math.sin(longitude), 0.0])
        up = math.cos(latitude) * out + np.array([0.0, 0.0, math.sin(latitude)])
        return np.column_stack([east, np.cross(up, east), up])

    def flat(self, X: Array) -> Array:
        """Coordinates to the east, to the north and up (..., n, 3), of longitudes and latitudes (..., n, 2)."""
        points = OnSphere(self).view(X)
        return points @ like(self.frame, points)

    def flat_slope(self, X: Array, column: int) -> Array:
        """Derivative of the coordinates by degrees of longitude (column 0) or latitude (1): (..., n, 3)."""
        slopes = OnSphere(self).view_slope(X, column)
        return slopes @ like(self.frame, slopes)

    @property
    def chart(self) -> tuple[object, ...]:
        """What decides the view."""
        return ("rotated sphere", self.longitude, self.latitude, self.stretch, self.slant)

    def is_stationary(self) -> bool:
        """False: it is not a function of differences of longitude and latitude."""
        return False

    def __repr__(self) -> str:
        return (
            f"RotatedMaternOnSphere(length_scale={self.length_scale:.3g}, angle={self.angle:.3g}, "
            f"ratio={self.ratio:.3g}, nu={self.nu:.3g}, longitude={self.longitude:.4g}, latitude={self.latitude:.4g})"
        )


@rule(metric, RotatedMaternOnSphere, inherited=True)
def _metric(kernel: RotatedMaternOnSphere, d: int) -> tuple[float, Floats]:
    return metric(OnSphere(kernel.inside), d)


@rule(largest_covariance, RotatedMaternOnSphere)
def _largest(kernel: RotatedMaternOnSphere, gaps: Floats) -> Floats:
    # No direction is shortened by more than the square root of the ratio.
    return largest_covariance(OnSphere(kernel.matern(kernel.length_scale * math.sqrt(kernel.ratio))), gaps)


@rule(typical_values, RotatedMaternOnSphere, inherited=True)
def _typical(kernel: RotatedMaternOnSphere, scale: DataScale) -> dict[str, Any]:
    return typical_values(MaternOnSphere(), scale)
