"""Model files: damaged ones, and valid archives whose content no fit wrote."""

import copy
import io
import json
import math
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from attack.cases import Budget, Ended, command, ended, is_sound
from attack.figures import Figures
from compositegp import (
    Basis,
    CompositeGPRegressor,
    CompositeSum,
    FisherAverage,
    Nearest,
    OnColumns,
    OnSphere,
    RotatedMatern,
    functionals,
)
from compositegp.cli.table_columns import read_training_table
from compositegp.cli.table_model import TableModel
from compositegp.forecasting import CompositeGPForecaster


class Specimen(NamedTuple):
    """A model file to attack.

    Attributes
    ----------
    content : bytes
    load : callable
        Of a path.
    use : callable
        Predictions of the model that was loaded.
    expected : array
        What they are without an attack.
    command : callable or None
        Arguments of a command that uses a path.
    """

    content: bytes
    load: Callable[[Path], Any]
    use: Callable[[Any], Any]
    expected: Any
    command: Callable[[Path], list[object]] | None = None


def specimens(folder: Path) -> dict[str, Specimen]:
    """Models of every kind that can be saved; what their commands read is put into a folder."""
    models, table = _specimens()
    (folder / "train.csv").write_text(table)
    return models


@cache
def _specimens() -> tuple[dict[str, Specimen], str]:
    """The models, and the table that one of them was learned from."""
    with tempfile.TemporaryDirectory() as name:
        return _made(Path(name))


def _made(folder: Path) -> tuple[dict[str, Specimen], str]:
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 8, size=(150, 2))
    y = 9 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=150)
    Z = rng.uniform(0, 8, size=(6, 2))
    kernel = 1.2 * Matern([0.8, 2.0], nu=1.5) + WhiteKernel(0.05)
    path, found = folder / "specimen.cgp", {}

    def kept(name: str, model: Any, load: Any, use: Any, **more: Any) -> None:
        model.save(path, **more.pop("stored", {}))
        found[name] = Specimen(path.read_bytes(), load, use, use(load(path)), **more)

    def predict(model: Any) -> Any:
        return np.concatenate([np.ravel(part) for part in model.predict(Z, return_std=True)])

    regressors = {
        "default": CompositeGPRegressor().fit(X[:60], y[:60]),
        "tuned": CompositeGPRegressor(kernel, prediction=Nearest(50), mean="linear").fit(X, y),
        "sum": CompositeGPRegressor(kernel, learning=None, prediction="composite", segment_size=40).fit(X, y),
        "log": CompositeGPRegressor(kernel, target_transform="log", mean=Basis("linear"), learning=FisherAverage()),
        "watch": CompositeGPRegressor(kernel, learning=None, mean="linear", prediction=CompositeSum(watch=Z)),
        "outputs": CompositeGPRegressor(segment_size=40).fit(X[:60], np.column_stack([y[:60], -y[:60]])),
        "columns": CompositeGPRegressor(
            OnColumns(RBF(), [1]) + 0.3 * OnColumns(RBF(), 0) ** 2 + WhiteKernel(0.1), learning=None
        ).fit(X[:60], y[:60]),
        "fitc": CompositeGPRegressor(kernel, learning=None, prediction="fitc").fit(X[:60], y[:60]),
        "functionals": CompositeGPRegressor(1.2 * RBF(1.5) + WhiteKernel(0.05), learning=None).fit(
            functionals.join([functionals.at(X[:40]), functionals.derivative(X[40:50], 0)]), y[:50]
        ),
        "sphere": CompositeGPRegressor(OnSphere(Matern(500.0, nu=1.5)) + WhiteKernel(0.1), learning=None).fit(
            X[:60], y[:60]
        ),
        "rotated": CompositeGPRegressor(
            RotatedMatern.at_angle(30.0, 3.0, 2.0) + WhiteKernel(0.1), learning=None
        ).fit(X[:60], y[:60]),
    }
    regressors["log"].fit(X, y)
    regressors["watch"].partial_fit(X[:80], y[:80]).partial_fit(X[80:], y[80:])
    for name, model in regressors.items():
        kept(name, model, CompositeGPRegressor.load, predict)
    hours = np.arange(140)
    index = pd.date_range("2024", periods=140, freq="h", tz="Europe/Stockholm")
    series = pd.Series(5 + np.sin(2 * np.pi * hours / 24) + 0.1 * rng.normal(size=140), index=index)
    extra = pd.DataFrame({"heat": rng.normal(size=140)}, index=index)
    kept(
        "forecaster with columns",
        CompositeGPForecaster(n_neighbors=50, search=False).fit(series + extra["heat"], extra),
        CompositeGPForecaster.load,
        lambda model: model.predict(6, X=extra[:6].reset_index(drop=True)).to_numpy().ravel(),
    )
    kept(
        "forecaster",
        CompositeGPForecaster(n_neighbors=50).fit(series),
        CompositeGPForecaster.load,
        lambda model: model.predict(6).to_numpy().ravel(),
        stored={"time": "t", "target": "y", "horizon": "6h"},
        command=lambda path: ["stream", path],
    )
    table, rows = folder / "train.csv", pd.DataFrame(X[:45], columns=["a", "b"]).assign(kind=["u", "v", "w"] * 15)
    rows.assign(y=y[:45]).to_csv(table, index=False)
    training = read_training_table(table, "y")
    kept(
        "table",
        TableModel("y", training.columns, CompositeGPRegressor(kernel=None, learning=None)).fit(training),
        TableModel.load,
        lambda model: model.predict(model.columns.read(rows[:5], "rows")).mean,
        command=lambda path: [
            *("regress", "--model", path, "--predict", path.with_name("train.csv")),
            *("--out", path.with_name("out.csv")),
        ],
    )
    return found, table.read_text()


