"""Tables: CSV files in every shape that a user may have. The answer is that of the clean file, or one sentence."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attack.cases import Budget, Ended, command, is_sound
from attack.csv_changes import COLUMNS, LAYOUT, Change, of_numbers, of_times
from attack.figures import Figures
from attack.model_rows import compared
from compositegp.forecasting import CompositeGPForecaster

_SAME = 1e-6  # difference of two answers, in standard deviations, from which they are not the same
_ALIKE = 0.3  # for rows in another order, a column more or a row less: learning takes another way to the same place


def tables(budget: Budget, rows: dict[str, Figures]) -> None:
    """The verbs regress and forecast, on changed files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        verbs: dict[str, _Regress | _Forecast] = {
            "tables for regress": _Regress(folder),
            "tables for forecast": _Forecast(folder),
        }
        cases = [(verb, change) for verb, kind in verbs.items() for change in kind.changes]
        order = np.random.default_rng(budget.seed).permutation(len(cases))
        for number, rng in budget.cases("tables"):
            verb, change = cases[order[number % len(cases)]]
            found = verbs[verb].tried(change, rng)
            figures = rows.setdefault(verb, Figures())
            figures.add(found.outcome, f"--part tables --case {number} ({change.name}): {found.message[:300]}")


class _Regress:
    """One table to learn from and one to predict; either may be changed."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(1)
        table = pd.DataFrame({"a": rng.uniform(1, 10, 52), "b": rng.uniform(-5, 5, 52), "kind": ["u", "v"] * 26})
        table["y"] = (table["a"] + 0.5 * table["b"] + (table["kind"] == "u") + 0.1 * rng.normal(size=52)).round(4)
        text = table.round(4).to_csv(index=False)
        head, *lines = text.splitlines()
        self._train, self._test = ("\n".join([head, *part]) + "\n" for part in (lines[:40], lines[40:]))
        self._folder = folder
        train = [*LAYOUT, *of_numbers(0), *of_numbers(3), *COLUMNS, Change("100,000 columns", _wide, False)]
        test = [*LAYOUT, *of_numbers(1)]
        self.changes = [change._replace(name=f"to learn from: {change.name}") for change in train]
        self.changes += [change._replace(name=f"to predict: {change.name}") for change in test]
        clean = self._answer(self._train, self._test, "utf-8", "utf-8")
        assert clean.outcome == "right", clean
        self._clean = clean.value

    def tried(self, change: Change, rng: np.random.Generator) -> Ended:
        """How a change ends."""
        learn = change.name.startswith("to learn from")
        train = change.apply(self._train, rng) if learn else self._train
        test = self._test if learn else change.apply(self._test, rng)
        found = self._answer(
            train, test, change.encoding if learn else "utf-8", "utf-8" if learn else change.encoding
        )
        if not learn and "another order" in change.name and found.outcome == "right":
            found = Ended("right", np.sort(found.value, axis=0))
            return _compared(found, np.sort(self._clean, axis=0), change)
        if not learn and "no header" in change.name and found.outcome == "right":
            return Ended("wrong", message="answered without a header")
        return _compared(found, self._clean, change)

    def _answer(self, train: str, test: str, train_encoding: str, test_encoding: str) -> Ended:
        paths = self._folder / "train.csv", self._folder / "test.csv", self._folder / "predictions.csv"
        paths[0].write_bytes(train.encode(train_encoding))
        paths[1].write_bytes(test.encode(test_encoding))
        paths[2].unlink(missing_ok=True)
        options = ["--target", "y", "--predict", paths[1], "--out", paths[2], "--jobs", 1]
        found = command("regress", paths[0], *options)
        if found.outcome != "right":
            return found
        if not paths[2].exists():
            return Ended("lost", message="no predictions were written")
        columns = pd.read_csv(paths[2], skip_blank_lines=False)[["mean", "std"]].to_numpy()
        return Ended(is_sound(columns), columns, "predictions")


class _Forecast:
    """A series of hours that may be changed."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(2)
        hours = np.arange(120)
        times = pd.date_range("2024-02-01", periods=120, freq="h").strftime("%Y-%m-%d %H:%M:%S")
        y = 10 + np.sin(2 * np.pi * hours / 24) + 0.1 * rng.normal(size=120)
        self._text = pd.DataFrame({"t": times, "y": y.round(4)}).to_csv(index=False)
        self._folder = folder
        self.changes = [*LAYOUT, *of_numbers(1), *of_times(_day_first)]
        clean = self._answer(self._text, "utf-8")
        assert clean.outcome == "right", clean
        self._clean = clean.value

    def tried(self, change: Change, rng: np.random.Generator) -> Ended:
        """How a change ends."""
        found = self._answer(change.apply(self._text, rng), change.encoding)
        return _compared(found, self._clean, change)

    def _answer(self, text: str, encoding: str) -> Ended:
        path = self._folder / "series.csv"
        path.write_bytes(text.encode(encoding))
        options = ["--time", "t", "--target", "y", "--horizon", 3, "--out", self._folder / "out", "--jobs", 1]
        found = command("forecast", path, *options, "--json")
        if found.outcome != "right":
            return found
        steps = json.loads(found.value[0])["forecast"]
        seconds = [pd.Timestamp(step["t"]).tz_localize(None).timestamp() for step in steps]
        values = np.array([[step["mean"], step["std"], at] for step, at in zip(steps, seconds, strict=True)])
        return Ended(is_sound(values), values, "forecast")


