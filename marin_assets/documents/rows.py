"""Rows of a file, JSONL (plain, gz, zst) or parquet, read and written in flat memory.

What is no row is told, with its place and the reason, never skipped: the reader decides whether it is counted or fatal.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.lines import MAX_LINE_BYTES, TooLong, read_lines
from marin_assets.documents.parquet import read_parquet, write_parquet
from marin_resources.storage.files import open_atomic

FORMATS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
ZSTD_LEVEL = 3
HALF_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Where a half of a surrogate pair may be escaped; the other half may follow."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def format_of(path: str) -> str:
    """The format that the name of a file says. Raises DocumentError for another."""
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if path.endswith(suffix):
            return suffix
    raise DocumentError(f"{path!r} has no format that can be read or written, expected one of {', '.join(FORMATS)}.")


def check_format(output_format: str) -> None:
    """Raises DocumentError for what is no format to write."""
    if output_format not in FORMATS:
        raise DocumentError(f"output_format is {output_format!r}, expected one of {', '.join(FORMATS)}.")


def read_rows(path: str, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """(line or row number from 1, row) of a file. `columns` are all that parquet needs to read; None reads all.

    Raises DocumentError for a file that is damaged, cut short or lacks a column.
    """
    if format_of(path) == ".parquet":
        yield from read_parquet(path, columns)
        return
    for number, line in read_lines(path):
        if isinstance(line, bytes) and number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if isinstance(line, TooLong) or line.strip():  # a blank line holds nothing that could be lost
            yield number, _parsed(line)


def write_rows(path: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = True) -> int:
    """Write one file of rows, whole or not at all; returns how many. The same rows are the same bytes.

    A function of `map_shards` passes `replace=False`: what is there by then is of a newer writer, and stays.
    """
    if format_of(path) == ".parquet":
        return write_parquet(path, rows, replace=replace)
    count = 0
    with open_atomic(path, replace=replace) as raw, _compressed(path, raw) as out:
        for row in rows:
            count += 1
            out.write(_line(path, count, row))
    return count


def _line(path: str, number: int, row: Mapping[str, Any]) -> bytes:
    try:
        return ENCODER.encode(row).encode() + b"\n"
    except ValueError as error:  # half of a surrogate pair, NaN, an infinity
        raise DocumentError(
            f"Row {number} of {path!r} cannot be written ({error}): {row!r:.200}. Expected text and finite numbers."
        ) from error


def _parsed(line: bytes | TooLong) -> dict[str, Any] | BadRow:
    if isinstance(line, TooLong):
        return BadRow("too_long", f"a line of more than {MAX_LINE_BYTES:,} bytes")
    try:
        row = json.loads(line.decode())
        if HALF_SURROGATE.search(line):
            json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except UnicodeError as error:
        return BadRow("invalid_utf8", str(error))
    except (ValueError, RecursionError) as error:
        return BadRow("invalid_json", str(error))
    return row if isinstance(row, dict) else BadRow("not_an_object", f"JSON of type {type(row).__name__}")


@contextmanager
def _compressed(path: str, raw: IO[bytes]) -> Iterator[Any]:
    if path.endswith(".zst"):
        import zstandard

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).stream_writer(raw, closefd=False) as out:
            yield out
    elif path.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no name, no time: the same bytes
            yield out
    else:
        yield raw
