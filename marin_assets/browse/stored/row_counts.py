"""The rows of the files of an output without reading them: by the notes of its finished shards.

A note has the counts of a stage's function, and a stage counts what it reads as well as what it writes. So ROWS has the
count that is the number of written rows, for the functions of which that is so; a test compares it with the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_assets.documents.formats import is_readable
from marin_resources.storage.files import folders_in, names_in, read_bytes
from marin_resources.storage.paths import join

FOLDER = ".marin/shards"
ROWS = {
    "marin_assets.documents.attributes:decide_shard": "documents",
    "marin_assets.stages.consolidate.consolidate:consolidate_shard": "kept",
    "marin_assets.stages.decontaminate.find_contamination:find_shard": "documents",
    "marin_assets.stages.dedup.decide_near_duplicates:decide_shard": "documents",
    "marin_assets.stages.dedup.exact_documents:decide_documents": "documents",
    "marin_assets.stages.dedup.exact_paragraphs:decide_paragraphs": "documents",
    "marin_assets.stages.download.pydoc:render_shard": "pages",
    "marin_assets.stages.quality.threshold:decide_shard": "documents",
    "marin_assets.stages.transform.html_to_markdown:convert_shard": "documents",
}
"""Function of a shard -> the count that is the rows of the one file of rows that it writes."""
MOST_NOTES = 5000
THREADS = 16


def noted_rows(output_path: str) -> dict[str, int]:
    """Name below the output -> its rows, of the files whose note has that count. A damaged note is passed over."""
    folder = join(output_path, FOLDER)
    notes = [
        join(folder, function, name)
        for function in sorted(folders_in(folder))
        if any(reference.endswith(f":{function}") for reference in ROWS)
        for name in sorted(names_in(join(folder, function)))
        if name.endswith(".json")
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(pair for pairs in pool.map(_rows_in, notes[:MOST_NOTES]) for pair in pairs)


def _rows_in(path: str) -> list[tuple[str, int]]:
    try:
        return list(_rows_of(json.loads(read_bytes(path))))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []  # a note that is damaged, or being written: the file has no count


def _rows_of(note: Any) -> Iterator[tuple[str, int]]:
    """The one file of rows of a note with its count; nothing if it has several."""
    names = [name for name in note["outputs"] if is_readable(name) and not name.startswith(".")]
    rows = note["counts"].get(ROWS.get(note["fn"], ""))
    if len(names) == 1 and isinstance(rows, int):
        yield names[0], rows
