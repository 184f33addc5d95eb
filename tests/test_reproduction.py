"""The paper's experiments: at a reduced size, and in slow tests at full size, their verdicts are those expected.

`paper_verdicts.csv` holds the verdict of every claim. `make reproduce` fails where one changes, and so does a test
here: if the change is right, run ``make reproduce ACCEPT=1``.
"""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_tables import assert_the_report_has, tables_under
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from compositegp import fisher_information
from compositegp.cli import reproduce
from compositegp.cli.app import main
from compositegp.paper import hyperparameter_errors, section_5, spatial, time_series
from compositegp.paper.misspecification import joint_models
from compositegp.paper.spatial_claims import variance_claims
from compositegp.posteriors import factorize
from compositegp.simulate import stationary_field

TESTS = Path(__file__).parent
EXPECTED = pd.read_csv(TESTS / "paper_verdicts.csv")
TRUTH = ConstantKernel(1.0) * RBF(np.sqrt(2))  # of the paper's learning figure


def verdicts(experiment):
    """Verdicts that do not depend on the speed of the machine."""
    return {claim.full_text: claim.verdict for claim in experiment.claims if not claim.timed}


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


@pytest.mark.slow
def test_the_verdicts_about_time_series_at_full_size(tmp_path):
    assert verdicts(time_series.run(tmp_path)) == expected("timeseries")
    _, table, _ = tables_under("Section 6.1: synthetic time series")
    assert_the_report_has(table, pd.read_csv(tmp_path / "timeseries.csv"))


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
    found = {claim.full_text: claim.verdict for claim in variance_claims(variances)}
    assert len(found) == 4
    assert found.items() <= expected("spatial").items()


@pytest.mark.slow
def test_the_verdicts_about_fields_of_full_size(tmp_path):
    assert verdicts(spatial.run(tmp_path)) == expected("spatial")
    _, table = tables_under("Section 6.2: synthetic spatial data")
    assert_the_report_has(table, pd.read_csv(tmp_path / "spatial.csv"))


def test_the_verdicts_about_section_5(tmp_path):
    assert verdicts(section_5.run(tmp_path, draws=20_000)) == expected("analysis")


ROBUST = (  # claims about learning for which a few short series are enough
    "the recursion of Λ_k and s_k computes the weighted average of the segments' estimates",
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
    # The numbers of the row about misspecification follow from the estimates in the file.
    estimates = pd.read_csv(tmp_path / "learning_misspecified.csv")
    assert (estimates.groupby(["joint model", "method"]).size() == 2).all()
    robust = next(claim for claim in experiment.claims if claim.text == ROBUST[-1])
    wrong = estimates[estimates["joint model"] == "wrong"]
    for method, told in zip(
        ("weighted average", "maximum likelihood"), robust.found.split(" against "), strict=False
    ):
        for name, truth in (("α", 1.0), ("θ", 2.0)):
            errors = np.log(wrong.loc[wrong["method"] == method, name] / truth)
            assert f"{name} {np.sqrt(np.mean(errors**2)):.1%}" in told


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
    total = np.sum(informations, axis=0)
    weighted = np.sum([J_k @ theta_k for J_k, theta_k in zip(informations, alone, strict=True)], axis=0)
    average = hyperparameter_errors.average_at_once(y, 50)
    np.testing.assert_allclose(average, np.linalg.solve(total, weighted), rtol=0, atol=1e-3)
    order = np.array(alone)[:, 1].argsort()
    np.testing.assert_allclose(theta[found], np.array(alone)[order], rtol=0, atol=1e-3)
    np.testing.assert_allclose(J[found], np.array(informations)[order], rtol=1e-2)


@pytest.mark.parametrize("first", [2000, 2200, 2400])
def test_the_search_in_a_segment_ends_at_its_maximum(first):
    """Also where its first long step would be to a singular covariance: a step by scikit-learn's gradient is short."""
    y = stationary_field(RBF(np.sqrt(2)), 5000, random_state=0)[0][first : first + 200]
    alpha, theta = hyperparameter_errors._estimates(y, 200, first).theta[-1]
    kernel = ConstantKernel(np.exp(2 * alpha)) * RBF(np.exp(theta) / np.sqrt(2))
    X = np.arange(200.0)[:, None]
    dense = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    _, gradient = dense.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    assert (np.abs(np.linalg.solve(fisher_information(kernel, X), gradient)) < 1e-3).all()


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
    _, averages, segments = tables_under("Section 4.1: learning")
    assert_the_report_has(averages, pd.read_csv(tmp_path / "learning.csv"))
    assert_the_report_has(segments, pd.read_csv(tmp_path / "learning_segments.csv"))


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
