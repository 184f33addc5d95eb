"""Tables as people write them: what has one meaning is read, and what has two is an error that names the place."""

import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from command_line import command
from hypothesis import given
from hypothesis import strategies as st

from compositegp.cli import resources
from compositegp.cli.output import CommandError
from compositegp.cli.series_files import read_future_columns, read_series
from compositegp.cli.table_columns import read_training_table
from compositegp.cli.tables import read_table
from compositegp.cli.text_format import TextFormat
from compositegp.cli.time_columns import TimeFormat, looks_like_times
from compositegp.forecasting import Timeline
from compositegp.storage import locked


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


TRUE = pd.DataFrame({"a": [1.344, 0.551, 3.25], "b": [10.0, 20.0, 30.0], "y": [-1.0719, 0.4, 1e-3]})


class TestTextFormat:
    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("decimal", [".", ","])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_a_consistent_table_is_recognised(self, in_a_folder, separator, decimal, encoding, end):
        text = TRUE.to_csv(index=False, sep=separator, decimal=decimal, lineterminator=end)
        (in_a_folder / "t.csv").write_bytes(text.encode(encoding))
        pd.testing.assert_frame_equal(read_table("t.csv"), TRUE)

    def test_other_tables_are_read_by_the_options(self, in_a_folder):
        text = TRUE.rename(columns={"a": "längd"}).to_csv(index=False, sep=" ", decimal=",")
        (in_a_folder / "t.csv").write_bytes(text.encode("latin-1"))
        found = read_table("t.csv", TextFormat.of_options(" ", ",", "latin-1"))
        assert list(found.columns) == ["längd", "b", "y"]
        np.testing.assert_array_equal(found, TRUE)

    @given(
        st.lists(st.lists(st.text("ab ,;\"'\n.1", max_size=5), min_size=2, max_size=2), min_size=1, max_size=6),
        st.sampled_from([",", ";"]),
    )
    def test_cells_are_what_was_written(self, rows, separator):
        """What pandas writes comes back cell by cell, whatever the cells contain."""
        written = pd.DataFrame([["x", *row] for row in rows], columns=["k", "a", "b"])
        with open("t.csv", "w", newline="", encoding="utf-8") as file:
            written.to_csv(file, index=False, sep=separator, quoting=1)
        found = read_table("t.csv", TextFormat(separator, "."), text_columns=["a", "b"])
        expected = written.where(written != "", np.nan)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a,y\n1,344,1,0719\n", "line 2 of t.csv has 4 cells, and the header has 2."),
            ("a,y\n1,2\n3,4\n5,6,7\n", "line 4 of t.csv has 3 cells, and the header has 2."),
            ("a,y\n" + "1,2\n" * 20_000 + "5,6,7\n", "line 20002 of t.csv has 3 cells"),
            ("a,y\n1.25,2\n1.2\x005,3\n", "line 3 of t.csv has a byte of zero"),
            ("a,b,y\n1,2,3\n4,5\n", "line 3 of t.csv has 2 cell(s), and the header has 3: it is cut off"),
            ("x\n1,5\n", "line 2 of t.csv has 2 cells, and the header has 1."),
            ("t;y, mg\n1;2,5\n2;3,5\n", "can be separated by ',' and by ';'. Give --separator."),
            (
                "a;y\n1,100;1\n1,200;2\n",
                "column 'a' of t.csv has commas in its numbers, such as '1,100'. Give --decimal",
            ),
            (
                "a;y\n1,5;1.5\n2,5;2.5\n",
                "column 'a' of t.csv has commas in its numbers, such as '1,5' and column 'y'",
            ),
            (
                'a,y\n1,1.5\n2,"2,5"\n3,3.5\n',
                "column 'y' of t.csv has commas in its numbers, such as '2,5' beside decimal points. Give --decimal",
            ),
            ('a,y\n1,2\n"3,4\n5,6\n', "cannot be read as CSV: a quote that begins in line 3 does not end"),
            (b"a,y\n\xe9,2\n", "cannot be read as CSV: it is not in UTF-8. Give --encoding, such as latin-1"),
            ("a,y\n1,2\n".encode("utf-16-le"), "it is not text, or not UTF-8. Give --encoding, such as utf-16."),
            ("\n \n", "t.csv is empty"),
        ],
    )
    def test_what_has_no_single_meaning_is_refused(self, in_a_folder, content, message):
        (in_a_folder / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(CommandError) as error:
            read_table("t.csv")
        assert message in str(error.value)

    @pytest.mark.parametrize("content", ["a,y,\n1,2,\n3,4,\n", "a,y\n1,2,,\n3,4,\n", "\n\na,y\n1,2\n\n3,4\n\n\n"])
    def test_empty_cells_at_the_end_and_blank_lines_change_nothing(self, in_a_folder, content):
        (in_a_folder / "t.csv").write_text(content)
        found = read_table("t.csv")
        assert list(found.columns) == ["a", "y"]
        np.testing.assert_array_equal(found, [[1, 2], [3, 4]])

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--separator", ";;"), ("--decimal", "x"), ("--encoding", "klingon"), ("--separator", '"')],
    )
    def test_options_that_make_no_sense(self, option, value):
        for verb in (["regress", "t.csv", "--target", "y", "--save", "m"], ["analyze", "t.csv", "--target", "y"]):
            done = command(*verb, option, value)
            assert done.code == 2
            assert option in done.err
        assert command("stream", "m.cgp", option, value).code == 2
        assert command("analyze", "t.csv", "--target", "y", "--separator", ",", "--decimal", ",").code == 2


