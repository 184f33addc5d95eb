"""Kills: the stream dies by SIGKILL at named points and at random times, and goes on as if it had not."""

import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attack.cases import Budget
from attack.figures import Figures
from attack.model_rows import members
from attack.processes import Command
from compositegp.cli import stream_opening
from compositegp.forecasting import CompositeGPForecaster
from compositegp.storage import atomic

POINTS = (
    "temporary file opened",
    "half written",
    "before fsync",
    "after fsync",
    "before rename",
    "after rename",
    "before the forecast is printed",
    "after the forecast is printed",
    "at a random time",
)
_ENOUGH = 200  # kills
_KILLS_OF_A_CAMPAIGN = 25
_SEGMENTS = 70  # of new rows in a campaign: more than its kills get through
_LONGEST = 60.0  # seconds of one run


def kills(budget: Budget, rows: dict[str, Figures]) -> None:
    """Campaigns of kills; each ends with a run that is not killed, and is compared with one that never was."""
    figures = rows.setdefault("stream killed", Figures())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done: Counter[str] = Counter()
        # All the kills are made, also on a slow machine, if they fit into twice the time.
        for number, rng in budget.share(2.0).cases("kills"):
            campaign = _Campaign(folder, int(rng.integers(1, 4)), rng)
            for _ in range(_KILLS_OF_A_CAMPAIGN if budget.most is None else budget.most):
                point = POINTS[(done.total() + number) % len(POINTS)]
                if campaign.run_and_kill(point, rng):
                    figures.add("right")
                    done[point] += 1
            for outcome, message in campaign.verdict():
                figures.add(outcome, f"--part kills --case {number}: {message}", tried=0)
            if budget.most is not None or done.total() >= _ENOUGH:
                break
    figures.measures = {point: [count] for point, count in done.items()}


class _Campaign:
    """A model, rows for it, and runs of the stream that are killed one after the other."""

    def __init__(self, folder: Path, segment: int, rng: np.random.Generator) -> None:
        count = _SEGMENTS * segment
        index = pd.date_range("2024-02-01", periods=72 + count, freq="h")
        y = pd.Series(10 + rng.normal(size=72 + count), index=index)
        y.iloc[72 + rng.choice(count, 6, replace=False)] = np.nan
        start = folder / "start.cgp"
        CompositeGPForecaster(None, n_neighbors=40, search=False).fit(y[:72]).save(
            start, time="t", target="y", horizon=2
        )
        self._file, self._segment = folder / "rows.csv", segment
        lines = pd.DataFrame({"t": y.index, "y": y.to_numpy()})[72:].to_csv(index=False).splitlines()
        lines.insert(int(rng.integers(2, len(lines))), "no row,at all")
        lines.insert(int(rng.integers(9, len(lines))), lines[3])  # a late one
        self._file.write_text("\n".join(lines) + "\n")
        self._model, self._straight = folder / "killed.cgp", folder / "straight.cgp"
        self._model.write_bytes(start.read_bytes())
        self._straight.write_bytes(start.read_bytes())
        self._printed, self._folder = "", folder
        self._failures: list[tuple[str, str]] = []

    def run_and_kill(self, point: str, rng: np.random.Generator) -> bool:
        """Run the stream and kill it at the nth time that it comes to a point; False if it ended before."""
        nth = int(rng.integers(1, 4))
        command = self._stream(self._model, lambda: _die_at(point, nth))
        if point == "at a random time":
            command.until_lines(nth - 1, _LONGEST)  # however fast the machine is, rows are left
            command.code(wait=float(rng.uniform(0.0, 0.1)))
            command.stop()
        code = command.code(_LONGEST)
        command.stop()
        self._printed += command.out
        if code not in (0, -signal.SIGKILL):
            outcome = "hangs" if code is None else "tracebacks"
            self._failures.append((outcome, f"a run to be killed {point} ended with {code}: {command.err}"))
        return code == -signal.SIGKILL

    def verdict(self) -> list[tuple[str, str]]:
        """What went wrong before, and what is wrong after a last run that is not killed: outcomes with messages."""
        commands = [self._stream(path, lambda: None) for path in (self._model, self._straight)]
        for command in commands:
            if command.code(_LONGEST) != 0:
                command.stop()
                message = f"a run that is not killed ended with {command.code()}: {command.err}"
                return [*self._failures, ("tracebacks", message)]
        self._printed += commands[0].out
        found, expected = (CompositeGPForecaster.load(path).observations_ for path in (self._model, self._straight))
        wrong = list(self._failures)
        lost = expected.index.difference(found.index)
        if len(lost):
            wrong.append(("lost", f"{len(lost)} rows, the first {lost[0]}"))
        if found.index.has_duplicates or len(found.index.difference(expected.index)):
            wrong.append(("twice", "rows that are there twice, or that nobody sent"))
        if members(self._model) != members(self._straight):
            wrong.append(("wrong", "the last model is not the same to the last bit"))
        wrong += _printed_wrong(self._printed, commands[1].out)
        left = [file.name for file in self._folder.iterdir() if file.name.startswith(".")]
        if left:
            wrong.append(("wrong", f"files were left behind: {left}"))
        return wrong

    def _stream(self, model: Path, prepare: Callable[[], None]) -> Command:
        options = ["--segment", self._segment]
        return Command("stream", model, self._file, *options, folder=self._folder, prepare=prepare)


