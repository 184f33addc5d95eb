"""A model of a raster, learned from its observed cells, or from some regions of them where they are many."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from compositegp.backend import Floats, Indices
from compositegp.prediction import PredictionMethod
from compositegp.spatial.grid import Grid, Window
from compositegp.spatial.map_model import MapModel, check_targets, fit_regressor, new_regressor
from compositegp.spatial.raster_gaps import gaps_of

if TYPE_CHECKING:
    import xarray as xr

LEARNED = 200_000  # observed cells that are learned from, at most about
_REGION = {2: (128, 128), 3: (16, 32, 32)}  # cells of a region, along (time,) y, x


def learn_from_raster(
    array: "xr.DataArray",
    values: Any,
    grid: Grid,
    counts: Floats,
    wanted: Any,
    *,
    log: bool,
    kernel: Any,
    prediction: PredictionMethod | str,
    random_state: int,
    n_jobs: int | None,
) -> MapModel:
    """Learn the model of a raster.

    Parameters
    ----------
    array : DataArray
        For its name and attributes.
    values : array of the grid's shape, of NumPy or of Dask
        NaN is not observed.
    grid : Grid
    counts : array of the shape of the blocks
        Observed cells in each block.
    wanted : True, or boolean array of the grid's shape
        Cells that are to be filled, where they are missing.
    log, kernel, prediction, random_state, n_jobs
        As for `fill`.
    """
    name, n_observed = str(array.name or "the raster"), int(counts.sum())
    if n_observed < 3:
        check_targets(np.zeros(n_observed), False, name)
    X, y, cells = _sample(values, grid, n_observed, random_state)
    check_targets(y, log, name)
    regressor = new_regressor(
        X,
        y,
        sphere=grid.sphere,
        has_time=grid.time is not None,
        n_covariates=len(grid.covariates),
        log=log,
        kernel=kernel,
        prediction=prediction,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    gaps = gaps_of(values, wanted, grid, counts, cells, random_state)
    fit_regressor(regressor, X, y, None, kernel is None, gaps)
    notes = (
        [] if len(y) == n_observed else [f"Learned from {len(y)} of {n_observed} observed cells, in whole regions."]
    )
    return MapModel(
        regressor,
        grid.sphere,
        grid.time is not None,
        tuple(grid.covariates),
        name,
        str(array.attrs.get("units", "")),
        n_observed,
        X,
        y,
        notes=tuple(notes),
        time_unit=grid.time_unit,
    )


def _sample(
    values: Any, grid: Grid, n_observed: int, random_state: int
) -> tuple[Floats, Floats, npt.NDArray[np.int32]]:
    """Observed cells as points, targets and numbers along each axis.

    All of them, or those of some whole regions, so that distances stay.
    """
    regions = _regions(grid)
    if n_observed > LEARNED:
        regions = [regions[number] for number in np.random.default_rng(random_state).permutation(len(regions))]
    points, targets, cells, total = [], [], [], 0
    for window in regions:
        if total >= LEARNED and n_observed > LEARNED:
            break
        part = np.asarray(values[window], dtype=np.float64)
        X, observed = _observed(part, grid, window, True)
        points.append(X)
        targets.append(part.ravel()[observed])
        first = np.array([along.start for along in window])
        cells.append(np.column_stack(np.unravel_index(observed, part.shape)) + first)
        total += len(X)
    return np.concatenate(points), np.concatenate(targets), np.concatenate(cells).astype(np.int32)


def observed_in(values: Any, grid: Grid, window: Window, chosen: Any = True) -> tuple[Floats, Floats]:
    """Observed cells of a window, among the chosen ones, as points (n, columns) and targets (n,)."""
    part = np.asarray(values[window], dtype=np.float64)
    return observed_of(part, grid, window, chosen)


def observed_of(part: Floats, grid: Grid, window: Window, chosen: Any = True) -> tuple[Floats, Floats]:
    """The same from the values of the window."""
    X, observed = _observed(part, grid, window, chosen)
    return X, part.ravel()[observed]


def _observed(part: Floats, grid: Grid, window: Window, chosen: Any) -> tuple[Floats, Indices]:
    """Observed cells of a window, among the chosen ones: points (n, columns), and numbers of cells (n,)."""
    observed = np.flatnonzero(~np.isnan(part) & chosen)
    X = grid.points(window)[observed]
    complete = np.isfinite(X).all(axis=1)  # of covariates
    return X[complete], observed[complete]


def _regions(grid: Grid) -> list[Window]:
    size = _REGION[len(grid.shape)]
    starts = [range(0, cells, step) for cells, step in zip(grid.shape, size, strict=True)]
    return [
        tuple(
            slice(start, min(start + step, cells))
            for start, step, cells in zip(corner, size, grid.shape, strict=True)
        )
        for corner in itertools.product(*starts)
    ]
