"""compositegp forecast --series: many series of one table, a model for each."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
import typer

from compositegp.cli.output import CommandError, Output, note
from compositegp.cli.resources import check_model_file, check_output_folder, saving
from compositegp.cli.series_files import ManySeriesFile, read_many_futures
from compositegp.forecasting import CompositeGPForecaster, ManySeries, backtest_many, fit_many
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
    """

    horizon: str
    quantiles: list[float]
    n_backtests: int
    share: bool
    out: Path
    save: Path | None
    as_json: bool
    jobs: int


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
    check_output_folder(
        asked.out, ["forecast.csv", *(["backtest.csv"] if asked.n_backtests else [])], [file, future]
    )
    paths = {} if asked.save is None else _model_files(asked.save, read, [file, future])
    future_columns = None if future is None else read_many_futures(future, read)
    scores, failures = None, {}
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
                n_jobs=asked.jobs,
                report=progress,
            )
        scores = done.scores
        failures = {name: f"no backtest: {reason}" for name, reason in done.failures.items()}
    with ProgressBar("learning") as progress:
        fitted = fit_many(model, read.table, share=asked.share, n_jobs=asked.jobs, report=progress, **columns)
    failures |= fitted.failures
    tables = []
    for name, found in fitted.predict_each(asked.horizon, asked.quantiles, future_columns):
        if isinstance(found, ValueError):
            failures[name] = str(found)
        else:
            tables.append(found)
    if not tables:
        name, reason = next(iter(failures.items()))
        raise CommandError(f"none of {len(failures)} series could be forecast. The first, {name!r}: {reason}")
    forecast = pd.concat(tables, ignore_index=True)
    files = {"table": asked.out / "forecast.csv"}
    write_atomically(files["table"], forecast.to_csv(index=False, float_format="%.10g").encode())
    if scores is not None:
        files["backtest"] = asked.out / "backtest.csv"
        write_atomically(files["backtest"], scores.to_csv(float_format="%.10g").encode())
    if asked.save is not None:
        files["models"] = asked.save
        _save(fitted, paths, read, asked.horizon)
    _print(forecast, scores, failures, fitted, files, asked.as_json)
    if failures:
        raise typer.Exit(SOME_FAILED)


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


def _print(
    forecast: pd.DataFrame,
    scores: pd.DataFrame | None,
    failures: dict[Any, str],
    fitted: ManySeries,
    files: dict[str, Path],
    as_json: bool,
) -> None:
    """Print the results for people or for programs, and what failed on standard error."""
    for name, reason in failures.items():
        note(f"series {name!r}: {reason}")
    with Output(as_json) as output:
        output.frame(forecast.set_index(fitted.id_col), fitted.id_col)
        if scores is not None:
            own = scores.xs("compositegp, mean", level="method").copy()
            if "seasonal naive" in scores.index.get_level_values("method"):
                own["RMSE, seasonal naive"] = scores.xs("seasonal naive", level="method")["RMSE"]
            output.line()
            output.frame(own, "backtest")
            output.result("backtest", scores)
        failed = f", {len(failures)} with a failure (see above)" if failures else ""
        shared = f"; {fitted.n_shared} learned from the others" if fitted.n_shared else ""
        output.line(f"\n{forecast[fitted.id_col].nunique()} series forecast{shared}{failed}")
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("forecast", forecast)
        output.result("failures", {str(name): reason for name, reason in failures.items()})
        output.result("files", {name: str(path) for name, path in files.items()})
