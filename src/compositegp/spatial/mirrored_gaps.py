"""Gaps like those of a raster where it was observed: its own gaps, mirrored.

A likelihood is about cells among others, and says little about wide gaps. So the kernel is chosen in gaps of the shapes
and sizes that are to be filled: the gaps of the raster are laid over its observed cells as a mirror shows them, and
the cells that they hide are predicted from the others.
"""

from typing import Any

import numpy as np

from compositegp.backend import Booleans
from compositegp.spatial.grid import Grid, Window

FEWEST = 200  # observed cells under mirrored gaps from which they are used
_MOST = 0.5  # of the observed cells that mirrored gaps may hide
MIRRORS = ((True, True), (False, True), (True, False))  # turned by half a circle; east for west; south for north


def gaps_of(values: Any, cells: Any, window: Window) -> Booleans:
    """Cells of a window that are to be filled.

    Parameters
    ----------
    values : array of the grid's shape, of NumPy or of Dask
    cells : True, or boolean array of the grid's shape
        Cells that are wanted.
    window : Window
    """
    missing = np.isnan(np.asarray(values[window], dtype=np.float64))
    return np.asarray(missing & (cells if cells is True else cells[window]))


def mirrored_gaps(values: Any, cells: Any, grid: Grid, window: Window, mirror: tuple[bool, bool]) -> Booleans:
    """Which cells of a window are under the gaps of the raster, after these were mirrored.

    Parameters
    ----------
    values, cells, window
        As for `gaps_of`.
    grid : Grid
    mirror : (bool, bool)
        Whether y, and whether x, are mirrored.
    """
    source, order = list(window), [slice(None)] * len(window)
    for axis, turned in zip((-2, -1), mirror, strict=True):
        if turned:
            size, part = grid.shape[axis], window[axis]
            source[axis] = slice(size - part.stop, size - part.start)
            order[axis] = slice(None, None, -1)
    return np.asarray(gaps_of(values, cells, tuple(source))[tuple(order)])


def is_useful(held_out: Booleans) -> bool:
    """Whether mirrored gaps hide enough of the observed cells, and leave enough of them."""
    return bool(FEWEST <= np.count_nonzero(held_out) <= _MOST * len(held_out))
