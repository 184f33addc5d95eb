"""The paper's experiments: at a reduced size their verdicts are those expected, and so are those of the full report.

`paper_verdicts.csv` holds the verdict of every claim, as `compositegp reproduce all` wrote it. A verdict that changes
makes a test here fail: if the change is right, run the command again and copy its `verdicts.csv`.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compositegp.cli import reproduce
from compositegp.cli.app import main
from compositegp.datasets import FOLDER
from compositegp.paper import Claim, Experiment, hyperparameter_errors, markdown, section_5, spatial, time_series

TESTS = Path(__file__).parent
EXPECTED = pd.read_csv(TESTS / "paper_verdicts.csv")
REPORT = TESTS.parent / "docs" / "reproduction.md"


def verdicts(experiment):
    """Verdicts that do not depend on the speed of the machine."""
    return {claim.text: claim.verdict for claim in experiment.claims if not claim.timed}


def expected(name):
    rows = EXPECTED[(EXPECTED["experiment"] == name) & ~EXPECTED["timed"]]
    return dict(zip(rows["claim"], rows["verdict"], strict=True))


def test_the_verdicts_about_time_series(tmp_path):
    experiment = time_series.run(tmp_path, n=1024)
    assert verdicts(experiment) == expected("timeseries")
    assert {path.name for path in tmp_path.iterdir()} == {
        "figures",
        "timeseries.csv",
        "timeseries_covariances.csv",
        "timeseries_predictions.csv",
        "timeseries_runtime.csv",
    }
    every = pd.read_csv(tmp_path / "timeseries_predictions.csv")
    assert (every.groupby("method").size() == 128).all()
    covariances = pd.read_csv(tmp_path / "timeseries_covariances.csv").set_index("method")
    for name, rows in every.groupby("method"):
        matrix = covariances.loc[name].iloc[:, 1:].to_numpy()
        np.testing.assert_allclose(np.diag(matrix), rows["variance"], rtol=1e-6)


def test_the_verdicts_about_fields(tmp_path):
    """A quarter of the grid: the variances of tiles and combs are other than on the paper's."""
    experiment = spatial.run(tmp_path, side=32, draws=30)
    found = verdicts(experiment)
    of_size = [text for text in found if text.startswith("the CGP's variances")]
    assert {text: found[text] for text in found if text not in of_size} == {
        text: verdict for text, verdict in expected("spatial").items() if text not in of_size
    }
    assert len(of_size) == 4
    table = pd.read_csv(tmp_path / "spatial.csv").set_index("method")
    for text in of_size:
        scheme = text.rpartition(": ")[2]
        ratios = [
            table.loc[f"CGP, {count} {scheme}", "variance claimed"] / table.loc["GP", "variance claimed"]
            for count in (4, 16)
        ]
        assert found[text] == ("agrees" if min(ratios) > 1 and max(ratios) < 1.5 else "differs")
    every = pd.read_csv(tmp_path / "spatial_predictions.csv")
    squares = (every.pivot_table("mean", ["realization", "x1", "x2"], "method") ** 0).count()
    assert (squares == 30 * 64).all()
    gap = every[every["method"] == "CGP, 4 tiles"]["mean"].to_numpy() - every[every["method"] == "GP"]["mean"]
    assert np.mean(np.square(gap)) == pytest.approx(table.loc["CGP, 4 tiles", "excess error, measured"], rel=1e-3)
    assert (tmp_path / "figures" / "spatial_field.png").stat().st_size > 5000


def test_the_verdicts_about_section_5(tmp_path):
    assert verdicts(section_5.run(tmp_path, draws=20_000)) == expected("analysis")


def test_the_claims_about_learning(tmp_path):
    """Eight short series: too few for the claims about the order of errors."""
    experiment = hyperparameter_errors.run(tmp_path, n=1000, draws=8, n_jobs=1)
    assert set(verdicts(experiment)) == set(expected("learning"))
    every = pd.read_csv(tmp_path / "learning_estimates.csv")
    summary = pd.read_csv(tmp_path / "learning.csv").set_index(["N_k", "parameter"])
    for size in (50, 100, 200):
        last = every[(every["N_k"] == size) & (every["segments read"] == 1000 // size)]
        assert len(last) == 8
        for name, truth in (("α", 1.0), ("θ", 2.0)):
            errors = np.log(last[name] / truth)
            assert summary.loc[(size, name), "bias"] == pytest.approx(errors.mean(), abs=1e-6)
            assert summary.loc[(size, name), "root mean squared error"] == pytest.approx(
                np.sqrt(np.mean(errors**2)), abs=1e-6
            )


def test_the_command_writes_a_report(tmp_path, monkeypatch, capsys):
    def small(out, report):
        return time_series.run(out, n=512, report=report)

    monkeypatch.setitem(reproduce.EXPERIMENTS, "timeseries", small)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    assert main(["reproduce", "timeseries", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    rows = pd.read_csv(tmp_path / "verdicts.csv")
    assert list(rows["claim"]) == [claim["text"] for claim in told["claims"]]
    text = (tmp_path / "reproduction.md").read_text()
    assert "| the paper | rule | found | |" in text
    assert re.search(r"in \d+ s on \d+ core\(s\): timeseries \d+ s", text)
    for link in re.findall(r"\]\((figures/.*?)\)", text):
        assert (tmp_path / link).exists()


def test_the_installed_command_reproduces(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "compositegp", "reproduce", "analysis", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = {
        line.split(": ")[2]: line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("analysis")
    }
    assert told["Theorem 2"] == told["Theorem 3"] == "differs"
    assert (tmp_path / "analysis.csv").exists()


@pytest.mark.parametrize(("holds", "word"), [(True, "| agrees |"), (False, "| **differs**: because |")])
def test_a_claim_that_fails_is_printed_with_its_reason(holds, word):
    experiment = Experiment("x", "X", "set", [Claim("says", "if", "found", holds, "" if holds else "because")])
    assert word in markdown([experiment], "command", 2)


def test_the_report_in_the_documentation_has_the_expected_verdicts():
    """Every claim, also those about seconds; a row that is lost, new or turned is seen."""
    text = REPORT.read_text()
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \| \**(agrees|differs)\**(?::.*)? \|$", text, flags=re.MULTILINE)
    assert rows == list(zip(EXPECTED["claim"], EXPECTED["verdict"], strict=True))
    for line in text.splitlines():
        if "**differs**" in line:
            assert "**differs**: " in line, "a claim that fails says why"


def test_every_figure_of_the_report_is_there():
    links = re.findall(r"\]\((figures/.*?)\)", REPORT.read_text())
    assert len(links) >= 9  # learning; series and runtime; field, means, errors; histograms, day, trade-off
    assert all((REPORT.parent / link).exists() for link in links)


@pytest.mark.slow
@pytest.mark.skipif(FOLDER not in os.environ, reason=f"{FOLDER} names no folder with the Stockholm file")
def test_the_verdicts_of_the_whole_run(tmp_path):
    """Ten minutes on two cores: the command of the report, at its full size."""
    assert main(["reproduce", "all", "--out", str(tmp_path)]) == 0
    rows = pd.read_csv(tmp_path / "verdicts.csv")
    pd.testing.assert_frame_equal(rows[~rows["timed"]], EXPECTED[~EXPECTED["timed"]])
