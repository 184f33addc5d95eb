"""The verb forecast: tables, pages and pictures, files of every kind, good and bad."""

import contextlib
import functools
import gzip
import importlib.util
import json
import re

import numpy as np
import pandas as pd
import pytest
from browser import dump_probed_page
from command_line import SERIES, command, rows, write_tables

from compositegp.cli.report import render_report
from compositegp.forecasting import CompositeGPForecaster, backtest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def forecast(folder):
    options = ["--backtest", 3, "--no-search", "--report", "--out", "out", "--save", "m.cgp"]
    options += ["--quantile", 0.1, "--quantile", 0.9]
    with contextlib.chdir(folder):
        done = command("forecast", "series.csv", *SERIES, *options)
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--future", "series.csv"], "--future needs --extra"),
        (["--extra", "heat"], "--extra needs --future"),
        (["--log", "--transform", "none"], "--log and --transform none contradict each other"),
        (["--refit-every", 2], "--refit-every is for --backtest"),
    ],
)
def test_options_that_contradict_each_other(folder, options, message):
    done = command("forecast", folder / "series.csv", *SERIES, *options)
    assert done.code == 2
    assert message in done.err


def test_averages_of_too_long_a_horizon_are_refused_before_learning(folder, monkeypatch):
    monkeypatch.setattr("compositegp.forecasting.CompositeGPForecaster.fit", None)
    done = command("forecast", folder / "series.csv", *SERIES[:4], "--horizon", 6000, "--aggregate", "day")
    assert done.code == 1
    assert "5000 at most. Give a shorter horizon" in done.error


def test_scale_and_refits_can_be_chosen(tmp_path):
    rows(24 * 9).to_csv(tmp_path / "series.csv", index=False)
    options = ["--season", "day", "--no-search", "--backtest", 3, "--json", "--out", tmp_path]
    plain = CompositeGPForecaster(None, seasons=["day"], search=False)
    series = rows(24 * 9).set_index("time")["value"]
    options += ["--transform", "none", "--refit-every", 1]
    done = command("forecast", tmp_path / "series.csv", *SERIES, *options)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert any("scale of the target: as it is" in line for line in found["model"])
    expected, never = (backtest(plain, series, "24h", 3, refit_every=n).scores["RMSE"] for n in (1, None))
    assert found["backtest"]["compositegp, mean"]["RMSE"] == pytest.approx(expected["compositegp, mean"])
    assert expected["compositegp, mean"] != pytest.approx(never["compositegp, mean"])


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
        assert any(
            "scale of the target: " in note and "(log density, larger is better: " in note
            for note in found["notes"]
        )
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


def test_the_cost_is_that_of_dense_algebra_with_further_columns_too(tmp_path, monkeypatch):
    """Of a forecast from six observations with much noise; the effect of the column is the same in either."""
    few = functools.partial(CompositeGPForecaster, n_neighbors=6)
    monkeypatch.setattr("compositegp.forecasting.CompositeGPForecaster", few)
    rng, n, steps = np.random.default_rng(1), 24 * 9, 12
    table = rows(n + steps)
    table["heat"] = rng.normal(size=n + steps)
    slow = np.convolve(rng.normal(size=n + steps + 23), np.ones(24), "valid")  # over a day
    table["value"] += 5 * table["heat"] + slow + 5 * rng.normal(size=n + steps)
    table[:n].to_csv(tmp_path / "past.csv", index=False)
    table[n:][["time", "heat"]].to_csv(tmp_path / "future.csv", index=False)
    options = [*SERIES[:4], "--horizon", steps, "--extra", "heat", "--future", tmp_path / "future.csv", "--json"]
    options += ["--transform", "none", "--no-search", "--save", tmp_path / "model.cgp", "--out", tmp_path / "out"]
    done = command("forecast", tmp_path / "past.csv", *options)
    assert done.code == 0, done.err
    cost = json.loads(done.out)["cost"]
    words = r"the latest (\d+) observations.* error is ([\d.]+)% higher .* on (\d+) observations, with the same eff"
    found = re.search(words, cost).groups()
    model = CompositeGPForecaster.load(tmp_path / "model.cgp")
    used = ((model.observations_.index - table["time"][0]) / pd.Timedelta("1h")).to_numpy().astype(int)
    kernel, X, Z = model.kernel_, np.arange(float(n))[:, None], n + np.arange(float(steps))[:, None]
    S, S_yz = kernel(X), kernel(X, Z)
    exact, ours = np.linalg.solve(S, S_yz), np.zeros((n, steps))
    ours[used] = np.linalg.solve(S[np.ix_(used, used)], S_yz[used])
    errors = [np.diag(kernel(Z, Z) - 2 * w.T @ S_yz + w.T @ S @ w).mean() for w in (ours, exact)]
    excess = 100 * (errors[0] / errors[1] - 1)
    assert excess > 0.1
    assert float(found[1]) == pytest.approx(excess, abs=0.0051)
    assert (int(found[0]), int(found[2])) == (len(used), n)


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
    page = (folder / "out" / "report.html").read_text()
    # The page itself tells, once loaded, whether its picture is there and how large its first one is drawn.
    first = "img" if importlib.util.find_spec("plotly") is None else "#forecast .main-svg"
    probe = (
        "window.onload = () => {"
        f"const i = document.querySelector('img'), b = document.querySelector('{first}').getBoundingClientRect();"
        "const sizes = [i.naturalWidth, Math.round(b.width), Math.round(b.height)];"
        "const buttons = [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title + b.dataset.attr);"
        "document.body.dataset.cloud = buttons.filter(t => /cloud|studio|link|share/i.test(t)).length;"
        "document.body.dataset.seen = i.complete + ' ' + sizes.join(' ') }"
    )
    found = dump_probed_page(page, probe, tmp_path)
    complete, natural, width, height = found.split('data-seen="')[1].split('"')[0].split()
    assert complete == "true"
    assert 'data-cloud="0"' in found  # no button sends data elsewhere
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
