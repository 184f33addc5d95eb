"""Files that are written completely or not at all, and archives of models that hold no code."""

from compositegp.storage.archive import damaged, read_archive, unreadable, write_archive
from compositegp.storage.atomic import remove_leftovers, write_atomically
from compositegp.storage.fields import Fields
from compositegp.storage.lock import locked
from compositegp.storage.objects import storable

__all__ = [
    "Fields",
    "damaged",
    "locked",
    "read_archive",
    "remove_leftovers",
    "storable",
    "unreadable",
    "write_archive",
    "write_atomically",
]
