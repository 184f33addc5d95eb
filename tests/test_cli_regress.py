"""The verbs regress and analyze: predictions, models in files, tables that do not fit."""

import contextlib
import io
import json
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest
from command_line import SERIES, command, rows, write_tables

from compositegp.cli.app import main
from compositegp.forecasting import CompositeGPForecaster


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def regression(folder):
    options = ["--predict", "test.csv", "--out", "p.csv", "--save", "t.cgp"]
    with contextlib.chdir(folder):
        done = command("regress", "train.csv", "--target", "y", *options)
    assert done.code == 0, done.err
    return done


class TestRegress:
    def test_training_rows_are_scored_near_the_data_and_in_gaps(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        x = np.linspace(0, 20, 120)
        table = pd.DataFrame({"x": x, "y": np.sin(x) + 0.1 * rng.normal(size=120)})
        table.to_csv(tmp_path / "train.csv", index=False)
        assert main(["regress", str(tmp_path / "train.csv"), "--target", "y", "--validate", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["validation"]
        assert found["skipped"][0] == 0
        assert found["RMSE"][0] < 0.2 < found["RMSE"][-1]

    def test_predicts_and_scores(self, folder, regression):
        found = pd.read_csv(folder / "p.csv")
        assert list(found.columns) == ["x", "kind", "y", "mean", "std", "lower", "upper"]
        assert np.sqrt(np.mean((found["mean"] - found["y"]) ** 2)) < 0.2
        assert 0.88 < np.mean((found["lower"] < found["y"]) & (found["y"] < found["upper"])) <= 1.0
        assert "coverage of 95%" in regression.out
        assert "predictions: p.csv" in regression.out
        assert "model: t.cgp" in regression.out

    def test_columns_that_are_called_as_predictions_keep_their_names(self, folder, regression, tmp_path):
        rows = pd.read_csv(folder / "test.csv").assign(mean=7.0)
        rows.to_csv(tmp_path / "rows.csv", index=False)
        done = command(
            "regress", "--model", folder / "t.cgp", "--predict", tmp_path / "rows.csv", "--out", tmp_path / "p"
        )
        assert done.code == 0, done.err
        assert "predicted mean, predicted std, predicted lower, predicted upper" in done.out + done.err
        found = pd.read_csv(tmp_path / "p")
        assert (found["mean"] == 7.0).all()
        np.testing.assert_allclose(found["predicted mean"], pd.read_csv(folder / "p.csv")["mean"], rtol=1e-9)

    def test_scores_are_of_the_rows_whose_target_is_known(self, folder, regression, tmp_path):
        table = pd.read_csv(folder / "test.csv")
        table.loc[::3, "y"] = np.nan
        table.to_csv(tmp_path / "some.csv", index=False)
        done = command(
            "regress", "--model", folder / "t.cgp", "--predict", tmp_path / "some.csv", "--json", "--level", 0.8,
            "--out", tmp_path / "p.csv",
        )  # fmt: skip
        found = json.loads(done.out)
        scores, predictions = found["scores"], pd.DataFrame(found["predictions"])
        known = table["y"].notna()
        errors = (predictions["mean"] - table["y"])[known]
        inside = ((predictions["lower"] < table["y"]) & (table["y"] < predictions["upper"]))[known]
        np.testing.assert_allclose(scores["RMSE"], np.sqrt(np.mean(errors**2)))
        np.testing.assert_allclose(scores["MAE"], np.mean(np.abs(errors)))
        np.testing.assert_allclose(scores["R²"], 1 - np.mean(errors**2) / table["y"][known].var(ddof=0))
        np.testing.assert_allclose(scores["coverage of 80%"], inside.mean())

    def test_a_saved_model_predicts_the_same(self, folder, regression, tmp_path):
        test = pd.read_csv(folder / "test.csv")[["kind", "x"]]  # in another order, without the target
        test.to_csv(tmp_path / "test.csv", index=False)
        done = command(
            "regress", "--model", folder / "t.cgp", "--predict", tmp_path / "test.csv", "--out", tmp_path / "p.csv"
        )
        assert done.code == 0, done.err
        assert "coverage" not in done.out
        names = ["mean", "std", "lower", "upper"]
        expected, found = pd.read_csv(folder / "p.csv"), pd.read_csv(tmp_path / "p.csv")
        np.testing.assert_allclose(found[names], expected[names], rtol=1e-12)

    def test_a_model_can_be_saved_without_a_prediction(self, tmp_path):
        (tmp_path / "a.csv").write_text("kind,y\na,1\nb,2\na,1.5\nb,2.5\n")
        assert command("regress", tmp_path / "a.csv", "--target", "y", "--save", tmp_path / "m.cgp").code == 0
        done = command(
            "regress", "--model", tmp_path / "m.cgp", "--predict", tmp_path / "a.csv", "--out", tmp_path / "p.csv"
        )
        assert done.code == 0, done.err

    def test_a_saved_model_is_one_file_without_code(self, folder, regression):
        with zipfile.ZipFile(folder / "t.cgp") as archive:
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        np.load(io.BytesIO(file.read()), allow_pickle=False)
                else:
                    assert name == "model.json"
                    json.loads(archive.read(name))

    def test_a_model_that_is_not_there_ends_in_one_sentence(self, folder, tmp_path):
        done = command("regress", "--model", tmp_path / "none.cgp", "--predict", folder / "test.csv")
        assert done.code == 1
        assert "none.cgp does not exist. Make it with" in done.error

    @pytest.mark.parametrize("damage", ["forecaster", "truncated", "csv", "columns", "levels"])
    def test_a_file_that_is_not_a_model_ends_in_one_sentence(self, folder, regression, tmp_path, damage):
        path = tmp_path / "damaged.cgp"
        if damage == "forecaster":
            CompositeGPForecaster(None, search=False).fit(rows(24 * 8).set_index("time")["value"]).save(path)
        elif damage == "csv":
            shutil.copy(folder / "train.csv", path)
        elif damage == "truncated":
            path.write_bytes((folder / "t.cgp").read_bytes()[:-200])
        else:
            old, new = ('"numbers"', '"figures"') if damage == "columns" else ('["a", "b"]', '["a", 1, "b"]')
            with zipfile.ZipFile(folder / "t.cgp") as intact, zipfile.ZipFile(path, "w") as changed:
                for name in intact.namelist():
                    content = intact.read(name)
                    if name == "model.json":
                        assert old.encode() in content
                        content = content.replace(old.encode(), new.encode())
                    changed.writestr(name, content)
        done = command("regress", "--model", path, "--predict", folder / "test.csv", "--out", tmp_path / "p.csv")
        assert done.code == 1
        assert f"{path} cannot be read" in done.error

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["train.csv", "--model", "t.cgp", "--predict", "test.csv"], "Leave out TRAIN."),
            (["--target", "y", "--model", "t.cgp", "--predict", "test.csv"], "Leave out --target."),
            (["--log", "--save", "u.cgp", "--model", "t.cgp", "--predict", "test.csv"], "Leave out --log, --save."),
            (["--model", "t.cgp"], "--model needs --predict"),
            (["train.csv", "--predict", "test.csv"], "give the file to learn from and --target"),
            (["--target", "y", "--predict", "test.csv"], "give the file to learn from and --target"),
            (["train.csv", "--target", "y"], "give --predict"),
            (["train.csv", "--target", "y", "--predict", "test.csv", "--level", "95"], "--level must be between"),
        ],
    )
    def test_options_that_contradict_each_other(self, options, message):
        done = command("regress", *options)
        assert done.code == 2
        assert "Usage: compositegp regress" in done.err
        assert message in done.error

    def test_a_device_that_is_not_there_ends_in_one_sentence(self, folder):
        options = ["--target", "y", "--predict", folder / "test.csv", "--device", "abacus"]
        done = command("regress", folder / "train.csv", *options)
        assert done.code == 1
        assert "device='abacus'" in done.error

    def test_filtered_tables_keep_their_rows(self, folder, regression, tmp_path):
        table = pd.read_csv(folder / "test.csv")
        table[table["x"] > 3].to_parquet(tmp_path / "some.parquet")
        out = tmp_path / "p.csv"
        done = command("regress", "--model", folder / "t.cgp", "--predict", tmp_path / "some.parquet", "--out", out)
        assert done.code == 0, done.err
        found = pd.read_csv(out)
        assert len(found) == (table["x"] > 3).sum()
        assert np.sqrt(np.mean((found["mean"] - found["y"]) ** 2)) < 0.3

    def test_links_stay_links(self, folder, regression, tmp_path):
        real, link = tmp_path / "real.csv", tmp_path / "link.csv"
        real.touch()
        link.symlink_to(real)
        options = ["--model", folder / "t.cgp", "--predict", folder / "test.csv", "--out", link]
        assert command("regress", *options).code == 0
        assert link.is_symlink()
        assert real.stat().st_size > 1000

    def test_the_logarithm_of_the_target_is_modelled(self, tmp_path):
        table = pd.DataFrame({"x": np.linspace(0, 6, 200)})
        table["y"] = np.exp(np.sin(table["x"]) + 0.8 * np.random.default_rng(0).normal(size=200))
        table.to_csv(tmp_path / "a.csv", index=False)
        options = ["--target", "y", "--predict", tmp_path / "a.csv", "--out", tmp_path / "p.csv"]
        assert command("regress", tmp_path / "a.csv", *options).code == 0
        assert (pd.read_csv(tmp_path / "p.csv")["lower"] < 0).any()  # as values, some could be negative
        assert command("regress", tmp_path / "a.csv", *options, "--log").code == 0
        found = pd.read_csv(tmp_path / "p.csv")
        assert (found["lower"] > 0).all()
        # Half of a 95 % interval in logarithms is 1.96 standard deviations of 0.8.
        half = np.log(found["upper"] / found["lower"]) / 2
        np.testing.assert_allclose(half, 1.96 * 0.8, rtol=0.25)


