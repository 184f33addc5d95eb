"""The NOx study and its loaders, on small files made here."""

import io
import itertools

import numpy as np
import pandas as pd
import pytest
from oracles import exact_gp

from compositegp import Composite, Estimated, posterior
from compositegp.datasets import author_errors, locate, stockholm_nox
from compositegp.forecasting import CompositeGPForecaster, Season
from compositegp.paper import Model, choices, forecast_day, learn_model, nox
from compositegp.paper.label_places import offsets_of
from compositegp.paper.nox_claims import author_case
from compositegp.paper.nox_data_claims import day_claims, span_claim
from compositegp.paper.nox_forecasts import in_weeks, shipped_default
from compositegp.paper.nox_kernel import kernel_of
from compositegp.paper.nox_study import _weights, origins_of

AUTHOR = """method,config,rmse,mae
gp,50weeks,49.0,31.0
gp,5weeks,50.0,31.0
rgp,5weeksperbatch-10batches,53.0,33.0
rgp,1weeksperbatch-50batches,56.0,35.0
rgp,10weeksperbatch-10batches,54.0,33.0
sgp,5weeksinducing-50weeksobserving,50.0,33.0
sgp,1weeksinducing-50weeksobserving,54.0,35.0
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Twelve weeks before 2014 and two after, with a daily and a weekly pattern."""
    hours = pd.date_range("2013-10-09 01:00", "2014-01-15 00:00", freq="h")
    rng = np.random.default_rng(0)
    red = np.zeros(len(hours))
    for i in range(1, len(hours)):
        red[i] = 0.8 * red[i - 1] + 0.3 * rng.normal()
    t = np.arange(len(hours))
    level = 3 + np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(2 * np.pi * t / 168) + red
    table = pd.DataFrame(
        {"timestamp": hours, "nox_essingeleden": np.exp(level), "nox_hornsgatan": np.exp(level + 0.5)}
    )
    path = tmp_path_factory.mktemp("nox") / "stockholm.csv.gz"
    table.to_csv(path, index=False)
    return path


def test_a_station_is_read_and_an_unknown_one_refused(file):
    series = stockholm_nox("hornsgatan", file)
    assert series.index[0] == pd.Timestamp("2013-10-09 01:00")
    assert (series > 0).all()
    with pytest.raises(ValueError, match="it has the stations essingeleden, hornsgatan"):
        stockholm_nox("torkel", file)


@pytest.mark.parametrize("what", ["gap", "missing", "negative"])
def test_an_incomplete_series_is_refused(file, tmp_path, what):
    table = pd.read_csv(file)
    if what == "gap":
        table = table.drop(index=5)
    else:
        table.loc[5, "nox_essingeleden"] = np.nan if what == "missing" else -1.0
    table.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match="The study needs every hour"):
        stockholm_nox("essingeleden", tmp_path / "bad.csv")


