"""Stations mapped to a grid: kriging with a drift, of points or of averages over cells."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp import functionals
from compositegp.backend import Floats
from compositegp.estimators import CompositeGPRegressor
from compositegp.prediction import PredictionMethod
from compositegp.progress import ProgressBar
from compositegp.spatial.alignment import wanted_cells
from compositegp.spatial.grid import Grid, Window, is_even
from compositegp.spatial.layers import Layers, check_samples, sample_layer
from compositegp.spatial.map_model import MapModel, fit_regressor, new_regressor
from compositegp.spatial.stations import Stations, read_stations
from compositegp.spatial.target_grid import target_grid

if TYPE_CHECKING:
    import xarray as xr

_TILE = 128  # cells along each side that are predicted at once
_NODES = 5  # points along each side of a cell by which its average is computed


def krige(
    frame: Any,
    *,
    target: str,
    x: str | None = None,
    y: str | None = None,
    grid: Any = None,
    count: int | tuple[int, int] | None = None,
    covariates: "Mapping[str, xr.DataArray] | Sequence[str]" = (),
    noise_variance: str | None = None,
    support: Any = None,
    sphere: bool | str = "auto",
    wanted: "xr.DataArray | None" = None,
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
    """Map values at stations to a grid.

    A Gaussian process is learned from the stations, and every cell is predicted from the stations around it: ordinary
    kriging, with covariates kriging with an external drift, whose coefficients are learned together with the rest.

    Parameters
    ----------
    frame : pandas DataFrame or GeoPandas GeoDataFrame
        One row a station. Rows without a value or a place are left out.
    target : str
        Column to map.
    x, y : str, optional
        Columns of the coordinates; of a GeoDataFrame its points, else lon and lat or x and y.
    grid : float, (float, float), DataArray or Dataset, optional
        The step between cells, steps of x and of y, or a raster whose cells are taken.
    count : int or (int, int), optional
        In the place of `grid`: cells along x and y, or along the longer side.
    covariates : mapping of str to DataArray, or sequence of str
        Columns whose linear drift is part of the mean. Their values on the grid are given as rasters, or as variables
        of the Dataset `grid`; a raster on other cells is interpolated, also to stations that lack the column.
    noise_variance : str, optional
        Column with the variance of each station's measurement error, in addition to what is learned.
    support : "cell" or (float, float), optional
        Predict averages over a rectangle of this size around each cell's center, not values at points. Errors are those
        of the average of the field itself, without measurement noise.
    sphere : bool or "auto"
        Whether x and y are longitude and latitude in degrees, so that distances are measured on the sphere, in
        kilometers. ``auto``: by the coordinate reference system, else by names.
    wanted : DataArray of bool, optional
        Cells of the grid that are to be predicted, such as land; the others are missing.
    samples : int
        Joint draws of the field, which honor the stations: a layer ``samples``, for volumes and for shares of an area.
    log, quantiles, above, latent, kernel, prediction, random_state, n_jobs, verbose
        As for `fill`.
    model : MapModel, optional
        A model that `learn_stations` has learned, in the place of learning one.

    Returns
    -------
    Dataset
        ``mean``, ``std``, ``quantiles``, with `above` ``exceedance``, and with `samples` ``samples``, on the grid.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> stations = pd.DataFrame(rng.uniform(0, 10, size=(80, 2)), columns=["x", "y"])
    >>> stations["rain"] = np.sin(stations.x) + stations.y
    >>> krige(stations, target="rain", grid=0.5)["mean"].sizes
    Frozen({'y': 21, 'x': 21})
    """
    layers = Layers.checked(quantiles, above)
    check_samples(samples)
    if model is not None:
        model.check_arguments(log=log, kernel=kernel, prediction=prediction)
    if support is not None and (log or (model is not None and model.has_logarithm)):
        raise ValueError("support averages the field itself, not its logarithm: do without log.")
    if support is not None and samples:
        raise ValueError("samples are values at points: average draws on a finer grid in the place of support.")
    named = _named(covariates)
    stations = _stations(frame, x, y, target, named, noise_variance, sphere, log)
    if model is not None:
        model.check_places(stations.sphere, False, stations.covariates)
    template, cells = target_grid(stations, grid, count, named)
    chosen = np.broadcast_to(wanted_cells(wanted, template, cells.axes, cells.sphere), cells.shape)
    sizes = _sizes(support, cells)
    if model is None:
        model = _learn(stations, frame, log, kernel, prediction, random_state, n_jobs)
    regressor = model.regressor.with_data(stations.points, stations.values, stations.noise_variance)
    regressor.set_params(n_jobs=n_jobs)
    stacked = np.full((len(layers), *cells.shape), np.nan)
    tiles = list(_tiles(cells.shape))
    with ProgressBar("mapping", show=verbose) as bar:
        for number, tile in enumerate(tiles):
            Z = cells.points(tile)
            rows = np.isfinite(Z).all(axis=1) & chosen[tile].ravel()
            if rows.any():
                part = np.full((len(layers), len(Z)), np.nan)
                part[:, rows] = _predict(regressor, Z[rows], layers, latent, sizes, cells.sphere)
                stacked[(slice(None), *tile)] = part.reshape(len(layers), *(one.stop - one.start for one in tile))
            bar(number + 1, len(tiles))
    attributes = _attributes(frame, target)
    found = layers.dataset(stacked, template, cells.axes.dims, attributes)
    if samples:
        mapped = np.isfinite(stacked[0])
        Z = cells.points(cells.everything)[mapped.ravel()]
        drawn = np.full((samples, *cells.shape), np.nan)
        drawn[:, mapped] = regressor.sample_field(Z, samples, random_state, latent=latent).T
        found["samples"] = sample_layer(drawn, cells.axes.dims, attributes)
    return found


def learn_stations(
    frame: Any,
    *,
    target: str,
    x: str | None = None,
    y: str | None = None,
    covariates: "Mapping[str, xr.DataArray] | Sequence[str]" = (),
    noise_variance: str | None = None,
    sphere: bool | str = "auto",
    log: bool = False,
    kernel: Any = None,
    prediction: PredictionMethod | str = "nearest",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> tuple[MapModel, Stations]:
    """Learn the model of stations, for `krige`: the parameters are those of `krige`; the stations come with it."""
    stations = _stations(frame, x, y, target, _named(covariates), noise_variance, sphere, log)
    return _learn(stations, frame, log, kernel, prediction, random_state, n_jobs), stations


def _named(covariates: Any) -> dict[str, Any]:
    return dict(covariates) if isinstance(covariates, Mapping) else {str(name): None for name in covariates}


def _stations(
    frame: Any, x: Any, y: Any, target: str, covariates: dict[str, Any], noise: str | None, sphere: Any, log: bool
) -> Stations:
    return read_stations(
        frame, x=x, y=y, target=target, covariates=covariates, noise_variance=noise, sphere=sphere, log=log
    )


def _learn(
    stations: Stations, frame: Any, log: bool, kernel: Any, prediction: Any, random_state: int, n_jobs: int | None
) -> MapModel:
    regressor = new_regressor(
        stations.points,
        stations.values,
        sphere=stations.sphere,
        has_time=False,
        n_covariates=len(stations.covariates),
        log=log,
        kernel=kernel,
        prediction=prediction,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    fit_regressor(regressor, stations.points, stations.values, stations.noise_variance, kernel is None)
    unit = str(_attributes(frame, stations.target).get("units", ""))
    return MapModel(
        regressor,
        stations.sphere,
        False,
        tuple(stations.covariates),
        stations.target,
        unit,
        len(stations.values),
        stations.points,
        stations.values,
        stations.noise_variance,
        stations.notes,
    )


def _attributes(frame: Any, target: str) -> dict[str, Any]:
    """Attributes of the target: its name, and its unit where the data frame's attrs have one."""
    units = getattr(frame, "attrs", {}).get("units", {})
    found = {"long_name": target}
    return found | {"units": units[target]} if isinstance(units, Mapping) and target in units else found


