"""A model of a raster, learned from its observed cells, or from some regions of them where they are many."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from compositegp.backend import Booleans, Floats
from compositegp.prediction import PredictionMethod
from compositegp.spatial.grid import Grid, Window
from compositegp.spatial.map_model import MapModel, check_targets, fit_regressor, new_regressor
from compositegp.spatial.mirrored_gaps import MIRRORS, is_useful, mirrored_gaps

if TYPE_CHECKING:
    import xarray as xr

LEARNED = 200_000  # observed cells that are learned from, at most about
_REGION = {2: (128, 128), 3: (16, 32, 32)}  # cells of a region, along (time,) y, x


def learn_from_raster(
    array: "xr.DataArray",
    values: Any,
    grid: Grid,
    n_observed: int,
    cells: Any,
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
    n_observed : int
        Observed cells.
    cells : True, or boolean array of the grid's shape
        Cells that are to be filled, where they are missing.
    log, kernel, prediction, random_state, n_jobs
        As for `fill`.
    """
    name = str(array.name or "the raster")
    if n_observed < 3:
        check_targets(np.zeros(n_observed), False, name)
    regions = _chosen_regions(values, grid, n_observed, random_state)
    parts = [observed_in(values, grid, window) for window in regions]
    X, y = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    check_targets(y, log, name)
    regressor = new_regressor(
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
    held_out = _held_out(values, cells, grid, regions) if n_observed < np.prod(grid.shape) else None
    fit_regressor(regressor, X, y, None, kernel is None, held_out)
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
    )


def _chosen_regions(values: Any, grid: Grid, n_observed: int, random_state: int) -> list[Window]:
    """All the regions of a raster or, where its observed cells are many, some whole ones, so that distances stay."""
    regions = _regions(grid)
    if n_observed <= LEARNED:
        return regions
    chosen, total = [], 0
    for number in np.random.default_rng(random_state).permutation(len(regions)):
        chosen.append(regions[number])
        total += len(observed_in(values, grid, regions[number])[1])
        if total >= LEARNED:
            break
    return chosen


def _held_out(values: Any, cells: Any, grid: Grid, regions: list[Window]) -> Booleans | None:
    """Which of the observed cells of some regions are under mirrored gaps: shape (n,); None where these are no use."""
    for mirror in MIRRORS:
        parts = []
        for window in regions:
            hidden = mirrored_gaps(values, cells, grid, window, mirror)
            observed = np.asarray(values[window], dtype=np.float64)
            parts.append(observed_of(np.where(np.isnan(observed), np.nan, hidden), grid, window)[1] > 0)
        found = np.concatenate(parts)
        if is_useful(found):
            return found
    return None


def observed_in(values: Any, grid: Grid, window: Window, chosen: Any = True) -> tuple[Floats, Floats]:
    """Observed cells of a window, among the chosen ones, as points (n, columns) and targets (n,)."""
    part = np.asarray(values[window], dtype=np.float64)
    return observed_of(part, grid, window, chosen)


def observed_of(part: Floats, grid: Grid, window: Window, chosen: Any = True) -> tuple[Floats, Floats]:
    """The same from the values of the window."""
    observed = (~np.isnan(part) & chosen).ravel()
    X = grid.points(window)[observed]
    complete = np.isfinite(X).all(axis=1)  # of covariates
    return X[complete], part.ravel()[observed][complete]


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
