"""compositegp forecast --series: many series of one table, a model for each."""

from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
import typer

from compositegp.cli.output import CommandError, Output, note
from compositegp.cli.resources import check_model_file, check_output_folder, saving
from compositegp.cli.series_files import ManySeriesFile, read_many_futures
from compositegp.forecasting import (
    CompositeGPForecaster,
    ManyBacktests,
    ManySeries,
    backtest_many,
    fit_many,
    in_zone,
)
from compositegp.progress import ProgressBar
from compositegp.storage import write_atomically

SOME_FAILED = 3  # exit code where some series were forecast and others were not
_LONGEST_NAME = 240  # of a file, as file systems have it


class ManyForecasts(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    horizon : str
    quantiles : list of float
    n_backtests : int
        Horizons at the end of each series whose forecasts are scored.
    share : bool
        Whether series learn from each other.
    out : Path
        Folder for the results.
    save : Path or None
        Folder for the models.
    as_json : bool
    jobs : int
    report : bool
        Whether one HTML page of all series is written.
    aggregate : str or None
        Period of the calendar whose averages are forecast too.
    refit_every : int or None
        Horizons of a backtest after which each series is learned anew.
    """

    horizon: str
    quantiles: list[float]
    n_backtests: int
    share: bool
    out: Path
    save: Path | None
    as_json: bool
    jobs: int
    report: bool = False
    aggregate: str | None = None
    refit_every: int | None = None


class _Results(NamedTuple):
    """Tables of all series; those that were not asked for are None."""

    forecast: pd.DataFrame
    averages: pd.DataFrame | None
    backtests: ManyBacktests | None
    failures: dict[Any, str]

    @property
    def own_scores(self) -> pd.DataFrame | None:
        """Scores of our forecasts, a row for each series, beside the errors of simple ones."""
        if self.backtests is None:
            return None
        scores = self.backtests.scores
        own = scores.xs("compositegp, mean", level="method").copy()
        for simple in ("seasonal naive", "decomposition"):
            if simple in scores.index.get_level_values("method"):
                own[f"RMSE, {simple}"] = scores.xs(simple, level="method")["RMSE"]
        return own


def forecast_many(
    model: CompositeGPForecaster, read: ManySeriesFile, asked: ManyForecasts, file: Path, future: Path | None
) -> None:
    """Forecast each series of a table; those that cannot be forecast are named, and the exit code says so.

    Parameters
    ----------
    model : CompositeGPForecaster
        Not fitted: its parameters are those of all models.
    read : ManySeriesFile
    asked : ManyForecasts
    file, future : Path
        Files that are read, which are not overwritten.
    """
    columns = {"id_col": read.series, "time_col": read.time, "target_col": read.target}
    names = ["forecast.csv", *(["backtest.csv"] if asked.n_backtests else [])]
    names += [f"forecast_by_{asked.aggregate}.csv"] if asked.aggregate is not None else []
    check_output_folder(asked.out, [*names, *(["report.html"] if asked.report else [])], [file, future])
    paths = {} if asked.save is None else _model_files(asked.save, read, [file, future])
    future_columns = None if future is None else read_many_futures(future, read)
    done, failures = None, {}
    if asked.n_backtests:
        with ProgressBar("scoring forecasts") as progress:
            done = backtest_many(
                model,
                read.table,
                asked.horizon,
                asked.n_backtests,
                id_col=read.series,
                time_col=read.time,
                target_col=read.target,
                share=asked.share,
                refit_every=asked.refit_every,
                n_jobs=asked.jobs,
                report=progress,
            )
        failures = {name: f"no backtest: {reason}" for name, reason in done.failures.items()}
    with ProgressBar("learning") as progress:
        fitted = fit_many(model, read.table, share=asked.share, n_jobs=asked.jobs, report=progress, **columns)
    failures |= fitted.failures
    tables = _tables(fitted.predict_each(asked.horizon, asked.quantiles, future_columns), failures)
    if not tables:
        name, reason = next(iter(failures.items()))
        raise CommandError(f"none of {len(failures)} series could be forecast. The first, {name!r}: {reason}")
    averages = []
    if asked.aggregate is not None:
        made = fitted.aggregate_each(asked.horizon, asked.aggregate, asked.quantiles, future_columns)
        averages = _tables(made, failures, "no averages: ")
    results = _Results(
        pd.concat(tables, ignore_index=True),
        pd.concat(averages, ignore_index=True) if averages else None,
        done,
        failures,
    )
    files = _write(results, fitted, read, asked)
    if asked.save is not None:
        files["models"] = asked.save
        _save(fitted, paths, read, asked.horizon)
    _print(results, fitted, files, asked.as_json)
    if failures:
        raise typer.Exit(SOME_FAILED)


def _tables(
    made: Iterator[tuple[Any, pd.DataFrame | ValueError]], failures: dict[Any, str], what: str = ""
) -> list[pd.DataFrame]:
    """The tables of series that have one; `failures` gets what is wrong with the others."""
    found = []
    for name, table in made:
        if isinstance(table, ValueError):
            failures[name] = f"{what}{table}"
        else:
            found.append(table)
    return found


def _write(results: _Results, fitted: ManySeries, read: ManySeriesFile, asked: ManyForecasts) -> dict[str, Path]:
    """Write the tables and, if it was asked for, the HTML page; return the files by their names."""
    files = {"table": asked.out / "forecast.csv"}
    write_atomically(files["table"], results.forecast.to_csv(index=False, float_format="%.10g").encode())
    if results.averages is not None:
        files["averages"] = asked.out / f"forecast_by_{asked.aggregate}.csv"
        write_atomically(files["averages"], results.averages.to_csv(index=False, float_format="%.10g").encode())
    if results.backtests is not None:
        files["backtest"] = asked.out / "backtest.csv"
        write_atomically(files["backtest"], results.backtests.scores.to_csv(float_format="%.10g").encode())
    if asked.report:
        if find_spec("plotly") is None:
            note("the pictures of the page are static; pip install 'compositegp[report]' makes them interactive")
        files["report"] = asked.out / "report.html"
        page = _page(results, fitted, read, asked)
        write_atomically(files["report"], page.encode())
    return files


def _page(results: _Results, fitted: ManySeries, read: ManySeriesFile, asked: ManyForecasts) -> str:
    """The HTML page of all series that have a forecast."""
    from compositegp.cli.many_report import SeriesResults, render_many_report

    def by_series(table: pd.DataFrame | None, time: str) -> dict[Any, pd.DataFrame]:
        if table is None:
            return {}
        parts = table.groupby(read.series, sort=False)
        return {name: part.drop(columns=read.series).set_index(time) for name, part in parts}

    forecasts, known = by_series(results.forecast, read.time), by_series(read.table, read.time)
    averages = by_series(results.averages, str(asked.aggregate))
    errors = by_series(None if results.backtests is None else results.backtests.forecasts, read.time)
    pages, rows = [], {}
    for name, forecast in forecasts.items():
        model, history, zone = fitted.models[name], known[name][read.target], forecast.index.tz
        if zone is not None:
            history = history.set_axis(in_zone(history.index, str(zone)))
        pages.append(
            SeriesResults(
                str(name),
                history.sort_index(),
                forecast,
                model.describe(),
                model.notes_,
                results.backtests.scores.loc[name] if results.backtests is not None and name in errors else None,
                errors.get(name),
                averages.get(name),
            )
        )
        rows[name] = {
            "mean over the horizon": forecast["mean"].mean(),
            "lowest q0.025": forecast["q0.025"].min(),
            "highest q0.975": forecast["q0.975"].max(),
        }
    overview = pd.DataFrame(rows).T.rename_axis(read.series)
    if results.own_scores is not None:
        overview = overview.join(results.own_scores)
    title = f"{read.target}: the next {asked.horizon} of {len(pages)} series"
    return render_many_report(title, overview, pages, results.failures)


def _model_files(folder: Path, read: ManySeriesFile, inputs: list[Path | None]) -> dict[Any, Path]:
    """A file for the model of each series, in a folder that can be written to."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--save {folder} is a file. With --series give a folder: there is a model for each.")
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / f"{quote(str(name), safe=' ')}.cgp" for name in read.table[read.series].unique()}
    for name, path in found.items():
        if len(path.name) > _LONGEST_NAME:
            raise CommandError(f"series {str(name)[:40] + '…'!r} has a name that is too long for a file.")
        check_model_file(path, inputs)
    return found


