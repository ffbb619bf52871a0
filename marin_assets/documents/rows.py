"""Read and write the rows of a file, lines of JSON (plain or compressed) or parquet, in bounded memory.

A line that is not a row is yielded as a BadRow, with its number and reason, never skipped: the caller counts it or
fails.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.formats import check_format, compression_of, format_of
from marin_assets.documents.frames.writer import FRAME_BYTES, FRAME_ROWS, MAX_FRAME_BYTES, FrameWriter
from marin_assets.documents.jsonl.json_line import LineParser, RepeatedKeys
from marin_assets.documents.jsonl.lines import read_row_lines
from marin_assets.documents.parquet.read import read_parquet
from marin_assets.documents.parquet.write import write_parquet
from marin_resources.storage.files import open_atomic

ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

log = logging.getLogger(__name__)


def read_rows(
    path: str, columns: Sequence[str] | None = None, optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """Yield (line or row number from 1, row) of a file. `columns` limits the columns read from parquet; None reads all.
    `optional`: columns that are read too, of a file that has them.

    A row with a repeated key is a RepeatedKeys; the log counts them. Raises DocumentError for a damaged or truncated
    file, one that is not of the kind that its name claims, or a missing column.
    """
    if format_of(path) == ".parquet":
        yield from read_parquet(path, columns, optional)
        return
    parser, repeated = LineParser(), list[int]()
    for number, line in read_row_lines(path):
        row = parser.row(line)
        if type(row) is RepeatedKeys:
            repeated.append(number)
        yield number, row
    if repeated:
        log.warning(
            "%r has %d rows with a key twice, the first in line %d: the last value counts",
            path, len(repeated), repeated[0],
        )  # fmt: skip


def write_rows(path: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = True) -> int:
    """Write one file of rows atomically. Return the number of rows. Equal rows are equal bytes.

    A function of `map_shards` passes `replace=False`: an existing file was written by a newer writer and is kept.
    """
    written = format_of(path)
    check_format(written)
    if written == ".parquet":
        return write_parquet(path, rows, replace=replace)
    count = 0
    with open_atomic(path, replace=replace) as raw, _writer(path, raw) as write:
        for lines, ids in _frames(path, rows):
            write(lines, ids)
            count += len(lines)
    return count


def _frames(path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[list[bytes], list[object]]]:
    """Yield lines and ids of the rows of each frame."""
    lines, ids, size, before = list[bytes](), list[object](), 0, 0
    for row in rows:
        line = _line(path, before + len(lines) + 1, row)
        lines.append(line)
        ids.append(row.get("id"))
        size += len(line)
        if size >= FRAME_BYTES and (len(lines) >= FRAME_ROWS or size >= MAX_FRAME_BYTES):
            yield lines, ids
            before += len(lines)
            lines, ids, size = [], [], 0
    if lines:
        yield lines, ids


def _line(path: str, number: int, row: Mapping[str, Any]) -> bytes:
    try:
        return ENCODER.encode(row).encode() + b"\n"
    except ValueError as error:  # half of a surrogate pair, NaN, an infinity
        raise DocumentError(
            f"Row {number} of {path!r} cannot be written ({error}): {row!r:.200}. Expected text and finite numbers."
        ) from error
    except RecursionError:
        raise DocumentError(
            f"Row {number} of {path!r}, with the id {row.get('id')!s:.200}, is nested too deeply for JSON. "
            "Flatten its metadata."
        ) from None


@contextmanager
def _writer(path: str, raw: IO[bytes]) -> Iterator[Callable[[list[bytes], list[object]], Any]]:
    """Yield the function that writes lines of rows, and their ids into the index of a shard that has one."""
    compression = compression_of(path)
    if compression == ".zst":
        frames = FrameWriter(raw)
        yield frames.write
        frames.close()
    elif compression == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no name, no time: the same bytes
            yield lambda lines, _: out.writelines(lines)
    else:
        yield lambda lines, _: raw.writelines(lines)
