"""Read and write the rows of a file, lines of JSON (plain or compressed) or parquet, in bounded memory.

A line that is not a row is yielded as a BadRow, with its number and reason, never skipped: the caller counts it or
fails.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.documents.formats import check_format, compression_of, format_of
from marin_assets.documents.jsonl.json_line import LineParser, RepeatedKeys
from marin_assets.documents.jsonl.lines import TooLong, read_lines
from marin_assets.documents.parquet import read_parquet, write_parquet
from marin_resources.storage.files import open_atomic

ZSTD_LEVEL = 3
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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
    for number, line in read_lines(path):
        if isinstance(line, bytes) and number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if isinstance(line, TooLong) or line.strip():  # a blank line has no content to lose
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
    except RecursionError:
        raise DocumentError(
            f"Row {number} of {path!r}, with the id {row.get('id')!s:.200}, is nested too deeply for JSON. "
            "Flatten its metadata."
        ) from None


@contextmanager
def _compressed(path: str, raw: IO[bytes]) -> Iterator[Any]:
    compression = compression_of(path)
    if compression == ".zst":
        import zstandard

        with zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).stream_writer(raw, closefd=False) as out:
            yield out
    elif compression == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no name, no time: the same bytes
            yield out
    else:
        yield raw