@pytest.mark.parametrize("verb", ["regress", "analyze"])
@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("x,y\n1,2\n2,3\n", "z\n1\n", "b.csv lacks the column(s) 'x'"),
        ("y\n1\n2\n", "y\n1\n", "a.csv has no column besides 'y'"),
        ("x,y\n1,2\n,3\n", "x\n1\n", "column 'x' of a.csv has 1 empty cell(s), the first in row 2"),
        ("x,y\n1,2\n2,3\n", 'x\n1\n""\n', "column 'x' of b.csv has 1 empty cell(s), the first in row 2"),
        ("x,y\n1,2\n2,3\n", "x\none\n", "column 'x' of b.csv has text where numbers should be: 'one' in row 1"),
        ("x,y\n1,2\ninf,3\n", "x\n1\n", "column 'x' of a.csv has 1 infinite value(s), the first in row 2"),
        ("k,y\na,2\nb,3\n,4\n", "k\na\n", "column 'k' of a.csv has 1 empty cell(s), the first in row 3"),
        ("k,y\na,2\n' ',3\n ,4\n", "k\na\n", "column 'k' of a.csv has 1 empty cell(s), the first in row 3"),
        ("k,y\na,2\nb,3\n", 'k\n""\na\n', "column 'k' of b.csv has 1 empty cell(s), the first in row 1"),
        ("x,y\n1,2\n2,2\n", "x\n1\n", "column 'y' of a.csv has the same value in every row"),
        ("x,y\n1,2\n2,\n", "x\n1\n", "column 'y' of a.csv has 1 value(s)"),
        ("x,y\n1,2\n2,inf\n", "x\n1\n", "column 'y' of a.csv has 1 infinite value(s), the first in row 2"),
        ("x,y\n1,2\n1,3\n", "x\n1\n", "a.csv has no column to learn from"),
    ],
)
def test_tables_that_do_not_fit(tmp_path, monkeypatch, verb, train, test, message):
    assert message in refused(tmp_path, monkeypatch, verb, train, test)


