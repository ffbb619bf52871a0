"""A random sample of the rows of an output or a file: the same rows for the same seed."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from marin_assets.browse.cells.table import table_of
from marin_assets.browse.errors import LimitError
from marin_assets.browse.pages.files_of_rows import FilesOfRows, files_of_rows
from marin_assets.browse.rows.reader import count_rows
from marin_assets.browse.rows.sample import count_lines, draw, rows_at
from marin_assets.browse.site import Asked, Shown

COUNT, MOST = 20, 100
MOST_COUNTED_BYTES = 256 * 1024**2
"""Bytes of files without a count that are read in order to count their rows."""


def sample(asked: Asked) -> Shown:
    seed, count = asked.query.number("seed"), asked.query.number("count", COUNT, most=MOST) or COUNT
    shown = files_of_rows(asked)
    counts, read_bytes = _counts(shown)
    pairs = draw(counts, count, seed)
    tables: list[dict[str, Any]] = []
    for index, group in groupby(pairs, key=lambda pair: pair[0]):
        numbers = [number for _, number in group]
        rows = rows_at(shown.files[index].path, numbers)
        table = table_of([(number, rows[number]) for number in numbers if number in rows])
        tables.append({"text": shown.texts[index], "name": shown.files[index].name, "table": table})
    facts: dict[str, Any] = {
        "shown": shown,
        "tables": tables,
        "drawn": len(pairs),
        "too_large": len(pairs) - sum(len(entry["table"].rows) for entry in tables),
        "total": sum(counts),
        "seed": seed,
        "count": count,
        "counted_bytes": read_bytes,
    }
    return Shown(template="sample", facts=facts)


def _counts(shown: FilesOfRows) -> tuple[list[int], int]:
    """The rows of each file, and the bytes of those that were read to be counted. Raises LimitError."""
    counts: list[int] = []
    read = 0
    for file in shown.files:
        rows = shown.noted.get(file.name)
        if rows is None:
            rows = count_rows(file.path)
        if rows is None:
            read += file.size_bytes
            if read > MOST_COUNTED_BYTES:
                raise LimitError(
                    f"The rows of {file.name!r:.200} and of other files are not counted, and more than "
                    f"{MOST_COUNTED_BYTES:,} bytes would be read to count them, the limit. Open one file."
                )
            rows = count_lines(file.path)
        counts.append(rows)
    return counts, read
