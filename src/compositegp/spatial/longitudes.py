"""Longitudes, which come back to themselves after 360 degrees."""

import numpy as np

from compositegp.backend import Floats

_WHOLE_GLOBE = 30.0  # degrees without a place, up to which places are taken to surround the globe


def unwrapped(longitudes: Floats) -> Floats:
    """Longitudes without a jump at the date line or at Greenwich; as they are, where there is none.

    Parameters
    ----------
    longitudes : array of shape (n,)
        In degrees.

    Examples
    --------
    >>> unwrapped(np.array([179.0, -179.0])), unwrapped(np.array([200.0, 210.0]))
    (array([179., 181.]), array([200., 210.]))
    """
    inside = np.sort(longitudes % 360.0)
    gaps = np.diff(np.append(inside, inside[0] + 360.0))
    if gaps.max() < _WHOLE_GLOBE or np.ptp(longitudes) <= 360.0 - gaps.max() + 1e-9:
        return longitudes
    start = inside[(int(np.argmax(gaps)) + 1) % len(inside)]
    along = (longitudes - start) % 360.0 + start
    return np.asarray(along) - 360.0 if along.min() >= 180.0 else np.asarray(along)


def turned_to(longitudes: Floats, middle: float) -> Floats:
    """Longitudes, each within 180 degrees of a middle.

    Examples
    --------
    >>> turned_to(np.array([-170.0, 10.0]), 180.0)
    array([190.,  10.])
    """
    return np.asarray((longitudes - middle + 180.0) % 360.0 - 180.0 + middle)
