"""Count the bytes that this process reads from files on the disk, by the path of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fsspec.implementations.local import LocalFileOpener

from marin_resources.storage import files
from marin_resources.storage.filesystems.disk import read_on_disk


@contextmanager
def counted_reads() -> Iterator[Counter[str]]:
    """Yield the bytes read so far, by path: whole files, ranges of them and streams, whatever library reads them."""
    read, counts = LocalFileOpener.read, Counter[str]()

    def counted(self: LocalFileOpener, *args: Any, **kwargs: Any) -> Any:
        data = read(self, *args, **kwargs)
        counts[self.path] += len(data)
        return data

    def counted_whole(path: str) -> bytes:
        data = read_on_disk(path)
        counts[path] += len(data)
        return data

    with patch.object(LocalFileOpener, "read", counted), patch.object(files, "read_on_disk", counted_whole):
        yield counts
