"""The paper's NOx study: a log-normal forecast of a day, and 24 hours ahead for every day of 2014."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.datasets import STOCKHOLM, author_errors, locate, nox_emissions, stockholm_nox
from compositegp.paper.claims import Claim, Experiment, table, write_csv
from compositegp.paper.nox_model import learn_model
from compositegp.paper.nox_study import COLUMNS, Score, forecast_day, study, study_with_gaps
from compositegp.plotting import style

_ELSEWHERE = pd.Timestamp("2004-09-01")
_SETTING = (
    "Hourly NOx in Stockholm, log-transformed; decaying daily and weekly patterns, short and medium exponential parts "
    "and noise, learned by this library from {history:,} hours before 2014; 24 hours ahead from midnight for {days} "
    "days of 2014, {weeks} weeks of history each. Two means: a constant, and a profile with a level for each hour of "
    "the week whose coefficients are learned with the hyper-parameters. All days have the same covariances, so that "
    "each method is factorised once; the seconds are those of one prediction made alone."
)


def run(
    out: Path,
    *,
    days: int = 364,
    weeks: int = 50,
    stations: tuple[str, ...] = ("essingeleden", "hornsgatan"),
    history: int = 20_000,
    path: str | Path | None = None,
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
        pip.
    report : callable
        Called with the number of steps done, and the number of all.

    Returns
    -------
    Experiment
    """
    if path is None and not _stockholm_is_there():
        return run_elsewhere(out, days=min(days, 60), report=report)
    results: dict[tuple[str, str], list[Score]] = {}
    total = 2 * len(stations)
    for station in stations:
        series = stockholm_nox(station, path)
        for kind in ("profile", "constant"):
            model = learn_model(series, kind, history)
            if station == stations[0] and kind == "profile":
                _draw_histograms(out / "nox_histograms.png", series)
                day = min(pd.Timestamp("2014-03-12"), series.index[-1].floor("D") - pd.Timedelta(days=2))
                shown = forecast_day(series, model, day, 17_472)
                _draw_day(out / "nox_day.png", shown)
            known = {score.method: score.seconds for score in next(iter(results.values()), [])}
            results[station, kind] = study(series, model, days, weeks, known)
            report(len(results), total)
    rows = [(station, kind, *score) for (station, kind), scores in results.items() for score in scores]
    columns = ("station", "mean", *COLUMNS)
    write_csv(out / "nox.csv", columns, rows)
    author = author_errors() if path is None else None
    _draw_trade_off(out / "nox_trade_off.png", results, stations[0], author)
    experiment = Experiment("nox", "NOx", _SETTING.format(history=history, days=days, weeks=weeks))
    experiment.claims = _claims(results, author)
    experiment.pictures = [
        ("nox_histograms.png", "NOx before and after the log transformation"),
        ("nox_day.png", "a day's forecast with log-normal bands, from two years"),
        ("nox_trade_off.png", "error against seconds, and the author's own numbers"),
    ]
    experiment.tables = [table(columns, rows)]
    return experiment


def _stockholm_is_there() -> bool:
    try:
        locate(STOCKHOLM)
    except FileNotFoundError:
        return False
    return True


def run_elsewhere(
    out: Path,
    *,
    days: int = 60,
    weeks: int = 20,
    series: pd.Series | None = None,
    first: pd.Timestamp = _ELSEWHERE,
    report: Callable[[int, int], None] = lambda a, b: None,
) -> Experiment:
    """The same study on the year of NOx that installs with pip, which has gaps."""
    series = nox_emissions() if series is None else series
    results: dict[tuple[str, str], list[Score]] = {}
    for kind in ("profile", "constant"):
        model = learn_model(series, kind, 20_000, first)
        if kind == "profile":
            _draw_histograms(out / "nox_histograms.png", series)
        results["elsewhere", kind] = study_with_gaps(series, model, first, days, weeks)
        report(len(results), 2)
    rows = [(station, kind, *score) for (station, kind), scores in results.items() for score in scores]
    columns = ("station", "mean", *COLUMNS)
    write_csv(out / "nox.csv", columns, rows)
    _draw_trade_off(out / "nox_trade_off.png", results, "elsewhere", None)
    setting = (
        "The Stockholm file was not found (set COMPOSITEGP_DATA, or give --data), so this is the same study on "
        f"robustbase's NOxEmissions, a year at a Swiss motorway with gaps: {days} days, {weeks} weeks of history each."
    )
    experiment = Experiment("nox", "NOx", setting)
    experiment.claims = _claims(results, None)
    experiment.pictures = [
        ("nox_histograms.png", "NOx before and after the log transformation"),
        ("nox_trade_off.png", "error against seconds, and against the size of segments"),
    ]
    experiment.tables = [table(columns, rows)]
    return experiment


