"""A file of another region, open for reading: small parts are read remotely, larger reads copy the file first."""

from __future__ import annotations

from typing import Any

from fsspec.spec import AbstractBufferedFile

from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.storage.mirror.choose import Choice
from marin_resources.storage.mirror.fetch import fetch, read_part
from marin_resources.storage.mirror.protocol import SCHEME, changed
from marin_resources.storage.transfer.regions import Regions

PART_OF_FILE = 0.05
"""Share of a file that is read remotely. Less than this adds little to the price of a later copy."""
READS_IN_A_PART = 4
MIN_READ_BYTES, MAX_READ_BYTES = 64 * 1024, 5 * 1024**2


def part_limit_bytes(size_bytes: int) -> float:
    """Number of bytes of a file that may be read without copying it."""
    return size_bytes * PART_OF_FILE


class MirrorFile(AbstractBufferedFile):
    """Reads up to a twentieth of the file remotely, then copies the file and reads the copy."""

    def __init__(self, fs: Any, relative: str, choice: Choice, regions: Regions) -> None:
        size_bytes = choice.stored.size_bytes
        read_ahead = int(part_limit_bytes(size_bytes) / READS_IN_A_PART)
        super().__init__(
            fs,
            relative,
            mode="rb",
            block_size=min(max(read_ahead, MIN_READ_BYTES // READS_IN_A_PART), MAX_READ_BYTES),
            cache_type="readahead",
            size=size_bytes,
        )
        self._relative, self._choice, self._regions = relative, choice, regions
        self._read_bytes = 0
        self._here: str | None = None

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(end, self.size)
        if self._here is None and self._read_bytes + end - start < part_limit_bytes(self.size):
            self._read_bytes += end - start
            return read_part(self._choice, self._relative, self._regions, start, end)
        if self._here is None:
            self._here = self._copied()
        fs, place = filesystem_of(self._here)
        return fs.cat_file(place, start=start, end=end)

    def _copied(self) -> str:
        copy = fetch(self._relative, self._regions)
        if copy.origin != self._choice.origin:
            raise changed(SCHEME + self._relative)
        return copy.path