def damaged_files(budget: Budget, rows: dict[str, Figures]) -> None:
    """Bit flips, cuts, insertions and garbage: an error that names the file, or the same predictions."""
    figures = rows.setdefault("model files, damaged", Figures())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = specimens(folder)
        for number, rng in budget.cases("damaged"):
            kind, specimen = _chosen(models, rng)
            path = folder / "model.cgp"
            path.write_bytes(_damaged(specimen.content, rng))
            found = _loaded(specimen, path)
            if found.outcome == "right" and not np.array_equal(found.value, specimen.expected):
                found = Ended("wrong", message="loaded, with other predictions")
            figures.add(found.outcome, f"--part damaged --case {number} ({kind}): {found.message[:300]}")


def changed_files(budget: Budget, rows: dict[str, Figures]) -> None:
    """Valid archives with a changed content: an error that names the file, or finite predictions."""
    figures = rows.setdefault("model files, valid but changed", Figures())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = specimens(folder)
        for number, rng in budget.cases("changed"):
            kind, specimen = _chosen(models, rng)
            path = folder / "model.cgp"
            path.write_bytes(_changed(specimen.content, rng))
            by_command = specimen.command is not None and rng.random() < 0.5
            found = _commanded(specimen, path) if by_command else _loaded(specimen, path)
            figures.add(found.outcome, f"--part changed --case {number} ({kind}): {found.message[:300]}")


def _chosen(models: dict[str, Specimen], rng: np.random.Generator) -> tuple[str, Specimen]:
    name = str(rng.choice(list(models)))
    return name, models[name]


def _loaded(specimen: Specimen, path: Path) -> Ended:
    """Load a file and predict: an error of loading has to name the file."""
    found = ended(lambda: specimen.load(path), names=str(path))
    if found.outcome != "right":
        return found
    used = ended(lambda: specimen.use(found.value))
    return Ended(is_sound(used.value), used.value, "predictions") if used.outcome == "right" else used


def _commanded(specimen: Specimen, path: Path) -> Ended:
    assert specimen.command is not None
    found = command(*specimen.command(path))
    if found.outcome == "right" and "NaN" in found.value[0]:
        return Ended("NaN", message=found.value[0])
    return found


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    array, size = bytearray(content), len(content)
    place, length = int(rng.integers(size)), int(2 ** rng.uniform(0, 10))
    match int(rng.integers(8)):
        case 0 | 1:
            for _ in range(int(rng.integers(1, 9))):
                array[int(rng.integers(size))] ^= 1 << int(rng.integers(8))
        case 2:
            del array[place:]
        case 3:
            del array[place : place + length]
        case 4:
            array[place:place] = rng.bytes(length)
        case 5:
            array[place : place + length] = rng.bytes(min(length, size - place))
        case 6:
            array[place : place + length] = bytes(min(length, size - place))
        case _:
            array = bytearray(rng.bytes(length)) if rng.random() < 0.5 else array[place:] + array[:place]
    return bytes(array)


