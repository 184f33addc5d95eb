"""The paper's experiments at a reduced size: they run, and their claims hold."""

import json
import warnings

import pandas as pd
import pytest

from compositegp.cli import reproduce
from compositegp.cli.app import main
from compositegp.paper import Claim, Experiment, hyperparameter_errors, markdown, spatial, time_series


def claims(experiment):
    return {claim.text: claim for claim in experiment.claims}


def test_the_claims_about_time_series_hold(tmp_path):
    found = claims(time_series.run(tmp_path, n=1024))
    assert found["CGP underestimates the predictive variance"].holds
    assert found["which is consistent with redundant segments"].holds
    assert {path.name for path in tmp_path.iterdir()} == {
        "timeseries.csv",
        "timeseries.png",
        "timeseries_runtime.csv",
        "timeseries_runtime.png",
    }


def test_the_claims_about_fields_hold(tmp_path):
    found = claims(spatial.run(tmp_path, side=32, draws=30))
    for text in (
        "from 4 to 16 segments the additional error increases",
        "the SGP's additional error is notably higher",
        "Theorem 2: excess errors have a closed form",
        "(not in the paper) the choice of segments matters",
    ):
        assert found[text].holds, found[text].found
    assert (tmp_path / "spatial_errors.png").stat().st_size > 5000
    assert len(pd.read_csv(tmp_path / "spatial.csv").set_index("method").loc["CGP, 4 tiles"]) == 5


def test_the_claims_about_learning_hold(tmp_path):
    found = claims(hyperparameter_errors.run(tmp_path, n=1000, draws=8, n_jobs=1))
    assert found["with N_k = 200 the weighted average is satisfying"].holds
    assert (tmp_path / "learning.csv").read_text().count("\n") == 7


def test_the_command_writes_a_report(tmp_path, monkeypatch, capsys):
    def small(out, report):
        return time_series.run(out, n=512, report=report)

    monkeypatch.setitem(reproduce.EXPERIMENTS, "timeseries", small)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    assert main(["reproduce", "timeseries", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["claims"]) == 6
    text = (tmp_path / "reproduction.md").read_text()
    assert "| the paper | found | |" in text
    assert "timeseries.png" in text


@pytest.mark.parametrize(("holds", "word"), [(True, "| agrees |"), (False, "| **differs**: because |")])
def test_a_claim_that_fails_is_printed_with_its_reason(holds, word):
    experiment = Experiment("x", "X", "set", [Claim("says", "found", holds, "" if holds else "because")])
    assert word in markdown([experiment], "command")
