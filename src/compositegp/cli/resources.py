"""Checks before long work: whether results can be written, and whether memory suffices."""

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path

from compositegp.cli.output import CommandError
from compositegp.storage import locked, remove_leftovers

_GIGABYTE = 1e9


def check_output_file(
    path: Path, option: str, inputs: Iterable[Path | None] = (), *, may_be_folder: bool = False
) -> None:
    """Make sure that a file can be written, and remove what killed writers of it left behind.

    Parameters
    ----------
    path : Path
    option : str
        The option that names it, for messages.
    inputs : iterable of Path or None
        Files that are read, which must not be overwritten.
    may_be_folder : bool
        Whether what is written is a folder, such as a Zarr store.
    """
    if path.is_dir() and not may_be_folder:
        raise CommandError(f"{option} {path} is a folder. Give a file.")
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe
        return
    folder = path.resolve().parent
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise CommandError(f"{option} {path} cannot be written: the folder {folder} {what}.")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise CommandError(f"{option} {path} cannot be written: it is read-only for you.")
    for other in inputs:
        if other is not None and path.exists() and other.exists() and path.samefile(other):
            raise CommandError(f"{option} {path} is a file that is read. Give another one, so that it is kept.")
    if not path.is_dir():
        remove_leftovers(path)


def check_model_file(path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Make sure that a model can be saved: that its file can be written, and no other process works with it."""
    check_output_file(path, "--save", inputs)
    with saving(path):
        pass


def saving(path: Path) -> AbstractContextManager[None]:
    """The lock on a file for a model; none for a device or a pipe, or where the system has no locks."""
    if find_spec("fcntl") is None or (path.exists() and not path.is_file()):
        return nullcontext()
    return locked(path)


def check_output_folder(path: Path, names: Iterable[str], inputs: Iterable[Path | None] = ()) -> None:
    """Make a folder if it is not there, and make sure that files of those names can be written to it."""
    if path.exists() and not path.is_dir():
        raise CommandError(f"--out {path} is a file. Give a folder.")
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        check_output_file(path / name, "--out", inputs)


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise an error if something takes more memory than this machine has.

    Parameters
    ----------
    n_bytes : float
        The memory that it takes.
    what : str
        What takes it: the beginning of the message.
    remedy : str
        What to do: the end of the message.
    """
    there = physical_memory()
    if there is not None and n_bytes > there:
        raise CommandError(
            f"{what} would take about {n_bytes / _GIGABYTE:,.0f} GB of memory, and this machine has "
            f"{there / _GIGABYTE:,.0f} GB. {remedy}"
        )


def physical_memory() -> int | None:
    """Bytes of memory of this machine, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
