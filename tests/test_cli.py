"""The installed command, end to end: every verb, every kind of bad file."""

import gzip
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compositegp.cli.app import main

COMMAND = Path(sys.executable).parent / "compositegp"


def command(*arguments, cwd=None, text=None):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, input=text, timeout=300
    )


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
    options = ["--backtest", 5, "--report", "--out", "out", "--save", "m.cgp"]
    done = command("forecast", "series.csv", *SERIES, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_forecast_prints_and_writes_everything(folder, forecast):
    table = pd.read_csv(folder / "out" / "forecast.csv", index_col=0, parse_dates=True)
    assert len(table) == 24
    assert table.index[0] == pd.Timestamp("2024-01-31 00:00")
    truth = 50 + 10 * np.sin(2 * np.pi * np.arange(24) / 24)
    assert np.abs(table["mean"] - truth).max() < 2
    assert (folder / "out" / "forecast.png").read_bytes()[:4] == b"\x89PNG"
    for words in ("backtest", "seasonal naive", "coverage 95 %", "short memory", "report: out/report.html"):
        assert words in forecast.stdout
    assert "day: explains" in forecast.stderr


def test_the_page_is_self_contained(folder, forecast):
    page = (folder / "out" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert "http" not in page
    for words in ("Backtest", "What was learned", "What the approximation costs", "seasonal naive"):
        assert words in page


def test_the_page_opens_in_a_browser(folder, forecast, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium: make test-setup installs it")
    page = (folder / "out" / "report.html").read_text()
    # The page itself tells, once loaded, whether its picture is there and how large it is drawn.
    probe = (
        "<script>window.onerror = e => document.title = 'error ' + e; window.onload = () => {"
        "const i = document.querySelector('img'), b = i.getBoundingClientRect();"
        "const sizes = [i.naturalWidth, Math.round(b.width), Math.round(b.height)];"
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
    assert int(natural) > 500
    assert int(width) > 300
    assert int(height) > 100


def test_forecast_for_machines(folder):
    done = command("forecast", "series.csv", *SERIES, "--out", "json", "--json", "--quantiles", "0.1", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["forecast"]) == 24
    assert found["forecast"][0]["time"] == "2024-01-31T00:00:00"
    assert found["forecast"][0]["q0.025"] < found["forecast"][0]["q0.1"] < found["forecast"][0]["q0.5"]
    assert "\x1b" not in done.stderr  # no progress bars where there is no terminal


@pytest.mark.parametrize("kind", ["gz", "parquet", "zones", "unsorted", "duplicates", "extra"])
def test_files_of_many_kinds(tmp_path, kind, monkeypatch):
    table, options, path = rows(24 * 8), ["--horizon", "3"], tmp_path / "series.csv"
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
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which the command replaces
    assert main([str(argument) for argument in arguments]) == 0
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
    "no times": (b"time,value\nmonday,1\ntuesday,2\n", "no time"),
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
    assert done.returncode == 1
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in done.stderr


def test_regress_predicts_and_scores(folder):
    options = ["--predict", "test.csv", "--out", "p.csv", "--save", "t.cgp"]
    done = command("regress", "train.csv", "--target", "y", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(folder / "p.csv")
    assert list(found.columns) == ["x", "kind", "y", "mean", "std", "lower", "upper"]
    assert np.sqrt(np.mean((found["mean"] - found["y"]) ** 2)) < 0.2
    assert 0.88 < np.mean((found["lower"] < found["y"]) & (found["y"] < found["upper"])) <= 1.0
    assert "coverage of 95%" in done.stdout
    assert (folder / "t.cgp").exists()


def test_regress_on_a_device_that_is_not_there_ends_in_one_sentence(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    arguments = ["regress", "train.csv", "--target", "y", "--predict", "test.csv", "--device", "abacus"]
    assert run(*arguments, monkeypatch=monkeypatch) == 1
    assert "error: device='abacus'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("x,y\n1,2\n2,3\n", "z\n1\n", "lacks the column"),
        ("y\n1\n2\n", "y\n1\n", "no column beside"),
        ("x,y\n1,2\n,3\n", "x\n1\n", "empty cell(s), the first in row 2"),
        ("x,y\n1,2\n2,3\n", "x\none\n", "text where numbers should be"),
    ],
)
def test_tables_that_do_not_fit(tmp_path, train, test, message):
    (tmp_path / "a.csv").write_text(train)
    (tmp_path / "b.csv").write_text(test)
    done = command("regress", "a.csv", "--target", "y", "--predict", "b.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "predictions.csv").exists()


def test_analyze(folder):
    done = command("analyze", "train.csv", "--target", "y", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["best"]["prediction"] in ("nearest", "composite")
    assert len(found["plans"]) > 2
    assert "Mean squared error" in found["verdict"]


def test_info_completion_help_and_usage(capsys):
    assert json.loads(command("info", "--json").stdout)["compositegp"]
    script = command("completion", "bash").stdout
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert "--backtest" in script
    complete = f"{script}\nCOMP_WORDS=(compositegp fore); COMP_CWORD=1; _compositegp; echo ${{COMPREPLY[@]}}"
    assert subprocess.run(["bash", "-c", complete], capture_output=True, text=True).stdout.strip() == "forecast"
    assert "examples:" in command("forecast", "--help").stdout
    done = command("fly")
    assert done.returncode == 2
    assert "usage:" in done.stderr
    for wrong in (["forecast"], [], ["regress", "x.csv"]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2
        assert "usage:" in capsys.readouterr().err


def run(*arguments, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    return main([str(argument) for argument in arguments])


def test_the_future_is_taken_at_its_times(tmp_path, monkeypatch, capsys):
    table = rows(24 * 9)
    table["heat"] = np.random.default_rng(1).normal(size=len(table))
    table["value"] += 5 * table["heat"]
    table[:-3].to_csv(tmp_path / "past.csv", index=False)
    table[["time", "heat"]].to_csv(tmp_path / "all.csv", index=False)  # history and future in one file
    common = [
        "forecast",
        tmp_path / "past.csv",
        *SERIES[:4],
        "--horizon",
        "3",
        "--extra",
        "heat",
        "--out",
        tmp_path / "o",
    ]
    assert run(*common, "--future", tmp_path / "all.csv", monkeypatch=monkeypatch) == 0
    found = pd.read_csv(tmp_path / "o" / "forecast.csv")["mean"].to_numpy()
    assert np.abs(found - table["value"][-3:].to_numpy()).max() < 5
    table[["time", "heat"]][:-2].to_csv(tmp_path / "short.csv", index=False)
    assert run(*common, "--future", tmp_path / "short.csv", monkeypatch=monkeypatch) == 1
    assert "has no row for" in capsys.readouterr().err


def test_filtered_tables_keep_their_rows(folder, tmp_path, monkeypatch):
    table = pd.read_csv(folder / "test.csv")
    table[table["x"] > 3].to_parquet(tmp_path / "some.parquet")
    out = tmp_path / "p.csv"
    arguments = [
        "regress",
        folder / "train.csv",
        "--target",
        "y",
        "--predict",
        tmp_path / "some.parquet",
        "--out",
        out,
    ]
    assert run(*arguments, monkeypatch=monkeypatch) == 0
    found = pd.read_csv(out)
    assert len(found) == (table["x"] > 3).sum()
    assert np.sqrt(np.mean((found["mean"] - found["y"]) ** 2)) < 0.3


def test_what_is_wrong_is_told_before_the_work(folder, tmp_path, monkeypatch, capsys):
    series = ["forecast", folder / "series.csv", *SERIES, "--out", tmp_path / "o"]
    (tmp_path / "few.csv").write_text("x\n1\n")
    for arguments, message in (
        ([*series, "--backtest", "-1"], "--backtest must be"),
        ([*series, "--quantiles", "2"], "--quantiles must be"),
        ([*series, "--extra", "value"], "--extra needs --future"),
        (["analyze", folder / "train.csv", "--target", "y", "--predict", tmp_path / "few.csv"], "lacks the column"),
    ):
        assert run(*arguments, monkeypatch=monkeypatch) == 1
        assert message in capsys.readouterr().err


def test_links_stay_links(folder, tmp_path, monkeypatch):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.touch()
    link.symlink_to(real)
    arguments = ["regress", folder / "train.csv", "--target", "y", "--predict", folder / "test.csv", "--out", link]
    assert run(*arguments, monkeypatch=monkeypatch) == 0
    assert link.is_symlink()
    assert real.stat().st_size > 1000
