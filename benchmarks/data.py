"""Real data for benchmarks, from the folder that COMPOSITEGP_DATA names."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """Training and test data."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def folder() -> Path | None:
    """The folder COMPOSITEGP_DATA, or shared/data beside the repository; None where there is neither."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    for candidate in (os.environ.get("COMPOSITEGP_DATA"), beside):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    return None


def uci(name: str) -> Split | None:
    """Split 0 of a table of the UCI collection, standardised; None, and a line that says so, where it is absent."""
    base = folder()
    if base is None or not (base / "uci" / name / "data.csv.gz").exists():
        print(f"  {name}: not found; set COMPOSITEGP_DATA to a folder that holds uci/{name}/data.csv.gz")
        return None
    table = np.loadtxt(base / "uci" / name / "data.csv.gz", delimiter=",")
    test = np.loadtxt(base / "uci" / name / "test_mask.csv.gz", delimiter=",")[:, 0] > 0
    scale = table[~test].std(axis=0)
    table = (table - table[~test].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return Split(table[~test, :-1], table[~test, -1], table[test, :-1], table[test, -1])


def satellite() -> Split | None:
    """The satellite temperatures of Heaton et al. (2019), in degrees; None, and a line that says so, where absent."""
    base = folder()
    path = None if base is None else base / "heaton_satellite_temps.csv.gz"
    if path is None or not path.exists():
        print("  satellite: not found; set COMPOSITEGP_DATA to a folder that holds heaton_satellite_temps.csv.gz")
        return None
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    points = np.column_stack([table["lon"], table["lat"]])
    train, test = table["split"] == "train", table["split"] == "test"
    return Split(points[train], table["temp_true"][train], points[test], table["temp_true"][test])


def precipitation() -> Split | None:
    """US monthly precipitation of April 1948, a tenth of the stations held out; None where it is absent."""
    base = folder()
    path = None if base is None else base / "us_precip_1948_04_spam.csv.gz"
    if path is None or not path.exists():
        print(
            "  precipitation: not found; set COMPOSITEGP_DATA to a folder that holds us_precip_1948_04_spam.csv.gz"
        )
        return None
    table = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    table = table[table["infill"] == 1]
    points = np.column_stack([table["lon"], table["lat"]])
    test = np.random.default_rng(0).permutation(len(points)) < len(points) // 10
    return Split(points[~test], table["anomaly"][~test], points[test], table["anomaly"][test])
