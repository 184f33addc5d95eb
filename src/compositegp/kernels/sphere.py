"""Kernels on the sphere: longitude and latitude become points in space, and distances are chords in kilometers."""

import math

import numpy as np
from array_api_compat import array_namespace
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Array, Floats
from compositegp.kernels.bounds import largest_covariance
from compositegp.kernels.data_scale import DataScale, typical_inside, typical_values
from compositegp.kernels.evaluation import rule
from compositegp.kernels.length_scales import metric
from compositegp.kernels.storable import register_storable
from compositegp.kernels.warped import Warped
from compositegp.kernels.wrapper import KernelWrapper

EARTH_RADIUS = 6371.0088
"""Mean radius of the Earth, in kilometers."""


@register_storable
class OnSphere(Warped, KernelWrapper):
    """A kernel of the chord between two points of a sphere, given by longitude and latitude in degrees.

    The kernel inside sees points (x, y, z) in space, in kilometers, so that its length scale is in kilometers. A
    kernel that is valid in three dimensions is valid on the sphere, and one with a single length scale does not change
    when the sphere is rotated: the poles and the date line are points like all others. Over 1,000 km a chord is 0.1 %
    shorter than the way along the surface.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Of three columns, such as ``Matern(500.0, nu=1.5)``.
    radius : float
        Of the sphere. The default is the Earth's, in kilometers.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = OnSphere(RBF(500.0))
    >>> kernel([[179.5, 0.0]], [[-179.5, 0.0]]).round(3)  # 111 km apart
    array([[0.976]])
    """

    def __init__(self, kernel: Kernel, radius: float = EARTH_RADIUS) -> None:
        self.kernel = kernel
        self.radius = radius

    def view(self, X: Array) -> Array:
        """Points in space (..., n, 3) of longitudes and latitudes (..., n, 2)."""
        if X.shape[-1] != 2:
            raise ValueError(
                f"kernel {self} needs two columns, longitude and latitude; found {X.shape[-1]}. Choose them by "
                "OnColumns(OnSphere(...), [0, 1])."
            )
        xp = array_namespace(X)
        radians = X * (math.pi / 180)
        longitude, latitude = radians[..., 0], radians[..., 1]
        around = self.radius * xp.cos(latitude)
        return xp.stack(
            [around * xp.cos(longitude), around * xp.sin(longitude), self.radius * xp.sin(latitude)], axis=-1
        )

    def view_slope(self, X: Array, column: int) -> Array:
        """Derivative of the points in space by degrees of longitude (column 0) or latitude (1): shape (..., n, 3)."""
        xp, degree = array_namespace(X), math.pi / 180
        longitude, latitude = X[..., 0] * degree, X[..., 1] * degree
        step = self.radius * degree
        if column == 0:
            around = step * xp.cos(latitude)
            return xp.stack([-around * xp.sin(longitude), around * xp.cos(longitude), 0 * latitude], axis=-1)
        down = -step * xp.sin(latitude)
        return xp.stack([down * xp.cos(longitude), down * xp.sin(longitude), step * xp.cos(latitude)], axis=-1)

    @property
    def inside(self) -> Kernel:
        """The kernel of points in space."""
        return self.kernel

    @property
    def chart(self) -> tuple[object, ...]:
        """What decides the view."""
        return ("sphere", self.radius)

    def is_stationary(self) -> bool:
        """False: it is not a function of differences of longitude and latitude."""
        return False

    def __repr__(self) -> str:
        return (
            f"OnSphere({self.kernel})" if self.radius == EARTH_RADIUS else f"OnSphere({self.kernel}, {self.radius})"
        )


@rule(metric, OnSphere, inherited=True)
def _metric(kernel: OnSphere, d: int) -> tuple[float, Floats]:
    # In degrees, as they are at the equator: for where learning begins. Nearness itself is that of the views.
    variance, inverse_squares = metric(kernel.kernel, 3)
    return variance, np.full(d, inverse_squares.mean() * np.deg2rad(kernel.radius) ** 2)


@rule(largest_covariance, OnSphere)
def _largest(kernel: OnSphere, gaps: Floats) -> Floats:
    inverse_squares = metric(kernel.kernel, 3)[1]
    if np.ptp(inverse_squares):
        return np.full(len(gaps), np.inf)
    # Points whose latitudes differ have at least this chord; longitudes say nothing, because 180° is −180°.
    chords = np.zeros((len(gaps), 3))
    chords[:, 0] = 2 * kernel.radius * np.sin(np.deg2rad(np.minimum(gaps[:, 1], 180.0)) / 2)
    return largest_covariance(kernel.kernel, chords)


@rule(typical_values, OnSphere, inherited=True)
def _typical(kernel: OnSphere, scale: DataScale) -> dict[str, object]:
    # A degree of longitude is taken as one at the equator; no spread is larger than the sphere's.
    spread = min(np.deg2rad(float(np.hypot(*scale.spreads))), 1.0) * kernel.radius / math.sqrt(3)
    return typical_inside("kernel", kernel.kernel, scale._replace(spreads=np.full(3, spread)))
