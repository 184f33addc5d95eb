"""compositegp stream: resumed at any point with nothing lost and nothing counted twice."""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from compositegp.cli.app import main
from compositegp.forecasting import CompositeGPForecaster

PROGRAM = [sys.executable, "-m", "compositegp", "stream"]
PERIODS = 24 * 12


def values(n, start=0):
    hours = np.arange(start, start + n)
    noise = np.random.default_rng(start).normal(size=n)
    return pd.Series(
        20 + 5 * np.sin(2 * np.pi * hours / 24) + noise,
        index=pd.date_range("2024-01-01", periods=start + n, freq="h")[start:],
        name="value",
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "model.cgp"
    CompositeGPForecaster(n_neighbors=64).fit(values(PERIODS)).save(path, time="time", target="value", horizon="6h")
    return path


@pytest.fixture
def model(trained, tmp_path):
    return Path(shutil.copy(trained, tmp_path / "model.cgp"))


def write(path, series, header=True):
    series.to_csv(path, index_label="time", header=header)
    return path


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments, text=""):
    """The command in this process, with some text as standard input."""
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["stream", *map(str, arguments)])
    finally:
        sys.stdin = stdin
    return Done(code, out.getvalue(), err.getvalue())


def assert_same_forecast(found, expected):
    """The same observations, and none of them twice, give the same forecast to the last digit."""
    assert found.last_ == expected.last_
    np.testing.assert_array_equal(found.predict("6h"), expected.predict("6h"))


def test_forecasts_are_those_of_the_forecaster(model, tmp_path):
    new = values(30, PERIODS)
    done = run(model, write(tmp_path / "new.csv", new))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 1 + 5  # what was known, and one for each six hours
    expected = CompositeGPForecaster.load(model)  # the checkpoint
    assert expected.last_ == new.index[-1]
    assert lines[-1]["latest"] == new.index[-1].isoformat()
    np.testing.assert_allclose([row["mean"] for row in lines[-1]["forecast"]], expected.predict("6h")["mean"])


def test_standard_input_without_a_header_and_a_last_part_segment(model):
    new = values(8, PERIODS)
    done = run(model, "--segment", 5, text=new.to_csv(header=False))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["latest"] for line in done.stdout.splitlines()][1:] == [
        new.index[4].isoformat(),
        new.index[7].isoformat(),
    ]


def test_rows_read_again_are_not_counted_again(model, tmp_path):
    path = write(tmp_path / "new.csv", values(24, PERIODS))
    run(model, path)
    before = CompositeGPForecaster.load(model)
    done = run(model, path)
    assert_same_forecast(CompositeGPForecaster.load(model), before)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_bad_rows_are_reported_and_skipped(model, trained):
    good = values(6, PERIODS)
    lines = good.to_csv(header=False).splitlines()
    bad = [
        lines[0],
        "nonsense",
        "2024-13-45 00:00,1",
        lines[1],
        lines[1],  # twice
        lines[0],  # late
        f"{good.index[2]},three",
        "",
        ",,,",
        f"{good.index[2]}+01:00,3",
        f"{good.index[2]},inf",
        "\x00\x01",
        *lines[2:4],
        f"{good.index[4]},",  # not observed
        lines[5],
    ]
    done = run(model, "--segment", 6, text="\n".join(bad) + "\n")
    assert done.returncode == 0, done.stderr
    for words in (
        "line 2: it has 1 cell(s)",
        "line 3: '2024-13-45 00:00' is not a time",
        "line 5:",
        "line 6:",
        "line 7: 'three' is not a number",
        "line 10:",
        "line 11: 'inf' is not finite",
        "line 12:",
    ):
        assert words in done.stderr
    assert_same_forecast(
        CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(good.drop(good.index[4]))
    )


def test_further_columns_are_ignored_and_missing_ones_refused(model, trained, tmp_path):
    new = values(6, PERIODS)
    path = tmp_path / "excel.csv"
    table = pd.DataFrame({"time": new.index, "heat": 99.0, "value": new.to_numpy()})
    path.write_bytes(b"\xef\xbb\xbf" + table.to_csv(index=False).encode())
    assert run(model, path).returncode == 0
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(new))
    table.rename(columns={"time": "when"}).to_csv(path, index=False)
    done = run(model, path)
    assert done.returncode == 1
    assert "has neither the columns 'time' and 'value'" in done.stderr


