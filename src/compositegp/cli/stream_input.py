"""Lines for compositegp stream, from a file, a file that grows, or standard input; signals end the reading."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

_POLL_INTERVAL = 0.2  # seconds between two looks at a file that may grow


class StopReading(Exception):  # noqa: N818
    """A signal asked to stop."""


class StopSignals:
    """SIGTERM and SIGINT stop the reading of lines inside this ``with`` block, and nothing else.

    A signal that arrives while a checkpoint is written takes effect at the next `read` or `wait`, which raise
    `StopReading`.
    """

    def __init__(self) -> None:
        self._may_interrupt, self._received = False, False
        self._handlers_before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers_before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def read(self, file: Any) -> str:
        """Read a line, or the part of one that is there."""
        with self._interruptible():
            return str(file.readline())

    def wait(self) -> None:
        """Wait for a file to grow."""
        with self._interruptible():
            time.sleep(_POLL_INTERVAL)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        self._may_interrupt = True  # before the look at what was received, so that no signal falls between the two
        try:
            if self._received:
                raise StopReading
            yield
        finally:
            self._may_interrupt = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._received = True
        if self._may_interrupt:
            raise StopReading


def read_lines(path: Path | None, follow: bool, signals: StopSignals) -> Iterator[str]:
    """Read whole lines.

    Parameters
    ----------
    path : Path or None
        None is standard input.
    follow : bool
        At the end of the file wait for more, and for the file itself if it does not exist yet.
    signals : StopSignals

    Yields
    ------
    str
        A line; half a line only where the input ends with it.
    """
    while follow and path is not None and not path.exists():
        signals.wait()
    if path is None and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    begun = ""
    with sys.stdin if path is None else open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        while True:
            text = signals.read(file)
            begun += text
            if begun.endswith("\n"):
                yield begun
                begun = ""
            elif not text:
                if not follow:
                    if begun:
                        yield begun
                    return
                signals.wait()