class TestTimes:
    @pytest.mark.parametrize(
        "form",
        [
            "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M",
            "%d.%m.%Y %H:%M", "%d-%m-%Y %H:%M", "%m/%d/%Y %I:%M %p", "%d %b %Y %H:%M", "%b %d, %Y %H:%M", "%Y%m%dT%H%M",
        ],
    )  # fmt: skip
    def test_times_are_those_that_were_written(self, form):
        stamps = pd.date_range("2024-01-28", periods=24 * 20, freq="h")  # some days are no months
        pd.DataFrame({"t": stamps.strftime(form), "y": 1.0}).to_csv("s.csv", index=False)
        found = read_series("s.csv", "t", "y", [])
        assert found.values.index.equals(stamps)
        # A later time is read by the format that was found, also where it alone could be read two ways.
        assert found.time_format.read(pd.Timestamp("2024-03-04 05:06").strftime(form)) == pd.Timestamp(
            "2024-03-04 05:06"
        )

    @pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d.%m.%Y", "%d-%m-%Y"])
    def test_dates_that_can_be_read_two_ways_need_an_option(self, form):
        stamps = pd.date_range("2024-02-01", periods=10)
        pd.DataFrame({"t": stamps.strftime(form), "y": 1.0}).to_csv("s.csv", index=False)
        options = ["--time", "t", "--target", "y", "--horizon", 3]
        done = command("forecast", "s.csv", *options)
        assert done.code == 1
        assert "has dates that can be read two ways, such as" in done.err
        assert "Give --dayfirst, --monthfirst or --time-format." in done.err
        assert not os.path.exists("forecast")
        for given_format in (TimeFormat(day_first=form.startswith("%d")), TimeFormat(form)):
            assert read_series("s.csv", "t", "y", [], time_format=given_format).values.index.equals(stamps)

    @pytest.mark.parametrize(
        ("cell", "message"),
        [
            ("now", "'now' is not a time, in row 3"),
            ("today", "'today' is not a time, in row 3"),
            ("01 Mar 12:00", "'01 Mar 12:00' is a time without a year of four digits, in row 3"),
            ("12:00", "'12:00' is a time without a year of four digits, in row 3"),
            ("01/02/24", "'01/02/24' is a time without a year of four digits, in row 3"),
            ("12:00 2024", "'12:00 2024' is not a time, in row 3"),
            ("2024-02-30", "'2024-02-30' is not a time, in row 3"),
            ("13/02/2024", "has times in several formats, such as '13/02/2024' and '2024-01-01'"),
            ("2024-01-03 00:00+01:00", "mixes times with and without a time zone"),
        ],
    )
    def test_a_cell_that_is_no_time_is_named(self, cell, message):
        pd.DataFrame({"t": ["2024-01-01", "2024-01-02", cell], "y": 1.0}).to_csv("s.csv", index=False)
        with pytest.raises(CommandError) as error:
            read_series("s.csv", "t", "y", [])
        assert message in str(error.value)

    @pytest.mark.parametrize(
        ("text", "hour"), [("12:30 AM", 0), ("1:30 am", 1), ("12:30PM", 12), ("11:30 p.m.", 23), ("13:30", 13)]
    )
    def test_halves_of_the_day(self, text, hour):
        assert TimeFormat().read(f"2024-02-01 {text}") == pd.Timestamp(f"2024-02-01 {hour:02d}:30")

    @pytest.mark.parametrize("text", ["13:30 PM", "25:30 PM", "12:60 AM"])
    def test_hours_that_there_are_not(self, text):
        with pytest.raises(ValueError, match="is not a time"):
            TimeFormat().read(f"2024-02-01 {text}")

    def test_the_day_before_and_after_the_month(self):
        pd.DataFrame({"t": ["13/02/2024", "02/14/2024"], "y": 1.0}).to_csv("s.csv", index=False)
        with pytest.raises(
            CommandError, match="has the day before and after the month: '13/02/2024' and '02/14/2024'"
        ):
            read_series("s.csv", "t", "y", [])

    def test_numbers_are_times_only_by_a_format(self):
        pd.DataFrame({"t": [20240101, 20240102], "y": 1.0}).to_csv("s.csv", index=False)
        with pytest.raises(CommandError, match="has numbers where times should be"):
            read_series("s.csv", "t", "y", [])
        found = read_series("s.csv", "t", "y", [], time_format=TimeFormat("%Y%m%d"))
        assert list(found.values.index) == [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")]

    def test_rows_without_a_time_are_reported(self, in_a_folder, capsys):
        (in_a_folder / "s.csv").write_text("t,y\n2024-01-01,1\n,2\n2024-01-03,3\n")
        assert len(read_series("s.csv", "t", "y", []).values) == 2
        assert "note: 1 of 3 rows of s.csv have no time. They are left out." in capsys.readouterr().err
        (in_a_folder / "s.csv").write_text("t,y\n,1\n,2\n")
        with pytest.raises(CommandError, match="has no times: every cell is empty"):
            read_series("s.csv", "t", "y", [])

    @pytest.mark.parametrize(
        ("cells", "are_times"),
        [
            (["2024-01-01", "2024-01-02"], True),
            (["1/3/2024", "2/3/2024"], True),
            (["1 Jan 2024", "2 Jan 2024"], True),
            (["10:30", "11:30"], True),
            (["jan", "feb"], False),
            (["may", "now"], False),
            (["1.0.0", "1.2.0"], False),
            (["04-12-13", "05-12-13"], False),
            (["a 10:30", "b"], False),
        ],
    )
    def test_what_looks_like_times(self, cells, are_times):
        assert looks_like_times(pd.Series(cells)) is are_times


def regress(train, test="a\n1\n", *options):
    with open("a.csv", "w") as first, open("b.csv", "w") as second:
        first.write(train)
        second.write(test)
    return command("regress", "a.csv", "--target", "y", "--predict", "b.csv", *options)


class TestColumns:
    @pytest.mark.parametrize("cell", ["-", "12%", "True", "n.d.", "1 000"])
    def test_a_text_among_numbers_is_named(self, cell):
        rows = [f"{row}.5,{row}" for row in range(30)]
        rows[18] = f"{cell},0.5"
        done = regress("a,y\n" + "\n".join(rows))
        assert done.code == 1
        assert (
            f"column 'a' of a.csv has text where numbers should be: {cell!r} in row 19 (1 such row(s))" in done.err
        )

    @pytest.mark.parametrize("form", ["2024-01-{:02d}", "{}/3/2024", "{} Mar 2024", "{:02d}:30"])
    def test_times_are_refused_as_in_parquet(self, form):
        done = regress("a,y\n" + "\n".join(f"{form.format(row)},{row}" for row in range(1, 20)))
        assert done.code == 1
        assert "column 'a' of a.csv has times. Use compositegp forecast, or leave the column out." in done.err

    def test_a_text_of_its_own_in_almost_every_row_is_no_category(self):
        done = regress("a,y\n" + "\n".join(f"name {row},{row}" for row in range(60)))
        assert done.code == 1
        assert "column 'a' of a.csv has 60 different texts in 60 rows, too many for categories" in done.err

    def test_inputs_that_cannot_be_squared_are_refused(self):
        done = regress("a,y\n" + "\n".join(f"{row}e200,{row}" for row in range(30)))
        assert done.code == 1
        assert (
            "column 'a' of a.csv has 29 value(s) that are too large to compute with, the first in row 2" in done.err
        )

    def test_decimals_of_a_parquet_file_are_numbers(self):
        table = pd.DataFrame({"a": [Decimal(row) / 4 for row in range(30)], "y": np.arange(30.0)})
        table.to_parquet("a.parquet")
        assert table["a"].dtype == object
        found = read_training_table("a.parquet", "y")
        assert found.columns.numbers == ["a"]
        np.testing.assert_array_equal(found.inputs["a"], np.arange(30) / 4)

    def test_blank_lines_are_empty_cells_of_a_single_column(self):
        done = regress("a,y\n1,2\n2,3\n", "a\n1\n\n3\n")
        assert done.code == 1
        assert "column 'a' of b.csv has 1 empty cell(s), the first in row 2" in done.err

    def test_more_columns_than_memory_holds_are_refused_before_they_are_read(self, monkeypatch):
        monkeypatch.setattr(resources, "physical_memory", lambda: 10**9)
        names = ",".join(f"c{number}" for number in range(20_000))
        done = regress(f"{names},y\n{',' * 20_000}\n")
        assert done.code == 1
        assert done.err.startswith(
            "error: learning from the 20,000 columns of a.csv would take about 10 GB of memory"
        )


def series(n=24 * 5):
    table = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=n, freq="h")})
    table["y"] = np.sin(np.arange(n) / 4) + 0.1 * np.random.default_rng(0).normal(size=n)
    table["x"] = np.arange(n) % 5
    table.to_csv("s.csv", index=False)


