"""Many series of one table: each alone, what they learn from each other, and failures that stop nothing."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from command_line import command
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from compositegp.forecasting import CompositeGPForecaster, aggregate_forecast, backtest, backtest_many, fit_many
from compositegp.forecasting.horizon_terms import Geometry, covariances, cut_windows
from compositegp.forecasting.memory import learn_memory
from compositegp.forecasting.shared_learning import Member, common_thetas, variances_of
from compositegp.learning import RecursiveEstimate

PLAIN = CompositeGPForecaster(None, seasons=["day"], search=False)


def make_table(names="abc", days=9, seed=0, scale=1.0):
    times = pd.date_range("2024-01-01", periods=24 * days, freq="h")
    rng = np.random.default_rng(seed)
    parts = []
    for name in names:
        red = np.zeros(len(times))
        for i in range(1, len(times)):
            red[i] = 0.85 * red[i - 1] + 0.3 * rng.normal()
        y = scale * (10 + np.sin(2 * np.pi * np.arange(len(times)) / 24) + red)
        parts.append(pd.DataFrame({"unique_id": name, "ds": times, "y": y}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def table():
    return make_table()


def series_of(table, name):
    part = table[table["unique_id"] == name]
    return pd.Series(part["y"].to_numpy(), index=pd.DatetimeIndex(part["ds"]))


class TestCommonKernel:
    """Against the paper's average by Fisher information, which it equals to first order, and a longer series."""

    KERNEL = 1.0 * Matern(5.0, (0.5, 50.0), nu=0.5) + WhiteKernel(0.1, (1e-4, 1e2))

    def members(self, rng, count, days, scales=None):
        """Series of one process in several units, with their own estimates."""
        geometry = Geometry(np.arange(1, 13), np.arange(6))
        K = self.KERNEL(np.arange(24.0 * days)[:, None])
        draws = np.linalg.cholesky(K) @ rng.normal(size=(24 * days, count))
        found = []
        for series, scale in zip(draws.T, scales or [1.0] * count, strict=True):
            windows = cut_windows(scale * series, np.arange(12, 24 * days - 6, 6), geometry, 1, 1)
            start = scale**2 * Matern(5.0, (0.5, 50.0), nu=0.5) + WhiteKernel(0.1 * scale**2, (1e-9, 1e9))
            start.k1.k1.constant_value_bounds = (1e-9, 1e9)
            found.append(Member(learn_memory(start, windows).kernel, scale, windows))
        return found

    def test_it_is_the_average_by_fisher_information(self, rng):
        members = self.members(rng, 8, 40)
        own = np.array([member.kernel.theta for member in members])
        average = RecursiveEstimate.empty(3)
        for member in members:
            average = average.add(member.kernel.theta, information_of(member))
        common = common_thetas(members)[0]
        spread = np.sqrt(np.diagonal(average.covariance))
        assert np.all(np.abs(common - average.theta) < 0.75 * spread)
        assert np.all(np.abs(common - own.mean(axis=0)) < np.ptp(own, axis=0))

    def test_units_do_not_matter(self):
        scales = [1.0, 100.0, 1e-3]
        plain = common_thetas(self.members(np.random.default_rng(1), 3, 10))
        scaled = common_thetas(self.members(np.random.default_rng(1), 3, 10, scales))
        for one, other, scale in zip(plain, scaled, scales, strict=True):
            shift = np.where(variances_of(self.KERNEL), 2 * np.log(scale), 0.0)
            np.testing.assert_allclose(other - shift, one, rtol=0, atol=0.02)

    def test_it_is_nearer_to_the_truth_than_most_estimates_of_short_series(self, rng):
        members = self.members(rng, 12, 8)
        truth = self.KERNEL.theta
        common = common_thetas(members)[0]
        own = [np.abs(member.kernel.theta - truth).sum() for member in members]
        assert np.abs(common - truth).sum() < np.median(own)


def information_of(member):
    """The curvature of a member's log score at its own estimate, by finite differences of the log score itself."""
    theta, p, h = member.kernel.theta, len(member.kernel.theta), 1e-2

    def value(shift):
        kernel = member.kernel.clone_with_theta(theta + shift)
        return sum(one.log_scores(covariances(kernel, one.geometry.reach)).sum() for one in member.windows)

    steps = h * np.eye(p)
    return -np.array(
        [[value(a + b) - value(a - b) - value(b - a) + value(-a - b) for b in steps] for a in steps]
    ) / (4 * h * h)


def test_a_refit_with_the_same_hyper_parameters_is_the_fit(table):
    series = series_of(table, "a")
    model = clone(PLAIN).fit(series)
    again = clone(PLAIN).fit(series).refit(series)
    assert again.kernel_ == model.kernel_
    pd.testing.assert_frame_equal(again.predict("24h"), model.predict("24h"), rtol=1e-9)