def _changed(content: bytes, rng: np.random.Generator) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    changed: set[str] = set()
    for _ in range(1 if rng.random() < 0.7 else 2):
        arrays = [name for name in members if name.endswith(".npy") and name not in changed]
        if arrays and rng.random() < 0.4:
            name = str(rng.choice(arrays))
            members[name] = _changed_array(members[name], rng)
            changed.add(name)
        else:
            text = json.loads(members["model.json"])
            _change_text(text, rng, [name.removesuffix(".npy") for name in arrays])
            members["model.json"] = json.dumps(text).encode()
    file = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 7, 0.5, -0.5, 1e-308, 1e-12, 1e12, 1e308, -1e308, 10**9, 10**18, 10**400),
    *(float("nan"), float("inf"), float("-inf"), "", "abc", "auto", "log", "linear", "constant", "fixed", "kernel"),
    *("../../etc/passwd", "dateutil//etc/passwd", "\x00", "x" * 20_000, "9999-12-31T23:59:59+00:00", "NaT", "1e9"),
    *(
        [],
        [1],
        {},
        {"list": []},
        {"tuple": []},
        {"dict": {}},
        {"strings": ["a"]},
        {"strings": [1]},
        {"array": "no"},
    ),
    *(
        {"list": [1, None]},
        {"tuple": [1, 2]},
        {"dict": {"predict": 1}},
        {"code": "1"},
        {"kernel": 1, "arguments": {}},
    ),
    *({"kernel": kind, "arguments": {}} for kind in ("RBF", "WhiteKernel", "DotProduct", "Sum", "object")),
    {"kernel": "Sum", "arguments": {"k1": 1, "k2": 2}},
    {"kernel": "RBF", "arguments": {"length_scale": "abc"}},
    {"mean": "Constant", "arguments": {"value": 42}},
    {"mean": "PeriodicLevels", "arguments": {"period": 24.0, "phases": 10**9}},
    {
        "mean": "Basis",
        "arguments": {"functions": {"mean": "PeriodicLevels", "arguments": {"period": 2, "phases": 9}}},
    },
    {"object": "Nearest", "arguments": {"n_neighbors": 10**9}},
    {"object": "FisherAverage", "arguments": {"n_restarts": 10**9}},
    {"object": "CompositeSum", "arguments": {"group_size": 10**9}},
    {"object": "Inducing", "arguments": {"points": 10**9}},
    {"object": "Committee", "arguments": {"rule": "bcm"}},
    {"object": "Calibration", "arguments": {}},
]


def _change_text(text: Any, rng: np.random.Generator, arrays: list[str]) -> None:
    """Change one value somewhere in a JSON text."""
    places = list(_places(text["content"])) or [(text, "content")]
    holder, key = places[int(rng.integers(len(places)))]
    value = holder[key]
    match int(rng.integers(10)):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(rng.choice(["predict", "_model", "fit", "__class__", "array", "x"]))] = holder.pop(key)
        case 2:
            other_holder, other_key = places[int(rng.integers(len(places)))]
            holder[key] = copy.deepcopy(other_holder[other_key])
        case 3 if arrays:
            holder[key] = {"array": str(rng.choice(arrays))}
        case 4 | 5 if isinstance(value, int | float) and not isinstance(value, bool):
            factor = float(rng.choice([-1.0, 1.001, 0.5, 1e5, 1e-5, 1e30]))
            whole = rng.random() < 0.5 or not math.isfinite(value)
            holder[key] = value * factor if whole else int(min(abs(value * factor), 1e300)) + 1
        case 6:
            for _ in range(int(rng.integers(1, 220))):  # more than any value is nested
                value = {"list": [value]}
            holder[key] = value
        case _:
            holder[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])


def _places(value: Any) -> Any:
    """Where a value stands inside others."""
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for position in range(len(value)):
            yield value, position
            yield from _places(value[position])


def _changed_array(content: bytes, rng: np.random.Generator) -> bytes:
    array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if rng.random() < 0.1:  # a header that claims something else
        shape = [(10**12,), (10**9, 10**9), (-1,), (), (0,), (1, 2, 3)][int(rng.integers(6))]
        descr = str(rng.choice(["<f8", "<c16", "|O", "<i8", "<U9", ">f8"]))
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
        return header.getvalue() + content[content.index(b"\n") + 1 :]
    match int(rng.integers(9)):
        case 0 | 1 | 2 if array.size and array.dtype.kind == "f":
            array = array.copy()
            values = [np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 1e-308, 1e150]
            array.reshape(-1)[int(rng.integers(array.size))] = values[int(rng.integers(len(values)))]
        case 3:
            array = array.astype(str(rng.choice(["f4", "i8", "c16", "?", "U5", ">f8", "f2"])))
        case 4:
            array = array[None] if rng.random() < 0.5 else array.ravel()
        case 5:
            array = array[:-1] if array.ndim else array.reshape(1)
        case 6:
            array = array.T if rng.random() < 0.5 else np.concatenate([array.reshape(-1), array.reshape(-1)])
        case 7 if array.dtype.kind == "f":
            array = array * float(rng.choice([0.0, -1.0, 1e10, 1e-10, 1e200, 1e-300]))
        case _:
            array = np.zeros(tuple(int(rng.integers(4)) for _ in range(int(rng.integers(4)))))
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()
