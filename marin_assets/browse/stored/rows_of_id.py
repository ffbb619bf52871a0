"""The row of an id in an output: in the shard and at the row where another output has it, else in any shard.

Attributes are in the order of their documents, so the row of the document is read first. An output of pages has
the id of the document's page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.browse.places import Places
from marin_assets.browse.rows.reader import find_row, read_page
from marin_assets.browse.stored.state import OutputState
from marin_assets.documents.document import DocumentError
from marin_assets.documents.formats import is_readable, without_format
from marin_resources.storage.files import StoredFile, read_bytes, stored_files
from marin_resources.storage.paths import join

NAMES = "names.json"
REJECTED = ".marin/rejected"
NO_IDS = ("metrics.jsonl", "eval_metrics.jsonl", "samples.jsonl")
"""Files of rows without ids of documents."""


@dataclass(frozen=True, kw_only=True)
class RowOfId:
    """A row with the id, or with the id of its page."""

    text: str
    """The address of its file, or of the token cache that has it."""
    number: int
    row: dict[str, Any] = field(repr=False)
    """Empty for a row of a token cache."""
    id: str
    is_tokens: bool = False


@dataclass(frozen=True, kw_only=True)
class Hint:
    """The shard and the row in which another output has the document."""

    shard: str
    """The name of the shard without its format."""
    number: int


def rows_of_id(places: Places, state: OutputState, ids: Sequence[str], hint: Hint | None) -> tuple[list[RowOfId], bool]:
    """The rows of the first of the ids that the output has, at most one a file; and whether it has files with ids.

    Raises DocumentError for a damaged file, LimitError.
    """
    files = _files(state)
    shards = [file for file in files if is_readable(file.name)]
    if hint is not None:
        shards.sort(key=lambda file: (without_format(file.name) != hint.shard, file.name))
    for id in ids:
        for file in shards:
            number = _number(file, id, hint)
            if number is not None:
                row = read_page(file.path, start=number, count=1).rows[0]
                if isinstance(row, dict):
                    return [RowOfId(text=_text(places, state, file), number=number, row=row, id=id)], True
    caches = [file for file in files if file.name.endswith(NAMES)]
    return [row for file in caches for row in _tokens(places, state, file, ids[0])], bool(files)


def rejected_sample(places: Places, state: OutputState, id: str, hint: Hint | None) -> RowOfId | None:
    """The row of the id in a consolidation's sample of the rejected; None if the sample does not have it."""
    try:
        files = stored_files(join(state.data_path, REJECTED))
    except FileNotFoundError:
        return None
    if hint is not None:
        files.sort(key=lambda file: without_format(file.name) != hint.shard)
    for file in files:
        number = find_row(file.path, id)
        if number is not None:
            row = read_page(file.path, start=number, count=1).rows[0]
            text = join(state.place.text, REJECTED, file.name)
            return RowOfId(text=text, number=number, row=row if isinstance(row, dict) else {}, id=id)
    return None


def _files(state: OutputState) -> list[StoredFile]:
    try:
        files = stored_files(state.data_path)
    except FileNotFoundError:
        return []
    kept = [file for file in files if file.name.rpartition("/")[2] not in NO_IDS]
    return [file for file in kept if is_readable(file.name) or file.name.endswith(f"/{NAMES}")]


def _number(file: StoredFile, id: str, hint: Hint | None) -> int | None:
    if hint is not None and without_format(file.name) == hint.shard:
        rows = read_page(file.path, start=hint.number, count=1).rows
        if rows and isinstance(rows[0], dict) and rows[0].get("id") == id:
            return hint.number
    return find_row(file.path, id)


def _text(places: Places, state: OutputState, file: StoredFile) -> str:
    return places.text_of(file.path) or join(state.place.text, file.name)


def _tokens(places: Places, state: OutputState, file: StoredFile, id: str) -> list[RowOfId]:
    """The rows of a shard of a token cache that are of this document."""
    data = read_bytes(file.path)
    if not any(text.encode() in data for text in (json.dumps(id), json.dumps(id, ensure_ascii=False))):
        return []
    try:
        ids = json.loads(data)["ids"]
        numbers = [number for number, name in enumerate(ids) if name == id]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DocumentError(f"{file.path!r} has no names of documents ({error}). Compute the cache again.") from None
    shard = _text(places, state, file).rpartition("/")[0]
    return [RowOfId(text=shard, number=number, row={}, id=id, is_tokens=True) for number in numbers]