SERIES = ("forecast", "s.csv", "--time", "t", "--target", "y", "--horizon")


@pytest.mark.parametrize(
    ("future", "message"),
    [
        ("x\n1\n2\n\n\n\n", "f.csv has 2 row(s), but the horizon has 3 steps"),
        ("x\n1,2\n2\n3\n", "line 2 of f.csv has 2 cells"),
    ],
)
def test_a_future_that_is_too_short_or_not_a_table_is_refused(in_a_folder, future, message):
    series()
    (in_a_folder / "f.csv").write_text(future)
    done = command(*SERIES, "3", "--extra", "x", "--future", "f.csv")
    assert done.code == 1
    assert message in done.err


@pytest.mark.parametrize("future", ["x\n1\n\n3\n4\n", "x,z\n1,1\n\n3,1\n4,1\n", "x,z\n1,1\n,2\n3,1\n"])
def test_a_blank_line_never_shifts_the_future(in_a_folder, future, capsys):
    (in_a_folder / "f.csv").write_text(future)
    timeline = Timeline.of(pd.date_range("2024", periods=9, freq="h", tz="UTC"), None)
    found = read_future_columns("f.csv", "t", ["x"], np.arange(9.0, 12.0), timeline)
    np.testing.assert_array_equal(found["x"], [1, np.nan, 3])
    assert "column 'x' of f.csv is empty at 1 of 3 steps, where it counts as average" in capsys.readouterr().err