def test_a_refit_takes_the_hyper_parameters_and_only_them(table):
    model = clone(PLAIN).fit(series_of(table, "a"))
    theta = model.kernel_.theta + 0.3
    names = list(model.effects_)
    model.refit(series_of(table, "b"), theta=theta)
    np.testing.assert_allclose(model.kernel_.theta, theta)
    assert list(model.effects_) == names
    with pytest.raises(ValueError, match="X must have the columns"):
        model.refit(series_of(table, "b"), pd.DataFrame({"x": 1.0}, index=series_of(table, "b").index))


def test_models_that_share_nothing_are_those_of_each_series_alone(table):
    fitted = fit_many(PLAIN, table, share=False, n_jobs=2)
    alone = clone(PLAIN).fit(series_of(table, "b")).predict("24h", [0.1, 0.9])
    found = fitted.predict("24h", [0.1, 0.9])
    assert list(found.columns) == ["unique_id", "ds", "mean", "std", "q0.1", "q0.9"]
    own = found[found["unique_id"] == "b"].set_index("ds").drop(columns="unique_id")
    pd.testing.assert_frame_equal(own, alone, check_names=False, check_freq=False, rtol=1e-9)


def test_short_series_take_a_common_kernel_whatever_their_units():
    table = make_table("abcde", days=9)
    scales = table["unique_id"].map({name: 10.0**i for i, name in enumerate("abcde")})
    table["y"] *= scales
    fitted = fit_many(PLAIN, table)
    assert fitted.n_shared >= 2
    variances = [float(model.kernel_.diag(np.zeros((1, 1)))[0]) for model in fitted.models.values()]
    assert np.ptp(np.log(variances) - 2 * np.log(10.0) * np.arange(5)) < np.log(20.0)


def test_long_series_keep_their_own(table, monkeypatch):
    monkeypatch.setattr("compositegp.forecasting.many_series._WORTH", 10.0)  # nats: every series is long
    assert fit_many(PLAIN, table).n_shared == 0


def test_a_series_that_fails_stops_no_other(table):
    wrong = pd.DataFrame({"unique_id": "flat", "ds": table["ds"][:200], "y": 1.0})
    short = table[table["unique_id"] == "a"].head(5).assign(unique_id="short")
    twice = table[table["unique_id"] == "a"].assign(unique_id="twice", ds=table["ds"][0])
    fitted = fit_many(PLAIN, pd.concat([wrong, table, short, twice]))
    assert list(fitted.models) == ["a", "b", "c"]
    assert "constant" in fitted.failures["flat"]
    assert "too few" in fitted.failures["short"]
    assert "more than once" in fitted.failures["twice"]


@pytest.mark.parametrize("refit_every", [None, 2])
def test_backtests_are_those_of_each_series_alone(table, refit_every):
    done = backtest_many(PLAIN, table, "12h", 3, share=False, refit_every=refit_every)
    alone = backtest(PLAIN, series_of(table, "c"), "12h", 3, refit_every=refit_every)
    pd.testing.assert_frame_equal(done.scores.loc["c"], alone.scores, check_names=False, rtol=1e-9)
    assert len(done.forecasts) == 3 * 36


def test_a_backtest_sees_no_future(table):
    changed = table.copy()
    last = changed["ds"] >= changed["ds"].max() - pd.Timedelta("11h")
    changed.loc[last, "y"] += 100.0
    before, after = (backtest_many(PLAIN, one, "12h", 1).forecasts for one in (table, changed))
    pd.testing.assert_series_equal(before["mean"], after["mean"], rtol=1e-12)


