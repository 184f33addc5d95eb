"""The commands for maps: what is refused is refused before learning, and large rasters are computed once."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from compositegp import Nearest, spatial
from compositegp.cli.app import main
from compositegp.spatial import draw_filled, fill, learn_raster, open_raster, tile_filling, write_raster

KNOWN = ConstantKernel(1.0, "fixed") * Matern(3.0, nu=1.5, length_scale_bounds="fixed") + WhiteKernel(0.05, "fixed")


def image(ny=10, nx=12):
    rng = np.random.default_rng(0)
    values = xr.DataArray(rng.normal(size=(ny, nx)), dims=("y", "x"), name="height")
    return values.where(rng.uniform(size=(ny, nx)) < 0.65)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a raster and stations, where learning is a known kernel."""
    monkeypatch.chdir(tmp_path)
    image().to_netcdf("in.nc")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, size=(40, 2)), columns=["x", "y"])
    frame.assign(zinc=np.exp(rng.normal(size=40))).to_csv("zinc.csv", index=False)

    def learn(*arguments, **options):
        return learn_raster(*arguments, kernel=KNOWN, prediction=Nearest(16, calibration=None), **options)

    monkeypatch.setattr(spatial, "learn_raster", learn)
    return tmp_path


@pytest.fixture
def no_learning(monkeypatch):
    for name in ("learn_raster", "learn_stations"):
        monkeypatch.setattr(spatial, name, None)


@pytest.fixture
def pictures(monkeypatch):
    """Pictures are not drawn: `draw_filled` tells what would be in them."""
    monkeypatch.setattr("compositegp.spatial.pictures.draw_map", lambda picture: picture)


@pytest.mark.usefixtures("no_learning")
class TestRefused:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--quantile", "1.5"], "--quantile must be between 0 and 1; found 1.5."),
            (["--above", "nan"], "--above must be a finite threshold; found nan."),
            (["--samples", "1000000000000"], "1000000000000 draws of all cells would take about"),
            (["--wanted", "land"], "no variable 'land'"),
        ],
    )
    def test_by_fill(self, folder, options, message, capsys):
        assert main(["fill", "in.nc", "--out", "out.nc", *options]) in (1, 2)
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--count", "9", "--quantile", "0"], "--quantile must be between 0 and 1; found 0."),
            (["--count", "9", "--support", "--log"], "not its logarithm: leave out --log"),
            (["--count", "9", "--support", "--samples", "3"], "leave out --support"),
            (["--grid", "0"], "--grid must be a positive step; found 0."),
            (["--count", "0"], "--count"),
            (["--template", "film.nc"], "the raster that is the grid has a time axis"),
        ],
    )
    def test_by_map(self, folder, options, message, capsys):
        image().expand_dims(time=2).to_netcdf("film.nc")
        assert main(["map", "zinc.csv", "--target", "zinc", *options]) in (1, 2)
        assert message in capsys.readouterr().err


class TestLargeRasters:
    @pytest.fixture(autouse=True)
    def many_cells(self, monkeypatch):
        monkeypatch.setattr("compositegp.spatial.raster_files._LARGE", 100)

    def test_every_tile_is_computed_once(self, folder, monkeypatch, capsys):
        image(70, 12).to_netcdf("in.nc")
        computed, predict = [], tile_filling._predict_part

        def counted(job, tile, *rest):
            computed.append(str(tile))
            return predict(job, tile, *rest)

        monkeypatch.setattr(tile_filling, "_predict_part", counted)
        arguments = ["--out", "out.nc", "--picture", "map.png", "--report", "report.html", "--json"]
        assert main(["fill", "in.nc", *arguments]) == 0
        assert len(computed) == len(set(computed)) == 2
        told = json.loads(capsys.readouterr().out)
        assert told["files"] == {"layers": "out.nc", "picture": "map.png", "report": "report.html"}
        with open_raster("out.nc") as found:
            assert found["mean"].notnull().all()

    @pytest.mark.parametrize("ending", ["nc", "zarr"])
    def test_a_picture_from_the_file_is_that_of_the_layers(self, folder, pictures, ending):
        with open_raster("in.nc") as data:
            filled = fill(data, kernel=KNOWN)
            assert filled["mean"].chunks is not None
            write_raster(filled, f"out.{ending}", verbose=True)
            found = draw_filled(data["height"], f"out.{ending}")
            np.testing.assert_equal(found._asdict(), draw_filled(data["height"], filled.compute())._asdict())

    def test_draws_are_made_of_the_whole(self, folder):
        assert main(["fill", "in.nc", "--out", "out.nc", "--samples", "2", "--jobs", "1"]) == 0
        with open_raster("out.nc") as found:
            assert dict(found["samples"].sizes) == {"sample": 2, "y": 10, "x": 12}

    def test_progress_is_told_while_layers_are_written(self, folder, monkeypatch):
        told = []

        class Bar:
            def __init__(self, *_, **__):
                pass

            def __enter__(self):
                return lambda done, total: told.append((done, total))

            def __exit__(self, *_):
                pass

        monkeypatch.setattr("compositegp.spatial.raster_files.ProgressBar", Bar)
        with open_raster("in.nc") as data:
            filled = fill(data, kernel=KNOWN)
            write_raster(filled, "quiet.nc")
            assert told == []
            write_raster(filled, "out.nc", verbose=True)
        assert len(told) > 2
        done, total = told[-1]
        assert done == total
        assert [one for one, _ in told] == sorted(one for one, _ in told)


@pytest.mark.parametrize("curved", [False, True])
def test_of_a_large_raster_some_rows_and_columns_are_drawn(pictures, monkeypatch, curved):
    gappy = image(20, 24).assign_coords(x=np.arange(24.0), y=np.arange(20.0))
    if curved:
        lat, lon = xr.broadcast(gappy.y, gappy.x + 0.3 * gappy.y)
        gappy = gappy.drop_vars(["x", "y"]).assign_coords(
            lon=lon.drop_vars(["x", "y"]), lat=lat.drop_vars(["x", "y"])
        )
    filled = fill(gappy, kernel=KNOWN, sphere=False)
    half = {"x": slice(None, None, 2), "y": slice(None, None, 2)}
    expected = draw_filled(gappy.isel(half), filled.isel(half), sphere=False)
    monkeypatch.setattr("compositegp.spatial.pictures._MOST_CELLS", 12)
    np.testing.assert_equal(draw_filled(gappy, filled, sphere=False)._asdict(), expected._asdict())


@pytest.mark.parametrize("report", [True, False])
def test_nothing_missing_has_every_file_that_was_asked_for(folder, report, capsys):
    image().fillna(0.5).to_netcdf("in.nc")
    options = ["--report", "report.html"] if report else []
    assert main(["fill", "in.nc", "--out", "out.nc", "--picture", "map.png", "--json", *options]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert printed.err.splitlines() == ["note: height has no missing cell: there is nothing to fill."]
    assert told["missing"] == 0
    assert told["cells"] == 120
    assert set(told["files"]) == {"layers", "picture"} | ({"report"} if report else set())
    assert all((folder / name).stat().st_size for name in told["files"].values())
    assert ("Nugget" in " ".join(told["model"])) is report
