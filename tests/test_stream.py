"""compositegp stream: resumed at any point with nothing lost and nothing counted twice."""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from compositegp.cli.app import main
from compositegp.forecasting import CompositeGPForecaster
from compositegp.storage import locked

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
    CompositeGPForecaster(None, n_neighbors=64, search=False).fit(values(PERIODS)).save(
        path, time="time", target="value", horizon="6h"
    )
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
    with tempfile.TemporaryFile("w+") as given, pytest.MonkeyPatch.context() as patch:
        given.write(text)
        given.seek(0)
        patch.setattr(sys, "stdin", given)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["stream", *map(str, arguments)])
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


def test_with_learn_a_stream_is_an_update_that_learns(model, trained, tmp_path):
    new = values(24 * 14, PERIODS)
    done = run(model, "--learn", write(tmp_path / "new.csv", new))
    assert done.returncode == 0, done.stderr
    found, before = CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained)
    assert_same_forecast(found, before.update(new, learn=True))
    np.testing.assert_array_equal(found.kernel_.theta, before.kernel_.theta)


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
    latest = before.last_
    assert done.stderr == f"note: rows: 0 taken in, 24 known already, 0 refused; none is newer than {latest}\n"


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
    assert "rows: 6 taken in, 0 known already, 8 refused" in done.stderr
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


@pytest.mark.parametrize("first", ["nonsense", "2024-13-45 00:00,three", "\x00\x01,?", "2024-01-13 00:00,three"])
def test_a_malformed_first_row_is_skipped_like_any_other(model, trained, first):
    good = values(6, PERIODS)
    done = run(model, "--segment", 6, text=first + "\n" + good.to_csv(header=False))
    assert done.returncode == 0, done.stderr
    assert "skipped line 1: " in done.stderr
    assert "rows: 6 taken in, 0 known already, 1 refused" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(good))


def test_late_rows_before_the_first_new_one_are_reported(model, trained):
    new = values(8, PERIODS)
    kept = new.drop(new.index[2])
    run(model, "--segment", 7, text=kept.to_csv(header=False))
    before = CompositeGPForecaster.load(model)
    later = values(2, PERIODS + 8)
    # The row that is known comes again, and the one that was left out comes too late.
    done = run(model, "--segment", 2, text=pd.concat([new[1:3], later]).to_csv(header=False))
    assert f"skipped line 2: {new.index[2]} is not newer than {new.index[7]}" in done.stderr
    assert "rows: 2 taken in, 1 known already, 1 refused" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(model), before.update(later))


@pytest.mark.parametrize("segment", [1, 2, 5])
def test_a_second_row_of_a_time_step_is_named_and_not_lost_in_silence(model, trained, segment):
    new = values(6, PERIODS)
    between = pd.Series(0.0, index=new.index[1:4] + pd.Timedelta("10min"))
    rows = pd.concat([new, between]).sort_index()
    done = run(model, "--segment", segment, text=rows.to_csv(header=False))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is in the time step of a row before it") == 3
    assert "rows: 6 taken in, 0 known already, 3 refused" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(new))


@pytest.mark.parametrize(("transform", "wrong"), [("log", "0.0"), ("sqrt", "-1.0"), ("fourth_root", "-1.0")])
def test_a_value_that_the_scale_does_not_have_costs_no_other_row(tmp_path, transform, wrong):
    path, new = tmp_path / "model.cgp", values(6, 96)
    fitted = CompositeGPForecaster(transform, n_neighbors=64, search=False).fit(values(96))
    fitted.save(path, time="time", target="value", horizon="6h")
    text = new.to_csv(header=False).replace(str(new.iloc[2]), wrong)
    done = run(path, text=text)
    assert "skipped line 3" in done.stderr
    assert "rows: 5 taken in, 0 known already, 1 refused" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(path), fitted.update(new.drop(new.index[2])))


