"""Gaps laid over observations: against brute force, and what a raster that is learned in them predicts."""

from dataclasses import dataclass

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import CompositeGPRegressor, Nearest
from compositegp.composite import Observations
from compositegp.learning import LocalSegments
from compositegp.posteriors import NearestPredictor, Neighbors, around_in_gaps, gap_terms
from compositegp.simulate import stationary_field
from compositegp.spatial import fill, learn_raster
from compositegp.spatial.grid import grid_of
from compositegp.spatial.raster_gaps import gaps_of
from compositegp.spatial.tiles import count_observed

FIXED = {"length_scale_bounds": "fixed"}


@dataclass
class Discs:
    """Every observation lies in the middle of a disc without observations, of a radius of its own."""

    X: np.ndarray
    radii: np.ndarray

    def hides(self, rows, near):
        return np.linalg.norm(self.X[near] - self.X[rows][:, None], axis=2) < self.radii[rows][:, None]


@pytest.fixture
def discs(rng):
    X = rng.uniform(0, 40, size=(1500, 2))
    return Discs(X, rng.choice([0.0, 2.0, 8.0], size=1500))


def search_of(X, y=None):
    y = np.zeros(len(X)) if y is None else y
    kernel = Matern(3.0, nu=1.5) + WhiteKernel(0.1)
    return NearestPredictor(Observations.checked(kernel, X, y, mean=None, noise_variance=None))


@pytest.mark.parametrize("neighbors", [Neighbors(20), Neighbors(15, 5)])
def test_what_is_left_around_a_gap_is_found_by_brute_force(discs, neighbors):
    rows = np.arange(0, 1500, 25)
    kept, skipped, sets = around_in_gaps(search_of(discs.X), discs, rows, neighbors, None)
    np.testing.assert_array_equal(kept, np.arange(len(rows)))
    for row, count, found in zip(rows, skipped, sets, strict=True):
        distances = np.linalg.norm(discs.X - discs.X[row], axis=1)
        order = np.argsort(distances)[1:]
        free = distances[order] >= discs.radii[row]
        np.testing.assert_array_equal(found, order[free][neighbors.ranks(1499)][::-1])
        assert count == np.argmax(free)


def test_rows_without_enough_around_them_are_left_out(discs):
    discs.radii[:] = 0.0
    discs.radii[7] = 100.0
    kept, _, sets = around_in_gaps(search_of(discs.X), discs, np.array([3, 7, 11]), Neighbors(20), None)
    np.testing.assert_array_equal(kept, [0, 2])
    assert sets.shape == (2, 20)


def test_terms_are_hidden_observations_given_those_around(discs):
    discs.radii[:] = 6.0
    terms = gap_terms(search_of(discs.X), discs, 40, None, 0)
    assert terms.n_blocks == 40
    for stack in terms.stacks:
        assert stack.stops == (224, 256)
        np.testing.assert_array_equal(stack.weights, np.tile([0.0, 1.0], (len(stack), 1)))
        for block in stack.indices:
            given, middle, hidden = block[:224], block[224], block[225:]
            assert len(set(block)) == 256
            assert not discs.hides(np.array([middle]), given[None]).any()
            assert discs.hides(np.array([middle]), hidden[None]).all()
    assert LocalSegments(search_of(discs.X).data, terms, 0).mean_size == 32  # what is given does not count
    discs.radii[:] = 100.0
    assert gap_terms(search_of(discs.X), discs, 40, None, 0) is None


def test_what_are_no_gaps_is_named(rng):
    with pytest.raises(ValueError, match=r"gaps must have a method hides\(rows, near\); found int"):
        CompositeGPRegressor().fit(rng.uniform(size=(9, 2)), rng.normal(size=9), gaps=3)


def test_gaps_of_rows_that_are_left_out_are_refused(discs, rng):
    weights = np.ones(len(discs.X))
    weights[0] = 0.0
    with pytest.raises(ValueError, match="gaps are of all the rows"):
        CompositeGPRegressor().fit(discs.X, rng.normal(size=1500), sample_weight=weights, gaps=discs)


