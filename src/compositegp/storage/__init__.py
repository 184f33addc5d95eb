"""Files: written whole or not at all, and archives of models that hold no code."""

from compositegp.storage.archive import read_archive, unreadable, write_archive
from compositegp.storage.atomic import write_atomically

__all__ = [
    "read_archive",
    "unreadable",
    "write_archive",
    "write_atomically",
]
