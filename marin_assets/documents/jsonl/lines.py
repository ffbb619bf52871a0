"""Read the lines of a text file, plain or compressed, in bounded memory for any content.

A damaged or truncated file raises. A line that is too long is reported as TOO_LONG and never held in memory.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO

import zstandard

from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import compression_of
from marin_assets.documents.jsonl.first_bytes import HEAD_BYTES, require_lines, require_named
from marin_resources.storage.files import open_to_read

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 64 * 1024**2
"""Limit for one line. The longest books have about 10 MB."""
MAX_EXPANSION = 500
"""Decompressed bytes per compressed byte. Text reaches 5 to 20, logs 100; bombs reach 1,030 (gzip), 30,000 (zstd)."""
EXPANSION_IS_CHECKED_FROM = 64 * 1024**2
"""Decompressed bytes; a smaller file may expand to any extent."""
CHUNK_BYTES = 128 * 1024
XZ_MEMORY_BYTES = 256 * 1024**2
"""Limit for the window of an xz stream: `xz -9` needs 65 MB."""
ZSTD_INPUT_BYTES = 4096
"""Bytes passed to one call: 4 kB can hold a thousand blocks of 128 kB, which the call then returns at once."""


class TooLong:
    """Takes the place of a line of more than MAX_LINE_BYTES."""


TOO_LONG = TooLong()


def read_lines(path: str, block_bytes: int | None = None) -> Iterator[tuple[int, bytes | TooLong]]:
    """Yield (number from 1, line without its line feed) of a plain file, or one that is compressed by its name.

    `block_bytes`: bytes that one request to a bucket reads ahead, by default those of the store's client, 5 MiB.
    Raises DocumentError for a damaged or truncated file, and for one that is not of the kind that its name claims.
    """
    number = 0
    with open_to_read(path, block_bytes=block_bytes) as raw:
        try:
            for line in split_lines(_guarded(path, raw)):
                number += 1
                yield number, line
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
            raise DocumentError(
                f"{path!r} is damaged or truncated after line {number} ({type(error).__name__}: {error}). "
                "Write or download the file again."
            ) from error


def read_row_lines(path: str, block_bytes: int | None = None) -> Iterator[tuple[int, bytes | TooLong]]:
    """Yield those of `read_lines` that are rows: without a byte order mark and blank lines, which have no content."""
    for number, line in read_lines(path, block_bytes):
        if isinstance(line, TooLong):
            yield number, line
            continue
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.strip():
            yield number, line


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes | TooLong]:
    """Yield the lines of chunks without their line feeds, TOO_LONG in place of one that is too long."""
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
    """Yield decompressed chunks. Raise if the file is not of the kind that its name claims, or expands too much."""
    decompressed = 0
    require_named(path, head := raw.read(HEAD_BYTES))
    if compression_of(path) and not head:  # a failed upload: a compressed file without lines still has about 20 bytes
        raise EOFError("the file is empty")
    raw.seek(0)
    for chunk in decompressed_chunks(raw, compression_of(path)):
        if not decompressed:
            require_lines(path, chunk)
        decompressed += len(chunk)
        require_expansion(path, decompressed, raw.tell())
        yield chunk


def require_expansion(path: str, decompressed: int, compressed: int) -> None:
    """Raise DocumentError if `decompressed` bytes are too many for `compressed` bytes."""
    if decompressed > EXPANSION_IS_CHECKED_FROM and decompressed > MAX_EXPANSION * max(compressed, 1):
        raise DocumentError(
            f"{path!r} expands to more than {MAX_EXPANSION} times its size ({decompressed:,} bytes from "
            f"{compressed:,}), as a decompression bomb does. Inspect it; decompress it yourself if it is valid."
        )


def decompressed_chunks(raw: IO[bytes], compression: str) -> Iterator[bytes]:
    """Yield the decompressed chunks of a file; `compression` is one of COMPRESSIONS, or "" for none.

    A damaged or truncated file raises EOFError, OSError, zlib.error, lzma.LZMAError or zstandard.ZstdError.
    """
    if compression == ".zst":
        yield from _zstd_chunks(raw)
    elif compression == ".bz2":
        yield from _stream_chunks(raw, bz2.BZ2Decompressor)
    elif compression == ".xz":
        yield from _stream_chunks(raw, lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES), padding=b"\0")
    else:
        stream = gzip.GzipFile(fileobj=raw) if compression == ".gz" else raw
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _stream_chunks(
    raw: IO[bytes], new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], padding: bytes = b""
) -> Iterator[bytes]:
    """Decompress stream by stream: the standard library's file objects ignore what follows the first one if it is none.

    `padding` may stand between streams, and after the last one.
    """
    stream = None
    while data := raw.read(CHUNK_BYTES):
        while data:
            if stream is None and not (data := data.lstrip(padding)):
                break
            stream = stream or new()
            if chunk := stream.decompress(data, CHUNK_BYTES):
                yield chunk
            while not stream.eof and not stream.needs_input:
                yield stream.decompress(b"", CHUNK_BYTES)
            data = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream
    if stream is not None:
        raise EOFError("the last stream is incomplete")


def _zstd_chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress frame by frame: zstandard's own stream reader does not notice a truncated file."""
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
        raise EOFError("the last zstd frame is incomplete")
