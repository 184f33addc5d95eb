"""Gaps in a raster, filled with predictions and their errors; tile by tile, in any amount of memory."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.backend import warn_caller
from compositegp.prediction import PredictionMethod
from compositegp.spatial.alignment import wanted_cells
from compositegp.spatial.axes import rasters_of
from compositegp.spatial.grid import Grid, grid_of
from compositegp.spatial.layers import Layers, check_samples, sample_layer
from compositegp.spatial.map_model import MapModel
from compositegp.spatial.raster_learning import learn_from_raster
from compositegp.spatial.tile_filling import TileFilling
from compositegp.spatial.tiles import count_observed

if TYPE_CHECKING:
    import xarray as xr


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
    check_samples(samples)
    if model is not None:
        model.check_arguments(log=log, kernel=kernel, prediction=prediction)
    array, values, grid = _read(data, variable, x, y, time, sphere, covariates)
    if model is not None:
        model.check_places(grid.sphere, grid.time is not None, grid.covariates, grid.time_unit)
    cells = wanted_cells(wanted, array, grid.axes, grid.sphere)
    if samples and _is_lazy(values):
        raise ValueError(
            "samples are drawn over the whole raster, but it is in chunks of Dask. Load it first: data.compute()."
        )
    counts = count_observed(values, grid)
    drawn: Any = None
    if counts.sum() == np.prod(grid.shape):
        warn_caller(f"{array.name or 'the raster'} has no missing cell: there is nothing to fill.", UserWarning)
        stacked = layers.of_values(values)
        if samples:
            drawn = np.repeat(np.asarray(values)[None], samples, axis=0)
    else:
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
        elif not counts.any():
            raise ValueError(
                f"{array.name or 'the raster'} has no observed value: there is nothing to predict from."
            )
        job = TileFilling.of(model.regressor, grid, counts, layers, latent)
        stacked = job.lazily(values, cells) if _is_lazy(values) else job.at_once(values, cells, n_jobs, verbose)
        if samples:
            drawn = job.drawn(np.asarray(values, dtype=np.float64), cells, samples, random_state)
    found = layers.dataset(stacked, array, grid.axes.dims, dict(array.attrs))
    if samples:
        name = str(array.name or "raster")
        found["samples"] = sample_layer(drawn, grid.axes.dims, {"long_name": name, **array.attrs})
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


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "dask")
