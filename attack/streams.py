"""Streams that live in a world: files are rotated, signals come, another process wants the model, the disk is full."""

import json
import os
import resource
import signal
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from attack.cases import Budget, Ended
from attack.figures import Figures
from attack.model_rows import compared
from attack.processes import Command, left_in_session
from compositegp.forecasting import CompositeGPForecaster

_KNOWN, _NEW = 72, 24  # rows of the model, and rows for it


def streams(budget: Budget, rows: dict[str, Figures]) -> None:
    """Each scene in turn, until the time is over; a quick run has each scene once."""
    with tempfile.TemporaryDirectory() as name:
        world = _World(Path(name))
        scenes = {scene.__name__: scene for scene in _SCENES}
        for number, rng in budget.cases("streams"):
            quick = budget.most is not None
            for scene in [*scenes] if quick else [list(scenes)[number % len(scenes)]]:
                found = world.played(scenes[scene], rng)
                figures = rows.setdefault("rotation, locks, signals, full disks", Figures())
                figures.add(found.outcome, f"--part streams --case {number} ({scene}): {found.message[-600:]}")


class _World:
    """A model and rows for it, in a folder of their own for each scene."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(4)
        index = pd.date_range("2024-02-01", periods=_KNOWN + _NEW, freq="h")
        self.y = pd.Series((10 + rng.normal(size=len(index))).round(3), index=index)
        self._start = folder / "start.cgp"
        model = CompositeGPForecaster(None, n_neighbors=200, search=False).fit(self.y[:_KNOWN])
        model.save(self._start, time="t", target="y", horizon=2)
        self._commands: list[Command] = []
        self._parent = self.folder = folder

    def played(self, scene: Callable[["_World", np.random.Generator], Ended], rng: np.random.Generator) -> Ended:
        """Play a scene."""
        with tempfile.TemporaryDirectory(dir=self._parent) as name:
            self.folder = Path(name)
            self.model.write_bytes(self._start.read_bytes())
            try:
                return scene(self, rng)
            finally:
                for command in self._commands:
                    command.stop()
                self._commands = []

    @property
    def model(self) -> Path:
        """The model of the scene."""
        return self.folder / "model.cgp"

    def lines(self, start: int = 0, stop: int = _NEW) -> str:
        """Some of the new rows as text."""
        rows = self.y[_KNOWN + start : _KNOWN + stop]
        return "".join(f"{stamp:%Y-%m-%d %H:%M:%S},{value}\n" for stamp, value in rows.items())

    def start(self, *arguments: object, **options: object) -> Command:
        """Start a command."""
        command = Command(*arguments, folder=self.folder, **options)  # type: ignore[arg-type]
        self._commands.append(command)
        return command

    def stream(self, *arguments: object, **options: object) -> Command:
        """Start the stream on the model of the scene."""
        return self.start("stream", self.model, *arguments, **options)

    def compared(self, count: int = _NEW) -> Ended:
        """Whether the model has the first of the new rows, each once, and is that of one run without an end."""
        return compared(self.model, self._start, self.y[_KNOWN : _KNOWN + count])


def rotation(world: _World, rng: np.random.Generator) -> Ended:
    """A file is renamed, and another takes its name."""
    file, split = world.folder / "rows.csv", int(rng.integers(2, 20))
    file.write_text("t,y\n" + world.lines(0, split))
    command = world.stream(file, "--follow", "--segment", 2)
    if not command.until_lines(1 + split // 2):
        return Ended("hangs", message=command.err)
    file.rename(file.with_suffix(".1"))
    if rng.random() < 0.5:
        time.sleep(0.3)
    file.write_text("t,y\n" + world.lines(split))
    return _ended_by(command, world, signal.SIGTERM, 1 + split // 2 + 2)


def truncation(world: _World, rng: np.random.Generator) -> Ended:
    """A file is emptied and written again."""
    file, split = world.folder / "rows.csv", int(rng.integers(2, 20))
    file.write_text("t,y\n" + world.lines(0, split))
    command = world.stream(file, "--follow", "--segment", 2)
    if not command.until_lines(1 + split // 2):
        return Ended("hangs", message=command.err)
    file.write_text("t,y\n" + world.lines(split))
    return _ended_by(command, world, signal.SIGTERM, 1 + split // 2 + 2)


def _ended_by(command: Command, world: _World, number: int, lines: int) -> Ended:
    """Rows that wait are taken in when a signal comes."""
    command.until_lines(lines, 10.0)
    time.sleep(0.5)  # the rest of the file is read, and waits for its segment
    command.send(number)
    code = command.code()
    if code != (0 if number == signal.SIGTERM else 130):
        return Ended("hangs" if code is None else "tracebacks", message=f"exit code {code}: {command.err}")
    return world.compared()


def signal_while_following(world: _World, rng: np.random.Generator) -> Ended:
    """A signal comes while rows wait for their segment to be complete."""
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines())
    command = world.stream(file, "--follow", "--segment", 100)
    if not command.until_lines(1):
        return Ended("hangs", message=command.err)
    return _ended_by(command, world, int(rng.choice([signal.SIGTERM, signal.SIGINT])), 1)


def signal_with_rows_in_the_pipe(world: _World, rng: np.random.Generator) -> Ended:
    """A signal comes while the pipe is full of rows: whoever wrote them will not write them again."""
    command = world.stream("--segment", 2, pipe=True)
    if not command.until_lines(1):
        return Ended("hangs", message=command.err)
    command.write("t,y\n" + world.lines())
    if rng.random() < 0.7:
        time.sleep(float(rng.uniform(0, 0.1)))
    command.send(signal.SIGTERM)
    code = command.code()
    if code != 0:
        return Ended("hangs" if code is None else "tracebacks", message=f"exit code {code}: {command.err}")
    return world.compared()


def two_processes(world: _World, rng: np.random.Generator) -> Ended:
    """A second process is refused in one sentence, and loses nothing of the first one's."""
    command = world.stream("--segment", 1, pipe=True)
    if not command.until_lines(1):
        return Ended("hangs", message=command.err)
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines(12))
    second = world.stream(file, "--segment", 1)
    if second.code() != 1 or second.err.count("\n") != 1 or str(world.model) not in second.err:
        return Ended("lost", message=f"the second process ended with {second.code()}: {second.err}")
    command.write(world.lines(), close=True)
    if command.code() != 0:
        return Ended("tracebacks", message=command.err)
    return world.compared()


