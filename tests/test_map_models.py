"""Models of maps that are given, not learned: what they are asked for must fit them. And rasters without gaps."""

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import Nearest, OnColumns, OnSphere
from compositegp.spatial import fill, krige, learn_raster, learn_stations

FIXED = {"length_scale_bounds": "fixed"}
PLANE = ConstantKernel(1.0, "fixed") * OnColumns(Matern(3.0, nu=1.5, **FIXED), [0, 1]) + WhiteKernel(0.05, "fixed")
GLOBE = ConstantKernel(1.0, "fixed") * OnColumns(OnSphere(Matern(900.0, **FIXED)), [0, 1])
GLOBE = GLOBE + WhiteKernel(0.05, "fixed")
TIMED = PLANE.k1 * OnColumns(Matern(9.0, nu=0.5, **FIXED), [2]) + PLANE.k2


def image(seed=0, ny=7, nx=8):
    rng = np.random.default_rng(seed)
    values = xr.DataArray(rng.normal(size=(ny, nx)), dims=("y", "x"), name="height")
    return values.where(rng.uniform(size=(ny, nx)) < 0.65)


def film(along):
    return xr.concat([image(), image(1), image(2)], "time").assign_coords(time=along)


@pytest.fixture
def stations():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, size=(40, 4)), columns=["lon", "lat", "soil", "rock"])
    return frame.assign(zinc=rng.normal(size=40))


class TestRasters:
    @pytest.mark.parametrize("lazy", [False, True])
    def test_an_image_without_any_value_ends_in_one_sentence(self, lazy):
        model = learn_raster(image(), kernel=PLANE)
        clouded = image(1).where(False)
        with pytest.raises(ValueError, match="height has no observed value: there is nothing to predict from"):
            fill(clouded.chunk() if lazy else clouded, model=model)
        clouded[3, 4] = 0.5  # one value is enough for a model that is known
        assert fill(clouded, model=model)["mean"].notnull().all()

    def test_infinite_values_are_told_with_a_model_too(self):
        model = learn_raster(image(), kernel=PLANE)
        with pytest.raises(ValueError, match="infinite value"):
            fill(image(1).where(image(1) < 1, np.inf), model=model)

    @pytest.mark.parametrize(
        "given", [{"log": True}, {"kernel": PLANE}, {"prediction": "composite"}, {"prediction": Nearest(8)}]
    )
    def test_what_is_part_of_the_model_cannot_be_given_beside_it(self, given):
        model = learn_raster(image(), kernel=PLANE)
        (name,) = given
        with pytest.raises(ValueError, match=f"^{name} is part of the model"):
            fill(image(1), model=model, **given)

    def test_a_model_of_the_logarithm_is_one(self):
        model = learn_raster(np.exp(image()), kernel=PLANE, log=True)
        expected = fill(np.exp(image(1)), model=model)
        xr.testing.assert_identical(fill(np.exp(image(1)), model=model, log=True), expected)

    def test_covariates_are_those_that_the_model_knows(self):
        data = xr.Dataset({"height": image(), "soil": image(3).fillna(0), "rock": image(4).fillna(0)})
        model = learn_raster(data, "height", covariates=["soil", "rock"], kernel=PLANE)
        fill(data, "height", covariates=["soil", "rock"], model=model)
        for names in (["rock", "soil"], ["soil"], None):
            with pytest.raises(ValueError, match="learned with the covariates soil, rock, but here there are"):
                fill(data, "height", covariates=names, model=model)

    def test_time_is_of_the_kind_that_the_model_knows(self):
        days = pd.date_range("2024-01-01", periods=3)
        model = learn_raster(film(days), kernel=TIMED)
        fill(film(days + pd.Timedelta("50D")), model=model)
        with pytest.raises(ValueError, match="with time in h. Here they are x and y in the plane, with time.$"):
            fill(film([0.0, 1.0, 2.0]), model=model)
        with pytest.raises(ValueError, match="Here they are x and y in the plane, without time.$"):
            fill(image(), model=model)


