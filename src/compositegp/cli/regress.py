"""compositegp regress: a table in a file, predictions with intervals for another."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from compositegp.cli.errors import CommandError
from compositegp.cli.output import Output
from compositegp.cli.tables import numbers, read_table, split_columns
from compositegp.estimators import CompositeGPRegressor
from compositegp.storage import write_atomically

_MOST_LEVELS = 200  # of a category


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("train", help="CSV (also .gz) or Parquet file to learn from")
    parser.add_argument("--target", required=True, help="column to predict; empty cells are not observed")
    parser.add_argument("--predict", required=True, help="file with the rows to predict")
    parser.add_argument("--out", type=Path, default=Path("predictions.csv"), help="file for the predictions")
    parser.add_argument("--level", type=float, default=0.95, help="probability of the intervals")
    parser.add_argument("--log", action="store_true", help="model the logarithm: predictions are never negative")
    parser.add_argument(
        "--device", help="where to work: a device of PyTorch's, such as cuda; else on the processor"
    )
    parser.add_argument("--save", type=Path, help="file for the model")


def run(arguments: argparse.Namespace, output: Output) -> None:
    """Learn and predict."""
    if not 0 < arguments.level < 1:
        raise CommandError(f"--level must be between 0 and 1, such as 0.95; found {arguments.level:g}.")
    table, wanted = read_table(arguments.train), read_table(arguments.predict)
    y = numbers(table, arguments.target, arguments.train)
    inputs, categories = split_columns(table, arguments.target, arguments.train)
    X = encode(inputs, inputs, categories, arguments.train, output)
    Z = encode(wanted, inputs, categories, arguments.predict, output)
    model = CompositeGPRegressor(
        target_transform="log" if arguments.log else None,
        n_jobs=arguments.jobs,
        device=arguments.device,
        verbose=True,
    ).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    lower, upper = model.predict_interval(Z, arguments.level)
    found = pd.DataFrame({"mean": mean, "std": std, "lower": lower, "upper": upper})
    write_atomically(arguments.out, pd.concat([wanted, found], axis=1).to_csv(index=False).encode())
    if arguments.save is not None:
        model.save(arguments.save)
    output.say(found.describe().loc[["count", "mean", "min", "max"]].to_string(float_format="{:.4g}".format))
    output.result("predictions", found)
    if arguments.target in wanted.columns:
        _score(found, numbers(wanted, arguments.target, arguments.predict), arguments.level, output)
    output.say(f"\npredictions: {arguments.out}")
    output.result("files", {"predictions": str(arguments.out)})


def encode(
    inputs: pd.DataFrame, training: pd.DataFrame, categories: list[str], path: str, output: Output
) -> pd.DataFrame:
    """Inputs as numbers: categories one-hot, by the levels that the training data have."""
    missing = [str(name) for name in training.columns if name not in inputs.columns]
    if missing:
        raise CommandError(f"{path} lacks the column(s) {', '.join(missing)} of the training data.")
    columns = {}
    for name in training.columns:
        if str(name) not in categories:
            values = numbers(inputs, name, path)
            if values.isna().any():
                raise CommandError(
                    f"column {name!r} of {path} has {int(values.isna().sum())} empty cell(s), the first in row "
                    f"{int(np.argmax(values.isna().to_numpy())) + 1}. Fill them in, or leave the column out."
                )
            columns[str(name)] = values
            continue
        levels = sorted(training[name].dropna().astype(str).unique())
        if len(levels) > _MOST_LEVELS:
            raise CommandError(
                f"column {name!r} has {len(levels)} different texts, too many for categories: leave it out, or make "
                "numbers of it."
            )
        values = inputs[name].astype("string")
        new = sorted(set(values.dropna()) - set(levels))
        if new:
            output.note(f"column {name!r} of {path} has values that were not learned from: {', '.join(new[:5])}")
        for level in levels:
            columns[f"{name}={level}"] = (values == level).fillna(False).astype(float)
    return pd.DataFrame(columns)


def _score(found: pd.DataFrame, y: pd.Series, level: float, output: Output) -> None:
    seen = y.notna().to_numpy()
    if not seen.any():
        return
    errors = (found["mean"] - y)[seen]
    inside = ((found["lower"] < y) & (y < found["upper"]))[seen]
    scores = {
        "RMSE": float(np.sqrt(np.mean(errors**2))),
        "MAE": float(np.mean(np.abs(errors))),
        "R²": 1 - float(np.mean(errors**2) / y[seen].var(ddof=0)) if seen.sum() > 1 else float("nan"),
        f"coverage of {level:.0%}": float(inside.mean()),
    }
    output.say("\n" + "\n".join(f"{name}: {value:.4g}" for name, value in scores.items()))
    output.result("scores", scores)
