"""The comparisons of a server, in memory of a limited size: a request continues where the last one ended.

They are named after the path, size and stamp of every file, so a file that is replaced is read again. The least
recently requested ones are dropped, and read again when a page requests them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from marin_assets.browse.rows.difference.comparison import Comparison
from marin_assets.browse.rows.difference.inventory import Inventory
from marin_resources.storage.files import StoredFile

MOST_BYTES = 512 * 1024**2
MOST_ENTRIES = 32

Key = tuple[tuple[str, int, str], ...]


class KeptDifferences:
    """A cache that threads share."""

    def __init__(self) -> None:
        self._entries: OrderedDict[object, Comparison] = OrderedDict()
        self._lock = threading.Lock()

    def comparison(self, before: Sequence[StoredFile], after: Sequence[StoredFile]) -> Comparison:
        """The comparison of these files, as far as earlier requests came with it."""
        key = (_key(before), _key(after))
        with self._lock:
            made = self._entries.get(key)
            if made is None:
                made = Comparison(self._inventory(before), self._inventory(after))
            self._entries[key] = made
            self._entries.move_to_end(key)
            while len(self._entries) > 1 and (self.bytes > MOST_BYTES or len(self._entries) > MOST_ENTRIES):
                self._entries.popitem(last=False)
            return made

    @property
    def bytes(self) -> int:
        """The bytes of all comparisons and of their inventories."""
        inventories = {id(side): side for made in self._entries.values() for side in (made.before, made.after)}
        own = sum(made.bytes for made in self._entries.values())
        return own + sum(inventory.bytes for inventory in inventories.values())

    def _inventory(self, files: Sequence[StoredFile]) -> Inventory:
        """The inventory that another comparison has of these files; a new one without it."""
        key = _key(files)
        for made in self._entries.values():
            for inventory in (made.before, made.after):
                if _key(inventory.files) == key:
                    return inventory
        return Inventory(files)


KEPT = KeptDifferences()
"""That of this process. It has digests alone, and a page must be shown the files before it requests them."""


def _key(files: Sequence[StoredFile]) -> Key:
    return tuple((file.path, file.size_bytes, file.stamp) for file in files)
