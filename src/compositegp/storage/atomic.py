"""Files that are written completely or not at all."""

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import IO


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file. At every moment the file has either the old content or the new content, never a part of one.

    A file that is replaced keeps its permissions and, where that is allowed, its owner. A new one gets those of any
    new file.

    Parameters
    ----------
    path : Path
    content : bytes

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", b"whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # a device or a pipe has no old content to protect
            path.write_bytes(content)
        else:
            _replace(path, content)
    except OSError as error:  # the name of the file that was asked for, and not that of a temporary one
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of writers that were killed while they wrote a file.

    Parameters
    ----------
    path : Path
        The file that was to be written. Temporary files of writers that are alive stay.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left = Path(folder) / ".a.txt.77.1234abcd.tmp"
    ...     left.touch()
    ...     remove_leftovers(Path(folder) / "a.txt")
    ...     left.exists()
    False
    """
    path = path.resolve()
    prefix = f".{path.name}."
    for temporary in path.parent.glob("*.tmp"):
        if temporary.name.startswith(prefix) and _is_of_this_kind(temporary.name.removeprefix(prefix)):
            with contextlib.suppress(OSError), open(temporary, "rb") as file:  # its writer may be done by now
                if _hold(file):
                    temporary.unlink()


def _is_of_this_kind(ending: str) -> bool:
    """Whether the end of a name is that of a temporary file: process, random number, tmp."""
    process, number, *rest = [*ending.split("."), "", ""]
    return process.isdigit() and len(number) == 8 and rest[:1] == ["tmp"]


def _replace(path: Path, content: bytes) -> None:
    temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    exists = path.exists()
    try:
        with open(temporary, "xb", opener=_private if exists else None) as file:
            _hold(file)
            file.write(content)
            file.flush()
            if exists:
                _copy_permissions(path, temporary)
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _private(path: str, flags: int) -> int:
    """Open a file that nobody else may read before it has the permissions of the one that it replaces."""
    return os.open(path, flags, 0o600)


def _copy_permissions(path: Path, temporary: Path) -> None:
    status = path.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):  # only the superuser may give a file away
            os.chown(temporary, status.st_uid, status.st_gid)
    os.chmod(temporary, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # not every file system has extended attributes; access lists are some
            for name in os.listxattr(path):
                os.setxattr(temporary, name, os.getxattr(path, name))


def _hold(file: IO[bytes]) -> bool:
    """Mark a temporary file as one that a living process holds; False if another one holds it.

    The system takes the mark away when the process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # only POSIX systems have such marks; elsewhere nothing is known about other writers
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Make the new name of a file last through a power cut, where the system has a way to do so."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
