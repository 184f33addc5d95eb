"""The paper's NOx study: a log-normal forecast of a day, and 24 hours ahead for every day of 2014."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from compositegp.datasets import AUTHOR, STOCKHOLM, author_errors, locate, nox_emissions, stockholm_nox
from compositegp.forecasting import CompositeGPForecaster
from compositegp.paper.claims import Experiment, picture, table, write_csv, write_frame
from compositegp.paper.nox_claims import error_claims
from compositegp.paper.nox_data_claims import data_claims, day_claims, days_claim, span_claim
from compositegp.paper.nox_day import day_table, forecast_day
from compositegp.paper.nox_forecasts import COLUMNS, DAY, DEFAULT, OWN_MEAN, Forecasts, named, shipped_default
from compositegp.paper.nox_model import learn_model
from compositegp.paper.nox_pictures import draw_day, draw_histograms, draw_trade_off
from compositegp.paper.nox_runtime_claims import forecaster_claims, runtime_claims, scaling_claim
from compositegp.paper.nox_study import gp_seconds, origins_of, study, study_with_gaps

_ELSEWHERE = pd.Timestamp("2004-09-01")
_THE_DAY = pd.Timestamp("2014-03-12")
_KINDS = ("profile", "constant")
_TITLE = "Section 6.3: NOx"
_SETTING = (
    "Hourly NOx in Stockholm, log-transformed; decaying daily and weekly patterns, short and medium exponential parts "
    "and noise, learned by this library from {history:,} hours before 2014; 24 hours ahead from midnight for {days} "
    "days of 2014, {weeks} weeks of history each. Two means: "
    "a constant, and a profile with a level for each hour of the week whose coefficients are learned with the "
    "hyper-parameters. The inducing points of the SGP are the hours of the last 1 to 25 weeks of the history (the "
    "author's published code draws them at random from all of it). All days have the same covariances, so that each "
    "method is factorized once.\n\n"
    "Seconds are those of one prediction made alone, with its factorization and for given hyper-parameters: the least "
    "of three, or of fewer where these take long, measured at the first station with a profile as mean (the SGP by "
    "plain Cholesky factors, which is faster than `posterior`). "
    "`CompositeGPForecaster()` is this library's forecaster without any argument: "
    "fitted once to the hours before 2014, it predicts a day, takes in what was observed (`update`), and goes on. Its "
    "seconds are all of that, also the fit, divided by the days; each station has one core."
)
_SIX_YEARS = (
    "the file of the study, in which gaps are filled, has these years; the measurements from which it was made, with "
    "their gaps, are of 2006 to 2015: ten years to the hour, not more"
)
_Found = dict[tuple[str, str], list[Forecasts]]


class Clocks(NamedTuple):
    """Seconds that were measured.

    Attributes
    ----------
    learning : dict of (station, mean) to float
        Of the hyper-parameters.
    predictions : dict of str to list of float
        Of predictions made alone, by method: each was repeated.
    gp : dict of int to float
        Of a prediction by the GP, by the weeks of its history.
    """

    learning: dict[tuple[str, str], float]
    predictions: dict[str, list[float]]
    gp: dict[int, float]


def run(
    out: Path,
    *,
    days: int = 364,
    weeks: int = 50,
    stations: tuple[str, ...] = ("essingeleden", "hornsgatan"),
    history: int = 20_000,
    path: str | Path | None = None,
    forecaster: CompositeGPForecaster | None = None,
    report: Callable[[int, int], None] = lambda a, b: None,
) -> Experiment:
    """Reproduce the figures and claims of the study.

    Parameters
    ----------
    out : Path
        Folder for figures and tables.
    days : int
        Days of 2014 to predict, spread evenly.
    weeks : int
        History of each prediction.
    stations : tuple of str
    history : int
        Hours to learn from.
    path : str or Path, optional
        The Stockholm file. Without it, and without COMPOSITEGP_DATA, the study is run on a series that installs with
        pip. The author's own errors are read from the same folder, where they are there.
    forecaster : CompositeGPForecaster, optional
        By default one without any argument.
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    if path is None and not _stockholm_is_there():
        return run_elsewhere(out, days=min(days, 60), forecaster=forecaster, report=report)
    found: _Found = {}
    defaults, clocks = {}, Clocks({}, {}, {})
    experiment = Experiment("nox", _TITLE, _SETTING.format(history=history, days=days, weeks=weeks))
    for station in stations:
        series = stockholm_nox(station, path)
        if station == stations[0]:
            experiment.claims += [span_claim(series, _SIX_YEARS), days_claim(days, series.index[-1])]
        experiment.claims += data_claims(named(station), series.to_numpy())
        for kind in _KINDS:
            began = time.perf_counter()
            model = learn_model(series, kind, history)
            clocks.learning[station, kind] = time.perf_counter() - began
            if station == stations[0] and kind == "profile":
                draw_histograms(picture(out, "nox_histograms.png"), station, series.to_numpy())
                day = min(_THE_DAY, series.index[-1].floor("D") - pd.Timedelta(days=2))
                shown = forecast_day(series, model, day, 17_472)
                write_frame(out / "nox_day.csv", day_table(shown, day))
                draw_day(picture(out, "nox_day.png"), station, shown, day)
                of_the_day = day_claims(shown)
            found[station, kind] = study(series, model, days, weeks, clocks.predictions)
            if not clocks.gp:
                clocks.gp.update(gp_seconds(series, model, (weeks // 4, weeks // 2)))
                clocks.gp[weeks] = min(clocks.predictions["GP"])
            report(len(found), 3 * len(stations))
        starts = series.index[origins_of(series, days, weeks * 7 * DAY)]
        found[station, OWN_MEAN] = []  # its place in the tables
        defaults[station] = delayed(shipped_default)(series, starts, forecaster)
    # A station to a core: each fit and each prediction runs on one.
    for station, forecasts in zip(defaults, Parallel(n_jobs=-1)(defaults.values()), strict=True):
        found[station, OWN_MEAN] = [forecasts]
    report(len(found), 3 * len(stations))
    experiment.claims += of_the_day
    experiment.pictures = [
        ("nox_histograms.png", "NOx before and after the log transformation"),
        ("nox_day.png", "a day's forecast with log-normal bands, from two years"),
    ]
    return _finish(experiment, out, found, _author(path), clocks)


def run_elsewhere(
    out: Path,
    *,
    days: int = 60,
    weeks: int = 20,
    series: pd.Series | None = None,
    first: pd.Timestamp = _ELSEWHERE,
    forecaster: CompositeGPForecaster | None = None,
    report: Callable[[int, int], None] = lambda a, b: None,
) -> Experiment:
    """The same study on the year of NOx that installs with pip, which has gaps."""
    series = nox_emissions() if series is None else series
    starts = pd.date_range(first, series.index[-1].floor("D"), freq="D")[:-1]
    starts = starts[np.unique(np.linspace(0, len(starts) - 1, min(days, len(starts))).round().astype(int))]
    setting = (
        "The Stockholm file was not found (set COMPOSITEGP_DATA, or give --data), so this is the same study on "
        f"robustbase's NOxEmissions, a year at a Swiss motorway with gaps: {days} days, {weeks} weeks of history each. "
        "Seconds are the median over the days of one prediction with its factorization, for given hyper-parameters; "
        f"those of `{DEFAULT}` are fit, updates and predictions, divided by the days."
    )
    claims = [span_claim(series, "this is another series"), *data_claims("elsewhere", series.to_numpy())]
    experiment = Experiment("nox", _TITLE, setting, claims)
    draw_histograms(picture(out, "nox_histograms.png"), "a Swiss motorway", series.to_numpy())
    experiment.pictures = [("nox_histograms.png", "NOx before and after the log transformation")]
    found: _Found = {}
    for kind in _KINDS:
        model = learn_model(series, kind, 20_000, first)
        found["elsewhere", kind] = study_with_gaps(series, model, starts, weeks)
        report(len(found), 3)
    found["elsewhere", OWN_MEAN] = [shipped_default(series, starts, forecaster)]
    report(3, 3)
    return _finish(experiment, out, found, None, Clocks({}, {}, {}))


def _finish(
    experiment: Experiment, out: Path, found: _Found, author: pd.DataFrame | None, clocks: Clocks
) -> Experiment:
    """Tables, the picture of the trade-off and verdicts."""
    results = {key: [each.score() for each in forecasts] for key, forecasts in found.items()}
    rows = [(station, kind, *score.row()) for (station, kind), scores in results.items() for score in scores]
    columns = ("station", "mean", *COLUMNS)
    write_csv(out / "nox.csv", columns, rows)
    every = [
        each.table().assign(station=station, model=kind) for (station, kind), some in found.items() for each in some
    ]
    write_frame(out / "nox_predictions.csv", pd.concat(every))
    write_csv(out / "nox_seconds.csv", ("station", "method", "what", "seconds"), _clock_rows(clocks, found))
    draw_trade_off(picture(out, "nox_trade_off.png"), results, author)
    beside = "" if author is None else ", beside the author's own numbers"
    caption = (
        "error against seconds, and against the size of segments"
        f"{beside}. Labels are weeks. The seconds of a method are those of one prediction with its factorization, for "
        f"given hyper-parameters; those of {DEFAULT} are fit, updates and predictions, divided by the days"
    )
    experiment.pictures.append(("nox_trade_off.png", caption))
    if clocks.gp:
        experiment.claims.append(scaling_claim(clocks.gp))
    experiment.claims += [*error_claims(results, author), *runtime_claims(next(iter(results.values())))]
    for (station, kind), scores in results.items():
        if kind == OWN_MEAN:
            gp = next(score for score in results[station, "profile"] if score.method == "GP")
            learning = clocks.learning.get((station, "profile"))
            experiment.claims += forecaster_claims(station, scores[0], gp, author, learning)
    shown = [
        (named(station), kind, name, *(f"{error:.3f}" for error in errors), f"{seconds:.3g}")
        for station, kind, name, *errors, seconds in rows
    ]
    experiment.tables = [table(columns, shown)]
    return experiment


def _clock_rows(clocks: Clocks, found: _Found) -> list[tuple[str, str, str, float]]:
    """All that was timed: station, method, what, seconds."""
    rows = [(station, "GP", f"learning, {kind}", took) for (station, kind), took in clocks.learning.items()]
    for name, repeated in clocks.predictions.items():
        rows += [("", name, f"prediction {number}", took) for number, took in enumerate(repeated, 1)]
    rows += [("", "GP", f"prediction from {weeks} weeks", took) for weeks, took in clocks.gp.items()]
    for (station, _), forecasts in found.items():
        for each in forecasts:
            if each.work is not None:
                rows += [
                    (station, each.method, f"{what}, {each.work.days} days", getattr(each.work, what))
                    for what in ("fit", "updates", "predictions")
                ]
    return rows


def _author(path: str | Path | None) -> pd.DataFrame | None:
    """The author's own errors: beside the Stockholm file, or in the folder of data."""
    if path is not None and (Path(path).parent / AUTHOR).exists():
        return author_errors(Path(path).parent / AUTHOR)
    try:
        return author_errors()
    except FileNotFoundError:
        return None


def _stockholm_is_there() -> bool:
    try:
        locate(STOCKHOLM)
    except FileNotFoundError:
        return False
    return True