def test_rows_between_the_time_steps_are_counted(model, tmp_path):
    late = values(4, PERIODS)
    late.index = late.index + pd.Timedelta("20min")
    done = run(model, write(tmp_path / "new.csv", late))
    assert "rows: 4 taken in" in done.stderr
    assert "4 of the rows are between the time steps of the model, which has one every 01:00:00" in done.stderr


def test_a_row_that_is_cut_off_is_refused(model):
    stamp = values(1, PERIODS).index[0]
    done = run(model, text=f"time,heat,value\n{stamp},99\n{stamp},99,\n")
    assert "skipped line 2: it has 2 cell(s), and 3 are expected" in done.stderr
    assert "rows: 1 taken in, 0 known already, 1 refused" in done.stderr


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


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("folder", 1, "error: {path} is a folder"),
        (b"", 0, "note: rows: 0 taken in, 0 known already, 0 refused"),
        (b"time,value\n", 0, "note: rows: 0 taken in, 0 known already, 0 refused"),
        (b"when,value\n2024-01-01,1\n", 1, "error: the first row, when,value, has neither the columns"),
        (
            b"time,value\n2024-01-13 00:00,one\n",
            1,
            "none of 1 row(s) could be taken in. The first was refused: 'one'",
        ),
        (b"time,value\nmonday,1\ntuesday,2\n", 1, "The first was refused: 'monday' is not a time"),
        (b"time,value\n1,1\n2,2\n", 1, "'1' is a time without a year"),
        (b"time,value\n2024-01-13 00:00+01:00,1\n", 1, "has a time zone, and the model's series has none"),
        (b"time,value\n2024-01-01,1\n", 0, "0 taken in, 1 known already, 0 refused; none is newer than"),
        (bytes(range(256)) * 40, 1, "error: none of 41 row(s) could be taken in"),
    ],
)
def test_bad_files_change_no_model(model, trained, tmp_path, content, code, message):
    path = tmp_path / "rows.csv"
    if content == "folder":
        path.mkdir()
    else:
        path.write_bytes(content)
    done = run(model, path)
    assert done.returncode == code
    assert message.format(path=path) in done.stderr
    assert model.read_bytes() == trained.read_bytes()


def test_a_row_far_ahead_is_held_back_and_blocks_nothing(model, trained, tmp_path):
    new = values(20, PERIODS)
    lines = new.to_csv(header=False).splitlines()
    text = "\n".join([*lines[:10], "2099-01-01 00:00:00,10", "9999-12-31 23:00:00,10", *lines[10:]]) + "\n"
    done = run(model, text=text)
    assert done.returncode == 0, done.stderr
    assert (
        "skipped line 11: 2099-01-01 00:00:00 is 27381.6 days after the row before it. It is held back"
        in done.stderr
    )
    assert "skipped line 12: " in done.stderr  # pandas 2 has no time so far ahead
    assert "note: rows: 20 taken in, 0 known already, 2 refused\n" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(new))
    again = run(model, text=text)
    assert "note: rows: 0 taken in, 20 known already, 2 refused; none is newer than" in again.stderr


def test_the_gap_that_is_allowed_can_be_chosen(model):
    late = values(6, PERIODS + 24 * 60)
    done = run(model, text=late.to_csv(header=False))
    assert done.returncode == 1
    assert "(--max-gap)" in done.stderr
    assert "error: none of 6 row(s) could be taken in. The first was refused:" in done.stderr
    assert CompositeGPForecaster.load(model).last_ == values(PERIODS).index[-1]
    assert run(model, "--max-gap", "70D", text=late.to_csv(header=False)).returncode == 0
    assert CompositeGPForecaster.load(model).last_ == late.index[-1]
    near = values(1, PERIODS + 24 * 60 + 12)  # seven hours later
    assert run(model, "--max-gap", "6", text=near.to_csv(header=False)).returncode == 1
    assert run(model, "--max-gap", "7", text=near.to_csv(header=False)).returncode == 0
    for wrong in ("soon", "0", "-1D", "NaT"):
        done = run(model, "--max-gap", wrong)
        assert done.returncode == 2
        assert "--max-gap must be" in done.stderr


