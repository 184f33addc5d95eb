"""The live page: over HTTP, in a browser, and with the promises of the stream."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
from browser import dump_page

from compositegp.cli.app import main
from compositegp.cli.html_page import render_page
from compositegp.forecasting import CompositeGPForecaster

pytest.importorskip("fastapi", reason="no fastapi: pip install 'compositegp[serve]'")
pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'compositegp[serve]'")

PERIODS = 24 * 9


def values(n, start=0):
    hours = np.arange(start, start + n)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=PERIODS + 100)[start : start + n]
    index = pd.date_range("2024-01-01", periods=PERIODS + 100, freq="h")[start : start + n]
    return pd.Series(20 + 5 * np.sin(2 * np.pi * hours / 24) + noise, index=index)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "model.cgp"
    model = CompositeGPForecaster(None, seasons=["day"], horizon=6, search=False).fit(values(PERIODS))
    model.save(
        path, time="time", target="value", horizon="6h", time_pattern=None, day_first=None,
        separator=",", decimal=".", encoding=None,
    )  # fmt: skip
    return path


class Served:
    """A server in a process of its own."""

    def __init__(self, model, rows):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "compositegp", "serve", model, "--follow", rows, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stderr.readline()
        assert line.startswith("note: the page is at http://127.0.0.1:"), line + self.process.stderr.read()
        self.url = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def forecast(self, wanted=lambda content: content is not None, seconds=60):
        """The forecast, once it is as wanted."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            content = json.loads(self.get("forecast.json"))
            if wanted(content):
                return content
            time.sleep(0.1)
        raise AssertionError(f"not published: {content}")


@pytest.fixture(scope="module")
def served(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model, rows = folder / "model.cgp", folder / "new.csv"
    shutil.copy(trained, model)
    with Served(model, rows) as server:
        server.model, server.rows = model, rows
        yield server


def test_what_is_served_is_the_forecast_of_the_model_and_follows_its_rows(served, trained):
    expected = CompositeGPForecaster.load(trained)
    found = served.forecast()
    assert found["latest"] == expected.last_.isoformat()
    np.testing.assert_allclose([row["mean"] for row in found["forecast"]], expected.predict("6h")["mean"])
    np.testing.assert_allclose(
        [row["value"] for row in found["history"]], expected.observations_["value"].tail(1000)
    )
    new = values(6, PERIODS)
    new.rename_axis("time").rename("value").to_csv(served.rows)
    expected.update(new)
    found = served.forecast(lambda content: content["latest"] == new.index[-1].isoformat())
    np.testing.assert_allclose([row["mean"] for row in found["forecast"]], expected.predict("6h")["mean"])
    assert found["history"][-1]["value"] == pytest.approx(new.iloc[-1])
    # The checkpoint was written before the forecast was published.
    assert CompositeGPForecaster.load(served.model).last_ == new.index[-1]


def test_health_and_pages_that_are_not_there(served):
    assert json.loads(served.get("healthz")) == {"status": "following"}
    for path in ("docs", "openapi.json", "..%2fmodel.cgp"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            served.get(path)


def test_the_page_refers_to_nothing_outside_of_it(served):
    page = served.get("")
    assert page.startswith("<!doctype html>")
    assert page.replace("http://www.w3.org/2000/svg", "").count("http") == 0


def test_a_model_and_an_address_are_for_one_process(served, trained, tmp_path, capsys):
    assert main(["serve", str(served.model), "--follow", str(tmp_path / "n.csv"), "--port", "0"]) == 1
    assert "another process" in capsys.readouterr().err
    port = served.url.rstrip("/").rpartition(":")[2]
    assert main(["serve", str(trained), "--follow", str(tmp_path / "n.csv"), "--port", port]) == 1
    assert "Give another --port" in capsys.readouterr().err


def test_the_page_draws_the_forecast_in_a_browser(served, tmp_path):
    served.forecast()
    found = dump_page(served.url, tmp_path, "--virtual-time-budget=3000")
    assert "forecast after 2024-01-" in found
    for name in ("history", "mean", "wide", "narrow"):
        points = found.split(f'class="{name}" points="')[1].split('"')[0]
        pairs = np.array([pair.split(",") for pair in points.split()], dtype=float)
        assert len(pairs) >= 6
        assert pairs[:, 0].min() >= 59
        assert pairs[:, 0].max() <= 991
        assert pairs[:, 1].min() >= 9
        assert pairs[:, 1].max() <= 391


# Enough of a browser for the script of the page: it answers what was fetched, and keeps what was drawn.
STUB = """
const drawn = [];
const element = name => ({ name, attributes: {}, setAttribute(key, value) { this.attributes[key] = value; },
  appendChild(one) { drawn.push(one); }, replaceChildren() {} });
globalThis.document = { getElementById: element, createElementNS: (space, name) => element(name) };
globalThis.fetch = async () => ({ text: async () => process.argv[1] });
globalThis.setTimeout = () => console.log(JSON.stringify(drawn.filter(one => one.attributes.class === "time")
  .map(one => [one.textContent, one.attributes.x])));
"""


@pytest.mark.parametrize("browser", ["UTC", "Europe/Stockholm", "America/New_York"])
@pytest.mark.parametrize("zone", [None, "Australia/Melbourne"])
def test_times_are_labelled_as_the_series_has_them_wherever_the_browser_is(zone, browser):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    times = pd.date_range("2024-03-31", periods=9, freq="h", tz=zone)  # Stockholm's clock skips an hour of it
    history = [{"time": time.isoformat(), "value": 1.0} for time in times[:5]]
    numbers = dict.fromkeys(["mean", "q0.025", "q0.25", "q0.75", "q0.975"], 1.0)
    ahead = [{"time": time.isoformat(), **numbers} for time in times[5:]]
    content = json.dumps({"latest": times[4].isoformat(), "history": history, "forecast": ahead})
    script = render_page("live.html", title="t").split("<script>")[1].split("</script>")[0]
    done = subprocess.run(
        [node, "-e", STUB + script, content], env={**os.environ, "TZ": browser}, capture_output=True, text=True
    )
    offset = "" if zone is None else "+11:00"
    assert done.stdout, done.stderr
    labels, places = zip(*json.loads(done.stdout.splitlines()[-1]), strict=True)
    assert list(labels) == [f"2024-03-31 0{hour}:00{offset}" for hour in (0, 2, 4, 6, 8)]
    np.testing.assert_allclose(places, np.linspace(60, 990, 5))


def test_sigterm_takes_in_what_waits_and_ends_with_zero(trained, tmp_path):
    model, rows = tmp_path / "model.cgp", tmp_path / "new.csv"
    shutil.copy(trained, model)
    new = values(8, PERIODS)
    new.rename_axis("time").rename("value").to_csv(rows)
    with Served(model, rows) as server:
        server.forecast(lambda content: content and content["latest"] == new.index[5].isoformat())
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    assert CompositeGPForecaster.load(model).last_ == new.index[-1]
