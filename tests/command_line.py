"""The command line in this process: what it prints, and the tables that tests give to it."""

import contextlib
import io
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd

from compositegp.cli.app import main

PROGRAM = [sys.executable, "-m", "compositegp"]
SERIES = ("--time", "time", "--target", "value", "--horizon", "24h")


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self):
        """The one sentence about what went wrong."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return line


def command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def rows(n=24 * 30, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.arange(n)
    values = 50 + 10 * np.sin(2 * np.pi * hours / 24) + rng.normal(size=n)
    return pd.DataFrame({"time": pd.date_range("2024-01-01", periods=n, freq="h"), "value": values})


def write_tables(folder):
    """A series of a month of hours, and a table with a text column in two parts."""
    rows().to_csv(folder / "series.csv", index=False)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 6, 300), "kind": rng.choice(["a", "b"], 300)})
    table["y"] = np.sin(table["x"]) + 2.0 * (table["kind"] == "b") + 0.1 * rng.normal(size=300)
    table[:200].to_csv(folder / "train.csv", index=False)
    table[200:].to_csv(folder / "test.csv", index=False)
