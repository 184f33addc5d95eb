"""Gaps of a raster, laid over its observed cells: on what terms missing cells will be predicted.

Around some missing cells it is noted which cells are observed. An observed cell is then predicted as if it were such a
missing cell: without the observed cells that would be missing if the raster were moved so that the one falls on the
other. So gaps have the shapes and widths of those that are to be filled, and lie anywhere in the raster.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from compositegp.backend import Booleans, Floats, Indices
from compositegp.spatial.grid import Grid, Window
from compositegp.spatial.tiles import block_shape

_REACH = {2: (96, 96), 3: (6, 32, 32)}  # cells to either side of a missing cell that are noted, along (time,) y, x
_BLOCKS = 64  # blocks from which missing cells are taken
_CELLS = 4  # missing cells from each of them, at most


@dataclass(frozen=True, eq=False)
class RasterGaps:
    """Gaps of a raster over its observed cells; see `Gaps`.

    Attributes
    ----------
    observed : boolean array of shape (gaps, 2 r + 1 along each axis)
        Which cells are observed around some missing cells; none beyond the raster.
    cells : int array of shape (n, axes)
        Numbers of the observed cells along each axis.
    which : int array of shape (n,)
        Which of the gaps is laid over each observed cell.
    """

    observed: Booleans
    cells: npt.NDArray[np.int32]
    which: Indices

    def hides(self, rows: Indices, near: Indices) -> Booleans:
        """Which of the observed cells near to some are missing there; cells out of reach are not."""
        reach = np.array(self.observed.shape[1:]) // 2
        steps = self.cells[near] - self.cells[rows][:, None, :] + reach
        inside = ((steps >= 0) & (steps <= 2 * reach)).all(axis=-1)
        steps[~inside] = 0
        there = self.observed[(self.which[rows][:, None], *np.moveaxis(steps, -1, 0))]
        return np.asarray(inside & ~there)


def gaps_of(
    values: Any, wanted: Any, grid: Grid, counts: Floats, cells: npt.NDArray[np.int32], random_state: int
) -> RasterGaps | None:
    """The gaps of a raster, over some of its observed cells.

    Parameters
    ----------
    values : array of the grid's shape, of NumPy or of Dask
        NaN is not observed.
    wanted : True, or boolean array of the grid's shape
        Cells that are to be filled, where they are missing.
    grid : Grid
    counts : array of the shape of the blocks
        Observed cells in each block.
    cells : int array of shape (n, axes)
        The observed cells that are learned from.
    random_state : int

    Returns
    -------
    RasterGaps or None
        None where no missing cell is to be filled.
    """
    rng = np.random.default_rng(random_state)
    missing = _sizes(grid, counts.shape) - counts
    if not missing.any():
        return None
    share = (missing / missing.sum()).ravel()
    numbers, times = np.unique(rng.choice(missing.size, size=_BLOCKS, p=share), return_counts=True)
    found = []
    for number, repeats in zip(numbers, times, strict=True):
        found += _around(values, wanted, grid, np.unravel_index(number, counts.shape), _CELLS * int(repeats), rng)
    if not found:
        return None
    return RasterGaps(np.stack(found), cells, rng.integers(len(found), size=len(cells)))


def _around(
    values: Any, wanted: Any, grid: Grid, block: tuple[Any, ...], most: int, rng: np.random.Generator
) -> list[Booleans]:
    """Which cells are observed around some of the missing cells of a block."""
    size, reach = block_shape(grid), _REACH[len(grid.shape)]
    starts = [int(place) * step for place, step in zip(block, size, strict=True)]
    stops = [min(start + step, cells) for start, step, cells in zip(starts, size, grid.shape, strict=True)]
    window: Window = tuple(
        slice(max(start - far, 0), min(stop + far, cells))
        for start, stop, far, cells in zip(starts, stops, reach, grid.shape, strict=True)
    )
    beyond = [
        (far - (start - part.start), far - (part.stop - stop))
        for start, stop, far, part in zip(starts, stops, reach, window, strict=True)
    ]
    observed = np.pad(~np.isnan(np.asarray(values[window], dtype=np.float64)), beyond)
    own: Window = tuple(slice(start, stop) for start, stop in zip(starts, stops, strict=True))
    inner = tuple(slice(far, far + stop - start) for start, stop, far in zip(starts, stops, reach, strict=True))
    missing = ~observed[inner] & (wanted if wanted is True else wanted[own])
    if grid.covariates:
        missing &= np.isfinite(grid.points(own)).all(axis=1).reshape(missing.shape)
    places = np.argwhere(missing)
    chosen = places[np.sort(rng.permutation(len(places))[:most])]
    return [
        observed[tuple(slice(at, at + 2 * far + 1) for at, far in zip(place, reach, strict=True))]
        for place in chosen
    ]


def _sizes(grid: Grid, shape: tuple[int, ...]) -> Floats:
    """Cells of each block: shape (blocks along each axis)."""
    sizes = np.ones(shape)
    for axis, (step, cells) in enumerate(zip(block_shape(grid), grid.shape, strict=True)):
        along = np.minimum(step, cells - step * np.arange(shape[axis]))
        sizes *= along.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return sizes
