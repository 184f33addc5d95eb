"""Files of models: whole or not at all, and never code."""

import json
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.preprocessing import PowerTransformer

from compositegp import Basis, CompositeGPRegressor, Linear, OnColumns
from compositegp.estimators.files import FORMAT, VERSION
from compositegp.prediction import CompositeSum, Inducing, Nearest
from compositegp.storage import read_archive, write_archive

KERNEL = ConstantKernel(1.2) * Matern([0.8, 2.0], nu=1.5) + WhiteKernel(0.05)


@pytest.fixture
def data(rng):
    X = rng.uniform(0, 8, size=(120, 2))
    return X, 9.0 + np.sin(X[:, 0]) + 0.2 * rng.normal(size=120), rng.uniform(0, 8, size=(25, 2))


MODELS = {
    "default": {},
    "plain": {
        "kernel": KERNEL,
        "learning": None,
        "prediction": "composite",
        "segment_size": 30,
        "conditioning_size": 0,
    },
    "log": {"kernel": KERNEL, "target_transform": "log", "mean": "linear", "prediction": Nearest(40)},
    "basis": {"kernel": KERNEL, "mean": Basis("linear", [0.0, 0, 0], np.eye(3))},
    "known mean": {
        "kernel": KERNEL,
        "mean": Linear([0.1, 0.2], 3.0),
        "learning": "fisher_average",
        "segment_size": 60,
    },
    "inducing": {"kernel": KERNEL, "learning": None, "prediction": Inducing([[0.0, 1.0], [3.0, 4.0]])},
    "labels": {"kernel": KERNEL, "learning": None, "prediction": "composite"},
    "several outputs": {"segment_size": 40},
    "odd kernel": {
        "kernel": OnColumns(RationalQuadratic(1.0, 2.0), [1])
        + 0.3 * OnColumns(ExpSineSquared(1.0, 3.0, periodicity_bounds="fixed"), 0) ** 2
        + RBF([1.0, 2.0], (1e-2, 1e2))
        + WhiteKernel(0.1),
        "learning": None,
    },
}


def assert_same_parameters(one, other):
    mine, theirs = one.get_params(deep=False), other.get_params(deep=False)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        assert type(value) is type(theirs[name]), name
        if isinstance(value, Basis | Linear):
            for field in vars(value):
                np.testing.assert_array_equal(getattr(value, field), getattr(theirs[name], field))
        elif isinstance(value, Inducing):
            np.testing.assert_array_equal(value.points, theirs[name].points)
        else:
            assert repr(value) == repr(theirs[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_loaded(name, data, tmp_path):
    X, y, Z = data
    if name == "several outputs":
        y = np.column_stack([y, 3 - 2 * y])
    model = CompositeGPRegressor(**MODELS[name]).fit(
        X, y, groups=["a", "b", "c"] * 40 if name == "labels" else None
    )
    path = tmp_path / "model.cgp"
    model.save(path)
    again = CompositeGPRegressor.load(path)
    np.testing.assert_array_equal(again.predict(Z, return_std=True), model.predict(Z, return_std=True))
    assert again.kernel_ == model.kernel_
    assert_same_parameters(again, model)
    np.testing.assert_allclose(
        again.log_marginal_likelihood_value_, model.log_marginal_likelihood_value_, rtol=1e-12
    )
    if model.theta_standard_errors_ is not None:
        np.testing.assert_allclose(again.theta_standard_errors_, model.theta_standard_errors_, rtol=1e-12)
    # and goes on as the other would
    X_k, y_k = X[:20] + 0.1, y[:20]
    np.testing.assert_allclose(
        again.partial_fit(X_k, y_k).predict(Z), model.partial_fit(X_k, y_k).predict(Z), rtol=1e-10
    )


@pytest.mark.parametrize("mean", [None, "linear"])
def test_a_stream_is_resumed(data, mean, tmp_path):
    X, y, Z = data
    options = {"learning": None, "conditioning_size": 0, "prediction": CompositeSum(watch=Z), "mean": mean}
    whole = CompositeGPRegressor(KERNEL, **options)
    resumed = CompositeGPRegressor(KERNEL, **options)
    for start in range(0, 120, 30):
        part = slice(start, start + 30)
        whole.partial_fit(X[part], y[part])
        resumed.partial_fit(X[part], y[part]).save(tmp_path / "stream")
        resumed = CompositeGPRegressor.load(tmp_path / "stream")
    np.testing.assert_array_equal(resumed.predict(Z, return_std=True), whole.predict(Z, return_std=True))


def test_column_names_are_kept(data, tmp_path):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    model.save(tmp_path / "m")
    again = CompositeGPRegressor.load(tmp_path / "m")
    assert list(again.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(Z, columns=["b", "a"]))


def test_there_is_no_pickle_inside(data, tmp_path):
    X, y, _ = data
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert json.loads(archive.read("model.json"))["version"] == VERSION
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as file:
                    np.load(file, allow_pickle=False)


class Evil:
    def __reduce__(self):
        return os.abort, ()


def test_code_in_a_file_is_not_run(data, tmp_path):
    X, y, _ = data
    path = tmp_path / "m"
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="cannot be read"):
        CompositeGPRegressor.load(path)
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with open(tmp_path / "evil.npy", "wb") as file:
        np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
    members["state.X.npy"] = (tmp_path / "evil.npy").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="cannot be read"):
        CompositeGPRegressor.load(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_says_so(data, tmp_path, share):
    X, y, _ = data
    path = tmp_path / "m"
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=f"{path} cannot be read"):
        CompositeGPRegressor.load(path)


