"""A lock on a file, so that two processes do not overwrite each other's work."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file inside a ``with`` block.

    The lock is on an empty file beside it, which is removed at the end. The system gives the lock back when a process
    ends, however it ends: a dead process holds none.

    Parameters
    ----------
    path : Path
        The file to be read and written by this process alone. It need not exist.

    Returns
    -------
    context manager
        It has no value; the lock is given back at the end of the block.

    Raises
    ------
    ValueError
        If another process holds the lock, or this one already does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder) / "model.cgp"):
    ...     with locked(Path(folder) / "model.cgp"):
    ...         pass
    Traceback (most recent call last):
    ValueError: ...model.cgp is in use by another process (...). Wait until it ends, or give each process its own file.
    """
    try:
        import fcntl
    except ImportError as error:
        raise ValueError(f"{path} cannot be locked: this system has no locks as Linux and macOS have.") from error
    path = path.resolve()
    lock = path.parent / f".{path.name}.lock"
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode(errors="replace")
            os.close(descriptor)
            if not isinstance(error, BlockingIOError):
                raise
            raise ValueError(
                f"{path} is in use by another process{holder and f' ({holder})'}. Wait until it ends, or give each "
                "process its own file."
            ) from error
        if _is_the_file(lock, descriptor):
            break
        os.close(descriptor)  # the holder before has removed this file: lock the one that is there now
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        lock.unlink(missing_ok=True)  # before the lock is given back, so that nobody waits for a removed file
        os.close(descriptor)


def _is_the_file(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