def test_an_option_of_one_run_is_not_kept(model):
    first = run(model, "--horizon", "2", text=values(2, PERIODS).to_csv(header=False))
    assert len(json.loads(first.stdout.splitlines()[-1])["forecast"]) == 2
    again = run(model, text="")
    assert len(json.loads(again.stdout.splitlines()[-1])["forecast"]) == 6


def test_errors_are_one_sentence_with_an_exit_code(model, tmp_path):
    for arguments, code, message in (
        ([tmp_path / "nothing.cgp"], 1, "does not exist"),
        ([model, tmp_path / "nothing.csv"], 1, "does not exist"),
        ([model, "--follow"], 2, "--follow is for a file"),
        ([model, "--segment", 0], 2, "'--segment'"),
        ([model, "--horizon", "soon"], 1, "horizon must be"),
        ([write(tmp_path / "no_model.cgp", values(3))], 1, "cannot be read"),
    ):
        done = run(*arguments)
        assert done.returncode == code
        assert "error: " in done.stderr
        assert message in done.stderr


def follow(model, path):
    return subprocess.Popen(
        [*PROGRAM, model, path, "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_growing_file_is_followed_and_sigterm_ends_it(model, tmp_path):
    new, path = values(15, PERIODS), tmp_path / "grows.csv"
    process = follow(model, path)
    try:
        assert json.loads(process.stdout.readline())  # what is known
        write(path, new[:6])
        assert json.loads(process.stdout.readline())["latest"] == new.index[5].isoformat()
        text = new[6:15].to_csv(header=False)
        with open(path, "a") as file:
            file.write(text[:30])
            file.flush()
            time.sleep(0.5)  # half a line is no line
            file.write(text[30:])
        assert json.loads(process.stdout.readline())["latest"] == new.index[11].isoformat()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert json.loads(out)["latest"] == new.index[14].isoformat()  # what waited was taken in
    assert CompositeGPForecaster.load(model).last_ == new.index[14]


def test_killed_at_random_it_resumes_as_if_nothing_had_been(model, trained, tmp_path):
    path = write(tmp_path / "new.csv", values(6 * 200, PERIODS))
    random.seed(0)
    kills = 0
    for _ in range(4):
        process = subprocess.Popen(
            [*PROGRAM, model, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(random.randint(1, 40)):
            if not process.stdout.readline():
                break
        time.sleep(random.random() * 0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert CompositeGPForecaster.load(model)  # whole at every moment
    assert kills >= 3
    done = run(model, path)
    assert done.returncode == 0
    straight = Path(shutil.copy(trained, tmp_path / "straight.cgp"))
    run(straight, path)
    assert_same_forecast(*(CompositeGPForecaster.load(file) for file in (model, straight)))
    left = [file.name for file in tmp_path.iterdir() if file.suffix == ".tmp"]
    assert len(left) <= kills  # a killed write leaves at most its own temporary file


SCRIPT = """
import io, resource, sys
from pathlib import Path
import numpy as np, pandas as pd
from compositegp.cli.stream_session import StreamSession
from compositegp.forecasting import CompositeGPForecaster

path, count = Path(sys.argv[1]), int(sys.argv[2])
model, more = CompositeGPForecaster.load_with(path)
stream = StreamSession(model, path, more, 6, "6h")
stamps = pd.date_range(model.last_ + pd.Timedelta(hours=1), periods=6 * count, freq="h")
sizes = []
sys.stdout = open("/dev/null", "w")
for segment in range(count):
    for stamp in stamps[6 * segment : 6 * segment + 6]:
        stream.take(1, f"{stamp},{20 + np.sin(stamp.hour)}")
    if segment in (count // 5, count - 1):
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize())
sys.stdout = sys.__stdout__
print(sizes[1] - sizes[0])
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_stays_flat(model, count):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, str(count)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 12 * 2**20
