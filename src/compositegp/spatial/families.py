"""The kernels that are compared for a map: in the plane or on the sphere, with time or without."""

import math
from collections.abc import Callable, Iterator

from sklearn.gaussian_process.kernels import Kernel, Matern, Product, Sum

from compositegp.kernels import MaternOnSphere, OnColumns
from compositegp.learning import kernel_family

_TIME_SMOOTHNESS = {"1/2": 0.5, "3/2": 1.5}
_WITH_TIME = ("Matern 3/2", "Matern 1/2", "Matern 5/2")


def map_kernels(*, sphere: bool, time: bool, variance: float) -> dict[str, Kernel]:
    """Kernels of points (x, y), (x, y, time), or either with further columns, which they do not see.

    In the plane there is one length scale for x and one for y; on the sphere one in kilometers and a flattening, by
    which the range to the north differs from that to the east. With time they are products of a kernel of space and
    one of time, with one range each.

    Parameters
    ----------
    sphere : bool
        Whether x and y are longitude and latitude.
    time : bool
        Whether the third column is time.
    variance : float
        Of the target, by which amplitudes are bounded.

    Examples
    --------
    >>> list(map_kernels(sphere=True, time=True, variance=1.0))[:2]
    ['Matern 3/2 × Matern 3/2 in time', 'Matern 3/2 × Matern 1/2 in time']
    """

    def in_space(part: Kernel) -> Kernel:
        return OnColumns(MaternOnSphere(nu=getattr(part, "nu", math.inf)) if sphere else part, [0, 1])

    family = kernel_family(1 if sphere else 2, variance)
    if not time:
        return {name: _placed(kernel, in_space) for name, kernel in family.items()}
    return dict(_with_time(family, in_space))


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