def _compared(found: Ended, clean: Any, change: Change) -> Ended:
    """Whether an answer is that of the clean file, where it may be answered."""
    if found.outcome != "right":
        return found
    if not change.may_be_answered:
        return Ended("wrong", message="answered, though it cannot be")
    tolerance = (
        _ALIKE
        if any(word in change.name for word in ("another order", "column", "cut off", "empty time"))
        else _SAME
    )
    if found.value.shape != clean.shape:
        return Ended("wrong", message=f"{len(found.value)} rows for {len(clean)}")
    off = float((np.abs(found.value - clean) / clean[:, 1:2]).max())
    return Ended("right") if off <= tolerance else Ended("wrong", message=f"off by {off:.2g} standard deviations")


def _wide(text: str, rng: np.random.Generator) -> str:
    head, *lines = text.splitlines()
    names = ",".join(f"x{i}" for i in range(100_000))
    rows = [",".join(map(str, rng.integers(10, size=100_000))) for _ in lines]
    return "\n".join([f"{head},{names}", *(f"{line},{row}" for line, row in zip(lines, rows, strict=True))]) + "\n"


def _day_first(cell: str) -> str:
    date, _, time = cell.partition(" ")
    year, month, day = date.split("-")
    return f"{day}/{month}/{year} {time}"


def stream_rows(budget: Budget, rows: dict[str, Figures]) -> None:
    """The verb stream: each row is in the model with its value, or it is named as skipped."""
    figures = rows.setdefault("rows for stream", Figures())
    with tempfile.TemporaryDirectory() as name:
        stream = _Stream(Path(name))
        changes = [*LAYOUT, *of_numbers(1), *of_times(_day_first)]
        for number, rng in budget.cases("rows"):
            change = changes[number % len(changes)]
            found = stream.tried(change, rng)
            figures.add(found.outcome, f"--part rows --case {number} ({change.name}): {found.message[:300]}")


class _Stream:
    """A model, and rows for it that may be changed."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(3)
        index = pd.date_range("2024-02-01", periods=144, freq="h")
        y = pd.Series((10 + rng.normal(size=144)).round(3), index=index)
        model = CompositeGPForecaster(n_neighbors=200).fit(y[:120])
        self._path, self._file = folder / "model.cgp", folder / "rows.csv"
        self._start = folder / "start.cgp"
        model.save(self._start, time="t", target="y", horizon=3)
        self._rows = y[120:]
        times = self._rows.index.strftime("%Y-%m-%d %H:%M:%S")
        self._text = pd.DataFrame({"t": times, "y": self._rows.to_numpy()}).to_csv(index=False)

    def tried(self, change: Change, rng: np.random.Generator) -> Ended:
        """How a change ends."""
        self._path.write_bytes(self._start.read_bytes())
        self._file.write_bytes(change.apply(self._text, rng).encode(change.encoding))
        found = command("stream", self._path, self._file, "--segment", 4)
        if found.outcome not in ("right", "refused"):
            return found
        latest = CompositeGPForecaster.load(self._path).observations_["value"]
        taken = latest[latest.index >= self._rows.index[0]]  # fewer than the latest rows that the model keeps
        if taken.index.has_duplicates:
            return Ended("twice", message=f"{taken.index.duplicated().sum()} times are there twice")
        known = taken.index.isin(self._rows.index)
        strange = taken[~known]
        off = taken[known] - self._rows[taken.index[known]]
        if len(strange) or off.abs().max() > 1e-9:
            return Ended(
                "wrong", message=f"{len(strange)} rows that nobody sent, {int((off.abs() > 1e-9).sum())} changed"
            )
        in_one_run = compared(self._path, self._start, taken)
        if in_one_run.outcome != "right":
            return in_one_run
        missing = len(self._rows) - len(taken)
        if found.outcome == "refused":
            return found
        said = found.value[1].count("skipped") + found.value[1].count("not observed")
        if missing > said and not change.name.startswith("nothing"):
            return Ended(
                "lost", message=f"{missing} rows are not in the model, and {said} were named: {found.value[1]}"
            )
        return Ended("right")
