"""Merge the ids of all shards of an output into one table (`id_table.py`), when its function has returned.

In:  the path of an output.   Out: nothing.   Written: `.marin/ids` there; nothing for an output of few shards.

The index of each shard has its ids sorted by their hash. They are read at once of many shards, to a file on this
machine, and sorted in parts of 128 MiB: the memory is bounded, and equal outputs have equal tables. A process that is
killed meanwhile leaves no table, and the next attempt writes it. An output whose ids cannot be merged has no table
and a line in the log: it is searched shard by shard, as outputs of before are.
"""

from __future__ import annotations

import logging
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable
from marin_assets.documents.frames.id_table import (
    BLOCK_IDS,
    COUNTS,
    FENCE,
    MAGIC,
    MOST_BLOCKS,
    NAME,
    RECORD_BYTES,
    VERSION,
    Covered,
    encode_names,
)
from marin_assets.documents.frames.index import open_indexed
from marin_assets.documents.frames.layout import ID_BYTES
from marin_assets.documents.frames.writer import HASH_BYTES
from marin_resources.storage.files import StoredFile, open_atomic, remove, stored_files
from marin_resources.storage.paths import is_local, join

if TYPE_CHECKING:
    import numpy as np

FEWEST_SHARDS = 8
"""Fewer are searched with at most 16 requests, and need no table."""
PART_IDS = 8 * 1024**2
"""Ids that are sorted at once."""
THREADS = 32
AT_ONCE = 128
"""Shards whose ids are in memory at once."""
NAMES_OF_CACHES = "names.json"

log = logging.getLogger(__name__)


def merge_ids(output_path: str) -> None:
    """Write the table of ids of an output; remove one that an earlier attempt has left if it has too few shards."""
    try:
        files = stored_files(output_path)
        shards = [file for file in files if is_readable(file.name)]
        if not shards:
            return
        with tempfile.TemporaryFile() as spool:
            covered = list(_spool(shards, spool)) if len(shards) >= FEWEST_SHARDS else []
            if len(covered) < FEWEST_SHARDS:
                remove(join(output_path, NAME))
                return
            names = sum(file.name.rpartition("/")[2] == NAMES_OF_CACHES for file in files)
            _write(join(output_path, NAME), spool, covered, len(shards) - len(covered) + names)
    except FileNotFoundError:  # the function has written nothing
        return
    except (OSError, ImportError) as error:  # the output is whole without it, and numpy is in an extra
        log.warning("the ids of %r are not in a table, so a document is searched in each shard: %s", output_path, error)


def _spool(shards: Sequence[StoredFile], spool: IO[bytes]) -> Iterator[Covered]:
    """Write the records of all shards; yield those that have an index of ids, in order."""
    number, threads = 0, 1 if is_local(shards[0].path) else THREADS
    with ThreadPoolExecutor(threads) as pool:
        read_all = map if threads == 1 else pool.map  # a disk answers before a thread begins
        for first in range(0, len(shards), AT_ONCE):
            group = shards[first : first + AT_ONCE]
            for file, read in zip(group, read_all(_ids_of, group), strict=True):
                if read is not None:
                    ids, rows = read
                    spool.write(_records(ids, number))
                    number += 1
                    yield Covered(name=file.name, size_bytes=file.size_bytes, rows=rows)
    spool.flush()


def _ids_of(file: StoredFile) -> tuple[bytes, int] | None:
    """The index of ids of a shard, and its rows; None if it has none, or is damaged: a function may download any."""
    try:
        shard = open_indexed(file.path, file.size_bytes)
    except DocumentError as error:
        log.warning("%s", error)
        return None
    if shard is None or (shard.index.rows and not shard.index.ids):
        return None
    return shard.ids_bytes(), shard.index.rows


def _records(ids: bytes, shard: int) -> bytes:
    """Records of the table from those of a shard."""
    import numpy as np

    read = np.frombuffer(ids, dtype=np.uint8).reshape(-1, ID_BYTES)
    written = np.empty((len(read), RECORD_BYTES), dtype=np.uint8)
    written[:, :HASH_BYTES] = read[:, :HASH_BYTES]
    written[:, HASH_BYTES : HASH_BYTES + 4] = np.frombuffer(shard.to_bytes(4, "big"), dtype=np.uint8)
    written[:, HASH_BYTES + 4 :] = read[:, HASH_BYTES:]
    return written.tobytes()


def _write(path: str, spool: IO[bytes], covered: Sequence[Covered], others: int) -> None:
    import numpy as np

    spool.seek(0, 2)
    ids = spool.tell() // RECORD_BYTES
    if not ids:
        return
    records = np.memmap(spool, dtype=[("hash", ">u8"), ("place", ">u8")], mode="r", shape=(ids,))
    block_ids = max(BLOCK_IDS, -(-ids // MOST_BLOCKS))
    fences = bytearray()
    with tempfile.TemporaryFile() as blocks:
        for block in _blocks(records, block_ids):
            blocks.write(block)
            fences += FENCE.pack(block[:HASH_BYTES], zlib.crc32(block))
        names = encode_names(covered, others)
        checksum = zlib.crc32(fences, zlib.crc32(names))
        counts = COUNTS.pack(VERSION, ids, block_ids, len(fences) // FENCE.size, len(names), checksum)
        blocks.seek(0)
        with open_atomic(path) as out:
            for piece in (MAGIC, counts, names, bytes(fences)):
                out.write(piece)
            while piece := blocks.read(1024**2):
                out.write(piece)


def _blocks(records: np.memmap[Any, Any], block_ids: int) -> Iterator[bytes]:
    """The blocks of the table: records by hash, then by shard and row."""
    size, kept = block_ids * RECORD_BYTES, b""
    for part in _sorted_parts(records):
        data = kept + part
        whole = len(data) - len(data) % size
        yield from (data[i : i + size] for i in range(0, whole, size))
        kept = data[whole:]
    if kept:
        yield kept


def _sorted_parts(records: np.memmap[Any, Any]) -> Iterator[bytes]:
    """The records in order: those of one range of hashes after the other. Hashes are evenly distributed."""
    import numpy as np

    parts = -(-len(records) // PART_IDS)
    for low, high in pairwise(part * 2**64 // parts for part in range(parts + 1)):
        chosen = []
        for first in range(0, len(records), PART_IDS):
            window = records[first : first + PART_IDS]
            hashes = window["hash"].astype(np.uint64)
            chosen.append(np.asarray(window[(hashes >= low) & (hashes <= high - 1)]))
        part = np.concatenate(chosen).astype(records.dtype)  # concatenated, they are in the machine's byte order
        order = np.lexsort((part["place"].astype(np.uint64), part["hash"].astype(np.uint64)))
        yield part[order].tobytes()