def _tiles(shape: tuple[int, ...]) -> Iterator[Window]:
    for row in range(0, shape[0], _TILE):
        for column in range(0, shape[1], _TILE):
            yield slice(row, min(row + _TILE, shape[0])), slice(column, min(column + _TILE, shape[1]))


def _sizes(support: Any, grid: Grid) -> Floats | None:
    """Width and height of the rectangles to average over."""
    if support is None:
        return None
    if isinstance(support, str):
        if support != "cell":
            raise ValueError(f'support must be "cell" or a width and a height; found {support!r}.')
        if grid.x.ndim == 2 or min(len(grid.x), len(grid.y)) < 2:
            raise ValueError('support="cell" needs a grid of several rows and columns. Give a width and a height.')
        if not (is_even(grid.x) and is_even(grid.y)):
            raise ValueError(
                'support="cell" needs rows and columns that are evenly spaced. Give a width and a height, or a grid '
                "of even steps."
            )
        return np.array([np.abs(np.diff(axis)).mean() for axis in (grid.x, grid.y)])
    sizes = np.broadcast_to(np.asarray(support, dtype=np.float64), 2)
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise ValueError(f'support must be "cell" or a positive width and height; found {support!r}.')
    return sizes


def _predict(
    regressor: CompositeGPRegressor, Z: Floats, layers: Layers, latent: bool, sizes: Floats | None, sphere: bool
) -> Floats:
    """Layers of predictions at points, or of averages over rectangles around them: shape (layers, M)."""
    if sizes is None:
        return layers.of_distribution(regressor.predict_distribution(Z, latent=latent))
    corners, weights = functionals.box(-sizes / 2, sizes / 2, _NODES)
    sets = np.repeat(Z[:, None, :], len(corners), axis=1)
    sets[..., :2] += corners
    shares = np.broadcast_to(weights, sets.shape[:2])
    if sphere:  # a degree of longitude is shorter near the poles, and no cell reaches over one
        sets[..., 1] = np.clip(sets[..., 1], -90.0, 90.0)
        shares = shares * np.cos(np.deg2rad(sets[..., 1]))
    averages: Any = functionals.average(sets, list(shares))
    return layers.of_distribution(regressor.predict_distribution(averages, latent=True))
