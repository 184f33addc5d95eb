"""Model files that are valid archives with a content that no fit wrote: one sentence, which names the file."""

import io
import json
import resource
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, Sum, WhiteKernel

from compositegp import Basis, CompositeGPRegressor, FisherAverage, PeriodicLevels
from compositegp.cli.app import main
from compositegp.cli.table_columns import read_training_table
from compositegp.cli.table_model import TableModel
from compositegp.forecasting import CompositeGPForecaster
from compositegp.kernels import OnColumns, check_arguments
from compositegp.prediction import CompositeSum
from compositegp.storage import write_archive

KERNEL = 1.2 * Matern([0.8, 2.0], nu=1.5) + WhiteKernel(0.05)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 8, size=(60, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)


@pytest.fixture
def regressor(data, tmp_path):
    path = tmp_path / "regressor.cgp"
    CompositeGPRegressor(KERNEL, learning=None).fit(*data).save(path)
    return path


@pytest.fixture(scope="module")
def forecaster_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "forecaster.cgp"
    hours = np.arange(120)
    y = 5 + np.sin(2 * np.pi * hours / 24) + 0.1 * np.random.default_rng(0).normal(size=120)
    series = pd.Series(y, index=pd.date_range("2024", periods=120, freq="h", tz="Europe/Stockholm"))
    CompositeGPForecaster(n_neighbors=50, search=False).fit(series).save(path, time="t", target="y", horizon="6h")
    return path.read_bytes()


@pytest.fixture
def forecaster(forecaster_bytes, tmp_path):
    path = tmp_path / "forecaster.cgp"
    path.write_bytes(forecaster_bytes)
    return path


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def change(path, *keys, value, remove=False):
    """Change a value of the JSON text of a model file."""
    members = members_of(path)
    text = json.loads(members["model.json"])
    place = text["content"]
    for key in keys[:-1]:
        place = place[key]
    if remove:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    write_members(path, members | {"model.json": json.dumps(text)})


def change_array(path, name, array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array))
    write_members(path, members_of(path) | {f"{name}.npy": file.getvalue()})


def assert_refused(load, path, match=None):
    with pytest.raises(ValueError, match=match) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 700


ONE = {"mean": "Constant", "arguments": {"value": 42.0}}
CONTENT = {
    "a name that is none": (("predict",), ONE, "predict"),
    "a method among the features": (("features", "dict", "predict"), ONE, "predict"),
    "a parameter that is none": (("parameters.no_such",), 1, "no_such"),
    "columns of text": (("features", "dict", "n_features_in_"), "two", "n_features_in_"),
    "columns that are too many": (("features", "dict", "n_features_in_"), 10**12, "shape"),
    "a kernel of numbers": (
        ("model", "dict", "kernel"),
        {"kernel": "Sum", "arguments": {"k1": 1, "k2": 2}},
        "a kernel",
    ),
    "a kernel that is none": (("model", "dict", "kernel"), 3.0, "kernel"),
    "a kernel of another class": (("model", "dict", "kernel"), {"kernel": "object", "arguments": {}}, "not known"),
    "an argument that is none": (("model", "dict", "kernel"), {"kernel": "RBF", "arguments": {"x": 1}}, "argument"),
    "a segment size of text": (("parameters.segment_size",), "large", "segment_size"),
    "a segmentation that is none": (("parameters.segmentation",), "no", "segmentation"),
    "a random state of text": (("parameters.random_state",), "x", "random_state"),
    "a random state that is huge": (("parameters.random_state",), 10**30, "random_state"),
    "learning by a million restarts": (
        ("parameters.learning",),
        {"object": "FisherAverage", "arguments": {"n_restarts": 10**6}},
        "n_restarts",
    ),
    "a prediction of nobody": (("parameters.prediction",), {"object": "Nobody", "arguments": {}}, "not known"),
    "neighbors of text": (
        ("parameters.prediction",),
        {"object": "Nearest", "arguments": {"n_neighbors": "x"}},
        "n_nei",
    ),
    "a transform": (("parameters.target_transform",), "exp", "target_transform"),
    "a mean of text": (("parameters.mean",), "cubic", "mean"),
    "a mean that is a kernel": (("model", "dict", "mean"), {"kernel": "RBF", "arguments": {}}, "mean"),
    "a mean that is NaN": (("model", "dict", "mean", "arguments", "value"), float("nan"), "finite"),
    "levels without end": (
        ("model", "dict", "mean"),
        {
            "mean": "Basis",
            "arguments": {"functions": {"mean": "PeriodicLevels", "arguments": {"period": 24.0, "phases": 10**9}}},
        },
        "phases",
    ),
    "more levels than data": (
        ("model", "dict", "mean"),
        {
            "mean": "Basis",
            "arguments": {"functions": {"mean": "PeriodicLevels", "arguments": {"period": 24.0, "phases": 90_000}}},
        },
        "coefficients",
    ),
    "a log that is a number": (("model", "dict", "log_target"), 1, "log_target"),
    "a tuning that is a number": (("model", "dict", "tuning"), 7, "tuning"),
    "no kind": (("model",), [1, 2], "kind"),
    "an unknown kind": (("model",), {"code": "print()"}, "unknown kind"),
    "an array that is missing": (("model", "dict", "X"), {"array": "nowhere"}, "nowhere"),
    "a path as array": (("model", "dict", "X"), {"array": "../../etc/passwd"}, "no member"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_a_content_that_no_fit_wrote_is_refused(regressor, case):
    keys, value, match = CONTENT[case]
    change(regressor, *keys, value=value)
    assert_refused(CompositeGPRegressor.load, regressor, match)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("model.X", np.zeros((60, 3))),
        ("model.X", np.full((60, 2), np.nan)),
        ("model.X", np.zeros((60, 2), dtype=complex)),
        ("model.X", np.full((60, 2), "1")),
        ("model.y", np.zeros(59)),
        ("model.y", np.full(60, np.inf)),
        ("model.y", np.zeros((60, 0))),
        ("model.offset", np.array(np.nan)),
        ("model.scale", np.array(0.0)),
        ("model.scale", np.ones(3)),
    ],
)
def test_arrays_have_their_shape_and_are_finite(regressor, name, array):
    change_array(regressor, name, array)
    assert_refused(CompositeGPRegressor.load, regressor)


