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
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from compositegp import fisher_information
from compositegp.cli import reproduce
from compositegp.cli.app import main
from compositegp.datasets import FOLDER
from compositegp.paper import Claim, Experiment, hyperparameter_errors, markdown, section_5, spatial, time_series
from compositegp.paper.misspecification import joint_models
from compositegp.paper.monotone import falls
from compositegp.paper.nox_claims import study_claims
from compositegp.paper.nox_forecasts import Score
from compositegp.paper.spatial_claims import variance_claims
from compositegp.posteriors import factorize
from compositegp.simulate import stationary_field

TESTS = Path(__file__).parent
EXPECTED = pd.read_csv(TESTS / "paper_verdicts.csv")
REPORT = TESTS.parent / "docs" / "reproduction.md"
TRUTH = ConstantKernel(1.0) * RBF(np.sqrt(2))  # of the paper's learning figure


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
    """A quarter of the grid, on which the variances are others."""
    experiment = spatial.run(tmp_path, side=32, draws=30)
    found, wanted = (
        {text: verdict for text, verdict in some.items() if not text.startswith("the CGP's variances")}
        for some in (verdicts(experiment), expected("spatial"))
    )
    assert found == wanted
    table = pd.read_csv(tmp_path / "spatial.csv").set_index("method")
    every = pd.read_csv(tmp_path / "spatial_predictions.csv")
    squares = (every.pivot_table("mean", ["realization", "x1", "x2"], "method") ** 0).count()
    assert (squares == 30 * 64).all()
    gap = every[every["method"] == "CGP, 4 tiles"]["mean"].to_numpy() - every[every["method"] == "GP"]["mean"]
    assert np.mean(np.square(gap)) == pytest.approx(table.loc["CGP, 4 tiles", "excess error, measured"], rel=1e-3)
    assert (tmp_path / "figures" / "spatial_field.png").stat().st_size > 5000


def test_the_verdicts_about_variances_in_the_box():
    """At the paper's size: variances do not depend on the data."""
    grid, held = spatial.held_out_box()
    X, Z = grid[~held], grid[held]
    variances = {
        method.name: factorize(spatial.KERNEL, X, np.zeros(len(X)), method.composite).posterior(Z).variance.mean()
        for method in spatial.methods_for(X, spatial.SIDE)[:-1]  # the last is FITC
    }
    found = {claim.text: claim.verdict for claim in variance_claims(variances)}
    assert len(found) == 4
    assert found.items() <= expected("spatial").items()


@pytest.mark.slow
def test_the_verdicts_about_fields_of_full_size(tmp_path):
    assert verdicts(spatial.run(tmp_path)) == expected("spatial")


def test_the_verdicts_about_section_5(tmp_path):
    assert verdicts(section_5.run(tmp_path, draws=20_000)) == expected("analysis")


ROBUST = (  # claims about learning for which a few short series are enough
    "the accuracy of a segment's estimate improves as N_k becomes larger",
    "the accuracy of a segment's Fisher information Ĵ_k improves as N_k becomes larger",
    "inference by modules, the segments, is more robust where the joint data model is misspecified",
)


