"""The table of the ids of all shards of an output: `.marin/ids`, beside the data. Read the places of an id from it.

    magic               b"marinids"
    counts              version (4 bytes), ids (8), ids of a block (4), blocks (4), bytes of the names (4), CRC-32 of
                        the names and the fences (4); little endian
    names               JSON, compressed by zstd: name, size and rows of each shard in the table, and the number of
                        other files
    fences              for each block its first hash (8) and its CRC-32 (4); big endian
    blocks              for each id its hash (8), the number of its shard (4) and of its row (4); big endian, sorted

An id costs two ranges of the file: names with fences, and the block that the fences name. The hash is that of the index
of a shard (`layout.py`), from which the table is merged when all shards of an output are written (`id_merge.py`). It is
no part of the data: its rows are compared with the id, and an output without it is searched shard by shard.
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import zstandard

from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable
from marin_assets.documents.frames.writer import HASH_BYTES, id_hash
from marin_resources.storage.files import read_range
from marin_resources.storage.paths import join

NAME = ".marin/ids"
MAGIC = b"marinids"
VERSION = 1
COUNTS = struct.Struct("<IQIIII")
FENCE = struct.Struct(">8sI")
RECORD_BYTES = HASH_BYTES + 4 + 4
BLOCK_IDS, MOST_BLOCKS = 1024, 65_536
"""Blocks have 1,024 ids, 16 kB, and more only where they would be more blocks than that: their fences are 786 kB."""
FIRST_BYTES = 64 * 1024
"""The names of about 10,000 shards and the fences of 4 million ids fit."""
MOST_NAMES_BYTES = 256 * 1024**2
MOST_BLOCKS_READ = 64
"""Blocks that may have one hash: it is 32 bits of chance for two ids to have one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Covered:
    """A shard in the table."""

    name: str
    """The path below the output."""
    size_bytes: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class IdTable:
    """The table of an output, with the fences of its blocks."""

    path: str
    shards: Sequence[Covered]
    others: int
    """Files with rows, or with names of documents, that are not in the table."""
    ids: int
    _block_ids: int = field(repr=False)
    _fences: Sequence[tuple[bytes, int]] = field(repr=False)
    _start: int = field(repr=False)
    """Offset of the first block."""

    def places(self, id: str) -> list[tuple[Covered, int]]:
        """The shards and rows that may have the id, in order: those with its hash. Raises DocumentError."""
        digest = id_hash(id)
        firsts = [first for first, _ in self._fences]
        start, end = max(bisect_left(firsts, digest) - 1, 0), bisect_right(firsts, digest)
        if start >= end:
            return []
        if end - start > MOST_BLOCKS_READ:
            raise damaged(self.path, f"{end - start:,} blocks have one hash")
        data = b"".join(self._blocks(start, end))
        hashes = [data[i : i + HASH_BYTES] for i in range(0, len(data), RECORD_BYTES)]
        if sorted(hashes) != hashes:
            raise damaged(self.path, "its ids are not in order")
        low, high = bisect_left(hashes, digest), bisect_right(hashes, digest)
        return [self._place(data[i * RECORD_BYTES : (i + 1) * RECORD_BYTES]) for i in range(low, high)]

    def verify_blocks(self) -> None:
        """Read all blocks and compare their checksums. Raises DocumentError for a damaged one."""
        for start in range(0, len(self._fences), MOST_BLOCKS_READ):
            self._blocks(start, min(start + MOST_BLOCKS_READ, len(self._fences)))

    def _blocks(self, start: int, end: int) -> list[bytes]:
        size = self._block_ids * RECORD_BYTES
        first, last = start * size, min(end * size, self.ids * RECORD_BYTES)
        data = read_range(self.path, self._start + first, self._start + last)
        blocks = [data[i : i + size] for i in range(0, last - first, size)]
        for block, (_, checksum) in zip(blocks, self._fences[start:end], strict=True):
            if zlib.crc32(block) != checksum:
                raise damaged(self.path, "the checksum of a block differs from that of its bytes")
        return blocks

    def _place(self, record: bytes) -> tuple[Covered, int]:
        shard, row = struct.unpack_from(">II", record, HASH_BYTES)
        if shard >= len(self.shards):
            raise damaged(self.path, f"it names shard {shard:,} of {len(self.shards):,}")
        return self.shards[shard], row


def open_id_table(output_path: str) -> IdTable | None:
    """The table of the output with its data at `output_path`; None if it has none. Raises DocumentError."""
    path = join(output_path, NAME)
    try:
        head = read_range(path, 0, FIRST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if head[: len(MAGIC)] != MAGIC or len(head) < len(MAGIC) + COUNTS.size:
        raise damaged(path, "it does not begin as one")
    version, ids, block_ids, blocks, names_bytes, checksum = COUNTS.unpack_from(head, len(MAGIC))
    if version != VERSION:
        return None  # of a newer version of this software: the shards have the same ids
    start = len(MAGIC) + COUNTS.size
    fences_start = start + names_bytes
    end = fences_start + blocks * FENCE.size
    if names_bytes > MOST_NAMES_BYTES or blocks > MOST_BLOCKS or not block_ids or blocks != -(-ids // block_ids):
        raise damaged(path, f"{blocks:,} blocks of {block_ids:,} ids have {ids:,}")
    if end > len(head):
        head += read_range(path, len(head), end)
    if len(head) < end or zlib.crc32(head[start:end]) != checksum:
        raise damaged(path, "the checksum of its names differs from that of its bytes")
    shards, others = _names(path, head[start:fences_start])
    fences = list(FENCE.iter_unpack(head[fences_start:end]))
    return IdTable(path=path, shards=shards, others=others, ids=ids, _block_ids=block_ids, _fences=fences, _start=end)


def encode_names(shards: Sequence[Covered], others: int) -> bytes:
    """The names of a table, in the layout above."""
    value = {"shards": [[shard.name, shard.size_bytes, shard.rows] for shard in shards], "others": others}
    return zstandard.ZstdCompressor().compress(json.dumps(value, separators=(",", ":")).encode())


def damaged(path: str, phrase: str) -> DocumentError:
    return DocumentError(
        f"The table of ids {path!r} is damaged: {phrase}. Remove the file: the shards are searched without it."
    )


def _is_below(name: Any) -> bool:
    """Whether it is the name of a shard below the output, and leads to no other place."""
    return isinstance(name, str) and is_readable(name) and not any(part in ("", ".", "..") for part in name.split("/"))


def _names(path: str, data: bytes) -> tuple[list[Covered], int]:
    try:
        if zstandard.frame_content_size(data) > MOST_NAMES_BYTES:
            raise ValueError("its names are too long")
        value: Any = json.loads(zstandard.ZstdDecompressor().decompress(data))
        shards = [Covered(name=name, size_bytes=int(size), rows=int(rows)) for name, size, rows in value["shards"]]
        outside = [shard.name for shard in shards if not _is_below(shard.name)]
        if outside:
            raise ValueError(f"{outside[0]!r:.80} is no name of a shard")
        return shards, int(value["others"])
    except (ValueError, KeyError, TypeError, RecursionError, zstandard.ZstdError) as error:
        raise damaged(path, f"its names cannot be read ({error})") from error
