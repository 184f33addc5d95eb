"""Design of segmentations: predicted errors and their ranking, against simulation and against real data."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel

from compositegp import (
    Composite,
    CompositeGPRegressor,
    analysis,
    conditioning_sets,
    learn,
    nearest,
    plotting,
    posterior,
    segment,
)
from compositegp.design import Candidate, Clock, Design, Plan, choose_segmentation, flops, possible_plans
from compositegp.posteriors import default_group_size

mpl.use("Agg")


def measured_means(kernel, X, y, Z, plan, mean=None):
    """What a plan predicts, by the functions that a user has."""
    if plan.prediction == "nearest":
        return nearest(
            kernel, X, y, Z, group_size=default_group_size(X.shape[1]), mean=mean, n_neighbors=plan.n_neighbors
        ).mean
    segments = segment(X, plan.segment_size, plan.segmentation, kernel=kernel, random_state=0)
    given = conditioning_sets(X, segments, plan.conditioning_size, kernel=kernel)
    return posterior(kernel, X, y, Z, Composite.conditional(segments, given), mean=mean).mean


def rank_correlation(kernel, X, Z, draws, **options):
    design = choose_segmentation(kernel, X, Z, group_size=len(Z), n_groups=1, **options)
    root = np.linalg.cholesky(kernel(X))
    rng = np.random.default_rng(0)
    observed = [root @ rng.normal(size=len(X)) for _ in range(draws)]
    exact = [posterior(kernel, X, y, Z, Composite.full(len(X))).mean for y in observed]
    measured = [
        np.mean(
            [(measured_means(kernel, X, y, Z, c.plan) - best) ** 2 for y, best in zip(observed, exact, strict=True)]
        )
        for c in design.candidates
    ]
    assert len(measured) >= 12
    predicted = [candidate.mse - design.exact_mse for candidate in design.candidates]
    return spearmanr(predicted, measured).statistic, np.array(predicted), np.array(measured)


def test_ranking_on_the_papers_time_series():
    t = np.arange(1056.0)[:, None]
    kernel = ExpSineSquared(1.0, 128.0) + RBF(20 / np.sqrt(2)) + WhiteKernel(0.1)
    rank, predicted, measured = rank_correlation(
        kernel, t[:1024], t[1024:], 6, sizes=(64, 256), conditioning_sizes=(0, 64), n_neighbors=(64, 256)
    )
    assert rank > 0.8
    assert np.corrcoef(predicted, measured)[0, 1] > 0.8


def test_ranking_on_the_papers_grid():
    grid = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0), indexing="ij"), -1).reshape(-1, 2)
    box = ((grid >= 12) & (grid < 20)).all(axis=1)
    kernel = RBF(4 / np.sqrt(2)) + WhiteKernel(1e-4)
    rank, _, _ = rank_correlation(
        kernel, grid[~box], grid[box], 4, sizes=(60, 240), conditioning_sizes=(0, 60), n_neighbors=(60, 240)
    )
    assert rank > 0.8


@pytest.mark.filterwarnings("ignore")
def test_ranking_on_real_data():
    """scikit-learn's diabetes table, against the exact GP's own predictions from the same targets."""
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    X, Z, y = X[:380], X[380:], y[:380]
    kernel = learn(
        ConstantKernel() * Matern(nu=1.5) + WhiteKernel(), X, y, [np.arange(380)], conditioning_size=0
    ).kernel
    design = choose_segmentation(
        kernel, X, Z, group_size=len(Z), sizes=(16, 64), conditioning_sizes=(0, 32), n_neighbors=(8, 64, 256)
    )
    exact = posterior(kernel, X, y, Z, Composite.full(380)).mean
    measured = [np.mean((measured_means(kernel, X, y, Z, c.plan) - exact) ** 2) for c in design.candidates]
    assert len(measured) >= 12
    assert spearmanr([c.mse for c in design.candidates], measured).statistic > 0.8


@pytest.fixture
def problem(rng):
    X = rng.uniform(0, 6, size=(300, 2))
    return 1.5 * Matern(1.0, nu=1.5) + WhiteKernel(0.1), X, rng.uniform(0, 6, size=(20, 2))


SMALL = {"sizes": (50, 100), "conditioning_sizes": (0, 50), "n_neighbors": (20, 100)}


def test_errors_are_those_of_compare(problem):
    kernel, X, Z = problem
    noise = np.linspace(0.01, 0.2, 300)
    design = choose_segmentation(kernel, X, Z, noise_variance=noise, **SMALL)
    for candidate in design.candidates:
        plan = candidate.plan
        if plan.prediction == "composite":
            segments = segment(X, plan.segment_size, plan.segmentation, kernel=kernel, random_state=0)
            given = conditioning_sets(X, segments, plan.conditioning_size, kernel=kernel)
            report = analysis.compare(kernel, X, Z, Composite.conditional(segments, given), noise_variance=noise)
            assert candidate.mse == pytest.approx(report.actual_mse.mean(), rel=1e-8)
            assert candidate.claimed == pytest.approx(report.claimed_variance.mean() / report.actual_mse.mean())
        else:
            expected = nearest(
                kernel,
                X,
                np.zeros(300),
                Z,
                group_size=default_group_size(X.shape[1]),
                noise_variance=noise,
                n_neighbors=plan.n_neighbors,
            )
            assert candidate.mse == pytest.approx(expected.variance.mean(), rel=1e-8)
            assert candidate.claimed == pytest.approx(1.0)
        assert candidate.mse >= design.exact_mse * (1 - 1e-9)


def test_neighbourhoods_stand_for_all_the_data(problem):
    kernel, X, Z = problem
    near = Z[((Z - 3) ** 2).sum(axis=1) < 4]
    whole = choose_segmentation(kernel, X, near, **SMALL)
    local = choose_segmentation(kernel, X, near, n_points=200, **SMALL)
    assert local.n_points == 200
    for a, b in zip(*(sorted(d.candidates, key=lambda c: str(c.plan)) for d in (whole, local)), strict=True):
        assert a.plan == b.plan
        assert b.mse == pytest.approx(a.mse, rel=0.05)


@pytest.fixture
def steady_clock(monkeypatch):
    """Seconds that do not depend on how busy the machine is: one for each 10⁹ operations."""
    monkeypatch.setattr(Clock, "seconds", lambda self, plan, n_tests: flops(plan, 300, n_tests, 128, 2) / 1e9)


def test_the_cheapest_that_meets_the_tolerance_is_chosen(problem, steady_clock):
    kernel, X, Z = problem
    design = choose_segmentation(kernel, X, Z, tolerance=0.01, **SMALL)
    assert design.meets_tolerance
    cheaper = [c for c in design.candidates if c.seconds < design.best.seconds]
    assert cheaper
    assert all(c.excess > 0.01 for c in cheaper)
    strict = choose_segmentation(kernel, X, Z, tolerance=1e-9, **SMALL)
    assert not strict.meets_tolerance
    assert strict.best.mse == min(c.mse for c in strict.candidates)
    poor = choose_segmentation(kernel, X, Z, tolerance=1e-9, budget=1e-9, **SMALL)
    assert poor.best.mse == min(c.mse for c in poor.candidates)  # nothing is affordable: accuracy decides
    budget = strict.best.seconds / 2
    bounded = choose_segmentation(kernel, X, Z, tolerance=1e-9, budget=budget, **SMALL)
    assert bounded.best.mse == min(c.mse for c in bounded.candidates if c.seconds <= budget)
    assert bounded.best.mse > strict.best.mse


def test_seconds_are_measured_with_the_code_that_would_run(problem):
    design = choose_segmentation(*problem, **SMALL)
    assert all(c.seconds > 0 for c in design.candidates)
    assert [c.seconds for c in design.candidates] == sorted(c.seconds for c in design.candidates)


def test_the_frontier_has_the_candidates_that_no_other_is_better_than(problem):
    design = choose_segmentation(*problem, **SMALL)
    for member in design.frontier:
        assert not any(c.seconds < member.seconds and c.mse <= member.mse for c in design.candidates)
    assert design.frontier[-1].mse == min(c.mse for c in design.candidates)
    assert "→" in repr(design)
    assert len(repr(design).splitlines()) == len(design.candidates) + 2


def test_a_plan_is_parameters_of_the_estimator(problem):
    kernel, X, Z = problem
    y = np.sin(X[:, 0])
    for plan in (Plan("composite", "tree", 100, 50), Plan("nearest", n_neighbors=64)):
        model = CompositeGPRegressor(kernel, learning=None, **plan.parameters).fit(X, y)
        np.testing.assert_allclose(model.predict(Z), measured_means(kernel, X, y, Z, plan), rtol=0, atol=1e-6)


def test_work_grows_as_it_should():
    def plain(size):
        return Plan("composite", "tree", size)

    assert flops(plain(512), 10**6, 100, 100) == pytest.approx(10 * flops(plain(512), 10**5, 100, 100), rel=0.01)
    assert flops(plain(512), 10**5, 1, 1) > 3 * flops(plain(256), 10**5, 1, 1)
    local = Plan("nearest", n_neighbors=256)
    assert flops(local, 10**6, 800, 128) == flops(local, 10**5, 800, 128)
    assert flops(local, 10**5, 1280, 128) == 2 * flops(local, 10**5, 640, 128)


def test_plans_that_do_not_fit_the_data_are_left_out():
    found = possible_plans(100, ("tree",), (50, 200), (0, 150), (20, 500))
    assert found == [Plan("composite", "tree", 50, 0), Plan("nearest", n_neighbors=20)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0}, "tolerance must be"),
        ({"budget": -1.0}, "budget must be"),
        ({"group_size": 0}, "group_size must be"),
        ({"sizes": (10**6,), "n_neighbors": (10**6,)}, "nothing to compare"),
        ({"schemes": ("tiles",)}, "scheme must be"),
    ],
)
def test_bad_arguments_of_choose_segmentation_are_named(problem, options, message):
    with pytest.raises(ValueError, match=message):
        choose_segmentation(*problem, **options)


def test_every_plot_has_labels_and_can_be_saved(problem, tmp_path):
    kernel, X, Z = problem
    report = analysis.compare(kernel, X, Z, Composite.marginal(segment(X, 50)))
    assert len(pd.DataFrame(report.table)) == 20
    one = analysis.compare(kernel, X[:, :1], Z[:, :1], Composite.marginal(segment(X[:, :1], 50)))
    axes = [
        plotting.plot_errors(report, Z),
        plotting.plot_errors(one, Z[:, :1]),
        plotting.plot_confidence(report),
        plotting.plot_trade_off(choose_segmentation(kernel, X, Z, **SMALL)),
    ]
    for number, drawn in enumerate(axes):
        assert drawn.get_xlabel()
        assert drawn.get_ylabel()
        drawn.figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000
        mpl.pyplot.close(drawn.figure)
    with pytest.raises(ValueError, match="the 20 test points"):
        plotting.plot_errors(report, Z[:5])


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_label_of_the_best_plan_stays_inside_the_axes(best):
    plan = Plan("composite", "interleaved", 512, 256)
    candidates = [
        Candidate(plan, 1 + excess, excess, 1.0, 1e7, seconds)
        for excess, seconds in ((2.0, 0.01), (0.5, 0.1), (0.1, 1.0))
    ]
    drawn, axes = plotting.style.figure(size=(6, 4))
    plotting.plot_trade_off(Design(candidates[best], candidates, 1.0, False, 100), axes=axes)
    drawn.draw_without_rendering()
    (label,) = axes.texts
    extent, inside = label.get_window_extent(), axes.get_window_extent()
    assert label.get_text() == "interleaved 512 given 256"
    assert inside.x0 < extent.x0
    assert extent.x1 < inside.x1
    assert inside.y0 + 2 < extent.y0
    assert extent.y1 < inside.y1
