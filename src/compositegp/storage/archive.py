"""Files of models: zip archives of NumPy arrays and one JSON text. No code is executed when they are read."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from compositegp.storage.atomic import write_atomically
from compositegp.storage.values import decode, encode


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
        archive.writestr("model.json", text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    write_atomically(Path(path), buffer.getvalue())


def read_archive(path: str | Path, kind: str, version: int) -> dict[str, Any]:
    """Read what `write_archive` wrote; a ValueError names the file and what is wrong with it.

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
            with zipfile.ZipFile(file) as archive:
                text = json.loads(archive.read("model.json"))
                arrays = {
                    name.removesuffix(".npy"): _array(archive.read(name))  # reading checks the checksum
                    for name in archive.namelist()
                    if name.endswith(".npy")
                }
        except Exception as error:  # a damaged archive can raise many kinds of errors
            raise unreadable(path, f"it is truncated, damaged or of another kind ({error})") from error
    if not isinstance(text, dict) or text.get("format") != kind:
        raise unreadable(path, f"it is not a file of a {kind}")
    if text.get("version") != version:
        raise ValueError(
            f"{path} has version {text.get('version')} of the format, and this release of compositegp reads version "
            f"{version}. Use the release that wrote it, or one that is newer."
        )
    try:
        return {name: decode(value, arrays) for name, value in text["content"].items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise unreadable(path, f"a part of it is missing or damaged ({error})") from error


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


def _array(content: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
