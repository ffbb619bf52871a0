"""Rows and records as they are added, in a file of a disk: what a kill has left of a batch is read from it.

A frame is a line of two lengths and a checksum, the row as JSON, and the bytes of its records. The last frame of a
process that was killed may be torn: reading ends before it. Objects of a bucket cannot be appended to, so a batch
there has no journal.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources.storage.paths import absolute

SUFFIX = ".journal"
HEAD = re.compile(rb"(\d{1,12}) (\d{1,12}) ([0-9a-f]{8})\n")


class Journal:
    """Appends frames to a file. Its owner serializes the calls."""

    def __init__(self, path: str) -> None:
        self._path = absolute(path)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def add(self, row: Mapping[str, Any], records: bytes) -> None:
        """Append a row with its records. Raises OSError if the disk is full."""
        text = json.dumps(row).encode()
        checksum = zlib.crc32(records, zlib.crc32(text))
        frame = memoryview(b"%d %d %08x\n%b%b" % (len(text), len(records), checksum, text, records))
        while frame:
            frame = frame[os.write(self._file, frame) :]

    def remove(self) -> None:
        """Close and remove the file, when its batch is complete. Another process may have removed it."""
        os.close(self._file)
        remove_journal(self._path)


def remove_journal(path: str) -> None:
    try:
        os.unlink(absolute(path))
    except FileNotFoundError:
        return


def frames_in(path: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield rows with their records, up to a frame that is torn."""
    with open(absolute(path), "rb") as file:
        while (head := HEAD.fullmatch(file.readline(64))) is not None:
            text, records = (file.read(int(size)) for size in head.groups()[:2])
            if zlib.crc32(records, zlib.crc32(text)) != int(head[3], 16):
                return
            yield json.loads(text), records
