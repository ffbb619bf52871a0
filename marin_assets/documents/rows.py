"""Rows of a file, JSONL (plain, gz, zst) or parquet, read and written in flat memory.

What is no row is told, with its place and the reason, never skipped: the reader decides whether it is counted or fatal.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from marin_assets.documents.document import DocumentError
from marin_assets.documents.lines import MAX_LINE_BYTES, TooLong, read_lines
from marin_resources.storage.files import filesystem_of, open_atomic

FORMATS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
PARQUET_BATCH_ROWS = 256
PARQUET_ROW_GROUP_BYTES = 16 * 1024**2
ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that is no row."""

    reason: str
    """too_long, invalid_utf8, invalid_json or not_an_object: a name to count it under."""
    detail: str
    """What was found, for people."""


def format_of(path: str) -> str:
    """The format that the name of a file says. Raises DocumentError for another."""
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if path.endswith(suffix):
            return suffix
    raise DocumentError(f"{path!r} has no format that can be read or written, expected one of {', '.join(FORMATS)}.")


def read_rows(path: str, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """(line or row number from 1, row) of a file. `columns` are all that parquet needs to read; None reads all.

    Raises DocumentError for a file that is damaged, cut short or lacks a column.
    """
    if format_of(path) == ".parquet":
        yield from _parquet_rows(path, columns)
        return
    for number, line in read_lines(path):
        yield number, _parsed(line)


def write_rows(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one file of rows, whole or not at all; returns how many. The same rows are the same bytes."""
    if format_of(path) == ".parquet":
        return _write_parquet(path, rows)
    count = 0
    with open_atomic(path) as raw, _compressed(path, raw) as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            count += 1
    return count


def _parsed(line: bytes | TooLong) -> dict[str, Any] | BadRow:
    if isinstance(line, TooLong):
        return BadRow("too_long", f"a line of more than {MAX_LINE_BYTES:,} bytes")
    try:
        row = json.loads(line.decode())
        if b"\\u" in line:
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

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL).stream_writer(raw, closefd=False) as out:
            yield out
    elif path.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no name, no time: the same bytes
            yield out
    else:
        yield raw


def _parquet_rows(path: str, columns: Sequence[str] | None) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fs, p = filesystem_of(path)
    number = 0
    with fs.open(p, "rb") as raw:
        try:
            file = pq.ParquetFile(raw, pre_buffer=False)
            _require(path, file.schema_arrow.names, columns or ())
            for batch in file.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=columns, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DocumentError(
                f"{path!r} is not sound parquet after row {number} ({type(error).__name__}: {error}). "
                "Make or fetch the file again."
            ) from error


def _require(path: str, there: Sequence[str], wanted: Sequence[str]) -> None:
    for column in wanted:
        if column not in there:
            raise DocumentError(
                f"{path!r} has no column {column!r}, only {', '.join(map(repr, there))}. Name one of these."
            )


def _write_parquet(path: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Every value as text, a number or a truth; a mapping or a list as JSON text. The first row names the columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    writer: Any = None
    with open_atomic(path) as raw:
        for group in _row_groups(rows):
            table = pa.Table.from_pylist(group, schema=writer.schema if writer else None)
            if writer is None:
                writer = pq.ParquetWriter(raw, table.schema, compression="zstd", version="2.6")
            writer.write_table(table)
            count += len(group)
        if writer is None:
            writer = pq.ParquetWriter(raw, pa.schema([("id", pa.string()), ("text", pa.string())]))
        writer.close()
    return count


def _row_groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        flat = {key: json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for key, v in row.items()}
        group.append(flat)
        size += sum(len(v) for v in flat.values() if isinstance(v, str))
        if size >= PARQUET_ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