def test_the_segments_of_a_resumed_run_are_those_of_one_run(model, trained, tmp_path):
    new = values(30, PERIODS)
    new.iloc[[4, 5, *range(12, 18)]] = np.nan  # the end of a segment, and a whole one
    straight = Path(shutil.copy(trained, tmp_path / "straight.cgp"))
    expected = run(straight, write(tmp_path / "all.csv", new)).stdout.splitlines()
    found = []
    for rows in (6, 12, 18, 24, 30):
        found += run(model, write(tmp_path / "some.csv", new[:rows])).stdout.splitlines()
    assert list(dict.fromkeys(found)) == expected  # each run prints the forecast that it begins with once more


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda line: line.replace(",", ";"), []),  # recognised
        (lambda line: line.replace(",", ";").replace(".", ","), ["--decimal", ","]),
        (lambda line: line.replace(",", "#"), ["--separator", "#"]),
        (lambda line: line.replace("2024-01-", "").replace(" ", "/01/2024 ", 1), ["--dayfirst"]),
        (lambda line: f"{line},", []),  # an empty cell at the end
    ],
)
def test_rows_in_other_formats(model, trained, change, options):
    new = values(6, PERIODS)
    done = run(model, *options, text="\n".join(map(change, new.to_csv(header=False).splitlines())))
    assert done.returncode == 0, done.stderr
    assert "rows: 6 taken in, 0 known already, 0 refused" in done.stderr
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(new))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda line: line.replace(".", ","), "it has 3 cells, and 2 are expected; give --separator or --decimal"),
        (lambda line: line.replace(",", ";").replace(".", ","), "is not a number; give --decimal ','"),
        (lambda line: line.replace(",", "#"), "it has 1 cell(s), and 2 are expected; give --separator"),
        (
            lambda line: "13/01/2024" + line[10:],
            "can be read two ways: give --dayfirst, --monthfirst or --time-format",
        ),
        (lambda line: "now" + line[19:], "'now' is not a time"),
        (lambda line: "today" + line[19:], "'today' is not a time"),
        (lambda line: "13 Jan 06:00" + line[19:], "'13 Jan 06:00' is a time without a year"),
        (lambda line: line[:19] + "+01:00" + line[19:], "has a time zone, and the model's series has none"),
        (lambda line: line[:20] + "1_0", "'1_0' is not a number"),
        (lambda line: line[:20] + "1e308", "1e308 is too large"),
    ],
)
def test_rows_that_are_all_refused_end_with_exit_code_1(model, trained, change, reason):
    done = run(model, text="\n".join(map(change, values(6, PERIODS).to_csv(header=False).splitlines())))
    assert done.returncode == 1
    assert "rows: 0 taken in, 0 known already, 6 refused" in done.stderr
    assert "error: none of 6 row(s) could be taken in" in done.stderr
    assert reason in done.stderr.splitlines()[-1]
    assert model.read_bytes() == trained.read_bytes()


def test_a_model_is_for_one_process_at_a_time(model, trained):
    with locked(model):
        done = run(model, text=values(6, PERIODS).to_csv(header=False))
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {model} is in use by another process ({os.getpid()}). Wait until it ends, or give each process its "
        "own file.\n"
    )
    assert model.read_bytes() == trained.read_bytes()
    assert run(model, text=values(6, PERIODS).to_csv(header=False)).returncode == 0
    assert [file.name for file in model.parent.iterdir()] == ["model.cgp"]


def test_a_dead_process_holds_no_lock(model):
    script = "import sys, time; from pathlib import Path; from compositegp.storage import locked\n"
    script += "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script, model], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        refused = run(model)
        assert refused.returncode == 1
        assert f"({process.pid})" in refused.stderr
        process.kill()
    assert run(model).returncode == 0


