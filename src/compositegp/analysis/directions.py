"""Ways through the columns of points, along which a kernel's range is told."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Floats
from compositegp.kernels import EARTH_RADIUS, MaternOnSphere, RotatedMatern, RotatedMaternOnSphere, in_length_scales


class Direction(NamedTuple):
    """A way through the columns of points.

    Attributes
    ----------
    name : str
        Such as "x", or "time".
    unit : str
        Of distances; may be empty.
    place : callable
        Points (m, d) at distances (m,) from a first one.

    Examples
    --------
    >>> northeast = Direction("northeast", "m", lambda h: np.outer(h, [np.sqrt(0.5), np.sqrt(0.5)]))
    >>> northeast.place(np.array([0.0, 2.0])).round(3)
    array([[0.   , 0.   ],
           [1.414, 1.414]])
    """

    name: str
    unit: str
    place: Callable[[Floats], Floats]


def directions_of(
    kernel: Kernel,
    n_columns: int,
    *,
    sphere: bool = False,
    has_time: bool = False,
    latitude: float = 0.0,
    names: tuple[str, str] = ("x", "y"),
    time_unit: str = "h",
) -> list[Direction]:
    """Directions in which a kernel's range differs: along the columns, along rotated axes, or any on the sphere.

    Parameters
    ----------
    kernel : scikit-learn kernel
    n_columns : int
        Columns of the points: x, y, time where there is one, and others.
    sphere : bool
        Whether the first two are longitude and latitude; distances are then chords in kilometers.
    has_time : bool
    latitude : float
        On the sphere, where the range to the north may differ from that to the east: where they are told.
    names : (str, str)
        Of the first two columns.
    time_unit : str
        Of time; may be empty.

    Returns
    -------
    list of Direction
        Those in space, then that of time.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> [direction.name for direction in directions_of(RBF([1.0, 2.0]), 2)]
    ['x', 'y']
    """
    found = []
    rotated = _part_of(kernel, RotatedMatern)
    if sphere and isinstance(rotated, RotatedMaternOnSphere):
        found += [Direction(name, "km", _from_center(n_columns, rotated, angle)) for name, angle in _axes(rotated)]
    elif sphere and _part_of(kernel, MaternOnSphere) is not None:
        found.append(Direction("east", "km", lambda h: _on_parallel(h, n_columns, latitude)))
        found.append(Direction("north", "km", lambda h: _on_meridian(h, n_columns, latitude)))
    elif sphere:
        found.append(Direction("any direction", "km", lambda h: _on_meridian(h, n_columns, 0.0)))
    elif rotated is not None:
        for name, angle in _axes(rotated):
            found.append(Direction(name, "", _along(np.pad(_unit(angle), (0, n_columns - 2)))))
    else:
        found += [Direction(name, "", _along(np.eye(n_columns)[axis])) for axis, name in enumerate(names)]
    if has_time:
        found.append(Direction("time", time_unit, _along(np.eye(n_columns)[2])))
    return found


def _axes(kernel: RotatedMatern) -> list[tuple[str, float]]:
    """Names of a long and a short axis, and their angles in degrees."""
    angles = {"long axis": kernel.angle, "short axis": (kernel.angle + 90) % 180}
    return [(f"{name} ({angle:.0f}°)", angle) for name, angle in angles.items()]


def _unit(angle: float) -> Floats:
    return np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])


def _from_center(n_columns: int, kernel: RotatedMaternOnSphere, angle: float) -> Callable[[Floats], Floats]:
    """Points at chords of length h from a kernel's center, along the great circle in a direction."""
    way, up = kernel.frame[:, :2] @ _unit(angle), kernel.frame[:, 2]

    def place(h: Floats) -> Floats:
        turn = np.radians(_angles(h, EARTH_RADIUS))[:, None]
        x, y, z = (np.cos(turn) * up + np.sin(turn) * way).T
        points = np.zeros((len(turn), n_columns))
        points[:, 0], points[:, 1] = np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
        return points

    return place


def _along(direction: Floats) -> Callable[[Floats], Floats]:
    return lambda h: np.asarray(h)[:, None] * direction


def _angles(h: Floats, radius: float) -> Floats:
    """Degrees along a circle of some radius, in kilometers, between points with chords of length h."""
    return np.asarray(np.degrees(2 * np.arcsin(np.minimum(np.asarray(h) / (2 * radius), 1.0))))


def _on_meridian(h: Floats, n_columns: int, latitude: float) -> Floats:
    points = np.zeros((len(h), n_columns))
    points[:, 1] = latitude - np.sign(latitude) * _angles(h, EARTH_RADIUS) if latitude else _angles(h, EARTH_RADIUS)
    return points


def _on_parallel(h: Floats, n_columns: int, latitude: float) -> Floats:
    points = np.zeros((len(h), n_columns))
    points[:, 0] = _angles(h, EARTH_RADIUS * max(float(np.cos(np.radians(latitude))), 1e-6))
    points[:, 1] = latitude
    return points


def _part_of(kernel: Kernel, kind: type[Any]) -> Any:
    """The first part of a kernel that is of a class; None where there is none."""
    if isinstance(kernel, kind):
        return kernel
    inner = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    return next(
        (found for one in inner if isinstance(one, Kernel) and (found := _part_of(one, kind)) is not None), None
    )


def length_scale_along(kernel: Kernel, direction: Direction) -> float:
    """How far a kernel's length scale reaches in a direction: the distance at which points are one of them apart.

    Parameters
    ----------
    kernel : scikit-learn kernel
    direction : Direction

    Returns
    -------
    float
        In the unit of the direction; infinite where the kernel does not vary that way.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = RBF([1.0, 3.0])
    >>> [round(length_scale_along(kernel, direction), 6) for direction in directions_of(kernel, 2)]
    [1.0, 3.0]
    """
    step = 1e-3  # on the sphere a kilometer and less is straight
    places = in_length_scales(kernel, direction.place(np.array([0.0, step])))
    apart = float(np.sqrt(((places[1] - places[0]) ** 2).sum()))
    return step / apart if apart else np.inf
