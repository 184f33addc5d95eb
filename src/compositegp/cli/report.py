"""One self-contained HTML page about a forecast."""

import base64
import html
from typing import Any

import pandas as pd

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; } td, th { padding: .2em .8em; text-align: right; }
th { border-bottom: 1px solid #888; } td:first-child, th:first-child { text-align: left; }
img { max-width: 100%; } .scroll { max-height: 24em; overflow: auto; } li { margin: .2em 0; }
"""


def page(
    title: str,
    picture: bytes,
    forecast: pd.DataFrame,
    scores: pd.DataFrame | None,
    model: list[str],
    notes: list[str],
    cost: str,
) -> str:
    """The page as text."""
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f'<img alt="forecast" src="data:image/png;base64,{base64.b64encode(picture).decode()}">',
    ]
    if scores is not None:
        parts += ["<h2>Backtest</h2>", _table(scores, "method")]
    parts += ["<h2>Forecast</h2>", f'<div class="scroll">{_table(forecast, "time")}</div>']
    parts += ["<h2>What was learned</h2>", _items(model)]
    parts += [
        "<h2>What the approximation costs</h2>",
        *(f"<p>{html.escape(line)}</p>" for line in cost.splitlines()),
    ]
    parts += ["<h2>About the series</h2>", _items(notes or ["no gaps, no duplicates, no missing values"])]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head><body>{"".join(parts)}</body></html>\n'
    )


def _items(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def _table(table: pd.DataFrame, first: str) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in [first, *table.columns])
    rows = "".join(
        f"<tr><td>{html.escape(str(label))}</td>{''.join(f'<td>{_number(value)}</td>' for value in row)}</tr>"
        for label, row in zip(table.index, table.to_numpy(), strict=True)
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _number(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.4g}"