class TestBeforeTheWork:
    """Everything is refused before learning: nothing is written, and learning is never called."""

    @pytest.fixture(autouse=True)
    def no_learning(self, monkeypatch, in_a_folder):
        def learn(*_, **__):
            raise AssertionError("learning began")

        monkeypatch.setattr("compositegp.forecasting.CompositeGPForecaster.fit", learn)
        monkeypatch.setattr("compositegp.cli.table_model.TableModel.fit", learn)
        series()
        (in_a_folder / "folder").mkdir()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["3", "--out", "s.csv"], "--out s.csv is a file. Give a folder."),
            (["3", "--save", "no/m.cgp"], "--save no/m.cgp cannot be written: the folder"),
            (["3", "--save", "folder"], "--save folder is a folder. Give a file."),
            (["3", "--save", "s.csv"], "--save s.csv is a file that is read."),
            (["-3"], "horizon -3 is -3 steps of 0 days 01:00:00; give a whole number of steps, at least one"),
            ([""], "horizon must be a number of steps or a duration such as 24h; found ''"),
            (["NaT"], "horizon must be a number of steps or a duration such as 24h; found 'NaT'"),
            (["90min"], "horizon '90min' is 1.5 steps of 0 days 01:00:00; give a whole number"),
            (["1000000000000"], "a forecast of 1,000,000,000,000 steps would take about 4,000,000 GB of memory"),
        ],
    )
    def test_forecast(self, options, message):
        done = command(*SERIES, *options)
        assert done.code == 1
        assert message in done.err

    def test_a_horizon_beyond_the_calendar(self, monkeypatch):
        monkeypatch.setattr(resources, "physical_memory", lambda: None)
        done = command(*SERIES, "100000000")
        assert done.code == 1
        assert (
            "the series ends at 2024-01-05 23:00:00+00:00, and 100,000,000 steps later is after the year"
            in done.err
        )

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--predict", "b.csv", "--out", "no/p.csv"], "--out no/p.csv cannot be written: the folder"),
            (["--predict", "b.csv", "--out", "folder"], "--out folder is a folder. Give a file."),
            (["--predict", "b.csv", "--out", "a.csv"], "--out a.csv is a file that is read."),
            (["--predict", "b.csv", "--out", "b.csv"], "--out b.csv is a file that is read."),
            (["--save", "no/m.cgp"], "--save no/m.cgp cannot be written: the folder"),
            (["--save", "a.csv"], "--save a.csv is a file that is read."),
        ],
    )
    def test_regress(self, in_a_folder, options, message):
        for name in ("a.csv", "b.csv"):
            (in_a_folder / name).write_text("a,y\n1,2\n2,3\n")
        done = command("regress", "a.csv", "--target", "y", *options)
        assert done.code == 1
        assert message in done.err
        assert (in_a_folder / "a.csv").read_text() == "a,y\n1,2\n2,3\n"

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
    def test_a_read_only_folder(self, in_a_folder):
        (in_a_folder / "folder").chmod(0o500)
        done = command(*SERIES, "3", "--save", "folder/m.cgp")
        assert "--save folder/m.cgp cannot be written: it is read-only for you." in done.err

    def test_a_model_that_a_stream_works_with(self, in_a_folder):
        with locked(in_a_folder / "m.cgp"):
            done = command(*SERIES, "3", "--save", "m.cgp")
        assert done.code == 1
        assert "m.cgp is in use by another process" in done.err

    def test_no_processes_to_work_with(self):
        done = command(*SERIES, "3", "--jobs", "0")
        assert done.code == 2
        assert "--jobs must be a number of processes, or -1 for every core" in done.err

    def test_temporary_files_of_killed_writers_go(self, in_a_folder):
        left = in_a_folder / ".m.cgp.4711.0a1b2c3d.tmp"
        left.touch()
        (in_a_folder / ".m.cgp.mine.tmp").touch()
        with pytest.raises(AssertionError, match="learning began"):
            command(*SERIES, "3", "--save", "m.cgp")
        assert not left.exists()
        assert (in_a_folder / ".m.cgp.mine.tmp").exists()


