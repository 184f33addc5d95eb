"""The kernels that are compared for a map: in the plane or on the sphere, with time or without."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Matern, Product, Sum

from compositegp.backend import Floats
from compositegp.kernels import MaternOnSphere, OnColumns, RotatedMatern, RotatedMaternOnSphere
from compositegp.learning import kernel_family

_TIME_SMOOTHNESS = {"1/2": 0.5, "3/2": 1.5}
_WITH_TIME = ("Matern 3/2", "Matern 1/2", "Matern 5/2")
_MANY = 2048  # places from which the range may differ in any direction
_ALIKE = 5.0  # spread of x over that of y, or the reverse, up to which they are taken to have the same unit
_REGION = 15.0  # degrees from their center within which places on the sphere are a region: beyond, directions turn


def map_kernels(X: Floats, *, sphere: bool, time: bool, variance: float) -> dict[str, Kernel]:
    """Kernels of points (x, y), (x, y, time), or either with further columns, which they do not see.

    Of more than 2,048 places the range may be longer in one direction than across it. Of fewer, or with time, it may
    differ along the axes: in the plane there is one length scale for x and one for y; on the sphere one in kilometers
    and a flattening, by which the range to the north differs from that to the east. So it is of any number of places
    that are not in one region of the sphere, where directions have no meaning for all, and of places in the plane whose
    x and y differ so much that they hardly have the same unit, such as a distance and a depth. With time they are
    products of a kernel of space and one of time, with one range each.

    Parameters
    ----------
    X : array of shape (n, d)
        The places, in the first two columns.
    sphere : bool
        Whether x and y are longitude and latitude.
    time : bool
        Whether the third column is time.
    variance : float
        Of the target, by which amplitudes are bounded.

    Examples
    --------
    >>> list(map_kernels(np.zeros((9, 3)), sphere=True, time=True, variance=1.0))[:2]
    ['Matern 3/2 × Matern 3/2 in time', 'Matern 3/2 × Matern 1/2 in time']
    """
    center = region_center(X) if sphere else None
    turned = len(X) > _MANY and not time and (center is not None if sphere else _are_alike(X))

    def in_space(part: Kernel) -> Kernel:
        nu = getattr(part, "nu", math.inf)
        if not turned:
            return OnColumns(MaternOnSphere(nu=nu) if sphere else part, [0, 1])
        if center is None:
            return OnColumns(RotatedMatern(nu=nu), [0, 1])
        return OnColumns(RotatedMaternOnSphere(nu=nu, longitude=center[0], latitude=center[1]), [0, 1])

    family = kernel_family(1 if sphere or turned else 2, variance)
    if not time:
        return {name: _placed(kernel, in_space) for name, kernel in family.items()}
    return dict(_with_time(family, in_space))


def _are_alike(X: Floats) -> bool:
    """Whether places are spread alike in x and y, so that there are directions between these."""
    x, y = X[:, :2].std(axis=0)
    return bool(max(x, y) <= _ALIKE * min(x, y))


def region_center(X: Floats) -> tuple[float, float] | None:
    """Longitude and latitude, in whole degrees, of the center of places on the sphere; None where they are far apart.

    Examples
    --------
    >>> region_center(np.array([[179.0, 10.0], [-177.0, 12.0]])), region_center(np.array([[0.0, 10.0], [180.0, 10.0]]))
    ((-179.0, 11.0), None)
    """
    longitude, latitude = np.radians(X[:, :2]).T
    around = np.cos(latitude)
    points = np.column_stack([around * np.cos(longitude), around * np.sin(longitude), np.sin(latitude)])
    x, y, z = mean = points.mean(axis=0)
    size = float(np.linalg.norm(mean))
    if not size or (points @ mean).min() < size * math.cos(math.radians(_REGION)):
        return None
    return float(np.round(np.degrees(np.arctan2(y, x)))), float(np.round(np.degrees(np.arcsin(z / size))))


def _with_time(family: dict[str, Kernel], in_space: Callable[[Kernel], Kernel]) -> Iterator[tuple[str, Kernel]]:
    for name in _WITH_TIME:
        for label, nu in reversed(_TIME_SMOOTHNESS.items()):

            def in_both(part: Kernel, nu: float = nu) -> Kernel:
                return in_space(part) * OnColumns(Matern(1.0, nu=nu), [2])

            yield f"{name} × Matern {label} in time", _placed(family[name], in_both)


def _placed(kernel: Kernel, place: Callable[[Kernel], Kernel]) -> Kernel:
    """A kernel whose parts with a length scale are put in their place."""
    if isinstance(kernel, Sum | Product):
        return type(kernel)(_placed(kernel.k1, place), _placed(kernel.k2, place))
    return place(kernel) if hasattr(kernel, "length_scale") else kernel