def test_a_nested_value_is_refused(regressor):
    value = 1
    for _ in range(5000):
        value = {"list": [value]}
    members = members_of(regressor)
    text = (
        members["model.json"].decode().replace('"parameters.normalize_y": false', '"parameters.normalize_y": DEEP')
    )
    members["model.json"] = text.replace("DEEP", '{"list": [' * 50_000 + "1" + "]}" * 50_000)
    write_members(regressor, members)
    assert_refused(CompositeGPRegressor.load, regressor)
    members["model.json"] = text.replace("DEEP", '{"list": [' * 300 + "1" + "]}" * 300)
    write_members(regressor, members)
    assert_refused(CompositeGPRegressor.load, regressor, "nested")


def test_a_kernel_that_is_too_deep_is_not_saved(data, tmp_path):
    kernel = WhiteKernel()
    for _ in range(210):
        kernel = Sum(kernel, RBF())
    model = CompositeGPRegressor(KERNEL, learning=None).fit(*data)
    model.kernel = kernel
    with pytest.raises(ValueError, match="nested too deeply"):
        model.save(tmp_path / "m")


def test_compressed_and_foreign_members_are_refused(regressor):
    members = members_of(regressor)
    write_members(regressor, members, zipfile.ZIP_DEFLATED)
    assert_refused(CompositeGPRegressor.load, regressor, "compressed")
    write_members(regressor, members | {"x.npy": b""})
    assert_refused(CompositeGPRegressor.load, regressor, "nothing in it names")
    content = list(members.items())
    with warnings.catch_warnings(), zipfile.ZipFile(regressor, "w") as archive:
        warnings.simplefilter("ignore")  # of zipfile, about the name
        for name, value in content + content[:1]:
            archive.writestr(name, value)
    assert_refused(CompositeGPRegressor.load, regressor, "same name")


