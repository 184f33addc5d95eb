"""The command line: every verb, every kind of bad file. A process is started only where it is what is tested."""

import contextlib
import gzip
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import compositegp
from compositegp.cli import info
from compositegp.cli.app import main
from compositegp.cli.report import render_report
from compositegp.progress import ProgressBar

PROGRAM = [sys.executable, "-m", "compositegp"]


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self):
        """The one sentence about what went wrong."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return line


def command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def rows(n=24 * 30, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.arange(n)
    values = 50 + 10 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=n)
    return pd.DataFrame({"time": pd.date_range("2024-01-01", periods=n, freq="h"), "value": values})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rows().to_csv(folder / "series.csv", index=False)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 6, 300), "kind": rng.choice(["a", "b"], 300)})
    table["y"] = np.sin(table["x"]) + 2.0 * (table["kind"] == "b") + 0.1 * rng.normal(size=300)
    table[:200].to_csv(folder / "train.csv", index=False)
    table[200:].to_csv(folder / "test.csv", index=False)
    return folder


SERIES = ("--time", "time", "--target", "value", "--horizon", "24h")


@pytest.fixture(scope="module")
def forecast(folder):
    options = ["--backtest", 3, "--no-search", "--report", "--out", "out", "--save", "m.cgp"]
    options += ["--quantile", 0.1, "--quantile", 0.9]
    with contextlib.chdir(folder):
        done = command("forecast", "series.csv", *SERIES, *options)
    assert done.code == 0, done.err
    return done


class TestForecast:
    def test_prints_and_writes_everything(self, folder, forecast):
        table = pd.read_csv(folder / "out" / "forecast.csv", index_col=0, parse_dates=True)
        assert len(table) == 24
        assert table.index[0] == pd.Timestamp("2024-01-31 00:00")
        assert {"mean", "std", "q0.025", "q0.1", "q0.9"} <= set(table.columns)
        truth = 50 + 10 * np.sin(2 * np.pi * np.arange(24) / 24)
        assert np.abs(table["mean"] - truth).max() < 2
        assert (folder / "out" / "forecast.png").read_bytes()[:4] == b"\x89PNG"
        for words in ("backtest", "seasonal naive", "coverage 95 %", "short memory", "report: out/report.html"):
            assert words in forecast.out
        assert re.search(r"Under the model, its mean squared error is \d+\.\d+% higher", forecast.out)

    def test_prints_json_for_programs(self, folder, tmp_path):
        table = rows(24 * 8)
        table.to_csv(tmp_path / "series.csv", index=False)
        done = command("forecast", tmp_path / "series.csv", *SERIES, "--out", tmp_path, "--json", "--quantile", 0.1)
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert len(found["forecast"]) == 24
        assert found["forecast"][0]["time"] == "2024-01-09T00:00:00"
        assert found["forecast"][0]["q0.025"] < found["forecast"][0]["q0.1"] < found["forecast"][0]["q0.5"]
        assert set(found) == {"forecast", "model", "notes", "cost", "files"}
        assert any("scale none by the log score of past forecasts" in note for note in found["notes"])
        assert "\x1b" not in done.err  # no progress bars where there is no terminal

    def test_averages_by_day(self, tmp_path):
        rows(24 * 8).to_csv(tmp_path / "series.csv", index=False)
        options = [*SERIES[:4], "--horizon", "36h", "--aggregate", "day", "--report", "--json", "--out", tmp_path]
        options += ["--no-search"]
        done = command("forecast", tmp_path / "series.csv", *options)
        assert done.code == 0, done.err
        found = json.loads(done.out)["averages"]
        hourly = pd.read_csv(tmp_path / "forecast.csv", index_col=0, parse_dates=True)["mean"]
        assert [day["steps"] for day in found] == [24, 12]
        assert found[0]["mean"] == pytest.approx(hourly[:24].mean(), rel=1e-6)
        assert len(pd.read_csv(tmp_path / "forecast_by_day.csv")) == 2
        assert "Averages by day" in (tmp_path / "report.html").read_text()

    def test_takes_the_future_at_its_times(self, tmp_path):
        table = rows(24 * 9)
        table["heat"] = np.random.default_rng(1).normal(size=len(table))
        table["value"] += 5 * table["heat"]
        table[:-3].to_csv(tmp_path / "past.csv", index=False)
        table[["time", "heat"]].to_csv(tmp_path / "all.csv", index=False)  # history and future in one file
        options = [*SERIES[:4], "--horizon", "3", "--extra", "heat", "--no-search", "--out", tmp_path / "o"]
        done = command("forecast", tmp_path / "past.csv", *options, "--future", tmp_path / "all.csv")
        assert done.code == 0, done.err
        found = pd.read_csv(tmp_path / "o" / "forecast.csv")["mean"].to_numpy()
        assert np.abs(found - table["value"][-3:].to_numpy()).max() < 5
        table[["time", "heat"]][:-2].to_csv(tmp_path / "short.csv", index=False)
        done = command("forecast", tmp_path / "past.csv", *options, "--future", tmp_path / "short.csv")
        assert done.code == 1
        assert "has no row for" in done.error


def without_plotly(page):
    """The page without the code of Plotly, which names addresses that it does not load by itself."""
    if importlib.util.find_spec("plotly") is None:
        return page
    from plotly.offline import get_plotlyjs

    assert page.count(get_plotlyjs()) == 1
    return page.replace(get_plotlyjs(), "")


def test_the_page_is_self_contained(folder, forecast):
    page = without_plotly((folder / "out" / "report.html").read_text())
    assert page.startswith("<!doctype html>")
    assert page.count("data:image/png;base64,") == 3  # the forecast, its parts and the backtest
    assert "http" not in page
    assert " src=" not in page.replace(' src="data:', "")
    for words in ("Backtest", "What was learned", "What the approximation costs", "seasonal naive"):
        assert words in page


def test_pictures_are_interactive_on_a_screen_and_static_in_print(folder, forecast):
    pytest.importorskip("plotly", reason="no plotly: pip install 'compositegp[report]'")
    page = without_plotly((folder / "out" / "report.html").read_text())
    for name in ("forecast", "backtest", "parts"):
        figure = json.loads(
            page.split(f'id="{name}"></div>\n<script>{{ const figure = ')[1].split("; Plotly.newPlot")[0]
        )
        assert figure["data"]
    assert "@media print { .interactive { display: none; }" in page
    assert page.count('<img class="static"') == 3


def test_without_plotly_the_pictures_are_static(monkeypatch):
    index = pd.date_range("2024-01-01", periods=3, freq="h")
    table = pd.DataFrame({f"q{q}": [1.0] for q in (0.025, 0.25, 0.5, 0.75, 0.975)}, index=index[2:])
    monkeypatch.setattr("compositegp.cli.report.find_spec", lambda name: None)
    page = render_report(
        "t",
        picture=b"png",
        forecast=table,
        scores=None,
        model=[],
        notes=[],
        cost="",
        history=pd.Series([1.0, 2.0], index[:2]),
    )
    assert "Plotly" not in page
    assert "@media" not in page
    assert page.count("data:image/png;base64,") == 1


def test_no_text_ends_the_script_of_a_picture():
    pytest.importorskip("plotly", reason="no plotly: pip install 'compositegp[report]'")
    index = pd.date_range("2024-01-01", periods=3, freq="h")
    table = pd.DataFrame({f"q{q}": [1.0] for q in (0.025, 0.25, 0.5, 0.75, 0.975)}, index=index[2:])
    name = "</script><script>alert(1)</script>"
    history = pd.Series([1.0, 2.0], index[:2], name=name)
    page = render_report(
        "t", picture=b"png", forecast=table, scores=None, model=[], notes=[], cost="", history=history
    )
    assert "alert(1)</script>" not in without_plotly(page)


def test_backtest_curves_are_plain_averages(rng):
    from compositegp.plotting import backtest_figure

    index = pd.date_range("2024-01-01", periods=48, freq="h")
    columns = {
        "observed": rng.normal(size=48),
        "mean": 0.0,
        "persistence": 1.0,
        "step": np.tile(np.arange(1, 25), 2),
    }
    table = pd.DataFrame(columns | {"PIT": rng.uniform(size=48)}, index=index)
    figure = backtest_figure(table)
    by_step, naive = figure["data"][:2]
    y = table["observed"].to_numpy().reshape(2, 24)
    np.testing.assert_allclose(by_step["y"], np.sqrt((y**2).mean(axis=0)))
    np.testing.assert_allclose(naive["y"], np.sqrt(((y - 1) ** 2).mean(axis=0)))
    bars = next(trace for trace in figure["data"] if trace["type"] == "bar")
    assert np.sum(bars["y"]) == pytest.approx(20)
    share = figure["data"][-1]
    half = np.abs(table["PIT"] - 0.5) <= 0.25
    assert share["y"][9] == pytest.approx(half.mean())


def test_the_page_shows_text_as_text():
    frame = pd.DataFrame({"<i>": [1.23456, np.nan]}, index=["<a>", "b & c"])
    page = render_report(
        "<script>", picture=b"png", forecast=frame, scores=None, model=["<b>"], notes=[], cost="<u>\nsecond line"
    )
    for text in ("<script>", "<i>", "<a>", "<b>", "<u>"):
        assert text not in page
        assert text.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "<td>1.235</td>" in page
    assert "<td></td>" in page
    assert "<p>second line</p>" in page
    assert "no gaps, no duplicates, no missing values" in page
    assert "Backtest" not in page


def test_the_page_opens_in_a_browser(folder, forecast, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium: make test-setup installs it")
    page = (folder / "out" / "report.html").read_text()
    # The page itself tells, once loaded, whether its picture is there and how large its first one is drawn.
    first = "img" if importlib.util.find_spec("plotly") is None else "#forecast .main-svg"
    probe = (
        "<script>window.onerror = e => document.title = 'error ' + e; window.onload = () => {"
        f"const i = document.querySelector('img'), b = document.querySelector('{first}').getBoundingClientRect();"
        "const sizes = [i.naturalWidth, Math.round(b.width), Math.round(b.height)];"
        "const buttons = [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title + b.dataset.attr);"
        "document.body.dataset.cloud = buttons.filter(t => /cloud|studio|link|share/i.test(t)).length;"
        "document.body.dataset.seen = i.complete + ' ' + sizes.join(' ') }"
        "</script>"
    )
    probed = tmp_path / "page.html"
    probed.write_text(page.replace("</head>", probe + "</head>"))
    done = subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
            *("--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--enable-logging=stderr", "--v=0", "--dump-dom", f"file://{probed}"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    assert "<title>error" not in done.stdout
    complete, natural, width, height = done.stdout.split('data-seen="')[1].split('"')[0].split()
    assert complete == "true"
    assert 'data-cloud="0"' in done.stdout  # no button sends data elsewhere
    assert int(natural) > 500
    assert int(width) > 300
    assert int(height) > 100


@pytest.mark.parametrize("kind", ["gz", "parquet", "zones", "unsorted", "duplicates", "extra"])
def test_series_in_files_of_many_kinds_are_forecast(tmp_path, kind):
    table, options, path = rows(24 * 8), ["--horizon", "3", "--no-search"], tmp_path / "series.csv"
    if kind == "gz":
        path = tmp_path / "series.csv.gz"
        path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    elif kind == "parquet":
        path = tmp_path / "series.parquet"
        table.to_parquet(path)
    else:
        if kind == "zones":  # offsets that change with daylight saving
            times = table["time"].dt.tz_localize("UTC") + pd.Timedelta(days=85)
            table["time"] = [stamp.isoformat() for stamp in times.dt.tz_convert("Europe/Stockholm")]
        elif kind == "unsorted":
            table = table.sample(frac=1.0, random_state=0)
        elif kind == "duplicates":
            table = pd.concat([table, table[:5]])
            options += ["--duplicates", "mean"]
        elif kind == "extra":
            table["heat"] = np.arange(len(table)) % 7
            table[["heat"]][:3].to_csv(tmp_path / "future.csv", index=False)
            options += ["--extra", "heat", "--future", tmp_path / "future.csv"]
        table.to_csv(path, index=False)
    arguments = ["forecast", path, "--time", "time", "--target", "value", *options, "--out", tmp_path / "out"]
    done = command(*arguments)
    assert done.code == 0, done.err
    assert len(pd.read_csv(tmp_path / "out" / "forecast.csv")) == 3


BAD = {
    "missing": (None, "does not exist"),
    "empty": (b"", "is empty"),
    "only a header": (b"time,value\n", "has no rows"),
    "no such column": (b"when,value\n2024-01-01,1\n2024-01-02,2\n", "has no column 'time'; it has when, value"),
    "text in numbers": (
        b"time,value\n2024-01-01,1\n2024-01-02,two\n",
        "text where numbers should be: 'two' in row 2",
    ),
    "no times": (b"time,value\nmonday,1\ntuesday,2\n", "has values that are not times"),
    "numbers for times": (b"time,value\n1,1\n2,2\n", "numbers where times should be"),
    "mixed zones": (b"time,value\n2024-01-01 00:00+01:00,1\n2024-01-01 01:00,2\n", "with and without a time zone"),
    "one row": (b"time,value\n2024-01-01,1\n", "too few"),
    "all missing": (b"time,value\n2024-01-01,\n2024-01-02,\n2024-01-03,\n", "no observed value"),
    "duplicates": (b"time,value\n2024-01-01,1\n2024-01-01,2\n2024-01-02,2\n", "occur more than once"),
    "not CSV at all": (bytes(range(256)) * 40, "cannot be read"),
    "a folder": ("folder", "is a folder"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_end_in_one_sentence(kind, tmp_path):
    content, message = BAD[kind]
    path = tmp_path / "bad.csv"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    done = command("forecast", path, *SERIES, "--out", tmp_path / "out")
    assert done.code == 1
    assert done.out == ""
    assert message in done.error


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
    def test_a_file_that_is_not_a_model_ends_in_one_sentence(self, folder, regression, request, tmp_path, damage):
        path = tmp_path / "damaged.cgp"
        if damage == "forecaster":
            request.getfixturevalue("forecast")
            shutil.copy(folder / "m.cgp", path)
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
        table = pd.DataFrame({"x": np.linspace(0, 3, 40)})
        table["y"] = np.exp(np.sin(table["x"]))
        table.to_csv(tmp_path / "a.csv", index=False)
        options = ["--target", "y", "--predict", tmp_path / "a.csv", "--out", tmp_path / "p.csv", "--log"]
        assert command("regress", tmp_path / "a.csv", *options).code == 0
        assert (pd.read_csv(tmp_path / "p.csv")["lower"] > 0).all()


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
        ("x,y\n1,2\n2,3\n", "x,y\n1,inf\n", "column 'y' of b.csv has 1 infinite value(s), the first in row 1"),
        ("x,y\n1,2\n2,3\n", "x,y\n1,two\n", "column 'y' of b.csv has text where numbers should be"),
    ],
)
def test_tables_that_do_not_fit(tmp_path, monkeypatch, train, test, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(train)
    (tmp_path / "b.csv").write_text(test)
    done = command("regress", "a.csv", "--target", "y", "--predict", "b.csv")
    assert done.code == 1
    assert message in done.error
    assert not (tmp_path / "predictions.csv").exists()


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


class TestProgram:
    def test_help_has_examples(self):
        for verb in ("forecast", "regress", "analyze", "stream", "reproduce", "info"):
            done = command(verb, "--help")
            assert done.code == 0
            assert "Examples:" in done.out
            assert f"compositegp {verb}" in done.out.partition("Examples:")[2]
        done = command("--help")
        assert done.code == 0
        assert "Exit codes: 0 done" in done.out
        assert command("--version").out.startswith("compositegp ")

    @pytest.mark.parametrize("wrong", [["fly"], ["forecast"], [], ["regress", "x.csv"], ["info", "--jobs", "two"]])
    def test_wrong_usage(self, wrong):
        done = command(*wrong)
        assert done.code == 2
        assert "Usage: compositegp" in done.err
        assert done.error

    def test_info_lists_the_installed_packages(self):
        assert json.loads(command("info", "--json", "--jobs", 1).out)["compositegp"]
        assert "scikit-learn" in command("info").out

    @pytest.mark.filterwarnings("always")
    def test_warnings_are_notes(self, monkeypatch):
        def warn(package):
            warnings.warn("look here", UserWarning, stacklevel=1)
            return "1.0"

        monkeypatch.setattr(info, "_version", warn)
        before = warnings.showwarning
        done = command("info")
        assert done.code == 0
        assert "note: look here\n" in done.err
        assert warnings.showwarning is before

    def test_an_interrupted_command_ends_with_130(self, monkeypatch):
        def interrupt(package):
            raise KeyboardInterrupt

        monkeypatch.setattr(info, "_version", interrupt)
        assert command("info") == Done(130, "", "interrupted\n")

    def test_an_interrupt_while_modules_are_imported_ends_with_130(self, monkeypatch):
        def interrupt():
            raise KeyboardInterrupt

        monkeypatch.setattr("compositegp.cli.app.build_app", interrupt)
        assert command("info") == Done(130, "", "interrupted\n")

    @pytest.mark.parametrize("module", ["compositegp.cli.app", "typer"])
    def test_an_interrupt_while_the_first_modules_are_imported_ends_with_130(self, module):
        code = textwrap.dedent(f"""
            import sys

            class Interrupt:
                def find_spec(self, name, path, target=None):
                    if name == {module!r}:
                        raise KeyboardInterrupt

            sys.meta_path.insert(0, Interrupt())
            from compositegp.cli import main

            sys.argv[1:] = ["info"]
            sys.exit(main())
        """)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (MemoryError(), "not enough memory"),
            (OSError("full"), "full"),
            (OSError(28, "No space left on device", "m.cgp"), "m.cgp: No space left on device"),
        ],
    )
    def test_errors_of_the_machine_are_one_sentence(self, monkeypatch, error, sentence):
        def fail(package):
            raise error

        monkeypatch.setattr(info, "_version", fail)
        assert command("info") == Done(1, "", f"error: {sentence}\n")

    @pytest.mark.parametrize("package", ["typer", "jinja2", "matplotlib"])
    def test_a_missing_package_is_one_sentence(self, monkeypatch, folder, package):
        monkeypatch.setitem(sys.modules, package, None)
        done = command("forecast", folder / "series.csv", *SERIES)
        assert done == Done(1, "", f"error: {package} is not installed: pip install 'compositegp[cli]'\n")

    def test_help_imports_nothing_heavy(self):
        # The package itself, whose own imports are not the command line's, is replaced by an empty one.
        code = """
            import sys, types
            package = types.ModuleType("compositegp")
            package.__path__ = [sys.argv[1]]
            sys.modules["compositegp"] = package
            from compositegp.cli.app import main
            assert main(["forecast", "--help"]) == 0
            print("heavy:", {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "jinja2"} & set(sys.modules))
        """
        path = Path(compositegp.__file__).parent
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), path], capture_output=True, text=True, timeout=60
        )
        assert done.stdout.splitlines()[-1] == "heavy: set()", done.stderr

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
    def test_sigterm_leaves_no_process_behind(self, tmp_path):
        rng = np.random.default_rng(0)
        pd.DataFrame(rng.normal(size=(4000, 6)), columns=list("abcdey")).to_csv(tmp_path / "big.csv", index=False)
        arguments = [*PROGRAM, "regress", "big.csv", "--target", "y", "--save", "m.cgp", "--jobs", "2"]
        process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
        with process:
            wait_until(lambda: len(processes_of_session(process.pid)) > 3, 60)  # itself, two workers, their tracker
            process.terminate()
            assert process.stderr.read() == b""  # the pipe is closed by all of them
        assert process.returncode == 143
        wait_until(lambda: not processes_of_session(process.pid))
        assert [file.name for file in tmp_path.iterdir()] == ["big.csv"]

    def test_sigterm_while_an_object_is_finalized_is_not_lost(self):
        code = """
            import os, signal, time
            from compositegp.cli.app import _terminable
            class Finalized:
                def __del__(self):
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0.1)
            with _terminable():
                Finalized()
                time.sleep(30)
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (143, b"")

    def test_sigterm_while_workers_are_started_waits_for_it(self):
        code = """
            import os, signal
            from joblib import Parallel, delayed
            from joblib.externals.loky.backend import fork_exec as starting
            from compositegp.cli.app import _terminable
            start = starting.fork_exec
            def ended_meanwhile(*arguments, **options):
                process = start(*arguments, **options)
                os.kill(os.getpid(), signal.SIGTERM)  # the worker has not been told anything
                return process
            starting.fork_exec = ended_meanwhile
            with _terminable():
                Parallel(n_jobs=2)(delayed(abs)(number) for number in range(4))
                print("never here")
        """
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")

    def test_a_closed_output_and_one_with_few_characters(self, tmp_path):
        script = " ".join(PROGRAM) + " info >&-; echo $?; PYTHONIOENCODING=ascii " + " ".join(PROGRAM) + " info"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        assert done.stdout.startswith("0\n")
        assert "scikit-learn" in done.stdout

    def test_a_reader_that_ends_early_is_no_error(self):
        with subprocess.Popen([*PROGRAM, "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
    def test_completion_is_there_for_four_shells(self, monkeypatch, capfd, shell):
        monkeypatch.setenv("_COMPOSITEGP_COMPLETE", f"source_{shell}")
        assert main([]) == 0
        assert f"complete_{shell}" in capfd.readouterr().out

    def test_completion_in_bash(self, tmp_path):
        program = tmp_path / "compositegp"
        program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
        program.chmod(0o755)
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        script = """
            eval "$(_COMPOSITEGP_COMPLETE=source_bash compositegp)"
            for words in "fore" "forecast --back"; do
                COMP_WORDS=(compositegp $words); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                _compositegp_completion compositegp
                echo ${COMPREPLY[@]}
            done
        """
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
        assert done.stdout.split() == ["forecast", "--backtest"], done.stderr


def processes_of_session(session):
    """Processes that are alive in a session: on Linux, by their status files."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(status.parent.name))
    return found


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestProgressBar:
    def test_appears_on_a_terminal_when_work_takes_long(self, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        monkeypatch.setenv("TERM", "xterm")
        with ProgressBar("comparing plans") as bar:
            bar(1, 4)
            wait_until(lambda: "25%" in terminal.getvalue())
            print("note: in between", file=sys.stderr)
        assert "comparing plans" in terminal.getvalue()
        assert "note: in between" in terminal.getvalue()
        assert sys.stderr is terminal

    def test_shows_that_work_goes_on_before_anything_is_counted(self, monkeypatch):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        monkeypatch.setenv("TERM", "xterm")
        with ProgressBar("learning"):
            wait_until(lambda: "learning" in terminal.getvalue())

    def test_does_not_appear_in_the_first_two_seconds(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", Terminal())
        from compositegp import progress

        assert progress._DELAY == 2.0
        with ProgressBar("learning") as bar:
            bar(1, 2)
        assert sys.stderr.getvalue() == ""
        assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())

    def test_does_not_appear_without_a_terminal(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        monkeypatch.setattr("compositegp.progress._DELAY", 0.0)
        with ProgressBar("learning") as bar:
            bar(1, 2)
            time.sleep(0.05)
        assert sys.stderr.getvalue() == ""


def wait_until(happened, seconds=10.0):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
