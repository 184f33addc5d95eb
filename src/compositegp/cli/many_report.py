"""One HTML page about the forecasts of many series: a table of all of them, and each by itself."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import pandas as pd

from compositegp.cli.html_page import HtmlTable, encoded, in_script, plotly_code, render_page
from compositegp.plotting import backtest_figure, draw_backtest, draw_forecast, forecast_figure


class SeriesResults(NamedTuple):
    """What the page shows of one series.

    Attributes
    ----------
    name : str
    history : pandas Series with a DatetimeIndex
    forecast : pandas DataFrame
    model, notes : sequence of str
        What was learned, and what is to be known about the series.
    scores, errors : pandas DataFrame or None
        Of its backtest: ``Backtest.scores`` and ``Backtest.forecasts``.
    averages : pandas DataFrame or None
    """

    name: str
    history: pd.Series
    forecast: pd.DataFrame
    model: Sequence[str]
    notes: Sequence[str]
    scores: pd.DataFrame | None = None
    errors: pd.DataFrame | None = None
    averages: pd.DataFrame | None = None


def render_many_report(title: str, overview: pd.DataFrame, results: Sequence[SeriesResults], failures: Any) -> str:
    """Render the page of `forecast --series --report`.

    Pictures are static in print. On a screen they are interactive where Plotly is installed, and drawn when a series is
    chosen.

    Parameters
    ----------
    title : str
    overview : pandas DataFrame
        One row for each series, in the order of `results`.
    results : sequence of SeriesResults
    failures : dict
        What is wrong with a series, by its name.

    Returns
    -------
    str
        HTML that refers to nothing outside of it.
    """
    interactive = find_spec("plotly") is not None
    return render_page(
        "many.html",
        title=title,
        overview=HtmlTable.of(overview, str(overview.index.name)),
        series=[_content(one) for one in results],
        figures=in_script([_figures(one) for one in results] if interactive else []),
        plotly=plotly_code() if interactive else None,
        failures=[f"{name}: {reason}" for name, reason in failures.items()],
    )


def _content(one: SeriesResults) -> dict[str, Any]:
    """The text, tables and static pictures of a series as the template takes them."""
    pictures = {"forecast": encoded(draw_forecast(one.history, one.forecast, str(one.history.name)))}
    if one.errors is not None:
        pictures["backtest"] = encoded(draw_backtest(one.errors))
    return {
        "name": one.name,
        "pictures": pictures,
        "forecast": HtmlTable.of(one.forecast, "time"),
        "scores": None if one.scores is None else HtmlTable.of(one.scores, "method"),
        "averages": None if one.averages is None else HtmlTable.of(one.averages, str(one.averages.index.name)),
        "model": one.model,
        "notes": one.notes or ["no gaps, no duplicates, no missing values"],
    }


def _figures(one: SeriesResults) -> dict[str, Any]:
    figures = {"forecast": forecast_figure(one.history, one.forecast, str(one.history.name))}
    if one.errors is not None:
        figures["backtest"] = backtest_figure(one.errors)
    return figures