@pytest.mark.parametrize(
    ("cell", "message"),
    [("inf", "has 1 infinite value(s), the first in row 1"), ("two", "has text where numbers should be")],
)
def test_observed_values_of_the_rows_to_predict_that_are_no_numbers(tmp_path, monkeypatch, cell, message):
    found = refused(tmp_path, monkeypatch, "regress", "x,y\n1,2\n2,3\n", f"x,y\n1,{cell}\n")
    assert f"column 'y' of b.csv {message}" in found


def refused(folder, monkeypatch, verb, train, test):
    """The one sentence in which a verb refuses tables."""
    monkeypatch.chdir(folder)
    (folder / "a.csv").write_text(train)
    (folder / "b.csv").write_text(test)
    done = command(verb, "a.csv", "--target", "y", "--predict", "b.csv")
    assert done.code == 1
    assert done.out == ""
    assert not (folder / "predictions.csv").exists()
    return done.error


@pytest.mark.parametrize("verb", ["regress", "analyze"])
@pytest.mark.parametrize("role", ["to learn from", "to predict"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "bad.csv does not exist"),
        ("folder", "bad.csv is a folder"),
        (b"", "bad.csv is empty"),
        (b"x,y\n", "bad.csv has no rows"),
        (bytes(range(256)) * 40, "bad.csv cannot be read as CSV: it is not in UTF-8"),
        (b"x,y\n1,2,3\n2,3\n", "bad.csv"),
        (b"w,z\n1,2\n2,3\n", "column"),
    ],
)
def test_bad_files_end_in_one_sentence(tmp_path, monkeypatch, verb, role, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("x,y\n1,2\n2,3\n3,5\n")
    bad = tmp_path / "bad.csv"
    if content == "folder":
        bad.mkdir()
    elif content is not None:
        bad.write_bytes(content)
    first, second = ("bad.csv", "good.csv") if role == "to learn from" else ("good.csv", "bad.csv")
    done = command(verb, first, "--target", "y", "--predict", second)
    assert (done.code, done.out) == (1, "")
    assert message in done.error


def test_an_empty_text_cell_is_an_error_with_a_saved_model_too(folder, regression, tmp_path):
    (tmp_path / "test.csv").write_text("x,kind\n1,a\n2,\n")
    done = command("regress", "--model", folder / "t.cgp", "--predict", tmp_path / "test.csv")
    assert done.code == 1
    assert f"column 'kind' of {tmp_path / 'test.csv'} has 1 empty cell(s), the first in row 2" in done.error


def test_unusual_columns_are_used_noted_or_refused(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.normal(size=30), "flag": rng.random(30) < 0.5, "same": "s", "y": rng.normal(size=30)}
    )
    table.loc[4, "y"] = np.nan
    table.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "b.csv").write_text("x,flag\n0,True\n1,False\n")  # a column that is not used may be missing
    options = ["--target", "y", "--predict", tmp_path / "b.csv", "--out", tmp_path / "p.csv"]
    done = command("regress", tmp_path / "a.csv", *options)
    assert done.code == 0, done.err
    assert "note: column 'same' of" in done.err
    assert "note: 1 of 30 rows of" in done.err
    table["when"] = pd.Timestamp("2024-01-01")
    table.to_parquet(tmp_path / "a.parquet")
    done = command("regress", tmp_path / "a.parquet", *options)
    assert done.code == 1
    assert "column 'when' of" in done.error
    assert "has times. Use compositegp forecast" in done.error
    names = pd.DataFrame({"name": [f"name {row}" for row in range(201)], "y": rng.normal(size=201)})
    names.to_csv(tmp_path / "c.csv", index=False)
    done = command("regress", tmp_path / "c.csv", *options)
    assert done.code == 1
    assert (
        "has 201 different texts in 201 rows, too many for categories (at most 200, and one for every two rows)"
        in done.error
    )


