"""compositegp regress: learn from one table, predict the rows of another, with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from compositegp.cli.options import Decimal, Encoding, JobsOrThreads, JsonFlag, LogFlag, SavedModel, Separator
from compositegp.cli.output import CommandError, Output, UsageError, note
from compositegp.progress import ProgressBar

if TYPE_CHECKING:
    import pandas as pd

    from compositegp.cli.table_model import TableModel
    from compositegp.cli.text_format import TextFormat

EXAMPLES = (
    "compositegp regress train.csv --target y --predict test.csv --out predictions.csv",
    "compositegp regress train.parquet --target price --predict test.csv --log --level 0.9 --json",
    "compositegp regress train.csv --target y --save model.cgp",
    "compositegp regress --model model.cgp --predict test.csv",
    "compositegp regress train.csv --target y --validate",
)


def run(
    train: Annotated[
        Path | None, typer.Argument(metavar="TRAIN", help="CSV or Parquet file to learn from.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column to predict; rows where it is empty are left out.")
    ] = None,
    predict: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the rows to predict.")] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Predict by this saved model instead of learning from TRAIN."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File for the predictions.")] = Path("predictions.csv"),
    level: Annotated[float, typer.Option(metavar="P", help="Probability of the intervals.")] = 0.95,
    log: LogFlag = False,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="PyTorch device to compute on, such as cuda.")
    ] = None,
    save: SavedModel = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Score predictions of training rows, near the data and in gaps.")
    ] = False,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    as_json: JsonFlag = False,
    jobs: JobsOrThreads = None,
) -> None:
    """Learn from one table and predict the rows of another.

    Numeric columns are used as they are; each different text in a text column becomes a category. If the file to
    predict has the target, the predictions are scored.
    """
    _check_options(train, target, predict, model, log, save, level, validate)
    from compositegp.cli.resources import check_model_file, check_output_file, saving
    from compositegp.cli.table_columns import read_training_table
    from compositegp.cli.table_model import TableModel
    from compositegp.cli.text_format import TextFormat
    from compositegp.estimators import CompositeGPRegressor

    text_format = TextFormat.of_options(separator, decimal, encoding)
    if model is not None:
        if not model.exists():
            raise CommandError(f"{model} does not exist. Make it with compositegp regress --save.")
        training, table_model = None, TableModel.load(model)
        table_model.regressor.set_params(n_jobs=jobs, device=device)
    elif train is not None and target is not None:
        training = read_training_table(train, target, text_format)
        regressor = CompositeGPRegressor(target_transform="log" if log else None, n_jobs=jobs, device=device)
        table_model = TableModel(target, training.columns, regressor)
    else:
        raise UsageError("give the file to learn from and --target, or a saved model by --model.")
    inputs = [train, predict, model]
    if predict is not None:
        check_output_file(out, "--out", inputs)
    if save is not None:
        check_model_file(save, inputs)
    # The rows to predict are read and checked before learning, which may take long.
    rows = None if predict is None else _read_rows(table_model, predict, text_format)
    if training is not None:
        with ProgressBar(f"learning from {len(training.y)} rows"):
            table_model.fit(training)
    files = {}
    with Output(as_json) as output:
        if validate:
            with ProgressBar("validating"):
                report = table_model.regressor.validate()
            output.line(repr(report))
            output.result("validation", report.table)
        if save is not None:
            with saving(save):
                table_model.save(save)
            files["model"] = save
        if rows is not None:
            _predict(table_model, rows, level, out, output)
            files["predictions"] = out
        for name, path in files.items():
            output.line(f"{name}: {path}")
        output.result("files", {name: str(path) for name, path in files.items()})


def _check_options(
    train: Path | None,
    target: str | None,
    predict: Path | None,
    model: Path | None,
    log: bool,
    save: Path | None,
    level: float,
    validate: bool,
) -> None:
    """Refuse options that contradict each other."""
    if not 0 < level < 1:
        raise UsageError(f"--level must be between 0 and 1, such as 0.95; found {level:g}.")
    if model is not None:
        given = {
            "TRAIN": train is not None,
            "--target": target is not None,
            "--log": log,
            "--save": save is not None,
        }
        wrong = [name for name, is_given in given.items() if is_given]
        if wrong:
            raise UsageError(f"--model predicts by a model that has learned already. Leave out {', '.join(wrong)}.")
        if predict is None and not validate:
            raise UsageError("--model needs --predict: the file with the rows to predict.")
    elif predict is None and save is None and not validate:
        raise UsageError("give --predict, the file with the rows to predict, or --save, a file for the model.")


class _Rows(NamedTuple):
    """The rows to predict: the table as it is, its checked inputs, and the target with NaN where it is not known."""

    table: "pd.DataFrame"
    inputs: "pd.DataFrame"
    y: Any


def _read_rows(model: "TableModel", path: Path, text_format: "TextFormat") -> _Rows:
    """Read the rows to predict."""
    import numpy as np

    from compositegp.cli.tables import read_table, target_column

    table = read_table(path, text_format)
    inputs = model.columns.read(table, path)
    has_target = model.target in table.columns
    y = target_column(table, model.target, path) if has_target else np.full(len(table), np.nan)
    return _Rows(table, inputs, y)


def _predict(model: "TableModel", rows: _Rows, level: float, out: Path, output: Output) -> None:
    """Predict rows, once, write them to a file, and score them where the target is known."""
    import pandas as pd

    from compositegp.storage import write_atomically

    with ProgressBar(f"predicting {len(rows.table)} rows"):
        distribution = model.predict(rows.inputs)
        lower, upper = distribution.interval(level)
    predictions = pd.DataFrame({"mean": distribution.mean, "std": distribution.std, "lower": lower, "upper": upper})
    names = _free_names(list(predictions), rows.table.columns)
    if names != list(predictions):
        note(f"The rows have a column of the same name: predictions are in the columns {', '.join(names)}.")
    written = pd.concat([rows.table, predictions.set_axis(names, axis=1)], axis=1)
    write_atomically(out, written.to_csv(index=False).encode())
    output.frame(predictions.describe().loc[["count", "mean", "min", "max"]], "")
    output.line()
    output.result("predictions", predictions)
    scores = _scores(distribution, rows.y, level)
    if scores:
        output.table(["score", ""], list(scores.items()))
        output.line()
        output.result("scores", scores)


def _free_names(names: list[str], taken: Any) -> list[str]:
    """Names of the columns of predictions: other ones for all where a table has one of them."""
    while set(names) & set(map(str, taken)):
        names = [f"predicted {name}" for name in names]
    return names


def _scores(distribution: Any, y: Any, level: float) -> dict[str, float]:
    """Scores of a prediction where the target is known; NaN is not known."""
    import numpy as np
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    known = ~np.isnan(y)
    if not known.any():
        return {}
    y, predicted = y[known], distribution[known]
    scores = {
        "RMSE": float(root_mean_squared_error(y, predicted.mean)),
        "MAE": float(mean_absolute_error(y, predicted.mean)),
        "R²": float(r2_score(y, predicted.mean)) if len(y) > 1 else float("nan"),
    }
    scores["CRPS"] = float(np.mean(predicted.crps(y)))
    return scores | {f"coverage of {level:.0%}": float(predicted.coverage(y, level))}