def killed_holder(world: _World, rng: np.random.Generator) -> Ended:
    """A dead process holds no lock and leaves no file."""
    command = world.stream("--segment", 1, pipe=True)
    if not command.until_lines(1):
        return Ended("hangs", message=command.err)
    command.write(world.lines(0, 6))
    command.until_lines(int(rng.integers(1, 6)))
    command.send(signal.SIGKILL)
    command.code()
    (world.folder / f".model.cgp.{command.process}.0123abcd.tmp").write_bytes(b"half a file")
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines())
    again = world.stream(file, "--segment", 3)
    if again.code() != 0:
        return Ended("unclear", message=again.err)
    left = [path.name for path in world.folder.iterdir() if path.name.startswith(".")]
    return Ended("wrong", message=f"left behind: {left}") if left else world.compared()


def row_from_the_future(world: _World, rng: np.random.Generator) -> Ended:
    """A row of the year 2099 is held back, and blocks nothing: not in this run and not in the next."""
    file, split = world.folder / "rows.csv", int(rng.integers(1, 12))
    file.write_text(f"t,y\n{world.lines(0, split)}2099-01-01 00:00:00,10\n{world.lines(split, 14)}")
    command = world.stream(file, "--segment", int(rng.integers(1, 5)))
    if command.code() != 0 or "2099" not in command.err:
        return Ended("lost", message=command.err)
    file.write_text(f"t,y\n{world.lines()}")
    again = world.stream(file, "--segment", 5)
    return world.compared() if again.code() == 0 else Ended("lost", message=again.err)


def rows_that_are_none(world: _World, rng: np.random.Generator) -> Ended:
    """Where every row is refused, the exit code says so."""
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines().replace("2024", "no time"))
    command = world.stream(file)
    return world.compared(0) if command.code() == 1 else Ended("lost", message=f"exit code 0: {command.err[-300:]}")