def test_a_level_that_was_not_learned_is_a_note(folder, regression, tmp_path):
    (tmp_path / "test.csv").write_text("x,kind\n1,a\n2,new\n")
    done = command(
        "regress", "--model", folder / "t.cgp", "--predict", tmp_path / "test.csv", "--out", tmp_path / "p.csv"
    )
    assert done.code == 0, done.err
    assert "note: column 'kind' of" in done.err
    assert "has values that the model was not learned from: new" in done.err
    assert len(pd.read_csv(tmp_path / "p.csv")) == 2


def test_analyze_compares_plans_and_the_default_as_json(folder, tmp_path):
    done = command("analyze", folder / "train.csv", "--target", "y", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["best"]["prediction"] in ("nearest", "composite")
    assert len(found["plans"]) > 2
    assert "Mean squared error" in found["verdict"]


def test_analyze_prints_tables(folder, tmp_path):
    pd.read_csv(folder / "train.csv")[:60].to_csv(tmp_path / "few.csv", index=False)
    done = command("analyze", tmp_path / "few.csv", "--target", "y", "--predict", folder / "test.csv")
    assert done.code == 0, done.err
    for words in ("kernel: ", "The default approximation", "excess error", "→ "):
        assert words in done.out


def test_what_is_wrong_is_reported_before_the_work(folder, tmp_path):
    series = ["forecast", folder / "series.csv", *SERIES, "--out", tmp_path / "o"]
    (tmp_path / "few.csv").write_text("x\n1\n")
    analyze = ["analyze", folder / "train.csv", "--target", "y"]
    for arguments, code, message in (
        ([*series, "--backtest", "-1"], 2, "'--backtest'"),
        ([*series, "--quantile", "2"], 2, "--quantile must be between 0 and 1"),
        ([*series, "--extra", "value"], 2, "--extra needs --future"),
        ([*series, "--duplicates", "drop"], 2, "'--duplicates'"),
        ([*series[:-4], "--horizon", "soon", *series[-2:]], 1, "horizon must be"),
        ([*analyze, "--predict", tmp_path / "few.csv"], 1, "lacks the column"),
    ):
        done = command(*arguments)
        assert (done.code, done.out) == (code, "")
        assert message in done.error
