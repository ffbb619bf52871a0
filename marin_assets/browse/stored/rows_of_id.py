"""The row of an id in an output: in the shard and at the row where another output has it, by the table of ids of all
its shards, else in any shard.

Attributes are in the order of their documents, so the row of the document is read first. An output of pages has
the id of the document's page. Neither that row nor the table needs a listing of the files, which may be thousands.
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
from marin_assets.documents.frames.id_table import IdTable, open_id_table
from marin_assets.documents.shards import SUFFIX
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


def rows_of_id(
    places: Places, state: OutputState, ids: Sequence[str], hint: Hint | None, table: IdTable | None = None
) -> list[RowOfId]:
    """The rows of the first of the ids that the output has, at most one a file. `table`: that of the output, if it has
    one.

    Raises DocumentError for a damaged file, LimitError.
    """
    if hint is not None and table is None:
        row = _row_at(places, state, f"{hint.shard}{SUFFIX}", hint.number, ids[0])
        if row is not None:
            return [row]
    if table is not None:
        row = _row_of_table(places, state, ids, hint, table)
        if row is not None or not table.others:
            return [row] if row is not None else []
    covered = {shard.name for shard in table.shards} if table is not None else set()
    files = _files(state)
    shards = [file for file in files if is_readable(file.name) and file.name not in covered]
    if hint is not None:
        shards.sort(key=lambda file: (without_format(file.name) != hint.shard, file.name))
    for id in ids:
        for file in shards:
            number = _number(file, id, hint)
            if number is not None:
                content = read_page(file.path, start=number, count=1).rows[0]
                if isinstance(content, dict):
                    return [RowOfId(text=_text(places, state, file), number=number, row=content, id=id)]
    caches = [file for file in files if file.name.endswith(NAMES)]
    return [row for file in caches for row in _tokens(places, state, file, ids[0])]


def id_table(state: OutputState) -> IdTable | None:
    """The table of ids of a complete output; None for any other: its shards may be written again.

    Raises DocumentError for a damaged table.
    """
    return open_id_table(state.data_path) if state.is_complete else None


def _row_of_table(
    places: Places, state: OutputState, ids: Sequence[str], hint: Hint | None, table: IdTable
) -> RowOfId | None:
    """The row of the first of the ids that the table has, in the shard of the hint if it is in several."""
    for id in ids:
        candidates = table.places(id)
        if hint is not None:
            candidates.sort(key=lambda place: without_format(place[0].name) != hint.shard)
        for shard, number in candidates:
            row = _row_at(places, state, shard.name, number, id, shard.size_bytes)
            if row is not None:
                return row
        if candidates:
            raise DocumentError(
                f"The table of ids {table.path!r} names row {candidates[0][1]:,} of {candidates[0][0].name!r:.300} for "
                f"the id {id!r:.200}, and that row has another id, or is not there. Files of the output were changed: "
                "remove the table, and the shards are searched without it."
            )
    return None


def _row_at(
    places: Places, state: OutputState, name: str, number: int, id: str, file_bytes: int | None = None
) -> RowOfId | None:
    """The row of a shard if it has the id; None if it has another, or the output has no such shard."""
    path = join(state.data_path, name)
    try:
        rows = read_page(path, start=number, count=1, file_bytes=file_bytes).rows
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not rows or not isinstance(rows[0], dict) or rows[0].get("id") != id:
        return None
    text = places.text_of(path) or join(state.place.text, name)
    return RowOfId(text=text, number=number, row=rows[0], id=id)


def rejected_sample(places: Places, state: OutputState, id: str, hint: Hint | None) -> RowOfId | None:
    """The row of the id in a consolidation's sample of the rejected; None if the sample does not have it."""
    try:
        files = stored_files(join(state.data_path, REJECTED))
    except FileNotFoundError:
        return None
    if hint is not None:  # each shard has a sample of its own
        files = [file for file in files if without_format(file.name) == hint.shard] or files
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
