"""compositegp forecast: the next values of a time series, with error bars."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from compositegp.cli.options import (
    DayFirst,
    Decimal,
    Encoding,
    Jobs,
    JsonFlag,
    LogFlag,
    SavedModel,
    Separator,
    TimeColumn,
    TimePattern,
)
from compositegp.cli.output import CommandError, UsageError, note, require_packages
from compositegp.progress import ProgressBar

if TYPE_CHECKING:
    import pandas as pd

    from compositegp.cli.series_files import SeriesFile
    from compositegp.forecasting import Backtest, CompositeGPForecaster, Timeline

EXAMPLES = (
    "compositegp forecast nox.csv --time timestamp --target nox --horizon 24h --log --out forecast/",
    "compositegp forecast nox.csv.gz --time timestamp --target nox --horizon 24h --log --backtest 30 --report",
    "compositegp forecast nox.csv --time timestamp --target nox --horizon 7d --log --aggregate day",
    "compositegp forecast stations.csv --series station --time timestamp --target nox --horizon 24h --backtest 7",
    "compositegp forecast load.parquet --time t --target load --horizon 48 --season day --season week --save load.cgp",
)
_QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
_BYTES_OF_A_STEP = 4000  # of a forecast: its numbers and those of its parts, and its lines of text
_LAST_YEAR = 9998  # pictures and calendars end with the year 9999
_COMPARED_STEPS = 200  # steps of the horizon at which a forecast is compared, evenly spaced
_COMPARED = 3000  # latest observations of the exact Gaussian process that a forecast is compared with


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or Parquet file with a column of times.")],
    time: TimeColumn,
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column to forecast; empty cells are not observed.")
    ],
    horizon: Annotated[str, typer.Option(metavar="LENGTH", help="A duration such as 24h, or a number of steps.")],
    series: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column with the names of many series: each is forecast by a model of its own."
        ),
    ] = None,
    share: Annotated[
        bool,
        typer.Option("--share/--no-share", help="With --series: let short series learn from the others."),
    ] = True,
    search: Annotated[
        bool,
        typer.Option("--search/--no-search", help="Try models with other parts; without it much faster."),
    ] = True,
    log: LogFlag = False,
    transform: Annotated[
        Literal["auto", "none", "sqrt", "fourth_root", "log"],
        typer.Option(help="Scale on which the target is modeled; auto takes what forecast the past best."),
    ] = "auto",
    timezone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Zone of the clock that the series follows, such as Europe/Stockholm; times without an offset too.",
        ),
    ] = None,
    holidays: Annotated[
        str | None,
        typer.Option(metavar="COUNTRY", help="Holidays of a country, such as SE or AU-VIC (package holidays)."),
    ] = None,
    season: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERIOD", help="day, week, year or a duration; found in the data by default. Repeatable."
        ),
    ] = None,
    duplicates: Annotated[
        Literal["error", "mean", "last"], typer.Option(help="What to do with times that occur more than once.")
    ] = "error",
    extra: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Further column, which is known in the future too. Repeatable."),
    ] = None,
    future: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the further columns over the horizon.")
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(metavar="Q", help="Quantile besides 0.025, 0.25, 0.5, 0.75 and 0.975. Repeatable."),
    ] = None,
    aggregate: Annotated[
        Literal["hour", "day", "week", "month", "year"] | None,
        typer.Option(help="Forecast the averages over these periods too, with error bars of their own."),
    ] = None,
    backtest: Annotated[
        int, typer.Option(min=0, metavar="N", help="Score forecasts of the last N horizons of the file.")
    ] = 0,
    refit_every: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --backtest: learn everything anew after every N horizons."),
    ] = None,
    history: Annotated[
        int | None,
        typer.Option(min=1, metavar="STEPS", help="Learn from the latest steps; without it, from 100,000 of them."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results.")] = Path("forecast"),
    report: Annotated[bool, typer.Option("--report", help="Write one HTML page with everything.")] = False,
    save: SavedModel = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    dayfirst: DayFirst = None,
    time_format: TimePattern = None,
    as_json: JsonFlag = False,
    jobs: Jobs = -1,
) -> None:
    """Forecast a time series from a file, or many series of one table.

    The time step, gaps and seasons are found in the data. A saved model can be updated with new rows by compositegp
    stream. Where some of many series cannot be forecast the others are, and the exit code is 3.
    """
    require_packages("pandas", "matplotlib", "jinja2")
    quantiles = sorted({*_QUANTILES, *(quantile or [])})
    if not all(0 < level < 1 for level in quantiles):
        raise UsageError("--quantile must be between 0 and 1.")
    if extra and future is None:
        raise UsageError("--extra needs --future: a file with those columns over the horizon.")
    if future is not None and not extra:
        raise UsageError("--future needs --extra: the names of its columns that are inputs.")
    if log and transform not in ("auto", "log"):
        raise UsageError(f"--log and --transform {transform} contradict each other.")
    if refit_every is not None and not backtest:
        raise UsageError("--refit-every is for --backtest.")
    import numpy as np

    from compositegp.cli.forecast_output import ForecastResults, print_forecast, write_forecast
    from compositegp.cli.resources import check_model_file, check_output_folder, saving
    from compositegp.cli.series_files import read_future_columns, read_series
    from compositegp.cli.text_format import TextFormat
    from compositegp.cli.time_columns import TimeFormat
    from compositegp.forecasting import CompositeGPForecaster, aggregate_forecast, check_aggregation, observe

    # All that can be wrong with the options and the files is reported before anything takes long.
    text_format = TextFormat.of_options(separator, decimal, encoding)
    times = TimeFormat(time_format, dayfirst)
    limits: dict[str, Any] = {} if history is None else {"history": history}
    model = CompositeGPForecaster(
        "log" if log else None if transform == "none" else transform,
        horizon=horizon,
        seasons=season or "auto",
        timezone=timezone,
        holidays=holidays,
        duplicates=duplicates,
        search=search,
        n_jobs=jobs,
        **limits,
    )
    if series is not None:
        from compositegp.cli.forecast_many import ManyForecasts, forecast_many
        from compositegp.cli.series_files import read_many_series

        table = read_many_series(file, series, time, target, extra or [], text_format, times)
        asked = ManyForecasts(
            horizon, quantiles, backtest, share, out, save, as_json, jobs, report, aggregate, refit_every
        )
        forecast_many(model, table, asked, file, future)
        return
    read = read_series(file, time, target, extra or [], text_format, times)
    seen = observe(read.values, read.extra, duplicates=duplicates, zone=timezone)
    stamps, timeline = seen.stamps, model.timeline_of(seen)
    steps = timeline.steps(horizon)
    _check_horizon(steps, timeline, stamps)
    if aggregate is not None:
        check_aggregation(steps)
    future_columns = None
    if future is not None:
        places = timeline.places(stamps[-1:]) + 1.0 + np.arange(steps)
        future_columns = read_future_columns(
            future, time, extra or [], places, timeline, text_format, read.time_format, local=timezone is not None
        )
    names = ["forecast.csv", "forecast.png", "forecast_parts.png", *(["report.html"] if report else [])]
    names += [] if aggregate is None else [f"forecast_by_{aggregate}.csv"]
    check_output_folder(out, names, [file, future])
    if save is not None:
        check_model_file(save, [file, future])

    scored = _run_backtest(model, read, horizon, backtest, refit_every) if backtest else None
    with ProgressBar(f"learning from {len(stamps)} observations"):
        model.fit(read.values, read.extra)
    for text in model.notes_:
        note(text)
    forecast = model.predict(horizon, quantiles, future_columns)
    forecast.index.name = time
    averages = (
        None if aggregate is None else aggregate_forecast(model, horizon, aggregate, quantiles, future_columns)
    )
    results = ForecastResults(
        forecast,
        None if scored is None else scored.scores,
        model.describe(),
        model.notes_,
        _cost(model, timeline, stamps, steps),
        averages,
        model.parts(horizon, future_columns).table,
        None if scored is None else scored.forecasts,
    )
    files = write_forecast(results, read.values, f"{target}: the next {horizon}" if report else None, out)
    if save is not None:
        files["model"] = save
        with saving(save):
            model.save(
                save,
                time=time,
                target=target,
                horizon=horizon,
                time_pattern=read.time_format.pattern,
                day_first=read.time_format.day_first,
                **asdict(read.text_format),
            )
    print_forecast(results, files, as_json)


def _check_horizon(steps: int, timeline: "Timeline", stamps: "pd.DatetimeIndex") -> None:
    """Refuse a horizon that ends after the last year that times have, or that takes more memory than there is."""
    import pandas as pd

    from compositegp.cli.resources import require_memory

    require_memory(_BYTES_OF_A_STEP * steps, f"a forecast of {steps:,} steps", "Give a shorter --horizon.")
    if stamps[-1].year + steps * (timeline.step / pd.Timedelta(days=365.25)) > _LAST_YEAR:
        raise CommandError(
            f"the series ends at {stamps[-1]}, and {steps:,} steps later is after the year {_LAST_YEAR}. Give a "
            "shorter --horizon, or correct that time."
        )


def _run_backtest(
    model: "CompositeGPForecaster", series: "SeriesFile", horizon: str, n_horizons: int, refit_every: int | None
) -> "Backtest":
    """Forecasts of the last horizons of a series."""
    from compositegp.forecasting import backtest

    with ProgressBar("scoring forecasts") as progress:
        return backtest(
            model,
            series.values,
            horizon,
            n_horizons,
            X=series.extra,
            refit_every=refit_every or "auto",
            report=progress,
        )


def _cost(model: "CompositeGPForecaster", timeline: "Timeline", stamps: "pd.DatetimeIndex", steps: int) -> str:
    """Say what a forecast from the latest observations loses against one from more of them.

    The kernel is of the time alone. Effects, of the clock and of further columns, have coefficients that are learned
    from all of the history, so that both forecasts have the same ones: they are taken as known.
    """
    import numpy as np

    from compositegp.analysis import compare
    from compositegp.composite import Composite
    from compositegp.forecasting import in_utc

    kernel, used = model.kernel_, timeline.places(in_utc(model.observations_.index))
    n_latest = len(used)
    places = np.unique(np.round(timeline.places(stamps)))
    X = places[-max(_COMPARED, n_latest) :]
    Z = X[-1] + 1.0 + np.unique(np.linspace(0, steps - 1, min(steps, _COMPARED_STEPS)).round())
    latest = np.flatnonzero(np.isin(X, np.round(used)))
    report = compare(kernel, X[:, None], Z[:, None], Composite([(latest, 1.0)]))
    excess = report.excess_mse.mean() / report.exact_variance.mean()
    return (
        f"Made from the latest {n_latest} observations. Under the model, its mean squared error is {excess:.2%} higher "
        f"than that of the exact Gaussian process on {len(X)} observations, with the same effects."
    )