def _printed_wrong(printed: str, straight: str) -> list[tuple[str, str]]:
    """Each forecast of the run that was not killed is printed, the same, and no line is half a line."""
    expected = [json.loads(line) for line in straight.splitlines()]
    by_latest = {line["latest"]: line["forecast"] for line in expected}
    seen = set()
    for line in printed.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            return [("wrong", f"half a line was printed: {line[:60]}")]
        seen.add(found["latest"])
        if by_latest.get(found["latest"]) != found["forecast"]:
            return [("wrong", f"the forecast after {found['latest']} is another one")]
    missing = sorted(by_latest.keys() - seen)
    return [("lost", f"the forecasts after {missing[0]} and others were never printed")] if missing else []


def _die_at(point: str, nth: int) -> None:
    """Let this process kill itself when it comes to a point for the nth time."""
    count = 0

    def here() -> None:
        nonlocal count
        count += 1
        if count >= nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(holder: Any, name: str, *, before: bool) -> None:
        original = getattr(holder, name)

        def replaced(*arguments: Any, **options: Any) -> Any:
            if before:
                here()
            result = original(*arguments, **options)
            if not before:
                here()
            return result

        setattr(holder, name, replaced)

    match point:
        case "temporary file opened":
            _around_open(lambda file: here())
        case "half written":
            _around_open(lambda file: _Halves(file, here))
        case "before fsync" | "after fsync":
            around(os, "fsync", before=point.startswith("before"))
        case "before rename" | "after rename":
            around(os, "replace", before=point.startswith("before"))
        case "before the forecast is printed" | "after the forecast is printed":
            around(stream_opening, "print_forecast", before=point.startswith("before"))


def _around_open(change: Callable[[Any], Any]) -> None:
    """Change the temporary files that are opened for writing."""

    def replaced(path: Any, mode: str = "r", **options: Any) -> Any:
        file = open(path, mode, **options)  # noqa: SIM115  (whoever asked for it closes it)
        return (change(file) or file) if "x" in mode else file

    atomic.open = replaced  # type: ignore[attr-defined]


class _Halves:
    """A file that says so when it is half written."""

    def __init__(self, file: Any, here: Callable[[], None]) -> None:
        self._file, self._here = file, here

    def write(self, content: bytes) -> int:
        """Write a first half, and then the rest."""
        half = len(content) // 2
        self._file.write(content[:half])
        self._file.flush()
        self._here()
        return half + int(self._file.write(content[half:]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Halves":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