BOMB = """
import io, resource, sys, zipfile
import numpy as np
from compositegp import CompositeGPRegressor
path = sys.argv[1]
header = io.BytesIO()
np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": ((1 << 28) // 8,)})
with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w", force_zip64=True) as file:
    file.write(header.getvalue())
    for _ in range(16):
        file.write(bytes(1 << 24))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    CompositeGPRegressor.load(path)
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_zip_bomb_takes_no_memory(regressor):
    done = subprocess.run([sys.executable, "-c", BOMB, str(regressor)], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert "is compressed" in said
    assert int(grown) < 50_000  # kB; unpacked it has 256 MB


@pytest.mark.parametrize("shape", [(10**12,), (10**9, 10**9), (10**400,), (-1, -120), (3, 7)])
def test_an_array_cannot_claim_more_than_it_has(regressor, shape):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    members = members_of(regressor)
    start = members["model.X.npy"].index(b"\n") + 1
    members["model.X.npy"] = header.getvalue() + members["model.X.npy"][start:]
    write_members(regressor, members)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(CompositeGPRegressor.load, regressor)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_file_starts_no_workers(data, regressor):
    assert CompositeGPRegressor.load(regressor).n_jobs is None
    CompositeGPRegressor(KERNEL, learning=None, n_jobs=2).fit(*data).save(regressor)
    assert CompositeGPRegressor.load(regressor).n_jobs is None
    change(regressor, "parameters.n_jobs", value=10)  # of the machine: not read
    assert CompositeGPRegressor.load(regressor).n_jobs is None


SERIES = {
    "a step of zero": (("timeline", "dict", "step"), 0, "step"),
    "a step of text": (("timeline", "dict", "step"), "1h", "step"),
    "a step of a century": (("timeline", "dict", "step"), 3 * 10**18, "years"),
    "a zone that is a path": (("timeline", "dict", "zone"), "dateutil//etc/passwd", "zone"),
    "a zone with dots": (("timeline", "dict", "zone"), "../../etc/passwd", "zone"),
    "a zone that is none": (("timeline", "dict", "zone"), "Europe/Nowhere", "Nowhere"),
    "an origin that is none": (("timeline", "dict", "origin"), "NaT", "origin"),
    "an origin without a zone": (("timeline", "dict", "origin"), "2024-01-01", "origin"),
    "an empty timeline": (("timeline",), None, "values by their names"),
    "a unit that is none": (("timeline", "dict", "unit"), "moon", "unit"),
    "effects that are missing": (("series", "dict", "effects"), {"list": []}, "effects.0"),
    "an empty information": (("series", "dict", "information"), {"dict": {}}, "information"),
    "a horizon of no length": (("series", "dict", "block"), 0, "block"),
    "a scale that is none": (("series", "dict", "transform"), "exp", "transform"),
    "tails without a variance": (("series", "dict", "scale", "dict", "log_df"), 0.1, "log_df"),
    "errors of text": (("series", "dict", "recent"), "many", "recent"),
    "a future that was learned": (("series", "dict", "learned_until"), 10**9, "learned_until"),
    "a transform": (("parameters", "dict", "target_transform"), "exp", "target_transform"),
    "neighbors": (("parameters", "dict", "n_neighbors"), 0, "n_neighbors"),
    "a parameter that is none": (("parameters", "dict", "predict"), 1, "predict"),
    "more that is none": (("more",), 3, "more"),
    "more that is a kernel": (
        ("more", "dict", "x"),
        {"kernel": "RBF", "arguments": {}},
        "neither a number nor text",
    ),
    "notes of numbers": (("series", "dict", "notes"), {"list": [1]}, "notes"),
}


@pytest.mark.parametrize("case", SERIES)
def test_a_series_that_no_fit_wrote_is_refused(forecaster, case, capsys):
    keys, value, match = SERIES[case]
    change(forecaster, *keys, value=value)
    assert_refused(CompositeGPForecaster.load, forecaster, match)
    assert main(["stream", str(forecaster)]) == 1
    said = capsys.readouterr().err
    assert str(forecaster) in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("series.X", np.zeros((0, 1))),
        ("series.X", np.zeros((50, 1))),
        ("series.X", 1e300 * np.arange(50.0)[:, None]),
        ("series.y", np.full(50, np.nan)),
        ("series.theta_standard_errors", np.zeros(1)),
    ],
)
def test_arrays_of_a_series_are_checked(forecaster, name, array):
    change_array(forecaster, name, array)
    assert_refused(CompositeGPForecaster.load, forecaster)


@pytest.mark.parametrize("horizon", [10**9, "100000 days", "", "soon", float("nan"), True])
def test_a_file_asks_for_no_endless_forecast(forecaster, horizon, capsys):
    change(forecaster, "more", "dict", "horizon", value=horizon)
    assert main(["stream", str(forecaster)]) == 1
    said = capsys.readouterr().err
    assert str(forecaster) in said
    assert said.count("\n") == 1


def test_what_was_saved_with_a_series_is_kept(forecaster):
    model, more = CompositeGPForecaster.load_with(forecaster)
    assert more == {"time": "t", "target": "y", "horizon": "6h"}
    assert model.timeline_.zone == "Europe/Stockholm"
    model.save(forecaster, extra=["a", "b"], separator=";", number=2.5)
    assert CompositeGPForecaster.load_with(forecaster)[1] == {"extra": ["a", "b"], "separator": ";", "number": 2.5}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 9, 40), "kind": ["x", "y"] * 20})
    frame.assign(y=np.sin(frame["a"])).to_csv(tmp_path / "train.csv", index=False)
    training = read_training_table(tmp_path / "train.csv", "y")
    path = tmp_path / "table.cgp"
    TableModel("y", training.columns, CompositeGPRegressor(learning=None)).fit(training).save(path)
    return path


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("numbers",), {"list": ["a", "a"]}),
        (("numbers",), {"list": ["a", "kind"]}),
        (("numbers",), {"list": []}),
        (("numbers",), 4),
        (("target",), 1),
        (("levels", "dict", "kind"), {"list": []}),
        (("levels", "dict", "kind"), {"list": ["x", "x"]}),
        (("levels", "dict", "kind"), {"list": ["x", "y", "z"]}),
        (("levels",), 1),
        (("regressor",), 1),
        (("regressor", "dict", "model", "dict", "kernel"), 1),
    ],
)
def test_a_table_model_that_no_fit_wrote_is_refused(table, keys, value, capsys):
    change(table, *keys, value=value)
    assert_refused(TableModel.load, table)
    assert main(["regress", "--model", str(table), "--predict", str(table.with_name("train.csv"))]) == 1
    said = capsys.readouterr().err
    assert str(table) in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(-1.0),
        RBF(0.0),
        RBF(np.nan),
        RBF([[1.0]]),
        RBF([]),
        RBF(True),
        RBF(10**400),
        RBF(1.0, (2.0, 1.0)),
        RBF(1.0, (np.nan, 1.0)),
        RBF(1.0, "free"),
        RBF([1.0, 2.0], [(1, 2), (1, 2), (1, 2)]),
        WhiteKernel(-0.1),
        Matern(nu=0.0),
        Matern(nu="inf"),
        RBF() ** -1,
        RBF() ** np.nan,
        Sum(RBF(), 2),
        OnColumns(RBF(), "a"),
        OnColumns(RBF(), [-1]),
        OnColumns(3, [0]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_arguments_of_kernels_are_checked(kernel):
    with pytest.raises(ValueError, match="kernel"):
        check_arguments(kernel)


@pytest.mark.parametrize(
    "kernel", [RBF([1.0, 2.0], (1e-5, np.inf)), Matern(nu=np.inf), 0.0 * RBF(), WhiteKernel(0.0, "fixed")]
)
def test_arguments_that_scikit_learn_allows_are_allowed(kernel):
    check_arguments(kernel)


def test_levels_are_checked_when_they_are_made():
    for arguments in [(0.0, 3), (np.inf, 3), (24.0, 0), (24.0, 10**9), (24.0, 2.5), (24.0, 3, -1)]:
        with pytest.raises(ValueError, match="must be"):
            PeriodicLevels(*arguments)


def test_a_belief_is_checked(data, tmp_path):
    X, y = data
    path = tmp_path / "stream.cgp"
    model = CompositeGPRegressor(KERNEL, learning=None, mean="linear", prediction=CompositeSum(watch=X[:5]))
    model.partial_fit(X, y).save(path)
    np.testing.assert_array_equal(CompositeGPRegressor.load(path).predict(X[:5]), model.predict(X[:5]))
    content = path.read_bytes()
    for name, array in {
        "location": np.full((8, 1), np.nan),
        "scale": np.zeros((3, 3)),
        "precision": np.zeros((2, 2)),
        "latent.points": np.zeros((5, 3)),
        "latent.root": np.zeros((5, 5)),
        "latent.strengths": np.ones(7),
    }.items():
        path.write_bytes(content)
        change_array(path, f"model.watched.{name}", array)
        assert_refused(CompositeGPRegressor.load, path)
    for keys, value in {("variance",): 0.0, ("outputs",): {"tuple": [3]}, ("latent",): None}.items():
        path.write_bytes(content)
        change(path, "model", "dict", "watched", "dict", *keys, value=value)
        assert_refused(CompositeGPRegressor.load, path)


def test_what_was_learned_is_checked(data, tmp_path):
    X, y = data
    path = tmp_path / "learned.cgp"
    kernel = 1.0 * RBF() + WhiteKernel()
    model = CompositeGPRegressor(kernel, mean=Basis("linear"), learning=FisherAverage(), segment_size=60)
    model.fit(X, y).save(path)
    content = path.read_bytes()
    for name, array in {
        "coefficients": np.zeros(2),
        "coefficient_covariance": -np.eye(3),
        "theta.precision": -np.eye(3),
        "theta.shift": np.full(3, np.nan),
        "theta.n_at_bound": np.full(3, -1),
    }.items():
        path.write_bytes(content)
        change_array(path, f"model.{name}", array)
        assert_refused(CompositeGPRegressor.load, path)


def test_a_content_that_is_none_is_refused(tmp_path):
    path = tmp_path / "m"
    write_archive(path, "compositegp regressor", 3, {})
    assert_refused(CompositeGPRegressor.load, path, "missing")
    with pytest.raises(ValueError, match="the model cannot be read"):
        CompositeGPRegressor.from_content(3)