def test_files_are_looked_for_in_one_folder_only(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file.csv").touch()
    for folder in (tmp_path, tmp_path / "data"):  # where a user happens to be does not matter
        monkeypatch.chdir(folder)
        monkeypatch.delenv("COMPOSITEGP_DATA", raising=False)
        with pytest.raises(FileNotFoundError, match="COMPOSITEGP_DATA"):
            locate("file.csv")
    monkeypatch.setenv("COMPOSITEGP_DATA", str(tmp_path / "data"))
    assert locate("file.csv").exists()
    (tmp_path / "errors.csv").write_text("method,config,rmse\ngp,1weeks,50\n")
    with pytest.raises(ValueError, match="lacks the column"):
        author_errors(tmp_path / "errors.csv")


QUICK = CompositeGPForecaster("log", seasons=["day", "week"], search=False)


def test_the_study_runs_and_its_verdicts_are_those_of_its_table(file, learned, tmp_path, monkeypatch):
    flat = Model(learned.kernel, Estimated("constant", np.array([3.0]), np.zeros((1, 1))))
    models = {"profile": learned, "constant": flat}
    monkeypatch.setattr(nox, "learn_model", lambda series, kind, *_: models[kind])
    author = file.parent / "nox_stockholm_author_errors.csv"
    author.write_text(AUTHOR)  # beside the file that --data names
    experiment = nox.run(tmp_path, days=5, weeks=10, stations=("essingeleden",), path=file, forecaster=QUICK)
    author.unlink()
    table = pd.read_csv(tmp_path / "nox.csv")
    assert list(table.groupby("mean", sort=False).size()) == [8, 8, 1]
    # The verdicts are those of the table; seconds are for benchmarks, not for tests.
    verdicts = {claim.full_text: claim.holds for claim in experiment.claims if not claim.timed}
    for kind, predictor in itertools.product(("profile", "constant"), ("median", "mean")):
        errors = table[table["mean"] == kind].set_index("method")[f"RMSE of {predictor}"]
        cgp, sgp = (
            errors[[f"{name} {in_weeks(size)}" for size in (1, 2, 5)]].to_numpy() for name in ("CGP", "FITC")
        )
        case = f": Essingeleden, {kind} as mean, RMSE of the {predictor}"
        assert verdicts["the GP is the lower bound of CGP and SGP" + case] == (errors["GP"] <= min(*cgp, *sgp))
        assert verdicts["larger segments and more inducing points reduce the RMSE" + case] == (
            (np.diff(cgp) < 0).all() and (np.diff(sgp) < 0).all()
        )
        closes = (np.diff(np.abs(cgp - sgp)) < 0).all()
        assert verdicts["the gap between the RMSEs of CGP and SGP closes" + case] == closes
        to_gp = (np.diff(np.abs(cgp - errors["GP"])) < 0).all()
        assert verdicts["(not in the paper) longer segments close the gap to the GP" + case] == to_gp
    assert verdicts["the GP is the lower bound of CGP and SGP: Essingeleden, the author's own runs"]
    assert not verdicts["the gap between the RMSEs of CGP and SGP closes: Essingeleden, the author's own runs"]
    # Every prediction is there: the scores can be computed from them.
    every = pd.read_csv(tmp_path / "nox_predictions.csv", parse_dates=["time"])
    assert every.groupby(["model", "method"]).size().eq(5 * 24).all()
    own = every[every["method"] == "CompositeGPForecaster()"]
    row = table[table["mean"] == "its own"].iloc[0]
    assert row["RMSE of mean"] == pytest.approx(np.sqrt(np.mean((own["mean"] - own["observed"]) ** 2)), rel=1e-5)
    inside = (own["q0.025"] < own["observed"]) & (own["observed"] < own["q0.975"])
    assert row["coverage 95 %"] == pytest.approx(inside.mean(), rel=1e-5)
    assert {file for file, _ in experiment.pictures} <= {path.name for path in (tmp_path / "figures").iterdir()}
    # The forecaster's seconds are all that it did, over the days.
    seconds = pd.read_csv(tmp_path / "nox_seconds.csv")
    own = seconds[seconds["method"] == "CompositeGPForecaster()"]
    assert list(own["what"]) == ["fit, 5 days", "updates, 5 days", "predictions, 5 days"]
    assert row["seconds"] == pytest.approx(own["seconds"].sum() / 5, rel=1e-5)
    gp = seconds[seconds["method"] == "GP"].set_index("what")["seconds"]
    assert table.loc[table["method"] == "GP", "seconds"].iloc[0] == pytest.approx(gp["prediction from 10 weeks"])
    assert {"prediction from 2 weeks", "prediction from 5 weeks", "learning, profile"} <= set(gp.index)
    # The day of the picture has its hours.
    day = pd.read_csv(tmp_path / "nox_day.csv", parse_dates=["time"])
    assert list(day["hour"]) == list(range(1, 25))
    observed = stockholm_nox("essingeleden", file)[day["time"]]
    np.testing.assert_allclose(day["observed"], observed, rtol=1e-6)


def test_the_default_is_the_forecaster_as_a_user_calls_it(file):
    series = stockholm_nox("essingeleden", file)
    starts = pd.DatetimeIndex(["2014-01-01 01:00", "2014-01-03 01:00"])
    found = shipped_default(series, starts, QUICK)
    model = CompositeGPForecaster(**QUICK.get_params()).fit(series[:"2014-01-01 00:00"])
    np.testing.assert_allclose(found.mean[:24], model.predict("24h")["mean"])
    model.update(series["2014-01-01 01:00":"2014-01-03 00:00"])
    np.testing.assert_allclose(found.upper[24:], model.predict("24h")["q0.975"])
    assert list(found.times[24:]) == list(model.predict("24h").index)


def test_the_authors_numbers_are_read_by_their_weeks():
    case = author_case(author_errors(io.StringIO(AUTHOR)))
    assert case.gp == 49.0
    assert case.cgp == {1: 56.0, 5: 53.0}
    assert case.sgp == {1: 54.0, 5: 50.0}


@pytest.mark.parametrize(("years", "holds"), [(6, False), (11, True)])
def test_the_length_of_the_data_is_that_of_the_file(years, holds):
    index = pd.date_range("2001-01-01", f"{2001 + years}-01-01", freq="h")
    claim = span_claim(pd.Series(1.0, index), "the file is short")
    assert claim.holds == holds
    assert f"2001-01-01 to {2001 + years}-01-01: {years}.0 years, {len(index):,} hours" in claim.found


@pytest.mark.parametrize(("rush", "night", "holds"), [(1.6, 1.0, True), (1.4, 1.0, False)])
def test_wider_at_rush_hours_is_half_as_wide_again(rush, night, holds):
    widths = np.full(24, 1.2)
    widths[[6, 7, 8, 15, 16, 17]] = rush
    widths[[22, 23, 0, 1, 2, 3, 4]] = night
    shown = {"q0.025": np.ones(24), "q0.5": 1 + 0.3 * widths, "q0.975": 1 + widths}
    assert [claim.holds for claim in day_claims(shown)] == [True, True, holds]


@pytest.fixture(scope="module")
def learned(file):
    return learn_model(stockholm_nox("essingeleden", file), "profile", 500, n_jobs=1)


def test_weights_are_those_of_a_prediction_made_alone(file, learned):
    series, model = stockholm_nox("essingeleden", file), learned
    X, Z = np.arange(1008.0)[:, None], 1008 + np.arange(24.0)[:, None]
    y = np.log(series.to_numpy()[:1008]) - model.level(np.arange(1008.0))
    for choice in choices(X, 6):
        weights, variance = _weights(model, X, Z, choice)
        composite = choice.composite or Composite.full(1008)
        belief = posterior(model.kernel, X, y, Z, composite, inducing=choice.inducing)
        np.testing.assert_allclose(weights @ y, belief.mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(variance, belief.variance, rtol=0, atol=1e-6)


def test_days_are_those_of_2014(file):
    series = stockholm_nox("essingeleden", file)
    origins = origins_of(series, 364, 1000)
    assert series.index[origins[0]] == pd.Timestamp("2014-01-01 01:00")
    assert (np.diff(origins) == 24).all()
    assert len(origins_of(series, 3, 1000)) == 3
    with pytest.raises(ValueError, match="too few"):
        origins_of(series, 3, 10_000)


def test_a_days_forecast_is_log_normal(file, learned):
    shown = forecast_day(stockholm_nox("essingeleden", file), learned, pd.Timestamp("2014-01-08"), 1000)
    assert (shown["q0.025"] > 0).all()
    assert (shown["q0.975"] - shown["q0.5"] > shown["q0.5"] - shown["q0.025"]).all()  # skewed


def test_the_same_study_on_a_series_with_gaps(file, tmp_path, monkeypatch):
    """Scores are those of predictions by dense algebra, from the hours that there are."""
    series = stockholm_nox("essingeleden", file)
    holes = series.drop(series.index[[700, 701, 702, 1500, *range(2050, 2070)]])
    first, level = pd.Timestamp("2014-01-01"), 3.0
    seasons = [Season("day", 24.0), Season("week", 168.0)]
    model = Model(kernel_of(seasons, 1.0), Estimated("constant", np.array([level]), np.zeros((1, 1))))
    monkeypatch.setattr(nox, "learn_model", lambda *_: model)
    experiment = nox.run_elsewhere(tmp_path, days=2, weeks=10, series=holes, first=first, forecaster=QUICK)
    assert "file was not found" in experiment.setting
    table = pd.read_csv(tmp_path / "nox.csv").set_index(["mean", "method"])
    hours, y = np.asarray((holes.index - holes.index[0]) / pd.Timedelta(hours=1)), holes.to_numpy()
    means, stds, observed = [], [], []
    for day in (first, holes.index[-1].floor("D") - pd.Timedelta(days=1)):
        start = (day - holes.index[0]) / pd.Timedelta(hours=1)
        past, now = (hours >= start - 10 * 168) & (hours < start), (hours >= start) & (hours < start + 24)
        mean, covariance = exact_gp(model.kernel, hours[past, None], np.log(y[past]) - level, hours[now, None])
        means.append(level + mean)
        stds.append(np.sqrt(np.diag(covariance) + model.noise))
        observed.append(y[now])
    mean, std, observed = map(np.concatenate, (means, stds, observed))
    for kind in ("profile", "constant"):
        row = table.loc[(kind, "GP")]
        expected = np.sqrt(np.mean((np.exp(mean + std**2 / 2) - observed) ** 2))
        assert row["RMSE of mean"] == pytest.approx(expected, rel=1e-6)
        assert row["MAE of median"] == pytest.approx(np.mean(np.abs(np.exp(mean) - observed)), rel=1e-6)
        inside = np.abs(np.log(observed) - mean) < 1.959964 * std
        assert row["coverage 95 %"] == pytest.approx(inside.mean())


def test_without_the_file_the_other_series_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPOSITEGP_DATA", raising=False)
    taken = []
    monkeypatch.setattr(nox, "run_elsewhere", lambda out, **options: taken.append(options))
    nox.run(tmp_path, days=5)
    assert taken[0]["days"] == 5


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_crowded_markers_are_near_their_own_and_on_no_other(seed):
    """Markers in pairs that nearly cover each other, in a row: the worst that the picture of the trade-off has."""
    rng = np.random.default_rng(seed)
    middles = np.stack([45.0 * np.arange(6), rng.normal(0, 3, size=6)], axis=1)
    markers = np.concatenate([middles, middles + rng.normal(0, 4, size=(6, 2))])
    sizes, others = np.tile([6.0, 8.0], (12, 1)), np.array([[280.0, 0.0]])
    lines = np.stack([np.linspace(0, 280, 500), np.zeros(500)], axis=1)
    places = markers + offsets_of(markers, sizes, others, lines)
    assert (np.linalg.norm(places - markers, axis=1) < 24).all()
    for i, j in itertools.combinations(range(12), 2):
        assert (np.abs(places[i] - places[j]) >= 8).any() or np.abs(places[i] - places[j])[0] >= 6
    inside = (np.abs(places[:, None] - np.concatenate([markers, others])) < [7.5, 8.5]).all(axis=2)
    assert not inside.any()
