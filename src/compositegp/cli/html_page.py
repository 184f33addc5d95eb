"""HTML pages that refer to nothing outside of them: their templates, tables and pictures."""

import base64
import json
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compositegp.cli.output import format_number


class HtmlTable(NamedTuple):
    """A table as a template takes it: headings, and rows of text."""

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


def render_page(template: str, **content: Any) -> str:
    """The page of a template in the folder ``templates``; text is escaped, and a missing value is an error."""
    environment = Environment(
        loader=PackageLoader("compositegp.cli"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template).render(**content)


def encoded(picture: bytes) -> str:
    """A picture as text in base64, as a page holds it."""
    return base64.b64encode(picture).decode()


def in_script(content: Any) -> Markup:
    """A figure, or figures, as JSON inside a script element, which no text in it can end."""
    text = json.dumps(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(text)


def plotly_code() -> Markup:
    """The code of Plotly, which becomes part of a page."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