def permissions(world: _World, rng: np.random.Generator) -> Ended:
    """A checkpoint keeps the permissions of the file."""
    mode = int(rng.choice([0o600, 0o640, 0o664, 0o444]))
    world.model.chmod(mode)
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines())
    command = world.stream(file, "--segment", 6)
    if command.code() != 0:
        return Ended("tracebacks", message=command.err)
    found = stat.S_IMODE(world.model.stat().st_mode)
    return (
        world.compared() if found == mode else Ended("wrong", message=f"permissions {found:o} in place of {mode:o}")
    )


def full_disk(world: _World, rng: np.random.Generator) -> Ended:
    """A file that cannot grow: one sentence, and the old model stays whole."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    before = world.model.read_bytes()
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines(0, 6))
    command = world.stream(file, "--segment", 6, prepare=limited)
    if command.code() != 1 or sum(line.startswith("error: ") for line in command.err.splitlines()) != 1:
        return Ended("unclear", message=f"exit code {command.code()}: {command.err}")
    if world.model.read_bytes() != before:
        return Ended("lost", message="the old model is not whole")
    left = [path.name for path in world.folder.iterdir() if path.name.startswith(".")]
    return Ended("wrong", message=f"left behind: {left}") if left else Ended("right")


def output_that_closes(world: _World, rng: np.random.Generator) -> Ended:
    """Whoever reads the forecasts ends: the rows are in the model, or are read again."""
    reading, writing = os.pipe()
    os.close(reading)
    file = world.folder / "rows.csv"
    file.write_text("t,y\n" + world.lines())
    command = world.stream(file, "--segment", 6, prepare=lambda: _to(writing))
    os.close(writing)
    if command.code() not in (0, 1) or "Traceback" in command.err:
        return Ended("tracebacks", message=f"exit code {command.code()}: {command.err}")
    again = world.stream(file, "--segment", 6)
    return world.compared() if again.code() == 0 else Ended("lost", message=again.err)


def _to(descriptor: int) -> None:
    os.dup2(descriptor, 1)


def workers(world: _World, rng: np.random.Generator) -> Ended:
    """A signal ends a command with several processes, all of them."""
    file = world.folder / "table.csv"
    table = rng.normal(size=(4000, 3))
    pd.DataFrame(table, columns=["a", "b", "y"]).to_csv(file, index=False)
    options = ["--target", "y", "--predict", file, "--out", world.folder / "out.csv", "--jobs", 2]
    command = world.start("regress", file, *options)
    began = time.monotonic()
    while not left_in_session(command.process) and time.monotonic() - began < 20 and command.code(wait=0) is None:
        time.sleep(0.02)
    time.sleep(float(rng.uniform(0, 1.5)))
    command.send(int(rng.choice([signal.SIGTERM, signal.SIGINT])))
    code = command.code(30.0)
    if code is None:
        return Ended("hangs", message="it did not end")
    began = time.monotonic()
    while left_in_session(command.process) and time.monotonic() - began < 10:
        time.sleep(0.1)
    left = left_in_session(command.process)
    for process in left:
        os.kill(process, signal.SIGKILL)
    if left or "Traceback" in command.err:
        return Ended(
            "hangs" if left else "tracebacks", message=f"{len(left)} processes stayed: {command.err[-300:]}"
        )
    return Ended("right")


def forecasts_are_whole(world: _World, rng: np.random.Generator) -> Ended:
    """Each line of the output is a forecast, the last one after the last row."""
    command = world.stream("--segment", int(rng.integers(1, 9)), pipe=True)
    text = "t,y\n" + world.lines()
    while text:  # in pieces of any size
        size = int(rng.integers(1, 200))
        command.write(text[:size], close=size >= len(text))
        text = text[size:]
    if command.code() != 0:
        return Ended("tracebacks", message=command.err)
    last = json.loads(command.out.splitlines()[-1])["latest"]
    return (
        world.compared() if last == world.y.index[-1].isoformat() else Ended("lost", message=f"the last is {last}")
    )


_SCENES = (
    rotation,
    truncation,
    signal_while_following,
    signal_with_rows_in_the_pipe,
    two_processes,
    killed_holder,
    row_from_the_future,
    rows_that_are_none,
    permissions,
    full_disk,
    output_that_closes,
    workers,
    forecasts_are_whole,
)
