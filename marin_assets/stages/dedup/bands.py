"""Band files: for one shard of documents, the hash of each band of each document, sorted within a band.

A file consists of blocks of at most 65,536 documents, a block of one section for each band. A section is

    starts    u32 [257]     the first record of the keys that begin with the byte 0, 1, … 255, and the end
    records   [documents]   (key u64, row u32), sorted by key, then row

All numbers are little-endian. The file's size determines the offset of each section, so one band, or a range of its
keys, is read without the others: of `starts` too, only those of the range. They are masked (XOR) with a digest of the
settings and the band, so the starts of other settings are out of order, and the file is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from marin_assets.stages.dedup.minhash import MinHash
from marin_resources.storage.files import StoredFile
from marin_resources.storage.filesystems.filesystem import filesystem_of
from marin_resources.types.errors import MarinError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUFFIX = ".bands"
BLOCK_DOCUMENTS = 1 << 16
"""Documents held in memory while a shard is signed: 7 MB for 14 bands, whatever the size of the shard."""
SLOTS = 256
"""A slot is the first byte of a key."""
FORMAT_VERSION = 2
START_BYTES = 4
HEADER_BYTES = START_BYTES * (SLOTS + 1)
RECORD_BYTES = 12


class BandFileError(MarinError, ValueError):
    """A band file that is damaged, or was written with other settings."""


def write_block(file: IO[bytes], keys: NDArray[np.uint64], rows: NDArray[np.uint32], minhash: MinHash) -> None:
    """Write one block: keys [documents, bands] of the ascending rows [documents]. Write nothing for no documents."""
    import numpy as np

    if not len(rows):
        return
    slot_bounds = np.arange(1, SLOTS, dtype=np.uint64) << np.uint64(56)
    for band in range(minhash.bands):
        order = np.argsort(keys[:, band], kind="stable")
        records = np.empty(len(rows), _record())
        records["key"], records["row"] = keys[order, band], rows[order]
        starts = np.zeros(SLOTS + 1, "<u4")
        starts[1:-1] = np.searchsorted(records["key"], slot_bounds)
        starts[-1] = len(rows)
        file.write((starts ^ _mask(minhash, band)).tobytes())
        file.write(records.tobytes())


def read_band(
    file: StoredFile, minhash: MinHash, band: int, slots: range = range(SLOTS)
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield (keys, rows) of one band, block by block, for keys whose first byte is in `slots`. Raises BandFileError."""
    import numpy as np

    for offset, documents in _sections(file, minhash.bands, band):
        whole = len(slots) == SLOTS
        length = START_BYTES * (len(slots) + 1)
        data = _read(file, offset + START_BYTES * slots.start, length + (RECORD_BYTES * documents if whole else 0))
        starts = np.frombuffer(data[:length], "<u4") ^ _mask(minhash, band)
        if (starts[1:] < starts[:-1]).any() or starts[-1] > documents:
            raise _invalid(file, f"its section for band {band} has another header")
        first, last = int(starts[0]), int(starts[-1])
        data = data[length:]
        if not whole and last > first:
            data = _read(file, offset + HEADER_BYTES + RECORD_BYTES * first, RECORD_BYTES * (last - first))
        keys, rows = _records(data)
        sorted_slots = not len(keys) or slots.start <= keys[0] >> 56 <= keys[-1] >> 56 < slots.stop
        if len(keys) != last - first or (keys[1:] < keys[:-1]).any() or not sorted_slots:
            raise _invalid(file, f"its section for band {band} is not sorted or not complete")
        yield keys, rows


def _read(file: StoredFile, start: int, length: int) -> bytes:
    fs, path = filesystem_of(file.path)
    data: bytes = fs.cat_file(path, start=start, end=start + length)
    if len(data) != length:
        raise _invalid(file, f"it ends before byte {start + length:,}")
    return data


def _mask(minhash: MinHash, band: int) -> np.uint32:
    """Return the low half of a digest of all settings that the keys of a band depend on."""
    import numpy as np
    import xxhash

    settings = f"minhash 1: {minhash.ngram} {minhash.bands} {minhash.rows} {minhash.seed} {band}"
    return np.uint32(xxhash.xxh3_64_intdigest(settings.encode()) & 0xFFFFFFFF)


def _records(data: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    import numpy as np

    records = np.frombuffer(data, _record())
    return records["key"].copy(), records["row"].copy()


def _sections(file: StoredFile, bands: int, band: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, documents) of a band's section in each block."""
    full = bands * (HEADER_BYTES + RECORD_BYTES * BLOCK_DOCUMENTS)
    blocks, rest = divmod(file.size_bytes, full)
    last, uneven = divmod(rest - bands * HEADER_BYTES, bands * RECORD_BYTES) if rest else (0, 0)
    if uneven or last < 0:
        raise _invalid(file, f"{file.size_bytes:,} bytes are not a whole number of records of {bands} bands")
    for number, documents in enumerate([BLOCK_DOCUMENTS] * blocks + [last] * bool(rest)):
        yield number * full + band * (HEADER_BYTES + RECORD_BYTES * documents), documents


def _invalid(file: StoredFile, damage: str) -> BandFileError:
    return BandFileError(
        f"{file.path!r} is not a band file of these settings: {damage}. Remove it, and run the step again."
    )


def _record() -> Any:
    import numpy as np

    return np.dtype([("key", "<u8"), ("row", "<u4")])
