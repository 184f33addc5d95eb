"""The tiles of a raster, each predicted from the observations around it: at once, or lazily by Dask."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from compositegp.backend import Booleans, Floats, current_device, run_tasks
from compositegp.estimators import CompositeGPRegressor
from compositegp.posteriors import N_NEIGHBORS, Neighbors
from compositegp.prediction import chosen_neighbors
from compositegp.progress import ProgressBar
from compositegp.spatial.grid import Grid, Window
from compositegp.spatial.layers import Layers
from compositegp.spatial.raster_learning import observed_in, observed_of
from compositegp.spatial.tiles import Blocks, blocks_of, bounding_window, cells_in, tiles_of

_CANDIDATES = 2  # observations around a tile, for each one that a cell is predicted from


class TileFilling(NamedTuple):
    """What every tile needs to be predicted.

    Attributes
    ----------
    regressor : CompositeGPRegressor
    grid : Grid
    blocks : Blocks
        By which the observations around a tile are found.
    layers : Layers
    latent : bool
        Errors are those of the field without noise.
    enough : int
        Observations around every block of a tile, at least.
    """

    regressor: CompositeGPRegressor
    grid: Grid
    blocks: Blocks
    layers: Layers
    latent: bool
    enough: int

    @classmethod
    def of(
        cls, regressor: CompositeGPRegressor, grid: Grid, counts: Floats, layers: Layers, latent: bool
    ) -> "TileFilling":
        """From the observed cells in each block of a raster."""
        return cls(
            regressor, grid, Blocks(grid, counts, regressor.kernel_), layers, latent, _looked_at(regressor) + 1
        )

    def at_once(self, values: Any, cells: Any, n_jobs: int | None, verbose: bool) -> Floats:
        """All the layers, shape (layers, cells along each axis), from values in memory."""
        result = np.empty((len(self.layers), *self.grid.shape))
        tiles = tiles_of(self.grid)

        def keep(tile: Window, predicted: Floats) -> None:
            part = np.asarray(values[tile], dtype=np.float64)
            result[(slice(None), *tile)] = self.assemble(part, _part(cells, tile), tile, predicted)

        def on_a_thread(tile: Window) -> None:
            keep(tile, _predict(*self._task(values, cells, tile), self.layers, self.latent, n_jobs=1))

        with ProgressBar("filling", show=verbose) as bar:
            if n_jobs is None and not self._elsewhere:
                run_tasks(((on_a_thread, (tile,)) for tile in _reported(tiles, bar)), None)
                return result
            tasks = (
                delayed(_predict)(*self._task(values, cells, tile), self.layers, self.latent) for tile in tiles
            )
            found = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
            for tile, predicted in zip(_reported(tiles, bar), found, strict=True):
                keep(tile, predicted)
        return result

    @property
    def _elsewhere(self) -> bool:
        """Whether the work is to be done on a device, or by what joblib is configured for."""
        on_device = current_device() is not None or self.regressor.device is not None
        return on_device or effective_n_jobs(None) != 1

    def lazily(self, values: Any, cells: Any) -> Any:
        """All the layers as an array of Dask, each tile a chunk of it."""
        import dask
        import dask.array as da

        tiles = tiles_of(self.grid)
        starts = [sorted({tile[axis].start for tile in tiles}) for axis in range(len(self.grid.shape))]
        parts = np.empty([len(each) for each in starts], dtype=object)
        job = dask.delayed(self, traverse=False)
        for place, tile in zip(np.ndindex(parts.shape), tiles, strict=True):
            window, inside = self._window(tile)
            layers = dask.delayed(_predict_part)(job, tile, window, inside, values[tile], values[window], cells)
            shape = (len(self.layers), *(part.stop - part.start for part in tile))
            parts[place] = da.from_delayed(layers, shape, dtype=np.float64)
        return da.block([parts.tolist()] if parts.ndim == 1 else parts.tolist())

    def drawn(self, values: Floats, cells: Any, n_samples: int, random_state: int) -> Floats:
        """Joint draws, shape (samples, cells along each axis), with the observed cells as they are."""
        everything = self.grid.everything
        missing = self.missing(values, cells, everything)
        drawn: Floats = np.repeat(values[None], n_samples, axis=0)
        if missing.any():
            regressor = self.regressor.with_data(*observed_of(values, self.grid, everything))
            Z = self.grid.points(everything)[missing.ravel()]
            drawn[:, missing] = regressor.sample_field(Z, n_samples, random_state, latent=self.latent).T
        return drawn

    def assemble(self, part: Floats, cells: Any, tile: Window, predicted: Floats) -> Floats:
        """The layers of a tile from its values, and from predictions of its missing cells (layers, missing)."""
        found = self.layers.of_values(part)
        found[:, self.missing(part, cells, tile)] = predicted
        return np.asarray(found)

    def missing(self, part: Floats, cells: Any, tile: Window) -> Booleans:
        """Which cells of a tile are to be predicted: a boolean array of its shape."""
        found = np.isnan(part) & cells
        if self.grid.covariates:
            found &= np.isfinite(self.grid.points(tile)).all(axis=1).reshape(part.shape)
        return np.asarray(found)

    def _task(self, values: Any, cells: Any, tile: Window) -> tuple[CompositeGPRegressor | None, Floats]:
        """The regressor with the observations around a tile, and the points to predict."""
        part = np.asarray(values[tile], dtype=np.float64)
        Z = self.grid.points(tile)[self.missing(part, _part(cells, tile), tile).ravel()]
        if not len(Z):
            return None, Z
        window, inside = self._window(tile)
        return self.regressor.with_data(*observed_in(values, self.grid, window, inside)), Z

    def _window(self, tile: Window) -> tuple[Window, Booleans]:
        """The window with the observations around a tile, and which of its cells count."""
        near = np.zeros(self.blocks.counts.shape, dtype=bool)
        near[blocks_of(tile, self.grid)] = True
        chosen = self.blocks.near(near, self.enough)
        window = bounding_window(chosen, self.grid)
        return window, cells_in(chosen, window, self.grid)


def _predict(
    regressor: CompositeGPRegressor | None, Z: Floats, layers: Layers, latent: bool, n_jobs: int | None = None
) -> Floats:
    """Layers of predictions at some points: shape (layers, M)."""
    if regressor is None:
        return np.empty((len(layers), 0))
    return layers.of_distribution(regressor.set_params(n_jobs=n_jobs).predict_distribution(Z, latent=latent))


def _predict_part(
    job: TileFilling, tile: Window, window: Window, inside: Booleans, part: Any, around: Any, cells: Any
) -> Floats:
    """The layers of a tile from its values and those of its window, as Dask computes them."""
    part, around = np.asarray(part, dtype=np.float64), np.asarray(around, dtype=np.float64)
    Z = job.grid.points(tile)[job.missing(part, _part(cells, tile), tile).ravel()]
    regressor = job.regressor.with_data(*observed_of(around, job.grid, window, inside)) if len(Z) else None
    return job.assemble(part, _part(cells, tile), tile, _predict(regressor, Z, job.layers, job.latent))


def _reported(tiles: list[Window], bar: ProgressBar) -> Iterator[Window]:
    """The tiles one after the other, with their progress."""
    for number, tile in enumerate(tiles):
        bar(number, len(tiles))
        yield tile


def _part(cells: Any, tile: Window) -> Any:
    return cells if cells is True else cells[tile]


def _looked_at(regressor: CompositeGPRegressor) -> int:
    """How many of the nearest observations a prediction looks at; those of an exact prediction, at least."""
    curve, given = regressor.neighbor_curve_, getattr(regressor.prediction, "n_neighbors", "auto")
    chosen = Neighbors(given if isinstance(given, int) else 0) if curve is None else chosen_neighbors(curve)
    return max(_CANDIDATES * max(N_NEIGHBORS, chosen.size), chosen.reach)
