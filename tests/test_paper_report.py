"""The report in docs/reproduction.md: it is of the present code, its verdicts are those expected, and `make reproduce`
does not overwrite them unasked."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from command_line import command
from report_tables import REPORT, assert_the_report_has, tables_under

from compositegp.datasets import FOLDER
from compositegp.paper import Claim, Experiment, changed_verdicts, fingerprint, markdown, section_5, verdict_rows
from compositegp.paper.monotone import falls
from compositegp.paper.nox_claims import error_claims
from compositegp.paper.nox_forecasts import Score
from compositegp.paper.nox_runtime_claims import forecaster_claims

VERDICTS = Path(__file__).parent / "paper_verdicts.csv"
EXPECTED = pd.read_csv(VERDICTS)


def row(text="errors grow", holds=True, *, timed=False, case=""):
    return Claim(text, "the second is larger", "1 and 2", holds, "the grid is fine", timed, case)


def experiment(*claims, name="x"):
    return Experiment(name, "Section 9: errors", "A grid.", list(claims))


def table_of(*experiments):
    return pd.DataFrame(verdict_rows(experiments), columns=EXPECTED.columns)


def test_the_report_is_of_the_present_code():
    """Of the experiments and their rules; comments and docstrings may have changed since."""
    (found,) = re.findall(r"Code of the experiments: `([0-9a-f]{12})`", REPORT.read_text())
    assert found == fingerprint.code_hash(), "the report is of older code: make reproduce"


def test_the_hash_sees_code_and_nothing_else(tmp_path):
    for path in Path(fingerprint.__file__).parent.glob("*.py"):
        shutil.copy(path, tmp_path)
    before = fingerprint.code_hash(tmp_path)
    changed = tmp_path / "nox_claims.py"
    text = changed.read_text()
    changed.write_text("# A remark.\n" + text.replace('"""Verdicts about', '"""The verdicts about'))
    assert changed.read_text() != text
    assert fingerprint.code_hash(tmp_path) == before == fingerprint.code_hash()
    changed.write_text(text.replace("75 < case.gp < 77", "74 < case.gp < 77"))
    assert changed.read_text() != text
    assert fingerprint.code_hash(tmp_path) != before


def test_section_5_of_the_report_is_found_again(tmp_path):
    """Closed forms, in a second: a change of the library below that moves them is seen."""
    section_5.run(tmp_path, draws=100)
    *_, table = tables_under("Section 5: performance analysis")
    assert_the_report_has(table, pd.read_csv(tmp_path / "analysis.csv"))


def test_the_report_has_the_expected_verdicts():
    """Every claim, also those about seconds; a row that is lost, new or turned is seen."""
    text = REPORT.read_text()
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \| \**(agrees|differs)\**(?::.*)? \|$", text, flags=re.MULTILINE)
    assert rows == list(zip(EXPECTED["claim"], EXPECTED["verdict"], strict=True))
    for line in text.splitlines():
        if "**differs**" in line:
            assert "**differs**: " in line, "a claim that fails says why"


def test_the_first_table_counts_the_rows_of_every_claim():
    (summary,) = tables_under("All claims")
    counts = summary["cases that agree"].str.split(" of ", expand=True).astype(int)
    assert counts[1].sum() == len(EXPECTED)
    assert counts[0].sum() == (EXPECTED["verdict"] == "agrees").sum()
    for text, agree, cases in zip(summary["claim"], counts[0], counts[1], strict=True):
        verdicts = [
            verdict
            for claim, verdict in zip(EXPECTED["claim"], EXPECTED["verdict"], strict=True)
            if claim == text or (cases > 1 and claim.startswith(f"{text}: "))
        ]
        assert (verdicts.count("agrees"), len(verdicts)) == (agree, cases)
    own = summary["claim"].str.startswith("(not in the paper)")
    told = re.search(r"(\d+) claims are the paper's: (\d+) agree in every case, (\d+) in some", REPORT.read_text())
    every, some = counts[0] == counts[1], (counts[0] > 0) & (counts[0] < counts[1])
    assert [int(each) for each in told.groups()] == [(~own).sum(), (every & ~own).sum(), (some & ~own).sum()]


def test_the_seconds_of_the_run_are_those_of_its_parts():
    line = re.search(
        r"^Printed by `compositegp reproduce all .*?` in (\d+) s on \d+ core\(s\): (.*?)\.",
        REPORT.read_text(),
        re.M,
    )
    parts = [int(seconds) for seconds in re.findall(r"(\d+) s", line[2])]
    assert len(parts) == 5
    assert abs(int(line[1]) - sum(parts)) <= len(parts)


def scores_of_the_report():
    *_, table = tables_under("Section 6.3: NOx")
    results = {}
    for station, mean, method, *values in table.itertuples(index=False):
        results.setdefault((station.lower(), mean), []).append(Score(method, *map(float, values)))
    return results


def test_the_table_of_the_report_has_the_verdicts_about_nox():
    """Verdicts follow from the scores of the report; not those that compare differences smaller than its digits."""
    results = scores_of_the_report()
    assert len(results) == 6  # two stations; two means and the forecaster's own
    claims = error_claims(results, None)
    for station in ("essingeleden", "hornsgatan"):
        claims += forecaster_claims(
            station, results[station, "its own"][0], results[station, "profile"][0], None, None
        )
    decided = (
        "the GP is the lower bound",
        "larger segments",
        "the SGP with 5 weeks",
        "(not in the paper) Composite",
    )
    decided += ("(not in the paper) the 95 %",)
    found = {
        claim.full_text: claim.verdict for claim in claims if claim.text.startswith(decided) and not claim.timed
    }
    wanted = dict(zip(EXPECTED["claim"], EXPECTED["verdict"], strict=True))
    assert len(found) == 3 * 8 + 2 * 2
    assert {text: wanted[text] for text in found} == found


def test_gaps_that_the_report_calls_closing_close_as_they_are_printed():
    rows = re.findall(
        r"^\|.*? gap .*? \| ([\d., e+-]+) at .*? weeks \| \**(agrees|differs)", REPORT.read_text(), re.MULTILINE
    )
    assert len(rows) == 18  # two stations, means and predictors, and the author's own; to the SGP and to the GP
    for numbers, verdict in rows:
        gaps = [float(number) for number in numbers.split(", ")]
        assert min(gaps) > 0
        assert falls(gaps) == (verdict == "agrees")


def test_every_figure_of_the_report_is_there():
    links = re.findall(r"\]\((figures/.*?)\)", REPORT.read_text())
    assert len(links) >= 9  # learning; series and runtime; field, means, errors; histograms, day, trade-off
    assert all((REPORT.parent / link).exists() for link in links)


@pytest.mark.parametrize(("holds", "word"), [(True, "| agrees |"), (False, "| **differs**: the grid is fine |")])
def test_a_claim_that_fails_is_printed_with_its_reason(holds, word):
    assert word in markdown([experiment(row(holds=holds))], "command", 2)


def test_rows_that_turn_come_or_go_are_changes():
    earlier = table_of(
        experiment(row("a"), row("b"), row("c", timed=True), row("d", timed=True)), experiment(row("e"), name="y")
    )
    now = experiment(row("a", holds=False), row("c", holds=False, timed=True), row("f"))
    assert [
        (each.claim, each.before, each.now, each.by_the_clock) for each in changed_verdicts(earlier, [now])
    ] == [
        ("a", "agrees", "differs", False),
        ("c", "agrees", "differs", True),
        ("f", "no row", "agrees", False),
        ("b", "agrees", "no row", False),
        ("d", "agrees", "no row", False),
    ]
    assert changed_verdicts(table_of(now), [now]) == []


def turned(tmp_path, claim):
    """The expected verdicts with one of them turned."""
    table = EXPECTED.copy()
    place = table.index[table["claim"].str.startswith(claim)]
    table.loc[place, "verdict"] = table.loc[place, "verdict"].map({"agrees": "differs", "differs": "agrees"})
    table.to_csv(tmp_path / "earlier.csv", index=False)
    return tmp_path / "earlier.csv"


def test_the_command_fails_where_a_verdict_has_changed_and_names_it(tmp_path):
    run = ("reproduce", "analysis", "--out", tmp_path, "--against")
    assert command(*run, VERDICTS).code == 0
    done = command(*run, turned(tmp_path, "Theorem 3"))
    assert done.code == 1
    assert "1 verdict(s)" in done.error
    assert (
        "Theorem 3: the mean information gain of the CGP is Σ I(z; y_k): before agrees, now differs" in done.error
    )
    assert (tmp_path / "reproduction.md").exists()  # the run is not lost
    done = command(*run, turned(tmp_path, "Theorem 3"), "--accept")
    assert done.code == 0
    assert "changed: analysis: Theorem 3" in done.out


def test_a_file_without_verdicts_is_refused_before_the_run(tmp_path):
    (tmp_path / "other.csv").write_text("claim,verdict\n")
    done = command("reproduce", "analysis", "--out", tmp_path / "out", "--against", tmp_path / "other.csv")
    assert (done.code, (tmp_path / "out").exists()) == (1, False)
    assert "it lacks experiment, timed" in done.error
    assert command("reproduce", "analysis", "--out", tmp_path / "out", "--accept").code == 2


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("words", "accepts"), [((), False), (("ACCEPT=1",), True), (("ACCEPT=0",), False)])
def test_make_takes_new_verdicts_only_if_it_is_told_to(words, accepts):
    # The suite is itself run by make, whose settings this one must not inherit (it would print the folders it enters).
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "--dry-run", "reproduce", *words],
        cwd=REPORT.parent.parent,
        env=own | {FOLDER: "data"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.replace("\\\n", " ").splitlines()
    (run,) = [number for number, line in enumerate(lines) if "compositegp reproduce all" in line]
    assert "--against tests/paper_verdicts.csv" in lines[run]
    assert ("--accept" in lines[run]) == accepts
    assert all(line.startswith("cp ") for line in lines[run + 1 :])  # nothing is copied before the run has passed


@pytest.mark.slow
@pytest.mark.skipif(FOLDER not in os.environ, reason=f"{FOLDER} names no folder with the Stockholm file")
def test_the_whole_run_has_the_verdicts_and_the_errors_of_the_report(tmp_path):
    """Ten minutes on two cores: the command of the report, at its full size."""
    done = command("reproduce", "all", "--out", tmp_path, "--against", VERDICTS)
    assert done.code == 0, done.err
    *_, table = tables_under("Section 6.3: NOx")
    found = pd.read_csv(tmp_path / "nox.csv")
    assert_the_report_has(table, found.assign(station=found["station"].str.capitalize()))
