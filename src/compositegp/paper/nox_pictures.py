"""The pictures of the NOx study."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compositegp.backend import Floats
from compositegp.paper.label_places import Label, draw_labels
from compositegp.paper.nox_claims import Results, author_case
from compositegp.paper.nox_forecasts import DEFAULT, OWN_MEAN, Score, named, weeks_of
from compositegp.plotting import style

_FAMILIES = {  # color, marker, and whether it is filled: markers on top of each other stay visible
    "CGP": (style.BLUE, "o", True),
    "FITC": (style.ORANGE, "s", False),
    "conditional": (style.GREEN, "^", False),
}
_PREDICTORS = {"hornsgatan": "median"}  # for which the paper's 75 is found; the mean elsewhere


def draw_histograms(path: Path, station: str, values: Floats) -> None:
    """NOx at a station, before and after the log transformation."""
    figure, axes = style.figure(1, 2, size=(9, 3.4))
    for axis, shown, label in zip(axes, (values, np.log(values)), ("NOx (µg/m³)", "ln NOx (µg/m³)"), strict=True):
        axis.hist(shown, bins=80, color=style.BLUE)
        axis.set(xlabel=label, ylabel="hours")
    figure.suptitle(f"{named(station)}: hourly NOx")
    style.save(figure, path)


def draw_day(path: Path, station: str, shown: dict[str, Floats], day: pd.Timestamp) -> None:
    """A day's forecast at a station, with its bands."""
    figure, axes = style.figure(size=(7, 3.8))
    hours = np.arange(1, 25)
    axes.fill_between(hours, shown["q0.025"], shown["q0.975"], color=style.BLUE, alpha=0.2, lw=0, label="95 %")
    axes.fill_between(hours, shown["q0.25"], shown["q0.75"], color=style.BLUE, alpha=0.4, lw=0, label="50 %")
    axes.plot(hours, shown["q0.5"], color=style.BLUE, label="median")
    axes.plot(hours, shown["observed"], "o-", color=style.ORANGE, ms=3, lw=1, label="observed")
    axes.set(xlabel=f"hour of {day.day} {day.month_name()} {day.year}", ylabel="NOx (µg/m³)", ylim=(0, None))
    axes.set_title(f"{named(station)}: forecast by segments of five weeks")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    style.save(figure, path)


def draw_trade_off(path: Path, results: Results, author: pd.DataFrame | None) -> None:
    """Error against seconds, and against the size of segments: a row for each station, with a profile as mean."""
    stations = sorted({station for station, _ in results})
    figure, axes = style.figure(len(stations), 2, size=(12, 5.6 * len(stations)), squeeze=False)
    to_label = []
    for station, (left, right) in zip(stations, axes, strict=True):
        predictor = _PREDICTORS.get(station, "mean")
        scores = results[station, "profile"]
        own = results.get((station, OWN_MEAN), [])
        to_label.append((left, *_against_seconds(left, [*scores, *own], predictor)))
        _against_weeks(right, scores, predictor, author if station == "essingeleden" else None)
        left.set(
            title=f"{named(station)}, profile as mean: error against time",
            xlabel="seconds for one day's prediction",
        )
        right.set_title(f"{named(station)}, profile as mean: error against size")
        for axis in (left, right):
            axis.set_ylabel(f"RMSE of the {predictor} (µg/m³)")
            axis.margins(y=0.12)
    for axis, labels, others in to_label:
        draw_labels(figure, axis, labels, others)
    style.save(figure, path)


def _against_seconds(
    axis: Any, scores: list[Score], predictor: str
) -> tuple[list[Label], list[tuple[float, float]]]:
    """Draw errors against seconds; return the labels of markers, and the markers that have none."""
    labels, others = [], []
    for family, (colour, marker, filled) in _FAMILIES.items():
        found = [score for score in scores if score.method.startswith(family)]
        places = [(score.seconds, _error(score, predictor)) for score in found]
        label = "FITC (SGP)" if family == "FITC" else family
        if places:
            line = {"color": colour, "lw": 0.8, "ms": 6, "mfc": colour if filled else "none"}
            axis.plot(*np.transpose(places), f"{marker}-", label=f"{label}, weeks", **line)
        labels += [
            Label(str(weeks_of(score.method)), place, colour) for score, place in zip(found, places, strict=True)
        ]
    for name, text, marker, colour in (
        ("GP", "GP", "*", style.BLACK),
        (DEFAULT, f"{DEFAULT}:\nfit, updates and predictions over the days", "D", style.GRAY),
    ):
        for score in scores:
            if score.method == name:
                others.append((score.seconds, _error(score, predictor)))
                axis.plot(*others[-1], marker, color=colour, ms=8, ls="", label=text)
    axis.set_xscale("log")
    _legend_below(axis, 2)
    return labels, others


def _against_weeks(axis: Any, scores: list[Score], predictor: str, author: pd.DataFrame | None) -> None:
    for family in ("CGP", "FITC"):
        colour, marker, _ = _FAMILIES[family]
        found = [score for score in scores if score.method.startswith(family)]
        places = [weeks_of(score.method) for score in found], [_error(score, predictor) for score in found]
        axis.plot(*places, f"{marker}-", color=colour, label=f"{family}, here")
    gp = next(score for score in scores if score.method == "GP")
    axis.axhline(_error(gp, predictor), color=style.BLACK, lw=1, label="GP of 50 weeks, here")
    if author is not None:
        case = author_case(author)
        for family, errors in (("CGP", case.cgp), ("FITC", case.sgp)):
            colour, marker, _ = _FAMILIES[family]
            line = f"{marker}--"
            axis.plot(
                list(errors),
                list(errors.values()),
                line,
                color=colour,
                mfc="white",
                label=f"{'SGP' if family == 'FITC' else family}, the author's",
            )
        axis.axhline(case.gp, color=style.BLACK, lw=1, ls="--", label="GP of 50 weeks, the author's")
        rows = author[author["method"] == "gp"]
        weeks = rows["config"].str.removesuffix("weeks").astype(int).to_numpy()
        order = np.argsort(weeks)
        axis.plot(
            weeks[order],
            rows["rmse"].to_numpy()[order],
            "*:",
            color=style.GRAY,
            label="GP of fewer weeks, the author's",
        )
    axis.set(xlabel="weeks: of a segment, of inducing points", xscale="log")
    axis.set_xticks([1, 2, 5, 10, 25, 50], labels=["1", "2", "5", "10", "25", "50"])
    axis.minorticks_off()
    _legend_below(axis, 2)


def _legend_below(axis: Any, columns: int) -> None:
    axis.legend(frameon=False, fontsize=8, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.14))


def _error(score: Score, predictor: str) -> float:
    return score.rmse_mean if predictor == "mean" else score.rmse_median
