"""A random sample of the rows of an output or a file: the same rows for the same seed."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from marin_assets.browse.cells.table import table_of
from marin_assets.browse.pages.files_of_rows import counted_rows, files_of_rows
from marin_assets.browse.rows.sample import draw, rows_at
from marin_assets.browse.site import Asked, Shown

COUNT, MOST = 20, 100


def sample(asked: Asked) -> Shown:
    seed, count = asked.query.number("seed"), asked.query.number("count", COUNT, most=MOST) or COUNT
    shown = files_of_rows(asked)
    counts, read_bytes = counted_rows(shown)
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