def _claims(results: dict[tuple[str, str], list[Score]], author: Any) -> list[Claim]:
    claims = []
    by_name = {key: {score.method: score for score in scores} for key, scores in results.items()}
    if ("hornsgatan", "profile") in by_name:
        found = by_name["hornsgatan", "profile"]["GP"].rmse_median
        claims.append(
            Claim(
                "the RMSE of the GP with 50 weeks is slightly above 75",
                f"{found:.1f} on Hornsgatan, with the median as predictor and an hour-of-week profile as mean",
                74 < found < 77,
            )
        )
    for (station, kind), scores in by_name.items():
        gp, cgp = scores["GP"], [score for name, score in scores.items() if name.startswith("CGP")]
        long, short = cgp[-1], cgp[0]
        sizes = f"{_weeks(short.method)} to {_weeks(long.method)}"
        claims.append(
            Claim(
                f"{station}, {kind} mean: longer segments close the gap to the GP",
                f"CGP with segments of {sizes} weeks: {short.rmse_mean:.1f} to {long.rmse_mean:.1f}; "
                f"GP {gp.rmse_mean:.1f}; coverage {short.coverage:.2f} to {long.coverage:.2f}",
                abs(long.rmse_mean - gp.rmse_mean) < abs(short.rmse_mean - gp.rmse_mean),
                ""
                if kind == "profile"
                else "every segment counts the weekly pattern again: it belongs in the mean",
            )
        )
        if kind == "profile":
            five, inducing = scores["CGP 5 weeks"], scores["FITC 5 weeks"]
            claims.append(
                Claim(
                    f"{station}: the CGP takes far less time than the SGP",
                    f"segments of 5 weeks {five.seconds:.2f} s; 5 weeks of inducing points {inducing.seconds:.2f} s",
                    five.seconds < inducing.seconds,
                )
            )
            default = next(score for name, score in scores.items() if name.startswith("default"))
            best = None if author is None or station != "essingeleden" else float(author["rmse"].min())
            claims += [
                Claim(
                    f"(not in the paper) {station}: this library's default is as accurate as the GP",
                    f"RMSE {default.rmse_mean:.2f} ({default.rmse_mean / gp.rmse_mean - 1:+.1%} of the GP's), coverage "
                    f"{default.coverage:.3f}" + ("" if best is None else f"; the author's best is {best:.2f}"),
                    default.rmse_mean < 1.01 * gp.rmse_mean,
                ),
                Claim(
                    f"(not in the paper) {station}: and takes far less time",
                    f"{default.seconds / gp.seconds:.1%} of the GP's",
                    default.seconds < 0.1 * gp.seconds,
                ),
            ]
    return claims


def _draw_histograms(path: Path, series: pd.Series) -> None:
    figure, axes = style.figure(1, 2, size=(9, 3.2))
    values = series.to_numpy()
    for axis, shown, label in zip(axes, (values, np.log(values)), ("NOx, µg/m³", "ln NOx"), strict=True):
        axis.hist(shown, bins=80, color=style.BLUE)
        axis.set(xlabel=label, ylabel="hours")
    style.save(figure, path)


def _draw_day(path: Path, shown: dict[str, Floats]) -> None:
    figure, axes = style.figure(size=(7, 3.6))
    hours = np.arange(1, 25)
    axes.fill_between(hours, shown["q0.025"], shown["q0.975"], color=style.BLUE, alpha=0.2, lw=0, label="95 %")
    axes.fill_between(hours, shown["q0.25"], shown["q0.75"], color=style.BLUE, alpha=0.4, lw=0, label="50 %")
    axes.plot(hours, shown["q0.5"], color=style.BLUE, label="median")
    axes.plot(hours, shown["observed"], "o-", color=style.ORANGE, ms=3, lw=1, label="observed")
    axes.set(xlabel="hour of 12 March 2014", ylabel="NOx, µg/m³", ylim=(0, None))
    axes.legend(frameon=False, ncols=4)
    style.save(figure, path)


def _draw_trade_off(
    path: Path, results: dict[tuple[str, str], list[Score]], station: str, author: pd.DataFrame | None
) -> None:
    figure, axes = style.figure(1, 2, size=(12, 4.6))
    colours = {
        "CGP": style.BLUE,
        "FITC": style.ORANGE,
        "conditional": style.GREEN,
        "default": "black",
        "GP": style.GRAY,
    }
    for score in results[station, "profile"]:
        family = next(name for name in colours if score.method.startswith(name))
        axes[0].semilogx(score.seconds, score.rmse_mean, "o", color=colours[family])
        place = score.seconds, score.rmse_mean
        axes[0].annotate(score.method, place, fontsize=7, rotation=40, xytext=(2, 3), textcoords="offset points")
    axes[0].set(xlabel="seconds for one prediction", ylabel="RMSE of the mean, µg/m³")
    axes[0].set_title(f"{station}, profile as mean")
    for family, marker in (("CGP", "o"), ("FITC", "s")):
        ours = [score for score in results[station, "profile"] if score.method.startswith(family)]
        places = [_weeks(score.method) for score in ours], [score.rmse_mean for score in ours]
        axes[1].plot(*places, f"{marker}-", color=colours[family], label=f"{family}, here")
    if author is not None:
        for kind, family, marker in (("rgp", "CGP", "o"), ("sgp", "FITC", "s")):
            rows = author[(author["method"] == kind) & author["config"].map(_is_fifty_weeks)]
            weeks = rows["config"].map(lambda text: int(text.split("weeks")[0]))
            order = np.argsort(weeks.to_numpy())
            axes[1].plot(
                weeks.to_numpy()[order],
                rows["rmse"].to_numpy()[order],
                f"{marker}--",
                color=colours[family],
                mfc="white",
                label=f"{family}, the author's",
            )
    gp = next(score for score in results[station, "profile"] if score.method == "GP")
    axes[1].axhline(gp.rmse_mean, color=style.GRAY, lw=1, label="GP, here")
    axes[1].set(xlabel="weeks per segment, or of inducing points", ylabel="RMSE of the mean, µg/m³", xscale="log")
    axes[1].legend(frameon=False)
    style.save(figure, path)


def _weeks(method: str) -> int:
    return int(method.split()[1])


def _is_fifty_weeks(config: str) -> bool:
    if "inducing" in config:
        return True
    size, _, count = config.removesuffix("batches").partition("weeksperbatch-")
    return bool(count) and int(size) * int(count) == 50