def test_the_claims_about_learning(tmp_path):
    """Four short series: enough for what is true of every segment, not for the order of errors of averages."""
    experiment = hyperparameter_errors.run(tmp_path, n=1000, draws=4, n_jobs=1)
    found, wanted = verdicts(experiment), expected("learning")
    assert set(found) == set(wanted)
    for text in ROBUST:
        assert found[text] == wanted[text]
    every = pd.read_csv(tmp_path / "learning_estimates.csv")
    summary = pd.read_csv(tmp_path / "learning.csv").set_index(["N_k", "parameter"])
    for size in (50, 100, 200):
        last = every[(every["N_k"] == size) & (every["segments read"] == 1000 // size)]
        assert len(last) == 4
        for name, truth in (("α", 1.0), ("θ", 2.0)):
            errors = np.log(last[name] / truth)
            assert summary.loc[(size, name), "bias"] == pytest.approx(errors.mean(), abs=1e-6)
            assert summary.loc[(size, name), "root mean squared error"] == pytest.approx(
                np.sqrt(np.mean(errors**2)), abs=1e-6
            )


def test_estimates_of_segments_are_those_of_segments_alone():
    """What the running average of a series says about its segments, against scikit-learn on each of them."""
    y = np.linalg.cholesky(TRUTH(np.arange(150.0)[:, None])) @ np.random.default_rng(0).standard_normal(150)
    theta, J = hyperparameter_errors._estimates(y, 50).of_segments()
    found = theta[:, 1].argsort()  # segments are read in random order
    alone, informations = [], []
    for part in np.split(y, 3):
        X = np.arange(50.0)[:, None]
        kernel = GaussianProcessRegressor(TRUTH).fit(X, part).kernel_
        alone.append((0.5 * kernel.theta[0], kernel.theta[1] + 0.5 * np.log(2)))
        K, gradient = kernel(X, eval_gradient=True)
        slopes = np.linalg.solve(K, gradient.transpose(2, 0, 1)) * np.array([2.0, 1.0])[:, None, None]
        informations.append(0.5 * np.einsum("aij,bji->ab", slopes, slopes))
    order = np.array(alone)[:, 1].argsort()
    np.testing.assert_allclose(theta[found], np.array(alone)[order], rtol=0, atol=1e-3)
    np.testing.assert_allclose(J[found], np.array(informations)[order], rtol=1e-2)


def test_errors_with_a_joint_model_that_is_right_or_wrong():
    """Maximum likelihood for all of a series, by scikit-learn's gradient there; jumps look like a shorter length."""
    right, wrong = joint_models(ConstantKernel() * RBF(), TRUTH, draws=2, seed=3, n_jobs=1, size=100, count=4)
    X, series = np.arange(400.0)[:, None], stationary_field(TRUTH, 400, n_draws=2, random_state=3)
    for y, error in zip(series, right.whole, strict=True):
        dense = GaussianProcessRegressor(TRUTH, optimizer=None).fit(X, y)
        information = fisher_information(TRUTH, X)
        _, gradient = dense.log_marginal_likelihood(TRUTH.theta + error, eval_gradient=True)
        assert (np.abs(np.linalg.solve(information, gradient)) < 1e-3).all()
    assert np.abs(right.average).max() < 0.5
    assert (wrong.whole[:, 1] < -0.05).all()
    assert (np.abs(wrong.average[:, 1]) < 0.05).all()


@pytest.mark.slow
def test_the_verdicts_about_learning_at_full_size(tmp_path):
    assert verdicts(hyperparameter_errors.run(tmp_path)) == expected("learning")


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
    assert "| claim | rule | found | verdict |" in text
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
    """Every claim, also those about seconds; a row that is lost, new or turned is seen. The run took ten minutes."""
    text = REPORT.read_text()
    preamble = markdown([], "", 2).split("core(s): .")[1].split("Of 0 rows")[0]
    assert preamble in text, "the report is of older code: make reproduce"
    rows = re.findall(r"^\| (.+?) \| .+? \| .+? \| \**(agrees|differs)\**(?::.*)? \|$", text, flags=re.MULTILINE)
    assert rows == list(zip(EXPECTED["claim"], EXPECTED["verdict"], strict=True))
    seconds = re.search(
        r"^Printed by `compositegp reproduce all .*?` in (\d+) s on 2 core", text, flags=re.MULTILINE
    )
    assert seconds is not None
    assert int(seconds[1]) < 600
    for line in text.splitlines():
        if "**differs**" in line:
            assert "**differs**: " in line, "a claim that fails says why"


def test_the_table_of_the_report_has_the_verdicts_about_nox():
    """Verdicts follow from the scores of the report; not those that compare differences smaller than its digits."""
    lines = REPORT.read_text().split("| station | mean | method |")[1].splitlines()[2:]
    results = {}
    for line in lines:
        station, mean, method, *values = (cell.strip() for cell in line.strip("|").split(" | "))
        results.setdefault((station.lower(), mean), []).append(Score(method, *map(float, values)))
    assert len(results) == 6  # two stations; two means and the forecaster's own
    decided = ("the GP is the lower bound", "larger segments", "the SGP with 5 weeks", "(not in the paper) Ess")
    decided += ("(not in the paper) Horns",)
    found = {
        claim.text: claim.verdict
        for claim in study_claims(results, None)
        if claim.text.startswith(decided) and not claim.timed
    }
    wanted = expected("nox")
    shared = found.keys() & wanted.keys()
    assert len(shared) >= 20
    assert {text: found[text] for text in shared} == {text: wanted[text] for text in shared}


def test_gaps_that_the_report_calls_closing_close_as_they_are_printed():
    rows = re.findall(
        r"^\|.*? gap .*? \| ([\d., ]+) at .*? weeks \| \**(agrees|differs)", REPORT.read_text(), re.MULTILINE
    )
    assert len(rows) == 18  # two stations, means and predictors, and the author's own; to the SGP and to the GP
    for numbers, verdict in rows:
        assert falls(map(float, numbers.split(", "))) == (verdict == "agrees")


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
