"""Tiles of a raster, and the window of observations that each is predicted from.

Tiles are cut from the raster by cell numbers alone, and each is predicted by itself, from observations that are found
by the counts of observed cells in small blocks. So a result does not depend on how the raster is chunked in a file or
in Dask, and memory does not grow with the raster.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from compositegp.backend import Booleans, Floats
from compositegp.kernels import in_length_scales
from compositegp.spatial.grid import Grid, Window

BLOCK = 16  # cells along each side of a block, in space
TILE = 4  # blocks along each side of a tile, in space
_FIRST = 32  # nearest blocks that are looked at first
_STRIP = 64  # blocks along y that are counted at once


def block_shape(grid: Grid) -> tuple[int, ...]:
    """Cells of a block along (time,) y, x: a block has one time."""
    return (BLOCK, BLOCK) if grid.time is None else (1, BLOCK, BLOCK)


def count_observed(values: Any, grid: Grid) -> Floats:
    """Observed cells in each block: shape (blocks along each axis).

    Parameters
    ----------
    values : array of the grid's shape, of NumPy or of Dask
        NaN is not observed. It is read in strips.
    grid : Grid
    """
    size = block_shape(grid)
    shape = tuple(-(-cells // step) for cells, step in zip(grid.shape, size, strict=True))
    counts = np.zeros(shape)
    strip = _STRIP * BLOCK
    leadings: list[tuple[Any, ...]] = list(itertools.product(*(range(cells) for cells in grid.shape[:-2])))
    for leading in leadings:
        for start in range(0, grid.shape[-2], strip):
            part = np.asarray(values[(*leading, slice(start, start + strip))])
            if np.isinf(part).any():
                raise ValueError(
                    f"the raster has {int(np.isinf(part).sum())} or more infinite value(s). Mark them as missing."
                )
            sums = _block_sums(~np.isnan(part))
            row = start // BLOCK
            counts[(*leading, slice(row, row + len(sums)))] = sums
    return counts


def _block_sums(part: Booleans) -> Floats:
    rows, columns = (np.arange(0, cells, BLOCK) for cells in part.shape)
    return np.add.reduceat(np.add.reduceat(part.astype(np.float64), rows, axis=0), columns, axis=1)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a raster: how many observed cells each has, and where it is in the length scales of a kernel.

    Attributes
    ----------
    grid : Grid
    counts : array of the shape of the blocks
        Observed cells.
    kernel : scikit-learn kernel
    """

    grid: Grid
    counts: Floats
    kernel: Kernel

    @cached_property
    def _places(self) -> tuple[Floats, Floats]:
        """Centers (blocks, d′) and radii (blocks,) in length scales."""
        size, shape = block_shape(self.grid), self.counts.shape
        picked = []
        for corner in itertools.product(*[(0.0, 0.5, 1.0)] * len(size)):
            cells = [
                np.minimum(np.arange(n) * step + round(share * (step - 1)), most - 1)
                for n, step, most, share in zip(shape, size, self.grid.shape, corner, strict=True)
            ]
            picked.append(in_length_scales(self.kernel, _cells(self.grid, cells)))
        middle = picked[len(picked) // 2]
        radii = np.max([np.sqrt(((one - middle) ** 2).sum(axis=1)) for one in picked], axis=0)
        return middle, radii

    @cached_property
    def _tree(self) -> tuple[KDTree, Any]:
        used = np.flatnonzero(self.counts.ravel() > 0)
        return KDTree(self._places[0][used]), used

    def near(self, wanted: Booleans, enough: int) -> Booleans:
        """The blocks that hold the observations nearest to some blocks: a superset of the `enough` nearest of each.

        Parameters
        ----------
        wanted : boolean array of the shape of the blocks
        enough : int

        Returns
        -------
        boolean array of the shape of the blocks
        """
        centers, radii = self._places
        tree, used = self._tree
        chosen = np.zeros(self.counts.size, dtype=bool)
        counts = self.counts.ravel()
        for block in np.flatnonzero(wanted.ravel()).tolist():
            reach = self._reach(block, enough)
            if reach is None:
                chosen[used] = True
                break
            widest = float(radii[used].max())
            around = used[tree.query_ball_point(centers[block], reach + radii[block] + widest)]
            gap = np.sqrt(((centers[around] - centers[block]) ** 2).sum(axis=1)) - radii[around] - radii[block]
            chosen[around[gap <= reach]] = True
        return (chosen & (counts > 0)).reshape(self.counts.shape)

    def _reach(self, block: int, enough: int) -> float | None:
        """A distance from any point of a block within which there are enough observations; None if there are not."""
        centers, radii = self._places
        tree, used = self._tree
        look = _FIRST
        while True:
            distances, found = tree.query(centers[block], k=np.arange(1, min(look, len(used)) + 1))
            total = np.cumsum(self.counts.ravel()[used[found]])
            last = int(np.searchsorted(total, enough))
            if last < len(total):
                return float((distances[: last + 1] + radii[used[found[: last + 1]]]).max() + radii[block])
            if look >= len(used):
                return None
            look *= 4


def _cells(grid: Grid, cells: list[Any]) -> Floats:
    """Some cells, given by numbers along each axis, as points (cells, columns)."""
    *times, rows, columns = cells
    x, y = (
        (grid.x[np.ix_(rows, columns)], grid.y[np.ix_(rows, columns)])
        if grid.x.ndim == 2
        else np.meshgrid(grid.x[columns], grid.y[rows])
    )
    parts = [x, y]
    if grid.time is not None:
        hours = grid.time[times[0]]
        parts = [np.broadcast_to(part, (len(hours), *x.shape)) for part in parts]
        parts.append(np.broadcast_to(hours[:, None, None], parts[0].shape))
    parts += [np.zeros(parts[0].shape)] * len(grid.covariates)  # which nearness does not depend on
    return np.stack(parts, axis=-1).reshape(-1, grid.n_columns)


def tiles_of(grid: Grid) -> list[Window]:
    """All the tiles of a raster, in the order of the axes."""
    steps = [TILE * BLOCK] * 2 if grid.time is None else [1, TILE * BLOCK, TILE * BLOCK]
    starts = [range(0, cells, step) for cells, step in zip(grid.shape, steps, strict=True)]
    return [
        tuple(
            slice(start, min(start + step, cells))
            for start, step, cells in zip(corner, steps, grid.shape, strict=True)
        )
        for corner in itertools.product(*starts)
    ]


def blocks_of(window: Window, grid: Grid) -> Window:
    """The blocks that a window of cells touches."""
    return tuple(
        slice(part.start // step, -(-part.stop // step))
        for part, step in zip(window, block_shape(grid), strict=True)
    )


def bounding_window(chosen: Booleans, grid: Grid) -> Window:
    """The smallest window of cells with all of some blocks."""
    window = []
    for axis, (step, cells) in enumerate(zip(block_shape(grid), grid.shape, strict=True)):
        others = tuple(other for other in range(chosen.ndim) if other != axis)
        numbers = np.flatnonzero(chosen.any(axis=others))
        window.append(slice(int(numbers[0]) * step, min((int(numbers[-1]) + 1) * step, cells)))
    return tuple(window)


def cells_in(chosen: Booleans, window: Window, grid: Grid) -> Booleans:
    """Which cells of a window are in the chosen blocks: a boolean array of the window's shape."""
    numbers = [
        np.arange(part.start, part.stop) // step for part, step in zip(window, block_shape(grid), strict=True)
    ]
    return np.asarray(chosen[np.ix_(*numbers)])