def raster(shape=(70, 90), seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    rows, columns = np.indices(shape)
    values[(rows > 20) & (rows < 45) & (columns > 30) & (columns < 60)] = np.nan
    values[rng.uniform(size=shape) < 0.1] = np.nan
    return xr.DataArray(values, dims=("y", "x"), name="height")


class TestGapsOfRasters:
    def test_they_are_the_surroundings_of_missing_cells_that_are_wanted(self):
        array = raster()
        values, grid = array.to_numpy(), grid_of(array)
        wanted = np.indices(values.shape)[1] < 50
        cells = np.argwhere(~np.isnan(values)).astype(np.int32)
        gaps = gaps_of(values, wanted, grid, count_observed(values, grid), cells, 0)
        reach = [size // 2 for size in gaps.observed.shape[1:]]
        around = np.pad(~np.isnan(values), [(far, far) for far in reach])
        views = np.lib.stride_tricks.sliding_window_view(around, gaps.observed.shape[1:])
        places = np.argwhere(np.isnan(values) & wanted)
        possible = {views[tuple(place)].tobytes() for place in places}
        assert all(np.ascontiguousarray(one).tobytes() in possible for one in gaps.observed)
        assert len({one.tobytes() for one in map(np.ascontiguousarray, gaps.observed)}) > 50

    def test_an_observed_cell_sees_what_a_missing_cell_would(self, rng):
        array = raster()
        values, grid = array.to_numpy(), grid_of(array)
        cells = np.argwhere(~np.isnan(values)).astype(np.int32)
        gaps = gaps_of(values, True, grid, count_observed(values, grid), cells, 1)
        rows = rng.integers(len(cells), size=30)
        near = rng.integers(len(cells), size=(30, 50))
        found, reach = gaps.hides(rows, near), gaps.observed.shape[1] // 2
        for row, others, hidden in zip(rows, near, found, strict=True):
            template = gaps.observed[gaps.which[row]]
            for other, one in zip(others, hidden, strict=True):
                step = cells[other] - cells[row] + reach
                inside = (step >= 0).all() and (step < gaps.observed.shape[1]).all()
                assert one == (inside and not template[tuple(step)])

    def test_chunks_do_not_matter(self):
        array = raster()
        values, grid = array.to_numpy(), grid_of(array)
        counts, cells = count_observed(values, grid), np.argwhere(~np.isnan(values)).astype(np.int32)
        whole = gaps_of(values, True, grid, counts, cells, 3)
        parts = gaps_of(da.from_array(values, chunks=(17, 23)), True, grid, counts, cells, 3)
        np.testing.assert_array_equal(whole.observed, parts.observed)
        np.testing.assert_array_equal(whole.which, parts.which)

    def test_times_are_steps_like_others(self):
        values = np.stack([raster(seed=seed).to_numpy() for seed in range(5)])
        array = xr.DataArray(values, dims=("time", "y", "x"), name="height")
        grid, cells = grid_of(array), np.argwhere(~np.isnan(values)).astype(np.int32)
        gaps = gaps_of(values, True, grid, count_observed(values, grid), cells, 0)
        middle = tuple(size // 2 for size in gaps.observed.shape[1:])
        assert not gaps.observed[(slice(None), *middle)].any()
        later = gaps.observed[(slice(None), middle[0] + 5)]  # beyond the last of five times
        assert not later.any()

    def test_where_nothing_is_wanted_there_are_none(self):
        array = raster()
        values, grid = array.to_numpy(), grid_of(array)
        cells = np.argwhere(~np.isnan(values)).astype(np.int32)
        wanted = ~np.isnan(values)
        assert gaps_of(values, wanted, grid, count_observed(values, grid), cells, 0) is None


def clouded(kernel, seed, shape=(90, 90)):
    """A simulated field, wide clouds over it, and the field without the clouds."""
    truth = stationary_field(kernel, shape, random_state=seed)[0]
    clouds = stationary_field(Matern(9.0, nu=1.5), shape, random_state=seed + 50)[0] > 0.4
    return truth, clouds, xr.DataArray(np.where(clouds, np.nan, truth), dims=("y", "x"), name="height")


def shares_inside(filled, truth, clouds, levels):
    found = []
    for level in levels:
        low, high = (filled["quantiles"].sel(quantile=0.5 + sign * level / 2).to_numpy() for sign in (-1, 1))
        found.append(np.mean(((low <= truth) & (truth <= high))[clouds]))
    return np.array(found)


def test_intervals_hold_in_wide_gaps_under_a_kernel_that_is_wrong_there():
    """Its range is far too short: over a gap it returns to the mean, and is too sure that it may vary that much."""
    wrong = ConstantKernel(1.0, "fixed") * Matern(4.0, nu=1.5, **FIXED) + WhiteKernel(0.01, "fixed")
    levels, inside = (0.5, 0.8, 0.95), []
    quantiles = sorted(0.5 + sign * level / 2 for level in levels for sign in (-1, 1))
    for seed in range(3):
        truth, clouds, gappy = clouded(Matern(25.0, nu=0.5), seed, (70, 70))
        filled = fill(gappy, kernel=wrong, prediction=Nearest(64), quantiles=quantiles)
        inside.append(shares_inside(filled, truth, clouds, levels))
    np.testing.assert_allclose(np.mean(inside, axis=0), levels, rtol=0, atol=0.06)


@pytest.mark.slow
def test_learned_in_gaps_a_field_is_filled_nearly_as_well_as_under_its_own_kernel():
    own = ConstantKernel(1.0, "fixed") * Matern(25.0, nu=0.5, **FIXED) + WhiteKernel(1e-6, "fixed")
    errors = []
    for seed in range(3):
        truth, clouds, gappy = clouded(Matern(25.0, nu=0.5), seed)
        learned = fill(gappy, model=learn_raster(gappy))
        known = fill(gappy, kernel=own, prediction=Nearest(calibration=None))
        errors.append([np.mean((one["mean"].to_numpy() - truth)[clouds] ** 2) for one in (learned, known)])
    learned, known = np.mean(errors, axis=0)
    assert learned < 1.05 * known