def test_progress_goes_through_all_stages(table):
    told = []
    fitted = fit_many(PLAIN, table, report=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {6}  # each of three series is fitted and offered what is shared
    assert told[-1] == (6, 6)
    assert {1, 2, 3, 4, 5} <= {done for done, _ in told}  # none of them in silence
    told.clear()
    backtest_many(PLAIN, table, "12h", 1, share=False, report=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told if done][-1] == 6
    assert {total for _, total in told} == {6}
    assert len(fitted.models) == 3


def test_further_columns_are_found_by_name_and_time(table, rng):
    times = pd.date_range("2024-01-01", periods=24 * 10, freq="h")
    heat = {name: rng.normal(size=len(times)) for name in "abc"}
    known = table.assign(heat=np.concatenate([heat[name][: 24 * 9] for name in "abc"]))
    known["y"] += 3 * known["heat"]
    future = pd.concat(
        [pd.DataFrame({"unique_id": n, "ds": times, "heat": heat[n]}) for n in "cab"], ignore_index=True
    ).sample(frac=1, random_state=0)
    fitted = fit_many(PLAIN, known, share=False)
    found = fitted.predict("24h", [0.5], future).set_index("unique_id")
    for name, model in fitted.models.items():
        own = model.predict("24h", [0.5], pd.DataFrame({"heat": heat[name][24 * 9 :]}))
        np.testing.assert_allclose(found.loc[name, "mean"], own["mean"], rtol=1e-9)
    with pytest.raises(ValueError, match="series 'a': X has no row for"):
        fitted.predict("48h", [0.5], future)


class TestCommand:
    OPTIONS = (
        "--series",
        "unique_id",
        "--time",
        "ds",
        "--target",
        "y",
        "--horizon",
        "12h",
        "--no-search",
        "--jobs",
        1,
    )

    def test_one_table_of_all_series_and_an_exit_code_for_what_failed(self, table, tmp_path):
        wrong = pd.DataFrame({"unique_id": "007", "ds": table["ds"][:200], "y": 1.0})
        pd.concat([wrong, table]).to_csv(tmp_path / "table.csv", index=False)
        done = command(
            "forecast", tmp_path / "table.csv", *self.OPTIONS, "--out", tmp_path, "--backtest", 2, "--save",
            tmp_path / "models", "--json",
        )  # fmt: skip
        assert done[0] == 3
        assert "note: series '007': the series is constant" in done[2]
        results = json.loads(done[1])
        assert list(results["failures"]) == ["007"]
        written = pd.read_csv(tmp_path / "forecast.csv", dtype={"unique_id": str})
        assert written["unique_id"].value_counts().to_dict() == {"a": 12, "b": 12, "c": 12}
        assert len(results["forecast"]) == 36
        scores = pd.read_csv(tmp_path / "backtest.csv", index_col=["unique_id", "method"])
        assert {"a", "b", "c"} == set(scores.index.get_level_values(0))
        assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["a.cgp", "b.cgp", "c.cgp"]
        saved = CompositeGPForecaster.load(tmp_path / "models" / "b.cgp").predict("12h")
        own = written[written["unique_id"] == "b"]
        np.testing.assert_allclose(saved["mean"], own["mean"], rtol=1e-8)

    def test_the_printed_results_are_for_people(self, tmp_path):
        make_table("ab", days=5).to_csv(tmp_path / "table.csv", index=False)
        code, out, _ = command("forecast", tmp_path / "table.csv", *self.OPTIONS, "--out", tmp_path)
        assert code == 0
        assert "2 series forecast" in out

    def test_averages_and_one_page_of_all_series(self, table, tmp_path):
        wrong = pd.DataFrame({"unique_id": "<i>wrong</i>", "ds": table["ds"][:200], "y": 1.0})
        named = table.replace({"unique_id": {"b": "</script><b>"}})
        pd.concat([wrong, named]).to_csv(tmp_path / "table.csv", index=False)
        code, out, _ = command(
            "forecast", tmp_path / "table.csv", *self.OPTIONS, "--out", tmp_path, "--backtest", 2, "--report",
            "--aggregate", "day", "--json", "--save", tmp_path / "models",
        )  # fmt: skip
        assert code == 3
        results = json.loads(out)
        assert set(results["files"]) == {"table", "averages", "backtest", "report", "models"}
        averages = pd.read_csv(tmp_path / "forecast_by_day.csv", parse_dates=["day"])
        model = CompositeGPForecaster.load(tmp_path / "models" / "c.cgp")
        own = averages[averages["unique_id"] == "c"].set_index("day").drop(columns="unique_id")
        expected = aggregate_forecast(model, "12h", "day")
        pd.testing.assert_frame_equal(own, expected, check_freq=False, check_index_type=False, rtol=1e-8)
        assert len(results["averages"]) == len(averages)
        page = (tmp_path / "report.html").read_text()
        if importlib.util.find_spec("plotly") is not None:
            from plotly.offline import get_plotlyjs

            assert page.count(get_plotlyjs()) == 1
            page = page.replace(get_plotlyjs(), "")
            figures = json.loads(page.split("const figures = ")[1].split(";\nconst options")[0])
            assert [list(one) for one in figures] == [["forecast", "backtest"]] * 3
        assert "http" not in page
        assert "</script><b>" not in page  # text stays text
        assert "<i>wrong</i>" not in page
        assert page.count('<section class="series"') == 3
        assert page.count("<option") == 3
        assert page.count("<h3>Averages by day</h3>") == 3
        assert page.count("<h3>Backtest</h3>") == 3
        for words in (
            "&lt;i&gt;wrong&lt;/i&gt;: the series is constant",
            "RMSE, seasonal naive",
            "RMSE, decomposition",
        ):
            assert words in page

    @pytest.mark.parametrize(
        ("change", "options", "code", "message"),
        [
            (lambda t: t.assign(y=1.0), (), 1, "none of 3 series could be forecast"),
            (lambda t: t.assign(unique_id=None), (), 1, "has no row with a name"),
            (lambda t: t.rename(columns={"unique_id": "id"}), (), 1, "has no column 'unique_id'"),
        ],
    )
    def test_what_is_wrong_is_one_sentence(self, table, tmp_path, change, options, code, message):
        change(table).to_csv(tmp_path / "table.csv", index=False)
        done = command("forecast", tmp_path / "table.csv", *self.OPTIONS, "--out", tmp_path, *options)
        assert done[0] == code
        assert message in done[2]
