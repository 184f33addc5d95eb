"""One HTML page about a forecast, with everything in it."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pandas as pd

from compositegp.cli.html_page import HtmlTable, encoded, in_script, plotly_code, render_page
from compositegp.plotting import backtest_figure, draw_backtest, draw_parts, forecast_figure, parts_figure


def render_report(
    title: str,
    *,
    picture: bytes,
    forecast: pd.DataFrame,
    scores: pd.DataFrame | None,
    model: Sequence[str],
    notes: Sequence[str],
    cost: str,
    averages: pd.DataFrame | None = None,
    parts: pd.DataFrame | None = None,
    errors: pd.DataFrame | None = None,
    history: pd.Series | None = None,
) -> str:
    """Render the page of `forecast --report`.

    Parameters
    ----------
    title : str
    picture : bytes
        A PNG picture, which becomes part of the page.
    forecast : pandas DataFrame
    scores : pandas DataFrame or None
        Of the backtest, if there was one.
    model : sequence of str
        What was learned, a sentence each.
    notes : sequence of str
        What is to be known about the series.
    cost : str
        What the approximation costs.
    averages : pandas DataFrame or None
        Of the forecast over days or other periods, if they were asked for.
    parts : pandas DataFrame or None
        What each effect and each kind of memory contributes: ``model.parts(horizon).table``.
    errors : pandas DataFrame or None
        Of the backtest: ``Backtest.forecasts``.
    history : pandas Series or None
        With it, and where Plotly is installed, pictures are interactive on a screen and static in print.

    Returns
    -------
    str
        HTML that refers to nothing outside of it.
    """
    figures: dict[str, dict[str, Any]] = {}
    if history is not None and find_spec("plotly") is not None:
        figures["forecast"] = forecast_figure(history, forecast, str(history.name))
        if parts is not None:
            figures["parts"] = parts_figure(parts)
        if errors is not None:
            figures["backtest"] = backtest_figure(errors)
    return render_page(
        "report.html",
        title=title,
        picture=encoded(picture),
        figures={name: in_script(figure) for name, figure in figures.items()},
        plotly=plotly_code() if figures else None,
        errors=None if errors is None else encoded(draw_backtest(errors)),
        forecast=HtmlTable.of(forecast, "time"),
        parts=None if parts is None else encoded(draw_parts(parts, title)),
        averages=None if averages is None else HtmlTable.of(averages, str(averages.index.name)),
        scores=None if scores is None else HtmlTable.of(scores, "method"),
        model=model,
        notes=notes or ["no gaps, no duplicates, no missing values"],
        cost=cost.splitlines(),
    )