def test_a_flipped_bit_is_noticed(data, tmp_path):
    X, y, _ = data
    path = tmp_path / "m"
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        CompositeGPRegressor.load(path)


def test_any_damage_is_an_error_that_names_the_file(data, tmp_path):
    X, y, Z = data
    path = tmp_path / "m"
    model = CompositeGPRegressor(KERNEL, learning=None).fit(X, y)
    model.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            found = CompositeGPRegressor.load(path).predict(Z)
        except ValueError as error:
            messages.append(str(error))
        else:  # a bit that nobody reads, as a date, does no harm
            np.testing.assert_array_equal(found, model.predict(Z))
    assert len(messages) > 200
    assert all(str(path) in message for message in messages)


def test_arrays_have_to_fit_together(data, tmp_path):
    X, y, _ = data
    path = tmp_path / "m"
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(path)
    content = read_archive(path, FORMAT, VERSION)
    content["model"]["y"] = y[:-1]
    write_archive(path, FORMAT, VERSION, content)
    with pytest.raises(ValueError, match="y must have the shape"):
        CompositeGPRegressor.load(path)


@pytest.mark.parametrize(("fitted", "later"), [("linear", None), (None, "linear")])
def test_the_mean_that_was_fitted_is_saved(data, tmp_path, fitted, later):
    X, y, Z = data
    model = CompositeGPRegressor(KERNEL, learning=None, mean=fitted).fit(X, y)
    expected = model.predict(Z)
    model.set_params(mean=later).save(tmp_path / "m")
    np.testing.assert_array_equal(CompositeGPRegressor.load(tmp_path / "m").predict(Z), expected)


def test_foreign_and_newer_files_are_named(data, tmp_path):
    path = tmp_path / "m"
    np.savez(path.with_suffix(".npz"), X=np.zeros(3))
    with pytest.raises(ValueError, match="cannot be read"):
        CompositeGPRegressor.load(path.with_suffix(".npz"))
    X, y, _ = data
    CompositeGPRegressor(KERNEL, learning=None).fit(X, y).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    marks = f'"version": {VERSION}'.encode(), b'"version": 99'
    members["model.json"] = members["model.json"].replace(*marks)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="version 99"):
        CompositeGPRegressor.load(path)
    with pytest.raises(FileNotFoundError):
        CompositeGPRegressor.load(tmp_path / "nowhere")


def test_an_interrupted_save_leaves_the_old_file_whole(data, tmp_path, monkeypatch):
    X, y, _ = data
    path = tmp_path / "m"
    model = CompositeGPRegressor(KERNEL, learning=None).fit(X, y)
    model.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(KeyboardInterrupt):
                CompositeGPRegressor(KERNEL, learning=None).fit(X[:50], y[:50]).save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]  # no debris


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mean": lambda X: X[:, 0]}, "mean"),
        ({"target_transform": PowerTransformer()}, "target_transform"),
        ({"kernel": type("Own", (RBF,), {})() + WhiteKernel()}, "kernel"),
        ({"random_state": np.random.RandomState(0)}, "random_state"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_saved_is_named(data, options, what, tmp_path):
    X, y, _ = data
    with pytest.raises(ValueError, match=f"{what}.*pickle"):
        CompositeGPRegressor(**options).fit(X, y).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
