"""The NOx study and its loaders, on small files made here."""

import numpy as np
import pandas as pd
import pytest

from compositegp import Composite, posterior
from compositegp.datasets import author_errors, locate, stockholm_nox
from compositegp.paper import choices, forecast_day, learn_model, nox
from compositegp.paper.nox_study import _origins, _weights


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Twelve weeks before 2014 and two after, with a daily and a weekly pattern."""
    hours = pd.date_range("2013-10-09 01:00", "2014-01-15 00:00", freq="h")
    rng = np.random.default_rng(0)
    red = np.zeros(len(hours))
    for i in range(1, len(hours)):
        red[i] = 0.8 * red[i - 1] + 0.3 * rng.normal()
    t = np.arange(len(hours))
    level = 3 + np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(2 * np.pi * t / 168) + red
    table = pd.DataFrame(
        {"timestamp": hours, "nox_essingeleden": np.exp(level), "nox_hornsgatan": np.exp(level + 0.5)}
    )
    path = tmp_path_factory.mktemp("nox") / "stockholm.csv.gz"
    table.to_csv(path, index=False)
    return path


def test_loader(file):
    series = stockholm_nox("hornsgatan", file)
    assert series.index[0] == pd.Timestamp("2013-10-09 01:00")
    assert (series > 0).all()
    with pytest.raises(ValueError, match="it has the stations essingeleden, hornsgatan"):
        stockholm_nox("torkel", file)


@pytest.mark.parametrize("what", ["gap", "missing", "negative"])
def test_loader_of_an_incomplete_series(file, tmp_path, what):
    table = pd.read_csv(file)
    if what == "gap":
        table = table.drop(index=5)
    else:
        table.loc[5, "nox_essingeleden"] = np.nan if what == "missing" else -1.0
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match="The study needs every hour"):
        stockholm_nox("essingeleden", tmp_path / "bad.csv")


def test_where_files_are_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPOSITEGP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="COMPOSITEGP_DATA"):
        locate("file.csv")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file.csv").touch()
    monkeypatch.setenv("COMPOSITEGP_DATA", str(tmp_path / "data"))
    assert locate("file.csv").exists()
    (tmp_path / "errors.csv").write_text("method,config,rmse\ngp,1weeks,50\n")
    with pytest.raises(ValueError, match="lacks the column"):
        author_errors(tmp_path / "errors.csv")


def test_the_study_runs_and_its_claims_hold(file, tmp_path):
    experiment = nox.run(tmp_path, days=5, weeks=10, stations=("essingeleden",), history=1000, path=file)
    table = pd.read_csv(tmp_path / "nox.csv")
    assert set(table["mean"]) == {"profile", "constant"}
    assert len(table) == 2 * 9
    profile = table[table["mean"] == "profile"].set_index("method")
    assert profile.loc["CGP 5 weeks", "seconds"] < profile.loc["GP", "seconds"]
    assert profile.loc["default, latest 1024", "RMSE of mean"] < 1.03 * profile.loc["GP", "RMSE of mean"]
    assert profile["coverage 95 %"].between(0.5, 1.0).all()
    assert {file for file, _ in experiment.pictures} <= {path.name for path in tmp_path.iterdir()}


def test_weights_are_those_of_a_prediction_made_alone(file):
    series = stockholm_nox("essingeleden", file)
    model = learn_model(series, "profile", 1200)
    X, Z = np.arange(1008.0)[:, None], 1008 + np.arange(24.0)[:, None]
    y = np.log(series.to_numpy()[:1008]) - model.level(np.arange(1008.0))
    for choice in choices(X, 6):
        weights, variance = _weights(model, X, Z, choice)
        composite = choice.composite or Composite.full(1008)
        belief = posterior(model.kernel, X, y, Z, composite, inducing=choice.inducing)
        np.testing.assert_allclose(weights @ y, belief.mean, atol=1e-6)
        np.testing.assert_allclose(variance, belief.variance, atol=1e-6)


def test_days_are_those_of_2014(file):
    series = stockholm_nox("essingeleden", file)
    origins = _origins(series, 364, 1000)
    assert series.index[origins[0]] == pd.Timestamp("2014-01-01 01:00")
    assert (np.diff(origins) == 24).all()
    assert len(_origins(series, 3, 1000)) == 3
    with pytest.raises(ValueError, match="too few"):
        _origins(series, 3, 10_000)


def test_a_days_forecast_is_log_normal(file):
    series = stockholm_nox("essingeleden", file)
    shown = forecast_day(series, learn_model(series, "profile", 1200), pd.Timestamp("2014-01-08"), 1000)
    assert (shown["q0.025"] > 0).all()
    assert (shown["q0.975"] - shown["q0.5"] > shown["q0.5"] - shown["q0.025"]).all()  # skewed


def test_the_same_study_on_a_series_with_gaps(file, tmp_path):
    series = stockholm_nox("essingeleden", file)
    holes = series.drop(series.index[[700, 701, 702, 1500, *range(2050, 2070)]])
    first = pd.Timestamp("2014-01-01")
    experiment = nox.run_elsewhere(tmp_path, days=2, weeks=10, series=holes, first=first)
    table = pd.read_csv(tmp_path / "nox.csv").set_index(["mean", "method"])
    assert "file was not found" in experiment.setting
    assert table.loc[("profile", "default"), "RMSE of mean"] > 0
    assert table["coverage 95 %"].between(0.3, 1.0).all()


def test_without_the_file_the_other_series_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPOSITEGP_DATA", raising=False)
    taken = []
    monkeypatch.setattr(nox, "run_elsewhere", lambda out, **options: taken.append(options))
    nox.run(tmp_path, days=5)
    assert taken[0]["days"] == 5
