"""The members of an archive: only those that are asked for are read, and none is larger than the file says."""

import io
import zipfile
from typing import Any, BinaryIO

import numpy as np

_MOST_TEXT = 16 * 2**20  # bytes of the JSON text; arrays are not part of it
_KINDS = "biufU"  # types of arrays: truth values, whole and real numbers, text


class Members:
    """The members of an archive that `write_archive` wrote.

    They are not compressed, so a file never holds more than its own size. A ValueError says what is wrong.

    Parameters
    ----------
    file : binary file, open for reading

    Examples
    --------
    >>> file = io.BytesIO()
    >>> with zipfile.ZipFile(file, "w") as archive, archive.open("X.npy", "w") as member:
    ...     np.lib.format.write_array(member, np.arange(3))
    >>> Members(file).array("X")
    array([0, 1, 2])
    """

    def __init__(self, file: BinaryIO) -> None:
        size = file.seek(0, io.SEEK_END)
        self._archive = zipfile.ZipFile(file)
        found = self._archive.infolist()
        self._sizes = {member.filename: member.file_size for member in found}
        if len(self._sizes) != len(found):
            raise ValueError("two of its members have the same name")
        for member in found:
            if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
                raise ValueError(f"its member {member.filename[:80]!r} is compressed, which save never does")
        if sum(self._sizes.values()) > size:
            raise ValueError("its members claim to be larger than the file")
        self._arrays: dict[str, Any] = {}

    def text(self, name: str) -> str:
        """A member that is text."""
        if self._sizes.get(name, 0) > _MOST_TEXT:
            raise ValueError(f"its {name} has {self._sizes[name]} bytes, more than the {_MOST_TEXT} of any model")
        return self._read(name).decode()

    def array(self, name: str) -> Any:
        """A member that is an array; the same array if it is asked for again."""
        if name not in self._arrays:
            self._arrays[name] = _array(self._read(f"{name}.npy"), name)
        return self._arrays[name]

    def check_all_named(self, text: str) -> None:
        """Check that there is nothing but the text and the arrays that were asked for."""
        unknown = set(self._sizes) - {text} - {f"{name}.npy" for name in self._arrays}
        if unknown:
            raise ValueError(f"nothing in it names its member {min(unknown)[:80]!r}")

    def _read(self, name: str) -> bytes:
        if name not in self._sizes:
            raise ValueError(f"it has no member {name[:80]!r}")
        return self._archive.read(name)  # reading checks the checksum


def _array(content: bytes, name: str) -> Any:
    """An array from the bytes of an npy file. Its header is checked before any memory is taken."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"its array {name!r} has a format that save never writes")
    shape, _, dtype = read_header[version](file)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise ValueError(f"its array {name!r} has the type {dtype}")
    claimed, held = dtype.itemsize, len(content) - file.tell()
    for length in shape:  # whole numbers of Python, which do not overflow
        claimed *= length
    if min(shape, default=0) < 0 or claimed != held:
        raise ValueError(f"its array {name!r} claims {claimed} bytes, and has {held}")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
