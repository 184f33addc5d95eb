"""What compositegp forecast writes and prints about one series."""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from compositegp.cli.output import Output, note
from compositegp.cli.report import render_report
from compositegp.forecasting import in_zone
from compositegp.plotting import draw_forecast, draw_parts
from compositegp.storage import write_atomically


class ForecastResults(NamedTuple):
    """What a forecast consists of; the fields are also what the HTML page takes."""

    forecast: pd.DataFrame
    scores: pd.DataFrame | None
    model: list[str]
    notes: list[str]
    cost: str
    averages: pd.DataFrame | None = None
    parts: pd.DataFrame | None = None
    errors: pd.DataFrame | None = None


def write_forecast(results: ForecastResults, history: pd.Series, title: str | None, out: Path) -> dict[str, Path]:
    """Write the table, the picture and, if it has a title, the HTML page; return the files by their names."""
    files = {"table": out / "forecast.csv", "picture": out / "forecast.png"}
    if results.averages is not None:
        files["averages"] = out / f"forecast_by_{results.averages.index.name}.csv"
        write_atomically(files["averages"], results.averages.to_csv(float_format="%.10g").encode())
    write_atomically(files["table"], results.forecast.to_csv(float_format="%.10g").encode())
    zone = results.forecast.index.tz
    shown = history if zone is None else history.set_axis(in_zone(history.index, str(zone)))
    picture = draw_forecast(shown, results.forecast, str(history.name))
    write_atomically(files["picture"], picture)
    if results.parts is not None:
        files["parts"] = out / "forecast_parts.png"
        write_atomically(files["parts"], draw_parts(results.parts, str(history.name)))
    if title is not None:
        if find_spec("plotly") is None:
            note("the pictures of the page are static; pip install 'compositegp[report]' makes them interactive")
        files["report"] = out / "report.html"
        write_atomically(
            files["report"], render_report(title, picture=picture, history=shown, **results._asdict()).encode()
        )
    return files


def print_forecast(results: ForecastResults, files: dict[str, Path], as_json: bool) -> None:
    """Print the results for people or for programs."""
    with Output(as_json) as output:
        output.frame(results.forecast, results.forecast.index.name)
        if results.averages is not None:
            output.line(f"\naverages by {results.averages.index.name}:")
            output.frame(results.averages, results.averages.index.name)
            output.result("averages", results.averages)
        output.line("\n" + "\n".join(results.model))
        output.line("\n" + results.cost)
        if results.scores is not None:
            output.line()
            output.frame(results.scores, "backtest")
            scores = {name: row.dropna().to_dict() for name, row in results.scores.iterrows()}
            output.result("backtest", scores)
        output.line()
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("forecast", results.forecast)
        output.result("model", results.model)
        output.result("notes", results.notes)
        output.result("cost", results.cost)
        output.result("files", {name: str(path) for name, path in files.items()})
