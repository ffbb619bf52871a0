"""Lines of a text file, plain or compressed, in flat memory whatever the file holds.

A file that is cut short or damaged raises; a line that is too long is told as such, and skipped without being held.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO

import zstandard

from marin_assets.documents.document import DocumentError
from marin_resources.storage.filesystem import filesystem_of

MAX_LINE_BYTES = 64 * 1024**2
"""A longer line is no document: the longest books have some 10 MB."""
MAX_EXPANSION = 500
"""Decompressed bytes for one compressed byte. Text reaches 5 to 20, logs 100; gzip's bombs 1,030, zstd's 30,000."""
EXPANSION_IS_JUDGED_FROM = 64 * 1024**2
"""Decompressed bytes."""
CHUNK_BYTES = 128 * 1024
ZSTD_INPUT_BYTES = 4096
"""4 kB of zstd can hold a thousand blocks of 128 kB, which is all that one call then returns."""


class TooLong:
    """Stands for a line of more than MAX_LINE_BYTES."""


TOO_LONG = TooLong()


def read_lines(path: str) -> Iterator[tuple[int, bytes | TooLong]]:
    """(number from 1, line without its end) of a ".gz", ".zst" or plain file. Raises DocumentError for damage."""
    fs, p = filesystem_of(path)
    number = 0
    with fs.open(p, "rb") as raw:
        try:
            for line in _split(_guarded(path, raw)):
                number += 1
                yield number, line
        except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
            raise DocumentError(
                f"{path!r} is damaged or cut short after line {number} ({type(error).__name__}: {error}). "
                "Make or fetch the file again."
            ) from error


def _split(chunks: Iterator[bytes]) -> Iterator[bytes | TooLong]:
    pending: list[bytes] = []
    length = 0
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        length += len(first)
        if length <= MAX_LINE_BYTES:
            pending.append(first)
        else:
            pending.clear()
        if not rest:
            continue
        yield b"".join(pending) if length <= MAX_LINE_BYTES else TOO_LONG
        yield from rest[:-1]  # each shorter than a chunk
        pending, length = [rest[-1]], len(rest[-1])
    if length:
        yield b"".join(pending) if length <= MAX_LINE_BYTES else TOO_LONG


def _guarded(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    """Decompressed chunks, until they outgrow the compressed bytes that were read."""
    decompressed = 0
    for chunk in _decompressed(path, raw):
        decompressed += len(chunk)
        require_expansion(path, decompressed, raw.tell())
        yield chunk


def require_expansion(path: str, decompressed: int, compressed: int) -> None:
    """Raises DocumentError if so many bytes came of so few."""
    if decompressed > EXPANSION_IS_JUDGED_FROM and decompressed > MAX_EXPANSION * max(compressed, 1):
        raise DocumentError(
            f"{path!r} expands to more than {MAX_EXPANSION} times its size ({decompressed:,} bytes from "
            f"{compressed:,}), as a decompression bomb does. Look at it; decompress it yourself if it is sound."
        )


def _decompressed(path: str, raw: IO[bytes]) -> Iterator[bytes]:
    if path.endswith((".gz", ".zst")):
        if not raw.read(1):  # an upload that failed; no lines are some 20 bytes
            raise EOFError("it has no bytes at all")
        raw.seek(0)
    if path.endswith(".zst"):
        yield from _zstd_chunks(raw)
        return
    stream = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _zstd_chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Frame after frame. zstandard's own stream reader takes a file that is cut short for one that has ended."""
    decompressor, frame = zstandard.ZstdDecompressor(), None
    while data := raw.read(CHUNK_BYTES):
        for start in range(0, len(data), ZSTD_INPUT_BYTES):
            piece = data[start : start + ZSTD_INPUT_BYTES]
            while piece:
                frame = frame or decompressor.decompressobj()
                if chunk := frame.decompress(piece):
                    yield chunk
                piece = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("the last zstd frame has no end")
