"""compositegp forecast: a series in a file, its next values with error bars."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from compositegp.analysis import compare
from compositegp.cli.errors import CommandError
from compositegp.cli.output import Output, ProgressBar
from compositegp.cli.report import page
from compositegp.cli.tables import numbers, read_series, read_table, times
from compositegp.composite import Composite
from compositegp.forecasting import CompositeGPForecaster, Timeline, backtest, in_utc, observe, zone_of
from compositegp.plotting import draw_forecast, write_picture
from compositegp.storage import write_atomically

_LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
_COMPARED = 3000  # observations of the exact GP that a forecast is compared with


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("file", help="CSV (also .gz) or Parquet file with a column of times")
    parser.add_argument("--time", required=True, help="column of times")
    parser.add_argument("--target", required=True, help="column to forecast; empty cells are not observed")
    parser.add_argument("--horizon", required=True, help="how far: a duration such as 24h, or a number of steps")
    parser.add_argument("--log", action="store_true", help="model the logarithm: forecasts are never negative")
    parser.add_argument(
        "--season", action="append", help="day, week, year or a duration; found in the data if left out"
    )
    parser.add_argument(
        "--duplicates", choices=("error", "mean", "last"), default="error", help="times that occur twice"
    )
    parser.add_argument("--extra", action="append", default=[], help="further column, known in the future too")
    parser.add_argument("--future", help="file with the further columns over the horizon")
    parser.add_argument(
        "--quantiles", type=float, nargs="+", default=[], help="quantiles beside 2.5, 25, 50, 75, 97.5 %%"
    )
    parser.add_argument(
        "--backtest", type=int, default=0, metavar="N", help="score forecasts of the last N horizons"
    )
    parser.add_argument("--out", type=Path, default=Path("forecast"), help="folder for the results")
    parser.add_argument("--report", action="store_true", help="write one HTML page with everything")
    parser.add_argument("--save", type=Path, help="file for the model, for compositegp stream")


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Forecast."""
    series, extra = read_series(arguments.file, arguments.time, arguments.target, arguments.extra)
    model = CompositeGPForecaster(
        "log" if arguments.log else None,
        seasons=arguments.season or "auto",
        duplicates=arguments.duplicates,
        n_jobs=arguments.jobs,
        progress=True,
    )
    # What can be wrong with the arguments is told before anything takes time.
    seen = observe(series, duplicates=arguments.duplicates, gaps=False)
    timeline = Timeline.of(seen.stamps, zone_of(series.index))
    future = _future(arguments, timeline, timeline.places(seen.stamps)[-1])
    if not all(0 < level < 1 for level in arguments.quantiles):
        raise CommandError("--quantiles must be between 0 and 1.")
    if arguments.backtest < 0:
        raise CommandError(f"--backtest must be a number of horizons; found {arguments.backtest}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    scores = None
    if arguments.backtest:
        done = backtest(
            model, series, arguments.horizon, arguments.backtest, X=extra, report=ProgressBar("forecasts scored")
        )
        scores = done.scores
    model.fit(series, extra)
    for note in model.notes_:
        output.note(note)
    levels = sorted({*_LEVELS, *arguments.quantiles})
    forecast = model.predict(arguments.horizon, levels, future)
    forecast.index.name = arguments.time
    paths = {"table": arguments.out / "forecast.csv", "picture": arguments.out / "forecast.png"}
    write_atomically(paths["table"], forecast.to_csv(float_format="%.10g").encode())
    shown = series if series.index.tz is None else series.tz_convert(forecast.index.tz)
    picture = draw_forecast(shown, forecast, arguments.target)
    write_picture(paths["picture"], picture)
    cost = _cost(model, series, forecast, arguments)
    if arguments.report:
        paths["report"] = arguments.out / "report.html"
        title = f"{arguments.target}: the next {arguments.horizon}"
        text = page(title, picture, forecast, scores, model.describe(), model.notes_, cost)
        write_atomically(paths["report"], text.encode())
    if arguments.save is not None:
        names = {"time": arguments.time, "target": arguments.target, "format": series.attrs["format"]}
        model.save(arguments.save, **names, horizon=str(arguments.horizon))
        paths["model"] = arguments.save
    _tell(output, forecast, scores, model, cost, paths)


def _tell(
    output: Output,
    forecast: pd.DataFrame,
    scores: pd.DataFrame | None,
    model: CompositeGPForecaster,
    cost: str,
    paths: dict[str, Path],
) -> None:
    output.say(forecast.to_string(float_format="{:.4g}".format, max_rows=30))
    output.say("\n" + "\n".join(model.describe()))
    output.say("\n" + cost)
    if scores is not None:
        output.say("\nbacktest\n" + scores.to_string(float_format="{:.4g}".format, na_rep=""))
        output.result("backtest", {name: row.dropna().to_dict() for name, row in scores.iterrows()})
    output.say()
    for name, path in paths.items():
        output.say(f"{name}: {path}")
    output.result("forecast", forecast)
    output.result("model", model.describe())
    output.result("notes", model.notes_)
    output.result("cost", cost)
    output.result("files", {name: str(path) for name, path in paths.items()})


def _future(arguments: argparse.Namespace, timeline: Timeline, last: float) -> pd.DataFrame | None:
    """The further columns over the horizon: at its times, if the file has times, else in the order of the rows."""
    steps = timeline.steps(arguments.horizon)
    if not arguments.extra:
        return None
    if arguments.future is None:
        raise CommandError("--extra needs --future: a file with those columns over the horizon.")
    table = read_table(arguments.future)
    columns = pd.DataFrame({name: numbers(table, name, arguments.future).to_numpy() for name in arguments.extra})
    if arguments.time in table.columns:
        columns.index = in_utc(times(table, arguments.time, arguments.future))
        wanted = in_utc(timeline.stamps(last + 1.0 + np.arange(steps)))
        missing = ~wanted.isin(columns.index)
        if missing.any():
            raise CommandError(f"{arguments.future} has no row for {wanted[missing][0]}, which is in the horizon.")
        columns = columns[~columns.index.duplicated()].loc[wanted]
    if len(columns) < steps:
        raise CommandError(f"{arguments.future} has {len(columns)} row(s), but the horizon has {steps} steps.")
    if columns[:steps].isna().any(axis=None):
        raise CommandError(f"{arguments.future} has empty cells in the horizon. Fill them in.")
    return columns.iloc[:steps]


def _cost(
    model: CompositeGPForecaster, series: pd.Series, forecast: pd.DataFrame, arguments: argparse.Namespace
) -> str:
    """What a forecast from the latest observations loses against one from more of them."""
    known = model._known
    if arguments.extra:
        return "Not computed for models with further columns."
    seen = observe(series, duplicates=arguments.duplicates, gaps=False)
    places = known.timeline.places(seen.stamps)[-max(_COMPARED, len(known.X)) :, None]
    Z = known.timeline.places(in_utc(pd.DatetimeIndex(forecast.index)))
    latest = np.arange(len(places) - len(known.X), len(places))
    report = compare(known.kernel, places, Z[:, None], Composite([(latest, 1.0)]))
    return (
        f"Made from the latest {len(latest)} observations. Against the exact Gaussian process on {len(places)}: its "
        f"mean squared error is {report.excess_mse.mean() / report.exact_variance.mean():.2%} higher, under the model."
    )