def test_a_checkpoint_keeps_the_permissions_of_the_file(model):
    for mode in (0o600, 0o640):
        model.chmod(mode)
        rows = values(6, PERIODS + (6 if mode == 0o640 else 0))
        assert run(model, text=rows.to_csv(header=False)).returncode == 0
        assert stat.S_IMODE(model.stat().st_mode) == mode


@pytest.fixture(scope="module")
def heated(tmp_path_factory):
    """Values that follow a further column, and a model of the first of them."""
    folder = tmp_path_factory.mktemp("heated")
    table = pd.DataFrame({"value": values(PERIODS + 40)})
    table["heat"] = np.random.default_rng(5).normal(size=len(table))
    table["value"] += 5 * table["heat"]
    past = table[:PERIODS]
    CompositeGPForecaster(None, n_neighbors=64, search=False).fit(past["value"], past[["heat"]]).save(
        folder / "model.cgp", time="time", target="value", horizon="6h"
    )
    return folder / "model.cgp", table[PERIODS:]


class TestFurtherColumns:
    def test_rows_with_those_columns_update_the_model(self, heated, tmp_path):
        trained, new = heated
        model = Path(shutil.copy(trained, tmp_path / "model.cgp"))
        rows = new[["heat", "value"]][:12]
        future = write(tmp_path / "future.csv", new[["heat"]])
        done = run(model, "--future", future, write(tmp_path / "new.csv", rows))
        assert done.returncode == 0, done.stderr
        expected = CompositeGPForecaster.load(trained).update(rows["value"], rows[["heat"]])
        found = json.loads(done.stdout.splitlines()[-1])["forecast"]
        np.testing.assert_allclose(
            [step["mean"] for step in found], expected.predict("6h", X=new[["heat"]][12:18])["mean"]
        )
        assert np.abs([step["mean"] for step in found] - new["value"][12:18]).max() < 6

    def test_without_the_future_there_is_no_forecast_but_no_row_is_lost(self, heated, tmp_path):
        trained, new = heated
        model = Path(shutil.copy(trained, tmp_path / "model.cgp"))
        future = write(tmp_path / "future.csv", new[["heat"]][:8])
        done = run(model, "--future", future, write(tmp_path / "new.csv", new[["heat", "value"]][:6]))
        assert done.returncode == 0, done.stderr
        first, last = map(json.loads, done.stdout.splitlines())
        assert len(first["forecast"]) == 6
        assert last == {"latest": new.index[5].isoformat(), "forecast": None}
        assert f"no forecast after {new.index[5]}: {future} has no row for {new.index[8]}" in done.stderr
        assert CompositeGPForecaster.load(model).last_ == new.index[5]

    def test_what_is_missing_is_said(self, heated, tmp_path):
        trained, new = heated
        model = Path(shutil.copy(trained, tmp_path / "model.cgp"))
        done = run(model)
        assert done.returncode == 2
        assert "has the further column(s) 'heat'. Give --future" in done.stderr
        future = write(tmp_path / "future.csv", new[["heat"]])
        rows = new[["value", "heat"]][:2].copy()
        rows.iloc[0, 1] = np.nan
        done = run(model, "--future", future, text=rows.to_csv(header=False))
        assert "rows: 2 taken in" in done.stderr  # a column may be missing in part
        expected = CompositeGPForecaster.load(trained).update(rows["value"], rows[["heat"]])
        pd.testing.assert_frame_equal(CompositeGPForecaster.load(model).observations_, expected.observations_)
        (tmp_path / "no_times.csv").write_text("heat\n" + "1\n" * 50)
        done = run(model, "--future", tmp_path / "no_times.csv")
        assert "has no column 'time', by which its rows are found" in done.stderr


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