class TestStations:
    def test_places_are_of_the_kind_that_the_model_knows(self, stations):
        model, _ = learn_stations(stations, target="zinc", kernel=GLOBE)
        krige(stations, target="zinc", grid=2.0, model=model)
        with pytest.raises(ValueError, match="longitude and latitude, without time. Here they are x and y"):
            krige(stations, target="zinc", grid=2.0, sphere=False, model=model)

    def test_covariates_are_those_that_the_model_knows(self, stations):
        model, _ = learn_stations(stations, target="zinc", covariates=["soil"], kernel=GLOBE)
        with pytest.raises(ValueError, match="the covariates soil, but here there are no covariates"):
            krige(stations, target="zinc", grid=2.0, model=model)
        with pytest.raises(ValueError, match="the covariates soil, but here there are the covariates rock"):
            krige(stations, target="zinc", grid=2.0, covariates=["rock"], model=model)

    @pytest.mark.parametrize("given", [{"log": True}, {"kernel": GLOBE}, {"prediction": Nearest(8)}])
    def test_what_is_part_of_the_model_cannot_be_given_beside_it(self, stations, given):
        model, _ = learn_stations(stations, target="zinc", kernel=GLOBE)
        (name,) = given
        with pytest.raises(ValueError, match=f"^{name} is part of the model"):
            krige(stations, target="zinc", grid=2.0, model=model, **given)

    def test_a_model_of_the_logarithm_has_no_averages(self, stations):
        positive = stations.assign(zinc=np.exp(stations.zinc))
        model, _ = learn_stations(positive, target="zinc", kernel=GLOBE, log=True)
        with pytest.raises(ValueError, match="not its logarithm"):
            krige(positive, target="zinc", grid=2.0, model=model, support="cell")


@pytest.mark.parametrize("samples", [-1, 2.5, True])
def test_the_number_of_draws_is_a_whole_number(stations, samples):
    with pytest.raises(ValueError, match="samples must be a whole number of draws"):
        fill(image(), kernel=PLANE, samples=samples)
    with pytest.raises(ValueError, match="samples must be a whole number of draws"):
        krige(stations, target="zinc", grid=2.0, kernel=GLOBE, samples=samples)


class TestNothingMissing:
    """The layers are those of a raster with gaps, with what was observed in all of them."""

    def test_axes_attributes_and_draws_stay(self):
        whole = image().fillna(0.5).assign_attrs(units="m").transpose("x", "y")
        data = whole.to_dataset().assign_attrs(source="a satellite")
        with pytest.warns(UserWarning, match="no missing cell"):
            found = fill(data, samples=3, above=0.2)
        assert found.attrs == {"source": "a satellite"}
        assert found["mean"].dims == ("x", "y")
        assert found["samples"].dims == ("sample", "x", "y")
        assert found["samples"].attrs["units"] == "m"
        for layer in (found["mean"], *found["samples"], *found["quantiles"]):
            np.testing.assert_array_equal(layer, whole)
        assert not found["std"].any()
        np.testing.assert_array_equal(found["exceedance"].sel(threshold=0.2), whole > 0.2)

    def test_a_lazy_raster_stays_lazy(self):
        whole = image().fillna(0.5)
        with pytest.warns(UserWarning, match="no missing cell"):
            found = fill(whole.chunk({"x": 3}))
        assert dask.is_dask_collection(found["mean"].data)
        np.testing.assert_array_equal(found["mean"], whole)


@pytest.mark.parametrize("chunks", [{"time": 1, "y": 7, "x": 90}, {"time": 3, "y": 40, "x": 31}])
def test_any_chunking_of_time_gives_the_same_bits(chunks):
    rng = np.random.default_rng(0)
    values = xr.DataArray(rng.normal(size=(3, 20, 90)), dims=("time", "y", "x"), name="rain")
    gappy = values.where(rng.uniform(size=values.shape) < 0.6)
    model = learn_raster(gappy, kernel=TIMED, prediction=Nearest(16, group_size=1, calibration=None))
    lazy = fill(gappy.chunk(chunks), model=model)
    assert dask.is_dask_collection(lazy["mean"].data)
    xr.testing.assert_identical(lazy.compute(scheduler="synchronous"), fill(gappy, model=model))