def _save(fitted: ManySeries, paths: dict[Any, Path], read: ManySeriesFile, horizon: str) -> None:
    for name, model in fitted.models.items():
        with saving(paths[name]):
            model.save(
                paths[name],
                time=read.time,
                target=read.target,
                horizon=horizon,
                time_pattern=read.time_format.pattern,
                day_first=read.time_format.day_first,
                **asdict(read.text_format),
            )


def _print(results: _Results, fitted: ManySeries, files: dict[str, Path], as_json: bool) -> None:
    """Print the results for people or for programs, and what failed on standard error."""
    failures, forecast, own = results.failures, results.forecast, results.own_scores
    for name, reason in failures.items():
        note(f"series {name!r}: {reason}")
    with Output(as_json) as output:
        output.frame(forecast.set_index(fitted.id_col), fitted.id_col)
        if results.averages is not None:
            output.line(f"\naverages by {results.averages.columns[1]}:")
            output.frame(results.averages.set_index(fitted.id_col), fitted.id_col)
            output.result("averages", results.averages)
        if results.backtests is not None and own is not None:
            output.line()
            output.frame(own, "backtest")
            output.result("backtest", results.backtests.scores)
        failed = f", {len(failures)} with a failure (see above)" if failures else ""
        shared = f"; {fitted.n_shared} learned from the others" if fitted.n_shared else ""
        output.line(f"\n{forecast[fitted.id_col].nunique()} series forecast{shared}{failed}")
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("forecast", forecast)
        output.result("failures", {str(name): reason for name, reason in failures.items()})
        output.result("files", {name: str(path) for name, path in files.items()})