class TestMaps:
    """The verbs for maps read tables and check outputs as the others do."""

    @pytest.fixture(autouse=True)
    def no_learning(self, monkeypatch):
        pytest.importorskip("xarray")
        learned = []

        def learn(table, **_):
            learned.append(table)
            raise CommandError("learning began")

        monkeypatch.setattr("compositegp.spatial.learn_stations", learn)
        return learned

    def test_stations_in_other_formats(self, in_a_folder, no_learning):
        (in_a_folder / "s.csv").write_text("x;y;z\n1,5;2,25;3\n2,5;3,25;4\n")
        done = command("map", "s.csv", "--x", "x", "--y", "y", "--target", "z", "--count", "5")
        assert "learning began" in done.err
        np.testing.assert_array_equal(no_learning[0], [[1.5, 2.25, 3], [2.5, 3.25, 4]])

    @pytest.mark.parametrize(
        ("content", "options", "message"),
        [
            ("x,y,z\n1,5,2,25,3\n", [], "line 2 of s.csv has 5 cells, and the header has 3"),
            ("x,y,z\n1,2,3\n", ["--out", "s.csv"], "--out s.csv is a file. Give a folder."),
            ("x,y,z\n1,2,3\n", ["--decimal", ";"], "--decimal must be a point or a comma"),
        ],
    )
    def test_what_is_refused(self, in_a_folder, no_learning, content, options, message):
        (in_a_folder / "s.csv").write_text(content)
        done = command("map", "s.csv", "--x", "x", "--y", "y", "--target", "z", "--count", "5", *options)
        assert done.code in (1, 2)
        assert message in done.err
        assert not no_learning

    def test_fill_checks_its_outputs_first(self, in_a_folder):
        (in_a_folder / "r.nc").write_text("is never read")
        for options, message in (
            (["--out", "no/r.nc"], "--out no/r.nc cannot be written: the folder"),
            (["--out", "r.nc"], "--out r.nc is a file that is read."),
            (["--out", "o.nc", "--picture", "no/p.png"], "--picture no/p.png cannot be written: the folder"),
        ):
            done = command("fill", "r.nc", *options)
            assert done.code == 1
            assert message in done.err
