"""The command line in processes of its own: forked, so that nothing has to be imported again."""

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from compositegp.cli.app import main

_POLL = 0.01  # seconds between two looks


class Command:
    """A command line in another process.

    Parameters
    ----------
    arguments : command line
    folder : Path
        Where its output is kept.
    pipe : bool
        Whether it reads from a pipe, `write`, and not from nothing.
    prepare : callable, optional
        What to do in the process before the command.
    """

    _count = 0

    def __init__(
        self,
        *arguments: object,
        folder: Path,
        pipe: bool = False,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        Command._count += 1
        self._out, self._err = (folder / f"{Command._count}.{end}" for end in ("out", "err"))
        self._ended: int | None = None
        reading, self._writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about threads, of which this process may have some
            self.process = os.fork()
        if self.process == 0:
            _become(arguments, reading if pipe else None, self._writing, self._out, self._err, prepare)
        os.close(reading)
        if not pipe:
            os.close(self._writing)

    def write(self, text: str, *, close: bool = False) -> None:
        """Write to its standard input."""
        os.write(self._writing, text.encode())
        if close:
            os.close(self._writing)

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.code(wait=0.0) is None:
            os.kill(self.process, number)

    def until_lines(self, count: int, seconds: float = 30.0) -> bool:
        """Wait until it has printed some lines; False if it has not within some seconds."""
        return _until(lambda: self.out.count("\n") >= count or self.code(wait=0.0) is not None, seconds) and (
            self.out.count("\n") >= count
        )

    def code(self, wait: float = 60.0) -> int | None:
        """Its exit code, or minus the signal that ended it; None if it does not end in time."""
        _until(self._look, wait)
        return self._ended

    def stop(self) -> None:
        """Kill it, if it is still there."""
        if self.code(wait=0.0) is None:
            os.kill(self.process, signal.SIGKILL)
            self.code()

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self) -> str:
        """What it has printed on standard error."""
        return self._err.read_text() if self._err.exists() else ""

    def _look(self) -> bool:
        if self._ended is None:
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended is not None


def _until(happened: Callable[[], bool], seconds: float) -> bool:
    began = time.monotonic()
    while not happened():
        if time.monotonic() - began >= seconds:
            return False
        time.sleep(_POLL)
    return True


def _become(
    arguments: tuple[object, ...],
    reading: int | None,
    writing: int,
    out: Path,
    err: Path,
    prepare: Callable[[], None] | None,
) -> None:
    """In the new process: the command, and its end."""
    code = 99
    try:
        os.setsid()  # so that what it starts can be found
        os.close(writing)
        os.dup2(os.open(os.devnull, os.O_RDONLY) if reading is None else reading, 0)
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT), 2)
        if prepare is not None:
            prepare()
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        warnings.resetwarnings()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def left_in_session(session: int) -> list[int]:
    """Processes that are alive in the session of a process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended by now
            continue
        if int(fields[3]) == session and fields[0] != "Z" and int(folder.name) != session:
            found.append(int(folder.name))
    return found