def test_rotation_sigterm_and_a_pipe_lose_no_row(model, trained, tmp_path):
    new, path = values(30, PERIODS), tmp_path / "feed.csv"
    process = follow(model, write(path, new[:6]))
    try:
        for _ in range(2):
            process.stdout.readline()
        path.rename(tmp_path / "feed.csv.1")
        write(path, new[6:12])
        assert json.loads(process.stdout.readline())["latest"] == new.index[11].isoformat()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "was replaced by another file" in err
    assert "rows: 12 taken in, 0 known already, 0 refused" in err
    with subprocess.Popen(
        [*PROGRAM, model, "--segment", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as piped:
        piped.stdin.write(new[12:].to_csv(header=False).encode())
        piped.stdin.flush()
        piped.stdout.readline()
        piped.send_signal(signal.SIGTERM)  # the sender has not closed the pipe
        assert piped.wait(30) == 0
    assert_same_forecast(CompositeGPForecaster.load(model), CompositeGPForecaster.load(trained).update(new))


@pytest.mark.parametrize("options", [[], ["--learn"]])
def test_killed_at_random_it_resumes_as_if_nothing_had_been(model, trained, tmp_path, options):
    path = write(tmp_path / "new.csv", values(6 * 100, PERIODS))
    random.seed(0)
    kills = 0
    for _ in range(4):
        process = subprocess.Popen(
            [*PROGRAM, model, path, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        for _ in range(random.randint(1, 20)):
            if not process.stdout.readline():
                break
        time.sleep(random.random() * 0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        assert CompositeGPForecaster.load(model)  # whole at every moment
    assert kills >= 3
    done = run(model, path, *options)
    assert done.returncode == 0
    straight = Path(shutil.copy(trained, tmp_path / "straight.cgp"))
    run(straight, path, *options)
    found, expected = (CompositeGPForecaster.load(file) for file in (model, straight))
    assert_same_forecast(found, expected)
    np.testing.assert_array_equal(found.kernel_.theta, expected.kernel_.theta)
    changed = found.kernel_.theta != CompositeGPForecaster.load(trained).kernel_.theta
    assert changed.any() == bool(options)
    # What a killed write left behind goes at the next start.
    assert {file.name for file in tmp_path.iterdir()} == {"model.cgp", "new.csv", "straight.cgp"}


SCRIPT = """
import gc, resource, sys, tracemalloc
from pathlib import Path
import numpy as np, pandas as pd
from compositegp.cli.stream_input import Line
from compositegp.cli.stream_opening import open_session
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import TimeFormat
from compositegp.forecasting import CompositeGPForecaster

path, count, traced = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "traced"
model = CompositeGPForecaster.load(path)
stream = open_session(path, TextFormat(), TimeFormat(), segment_size=6, horizon="6h").session
stamps = list(pd.date_range(model.last_ + pd.Timedelta(hours=1), periods=6 * count, freq="h"))
sizes = []
sys.stdout = open("/dev/null", "w")
for segment in range(count):
    for stamp in stamps[6 * segment : 6 * segment + 6]:
        stream.take(Line(2, f"{stamp},{20 + np.sin(stamp.hour)}"))
    if segment == 10 and traced:
        tracemalloc.start()
    if segment in (count // 5, count - 1):
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        sizes.append(tracemalloc.get_traced_memory()[0] if traced else resident)
sys.stdout = sys.__stdout__
assert CompositeGPForecaster.load(path).last_ == stamps[-1]
print((sizes[1] - sizes[0]) / (count - 1 - count // 5))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("count", "memory", "limit"),
    [(150, "traced", 400), pytest.param(10_000, "resident", 6 * 16, marks=pytest.mark.slow)],
)
def test_memory_stays_flat(model, count, memory, limit):
    """Bytes for each segment of six rows: NumPy keeps some small blocks, but a table that is kept takes thousands.

    Resident memory comes in steps that thousands of segments share: over so many, less than their times and values. To
    trace every block would take longer than all the rest.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, str(count), memory], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < limit
