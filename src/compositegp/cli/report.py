"""One HTML page about a forecast, with everything in it."""

import base64
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from compositegp.cli.output import format_number
from compositegp.plotting import draw_parts


class HtmlTable(NamedTuple):
    """A table as the template takes it: headings, and rows of text."""

    headings: list[str]
    rows: list[list[str]]

    @classmethod
    def of(cls, frame: pd.DataFrame, first: str) -> "HtmlTable":
        """A data frame, with its index as the first column."""
        rows = [
            [str(label), *map(format_number, values)]
            for label, values in zip(frame.index, frame.to_numpy().tolist(), strict=True)
        ]
        return cls([first, *map(str, frame.columns)], rows)


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

    Returns
    -------
    str
        HTML that refers to nothing outside of it.
    """
    environment = Environment(
        loader=PackageLoader("compositegp.cli"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html").render(
        title=title,
        picture=base64.b64encode(picture).decode(),
        forecast=HtmlTable.of(forecast, "time"),
        parts=None if parts is None else base64.b64encode(draw_parts(parts, title)).decode(),
        averages=None if averages is None else HtmlTable.of(averages, str(averages.index.name)),
        scores=None if scores is None else HtmlTable.of(scores, "method"),
        model=model,
        notes=notes or ["no gaps, no duplicates, no missing values"],
        cost=cost.splitlines(),
    )
