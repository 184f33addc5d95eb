"""Gaps in a raster, filled with predictions and their errors; tile by tile, in any amount of memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from compositegp.backend import Booleans, Floats, current_device, run_tasks, warn_caller
from compositegp.estimators import CompositeGPRegressor
from compositegp.posteriors import N_NEIGHBORS, Neighbors
from compositegp.prediction import PredictionMethod, chosen_neighbors
from compositegp.progress import ProgressBar
from compositegp.spatial.alignment import wanted_cells
from compositegp.spatial.axes import rasters_of
from compositegp.spatial.grid import Grid, Window, grid_of
from compositegp.spatial.layers import Layers, sample_layer
from compositegp.spatial.map_model import MapModel
from compositegp.spatial.raster_learning import learn_from_raster, observed_in, observed_of
from compositegp.spatial.tiles import Blocks, blocks_of, bounding_window, cells_in, count_observed, tiles_of

if TYPE_CHECKING:
    import xarray as xr

_CANDIDATES = 2  # observations around a tile, for each one that a cell is predicted from


def fill(
    data: "xr.DataArray | xr.Dataset",
    variable: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    sphere: bool | str = "auto",
    wanted: "xr.DataArray | None" = None,
    covariates: "Mapping[str, xr.DataArray] | Sequence[str] | None" = None,
    log: bool = False,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    above: float | Sequence[float] | None = None,
    samples: int = 0,
    latent: bool = False,
    kernel: Any = None,
    prediction: PredictionMethod | str = "nearest",
    model: MapModel | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> "xr.Dataset":
    """Fill the gaps of a raster.

    A Gaussian process is learned from the observed cells, and every missing cell is predicted from the observed cells
    around it. Of more than 2,048 observed cells kernel, hyper-parameters and errors are learned in gaps of the same
    shapes and widths as those to be filled, laid over observed cells. What was observed stays as it is, with an error
    of zero. The work goes from tile to tile, so that the result does not depend on how the raster is chunked; of a
    raster of Dask the result is lazy, and computing it needs memory for some tiles only.

    Parameters
    ----------
    data : DataArray or Dataset
        Axes y and x, or time, y and x, in any order. A missing cell is NaN.
    variable : str, optional
        Which variable of a Dataset; may be left out where there is only one.
    x, y, time : str, optional
        Names of the axes; found by names and attributes (CF conventions) where they are left out. Times are in UTC.
    sphere : bool or "auto"
        Whether x and y are longitude and latitude in degrees, so that distances are measured on the sphere, in
        kilometers. ``auto``: by the coordinate reference system, else by units, else by names.
    wanted : DataArray of bool, optional
        Cells that are to be filled, such as land; the others stay missing.
    covariates : mapping of str to DataArray, or names of variables in the Dataset, optional
        Rasters whose linear drift is part of the mean. Cells where one is missing stay missing.
    log : bool
        Model the logarithm: predictions are log-normal, and never negative.
    quantiles : sequence of float
    above : float or sequence of float, optional
        Thresholds; the probability of a value over each is a layer.
    samples : int
        Joint draws of the missing cells, which honor the observed ones: a layer ``samples``, for what is no average,
        such as the share of an area over a threshold. They need the whole raster in memory.
    latent : bool
        False: errors are those of a new observation, measurement noise included. True: of the field without noise.
    kernel : scikit-learn kernel, list or dict of kernels, optional
        Of points (x, y), or (x, y, time); by default the data choose among several.
    prediction : PredictionMethod or str
        As for `CompositeGPRegressor`; by default from the nearest observations.
    model : MapModel, optional
        A model that `learn_raster` has learned, in the place of learning one.
    random_state, n_jobs
        As for `CompositeGPRegressor`.
    verbose : bool
        Show a progress bar on a terminal.

    Returns
    -------
    Dataset
        With the coordinates of `data`: ``mean``, ``std``, ``quantiles``, with `above` ``exceedance``, and with
        `samples` ``samples``.

    Examples
    --------
    >>> import xarray as xr
    >>> rows, columns = np.mgrid[0:20, 0:25]
    >>> field = xr.DataArray(np.sin(rows / 5) + np.cos(columns / 7), dims=("y", "x"), name="height")
    >>> filled = fill(field.where((rows < 8) | (columns > 12)))
    >>> float(abs(filled["mean"] - field).max()) < 0.2, float(filled["std"].min())
    (True, 0.0)
    """
    layers = Layers.checked(quantiles, above)
    array, values, grid = _read(data, variable, x, y, time, sphere, covariates)
    cells = wanted_cells(wanted, array, grid.axes, grid.sphere)
    if samples and _is_lazy(values):
        raise ValueError(
            "samples are drawn over the whole raster, but it is in chunks of Dask. Load it first: data.compute()."
        )
    counts = count_observed(values, grid)
    if counts.sum() == np.prod(grid.shape):
        warn_caller(f"{array.name or 'the raster'} has no missing cell: there is nothing to fill.", UserWarning)
        return layers.dataset(layers.of_values(np.asarray(values)), array, grid.axes.dims, dict(array.attrs))
    if model is None:
        model = learn_from_raster(
            array,
            values,
            grid,
            counts,
            cells,
            log=log,
            kernel=kernel,
            prediction=prediction,
            random_state=random_state,
            n_jobs=n_jobs,
        )
    _check_model(model, grid)
    enough = _looked_at(model.regressor) + 1
    job = _Job(model.regressor, grid, Blocks(grid, counts, model.regressor.kernel_), layers, latent, enough)
    stacked = job.lazily(values, cells) if _is_lazy(values) else job.at_once(values, cells, n_jobs, verbose)
    found = layers.dataset(stacked, array, grid.axes.dims, dict(array.attrs))
    if samples:
        found["samples"] = job.drawn(np.asarray(values, dtype=np.float64), cells, samples, random_state, array)
    found.attrs = dict(data.attrs) if hasattr(data, "data_vars") else {}
    return found.transpose(..., *array.dims)


def learn_raster(
    data: "xr.DataArray | xr.Dataset",
    variable: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    sphere: bool | str = "auto",
    wanted: "xr.DataArray | None" = None,
    covariates: "Mapping[str, xr.DataArray] | Sequence[str] | None" = None,
    log: bool = False,
    kernel: Any = None,
    prediction: PredictionMethod | str = "nearest",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> MapModel:
    """Learn the model of a raster, for `fill`: the parameters are those of `fill`.

    Examples
    --------
    >>> import xarray as xr
    >>> rows, columns = np.mgrid[0:20, 0:25]
    >>> field = xr.DataArray(np.sin(rows / 5) + np.cos(columns / 7), dims=("y", "x"), name="height")
    >>> learn_raster(field.where((rows < 8) | (columns > 12))).n_observed
    344
    """
    array, values, grid = _read(data, variable, x, y, time, sphere, covariates)
    return learn_from_raster(
        array,
        values,
        grid,
        count_observed(values, grid),
        wanted_cells(wanted, array, grid.axes, grid.sphere),
        log=log,
        kernel=kernel,
        prediction=prediction,
        random_state=random_state,
        n_jobs=n_jobs,
    )


class _Job(NamedTuple):
    """What every tile needs to be predicted."""

    regressor: CompositeGPRegressor
    grid: Grid
    blocks: Blocks
    layers: Layers
    latent: bool
    enough: int  # observations around every block of a tile, at least

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

    def drawn(self, values: Floats, cells: Any, n_samples: int, random_state: int, array: "xr.DataArray") -> Any:
        """Joint draws of the missing cells, as a layer; the observed cells are in each as they are."""
        everything = self.grid.everything
        missing = self.missing(values, cells, everything)
        layer = sample_layer(
            self.regressor.with_data(*observed_of(values, self.grid, everything)),
            self.grid.points(everything)[missing.ravel()],
            missing,
            n_samples,
            random_state,
            self.latent,
            self.grid.axes.dims,
            {"long_name": str(array.name or "raster"), **array.attrs},
        )
        observed = ~np.isnan(values)
        layer[1][:, observed] = values[observed]
        return layer

    def assemble(self, part: Floats, cells: Any, tile: Window, predicted: Floats) -> Floats:
        """The layers of a tile from its values, and from predictions of its missing cells (layers, missing)."""
        found = self.layers.of_values(part)
        found[:, self.missing(part, cells, tile)] = predicted
        return found

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
    job: _Job, tile: Window, window: Window, inside: Booleans, part: Any, around: Any, cells: Any
) -> Floats:
    """The layers of a tile from its values and those of its window, as Dask computes them."""
    part, around = np.asarray(part, dtype=np.float64), np.asarray(around, dtype=np.float64)
    Z = job.grid.points(tile)[job.missing(part, _part(cells, tile), tile).ravel()]
    regressor = job.regressor.with_data(*observed_of(around, job.grid, window, inside)) if len(Z) else None
    return job.assemble(part, _part(cells, tile), tile, _predict(regressor, Z, job.layers, job.latent))


def _read(
    data: Any, variable: str | None, x: Any, y: Any, time: Any, sphere: Any, covariates: Any
) -> tuple["xr.DataArray", Any, Grid]:
    """The raster, its values in the order of the grid's axes, and the grid."""
    array = choose_variable(data, variable)
    if covariates is not None and not isinstance(covariates, Mapping):
        if not hasattr(data, "data_vars"):
            raise ValueError("covariates are names, but data is not a Dataset. Give a mapping of names to rasters.")
        covariates = {str(name): choose_variable(data, name) for name in covariates}
    grid = grid_of(array, x=x, y=y, time=time, sphere=sphere, covariates=covariates)
    values = array.transpose(*grid.axes.dims).data
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{array.name or 'the raster'} must have numbers; found {values.dtype}.")
    return array, values, grid


def choose_variable(data: Any, variable: str | None) -> "xr.DataArray":
    """A variable of a Dataset, by its name or because it is the only raster; a DataArray is itself."""
    if not hasattr(data, "data_vars"):
        if not hasattr(data, "dims"):
            raise ValueError(f"data must be an xarray DataArray or Dataset; found {type(data).__name__}.")
        return data
    names = rasters_of(data)
    if variable is None:
        if len(names) != 1:
            raise ValueError(
                f"data has {len(names)} rasters: {', '.join(names) or 'none'}. Say which: variable=..."
            )
        return data[names[0]]
    if variable not in data.data_vars:
        raise ValueError(f"data has no variable {variable!r}; it has {', '.join(names) or 'no raster'}.")
    return data[variable]


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


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "dask")


def _check_model(model: MapModel, grid: Grid) -> None:
    if (model.sphere, model.has_time, len(model.covariates)) != (
        grid.sphere,
        grid.time is not None,
        len(grid.covariates),
    ):
        raise ValueError(
            "model was learned from places of another kind: the sphere, time and covariates must be as they were there."
        )
