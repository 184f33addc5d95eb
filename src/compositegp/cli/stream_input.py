"""Lines for compositegp stream: from a file, from a file that grows and is replaced, or from standard input."""

import codecs
import io
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from compositegp.cli.output import CommandError, note

LONGEST_LINE = 1 << 20  # characters; the rest of a longer line is dropped, so that memory does not grow
_POLL_INTERVAL = 0.2  # seconds between two looks at a file that may grow, or at a signal
_CHUNK = 1 << 16  # bytes to read at a time
_FINGERPRINT = 64  # bytes before the place that is read next, by which a rewritten file is known


class Line(NamedTuple):
    """A line of text: its number in its file, its text, and whether its end was seen."""

    number: int
    text: str
    is_whole: bool = True


class StopSignals:
    """Inside this ``with`` block SIGTERM and SIGINT only ask for an end: nothing is interrupted.

    A second signal raises KeyboardInterrupt.

    Attributes
    ----------
    received : int or None
        The signal that asked for an end.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._handlers_before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handlers_before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            raise KeyboardInterrupt
        self.received = number


class LineSplitter:
    """Makes lines of bytes that arrive in parts. A line ends with a line feed, a carriage return or both.

    Parameters
    ----------
    encoding : str or None
        UTF-8, with or without a mark, by default. Bytes that are no text become question marks.
    """

    def __init__(self, encoding: str | None) -> None:
        decoder = codecs.getincrementaldecoder(encoding or "utf-8-sig")(errors="replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._begun, self._count = "", 0

    def split(self, content: bytes) -> Iterator[Line]:
        """Lines that these bytes complete; the last one is kept until it ends."""
        *ended, begun = (self._begun + self._decoder.decode(content)).split("\n")
        self._begun = begun[: LONGEST_LINE + 1]
        for text in ended:
            self._count += 1
            yield Line(self._count, text)

    def rest(self, *, is_whole: bool) -> Iterator[Line]:
        """The last line, if it has no end."""
        text = self._begun + self._decoder.decode(b"", final=True)
        self._begun = ""
        if text:
            self._count += 1
            yield Line(self._count, text.rstrip("\n"), is_whole or text.endswith("\n"))


def read_lines(path: Path | None, follow: bool, encoding: str | None, signals: StopSignals) -> Iterator[Line]:
    """Read lines until the input ends or a signal asks for an end.

    Parameters
    ----------
    path : Path or None
        None is standard input. What a pipe holds when a signal arrives is read too: its sender would not send it again.
    follow : bool
        At the end of the file wait for more, and for the file itself if it does not exist yet. A file that takes its
        place, and one that is truncated, are read from their beginning.
    encoding : str or None
    signals : StopSignals

    Yields
    ------
    Line
        Numbers begin again at 1 where another file begins.
    """
    if path is not None and follow:
        _wait_for(path, signals)
        if signals.received is None and stat.S_ISREG(path.stat().st_mode):
            yield from _followed_lines(path, encoding, signals)
            return
    if signals.received is None or path is None:
        splitter = LineSplitter(encoding)
        with open(path or _standard_input(), "rb", buffering=0, closefd=path is not None) as file:
            for chunk in _chunks(file.fileno(), signals):
                yield from splitter.split(chunk)
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        if signals.received is None or not is_file:
            yield from splitter.rest(is_whole=signals.received is None)


def _standard_input() -> int:
    if sys.stdin is None:
        raise CommandError("standard input is closed. Give a file.")
    return sys.stdin.fileno()


def _wait_for(path: Path, signals: StopSignals) -> None:
    """Wait until there is a file of that name, or a signal."""
    while signals.received is None and not path.exists():
        time.sleep(_POLL_INTERVAL)


def _chunks(descriptor: int, signals: StopSignals) -> Iterator[bytes]:
    """Read a file or a pipe; after a signal what a pipe holds, since only a file can be read again."""
    while signals.received is None:
        if select.select([descriptor], [], [], _POLL_INTERVAL)[0]:
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return
            yield chunk
    n_waiting = 0 if stat.S_ISREG(os.fstat(descriptor).st_mode) else _bytes_waiting(descriptor)
    while n_waiting > 0:
        chunk = os.read(descriptor, min(_CHUNK, n_waiting))
        if not chunk:
            return
        n_waiting -= len(chunk)
        yield chunk


def _bytes_waiting(descriptor: int) -> int:
    """Number of bytes that can be read without waiting."""
    import fcntl
    import termios

    answer = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
    return int.from_bytes(answer, sys.byteorder, signed=True)


def _followed_lines(path: Path, encoding: str | None, signals: StopSignals) -> Iterator[Line]:
    """Lines of the file that has a name, also after another file took its place."""
    while signals.received is None:
        with _opened_when_there(path, signals) as file:
            splitter, offset, recent = LineSplitter(encoding), 0, b""
            was_replaced = False
            while signals.received is None:
                if _was_rewritten(file.fileno(), offset, recent):
                    note(f"{path} was truncated. It is read again from its beginning.")
                    yield from splitter.rest(is_whole=False)
                    file.seek(0)
                    splitter, offset, recent = LineSplitter(encoding), 0, b""
                chunk = file.read(_CHUNK) or b""
                if chunk:
                    offset += len(chunk)
                    recent = (recent + chunk)[-_FINGERPRINT:]
                    yield from splitter.split(chunk)
                elif was_replaced:  # and what its writer added after that has been read
                    break
                else:
                    was_replaced = _is_another_file(path, file.fileno())
                    if not was_replaced:
                        time.sleep(_POLL_INTERVAL)
            if signals.received is None:
                yield from splitter.rest(is_whole=False)
                note(f"{path} was replaced by another file, which is read from its beginning.")


def _opened_when_there(path: Path, signals: StopSignals) -> Any:
    """Open a file, which may be gone for a moment while another one takes its name."""
    while True:
        _wait_for(path, signals)
        try:
            return open(path, "rb", buffering=0)
        except FileNotFoundError:
            if signals.received is not None:
                return open(os.devnull, "rb", buffering=0)


def _was_rewritten(descriptor: int, offset: int, recent: bytes) -> bool:
    """Whether a file is shorter than what was read of it, or has other bytes where reading ended."""
    if os.fstat(descriptor).st_size < offset:
        return True
    return os.pread(descriptor, len(recent), offset - len(recent)) != recent


def _is_another_file(path: Path, descriptor: int) -> bool:
    """Whether a name belongs to another file by now; not while no file has it."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return not os.path.samestat(there, os.fstat(descriptor))
