"""The records of a WARC file that is one stream: plain, zstd or lz4. It cannot be entered in the middle.

After damage the borders of records are lost, so the first Damage is the last item.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import zstandard

from marin_assets.documents.jsonl.lines import decompressed_chunks
from marin_assets.stages.download.warc.members import RawFile, Readable, gzip_records, next_member
from marin_assets.stages.download.warc.record import CHUNK_BYTES, CrawlError, Damage, Record, parse_records

ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes((0x50 + low, 0x2A, 0x4D, 0x18)) for low in range(16)))
"""First bytes of a frame, and of one that is skipped."""
LZ4 = (b"\x04\x22\x4d\x18",)
GZIP = b"\x1f\x8b"


def records_from(file: Readable, name: str, start: int) -> Iterator[Record | Damage]:
    """Yield the records of a file of any kind, of a gzip file those whose members begin at `start` or after it.

    Raises CrawlError for a file that is no WARC file by its first bytes, and is no damaged gzip file.
    """
    head = file.read_at(0, 8)
    if head.startswith(GZIP):
        return gzip_records(file, start)
    if head.startswith(b"WARC/"):
        return _stream(file, "")
    if head.startswith(ZSTD):
        return _stream(file, ".zst")
    if head.startswith(LZ4):
        return _stream(file, ".lz4")
    if name.lower().endswith(".gz") and next_member(file, 0) is not None:
        return gzip_records(file, start)
    raise CrawlError(
        f"The file {name!r} begins with {head!r}, expected a WARC file: plain, or compressed with gzip, zstd or lz4. "
        "Leave it out, or download it again."
    )


def is_divisible(file: Readable) -> bool:
    """Whether records can be searched from any offset on."""
    return not file.read_at(0, 8).startswith((b"WARC/", *ZSTD, *LZ4))


def _stream(file: Readable, compression: str) -> Iterator[Record | Damage]:
    raw = RawFile(file, 0)
    chunks = _lz4_chunks(raw) if compression == ".lz4" else decompressed_chunks(raw, compression)  # type: ignore[arg-type]
    position = 0
    try:
        for item in parse_records(chunks, 0 if not compression else -1, is_plain=not compression):
            position = item.offset
            yield item
    except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
        if raw.error is not None:
            raise raw.error from error
        yield Damage(position, "cut_record" if isinstance(error, EOFError) else "damaged_record", str(error))


def _lz4_chunks(raw: RawFile) -> Iterator[bytes]:
    from fastwarc.stream_io import Lz4Reader

    reader = Lz4Reader(raw)
    while chunk := reader.read(CHUNK_BYTES):
        yield chunk
