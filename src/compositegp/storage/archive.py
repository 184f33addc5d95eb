"""Files of models: zip archives of NumPy arrays and one JSON text. No code is executed when they are read."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.storage.atomic import write_atomically
from compositegp.storage.members import Members
from compositegp.storage.values import decode, encode

_TEXT = "model.json"
_LONGEST_REASON = 300  # characters of an error that another message quotes


def write_archive(path: str | Path, kind: str, version: int, content: dict[str, Any]) -> None:
    """Write values under their names; an old file is replaced only when the new one is complete.

    Parameters
    ----------
    path : str or Path
    kind : str
        Kind of the file, which `read_archive` asks for.
    version : int
        Version of its format.
    content : dict
        Values that `encode` knows, by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(f"{folder}/model", "example", 1, {"size": 3, "X": np.zeros(2)})
    ...     read_archive(f"{folder}/model", "example", 1)
    {'size': 3, 'X': array([0., 0.])}
    """
    arrays: dict[str, Any] = {}
    encoded = {name: encode(value, name, arrays) for name, value in content.items()}
    text = json.dumps({"format": kind, "version": version, "content": encoded})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_TEXT, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    write_atomically(Path(path), buffer.getvalue())


def read_archive(path: str | Path, kind: str, version: int) -> dict[str, Any]:
    """Read what `write_archive` wrote; a ValueError names the file and what is wrong with it.

    Kernels, means and objects have been checked by their own rules. What the values mean is for the caller to check:
    see `Fields`.

    Parameters
    ----------
    path, kind, version
        As for `write_archive`.

    Returns
    -------
    dict

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(f"{folder}/model", "example", 1, {})
    ...     read_archive(f"{folder}/model", "example", 2)
    Traceback (most recent call last):
    ValueError: ... has version 1 of the format, and this release of compositegp reads version 2. ...
    """
    with open(path, "rb") as file:
        try:
            members = Members(file)
            text = json.loads(members.text(_TEXT))
        except Exception as error:  # a damaged archive can raise many kinds of errors
            raise unreadable(path, f"it is truncated, damaged or of another kind ({_reason(error)})") from error
        if not isinstance(text, dict) or text.get("format") != kind:
            raise unreadable(path, f"it is not a file of a {kind}")
        if text.get("version") != version:
            raise ValueError(
                f"{path} has version {text.get('version')!r:.20} of the format, and this release of compositegp reads "
                f"version {version}. Use the release that wrote it, or one that is newer."
            )
        try:
            content = {name: decode(value, members.array) for name, value in text["content"].items()}
            members.check_all_named(_TEXT)
            return content
        except Exception as error:  # as above, and what is there may be none of our values
            raise damaged(path, error) from error


def unreadable(path: str | Path, why: str) -> ValueError:
    """The error to raise for a file that cannot be read.

    Parameters
    ----------
    path : str or Path
    why : str

    Returns
    -------
    ValueError

    Examples
    --------
    >>> unreadable("model", "it is empty")
    ValueError('model cannot be read: it is empty. Save the model again.')
    """
    return ValueError(f"{path} cannot be read: {why}. Save the model again.")


def damaged(path: str | Path, error: Exception) -> ValueError:
    """The error to raise for a file whose content made another error, in one sentence.

    Parameters
    ----------
    path : str or Path
    error : Exception
        An error that names the file itself stays as it is.

    Returns
    -------
    ValueError

    Examples
    --------
    >>> damaged("model", KeyError("X"))
    ValueError("model cannot be read: a part of it is missing or damaged ('X'). Save the model again.")
    """
    if isinstance(error, ValueError) and str(error).startswith(f"{path} "):
        return error
    return unreadable(path, f"a part of it is missing or damaged ({_reason(error)})")


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= _LONGEST_REASON else f"{words[: _LONGEST_REASON - 1]}…"
