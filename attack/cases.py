"""Cases: one after the other until the time is over, each with its own seed, and judged by how it ends."""

import contextlib
import io
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from compositegp.cli.app import main
from compositegp.cli.output import CommandError

_LONGEST_MESSAGE = 1000  # characters of a message that is still one sentence


class TimeLimit(BaseException):
    """A case took too long."""


@dataclass(frozen=True)
class Budget:
    """How much to try.

    Attributes
    ----------
    seed : int
    seconds : float
        No case begins later than this.
    most : int, optional
        Cases, at most.
    only : int, optional
        The one case to run.
    """

    seed: int = 0
    seconds: float = math.inf
    most: int | None = None
    only: int | None = None

    def cases(self, name: str) -> Iterator[tuple[int, np.random.Generator]]:
        """Numbers of cases, each with a source of chance that depends on the seed, the name and the number alone."""
        began, key = time.monotonic(), [self.seed, *name.encode()]
        if self.only is not None:
            yield self.only, np.random.default_rng([*key, self.only])
            return
        number = 0
        while (self.most is None or number < self.most) and time.monotonic() - began < self.seconds:
            yield number, np.random.default_rng([*key, number])
            number += 1

    def share(self, part: float) -> "Budget":
        """A part of the budget, or a multiple of it."""
        most = None if self.most is None else max(1, round(part * self.most))
        return Budget(self.seed, part * self.seconds, most, self.only)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` in the block after some seconds."""

    def stop(*_: Any) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Ended:
    """How a call ended: ``right`` with a value, or as an outcome of `attack.figures` with a message."""

    outcome: str
    value: Any = None
    message: str = ""


def ended(call: Callable[[], Any], *, names: str = "", seconds: float = 60.0) -> Ended:
    """Call something, and say how it ended.

    Parameters
    ----------
    call : callable
    names : str
        Text that a clear error has to have in it, such as the name of a file.
    seconds : float
        After which it hangs.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), time_limit(seconds):
            warnings.simplefilter("ignore")
            return Ended("right", call())
    except TimeLimit:
        return Ended("hangs", message=f"more than {seconds} s")
    except (ValueError, OSError, CommandError) as error:  # a LinAlgError is a ValueError
        return Ended(_clarity(str(error), names), message=str(error))
    except Exception as error:
        return Ended("tracebacks", message=f"{type(error).__name__}: {error}")


def command(*arguments: object, stdin: str = "", names: str = "", seconds: float = 60.0) -> Ended:
    """Run a command line in this process; ``right`` has what it printed on standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()

    def call() -> int:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _standard_input(stdin):
            return main([str(argument) for argument in arguments])

    found = ended(call, seconds=seconds)
    if found.outcome != "right":
        return found if found.outcome == "hangs" else Ended("tracebacks", message=found.message)
    if found.value == 0:
        return Ended("right", (out.getvalue(), err.getvalue()))
    said = [line for line in err.getvalue().splitlines() if line.startswith("error: ")]
    if found.value != 1 or len(said) != 1:
        return Ended("unclear", message=f"exit code {found.value}: {err.getvalue()}")
    last = err.getvalue().rstrip("\n").rpartition("error: ")[2]
    return Ended(_clarity(last, names), message=last)


@contextlib.contextmanager
def _standard_input(text: str) -> Iterator[None]:
    import sys

    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


def _clarity(message: str, names: str) -> str:
    clear = message.strip() and "\n" not in message and len(message) <= _LONGEST_MESSAGE and names in message
    return "refused" if clear else "unclear"


def is_sound(values: Any) -> str:
    """``right`` for finite real numbers, otherwise what is wrong with them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        return "wrong"
    return "right" if np.isfinite(array).all() else "NaN"
