"""Shards of documents: their names, what they hold, and the groups of them that are worked on together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from marin_assets.documents.document import BadRow, Document, DocumentError
from marin_assets.documents.rows import FORMATS, format_of, read_rows, write_rows
from marin_resources.ray_tpu.shards.file_shards import FileShard, file_shards
from marin_resources.storage.files import StoredFile, list_files, stored_files
from marin_resources.storage.paths import join

SUFFIX = ".jsonl.zst"
"""Of what stages write."""


def shard_name(index: int, of: int) -> str:
    """ "part-00003-of-00008.jsonl.zst"."""
    return f"part-{index:05d}-of-{of:05d}{SUFFIX}"


def list_shards(path: str) -> list[str]:
    """The shards below `path`, of any format, in order. Raises FileNotFoundError if there are none."""
    shards = [file for file in list_files(path) if file.endswith(FORMATS)]
    if not shards:
        raise FileNotFoundError(f"There is no shard of documents (*{', *'.join(FORMATS)}) below {path!r}.")
    return shards


def document_shards(documents_path: str, output_path: str, config: Any, *, suffix: str = SUFFIX) -> list[FileShard]:
    """Work for `map_shards`: the shards below `documents_path` in groups, and for each a file of the same name (but for
    its format, which is `suffix`) below `output_path`.

    Raises FileNotFoundError if there are none, DocumentError if two differ in their format alone.
    """
    files = [file for file in stored_files(documents_path) if file.path.endswith(FORMATS)]
    if not files:
        raise FileNotFoundError(f"There is no shard of documents (*{', *'.join(FORMATS)}) below {documents_path!r}.")
    named: dict[str, StoredFile] = {}
    for file in files:
        twin = named.setdefault(output_name(file, suffix), file)
        if twin is not file:
            raise DocumentError(
                f"{twin.path!r} and {file.path!r} differ in their format alone, so what is made of them would have one "
                "name. Rename one."
            )
    return file_shards(files, [join(output_path, name) for name in named], config=config)


def output_name(file: StoredFile, suffix: str) -> str:
    """The file's name below its folder, with another format."""
    return file.name.removesuffix(format_of(file.name)) + suffix


def write_documents(path: str, documents: Iterable[Document], *, replace: bool = True) -> int:
    """Write one shard, whole or not at all; returns how many documents it holds. `replace` is as in `write_rows`."""
    return write_rows(path, (document.row() for document in documents), replace=replace)


def read_documents(path: str) -> Iterator[Document]:
    """The documents of one shard. Raises DocumentError for a line that is not one, or a shard cut short."""
    for number, row in read_rows(path):
        if isinstance(row, BadRow):
            raise DocumentError(_not_a_document(path, number, f"{row.reason}: {row.detail}"))
        yield _document(path, number, row)


def _document(path: str, number: int, row: Mapping[str, Any]) -> Document:
    for key in ("id", "text"):
        if not isinstance(row.get(key), str):
            found = f"{key!r} is {row[key]!r:.80}" if key in row else f"there is no {key!r} among {sorted(row)}"
            raise DocumentError(_not_a_document(path, number, found))
    source, metadata = row.get("source"), row.get("metadata")
    if source is not None and not isinstance(source, str):
        raise DocumentError(_not_a_document(path, number, f"'source' is {source!r:.80}"))
    return Document(id=row["id"], text=row["text"], source=source or "", metadata=_metadata(path, number, metadata))


def _metadata(path: str, number: int, found: Any) -> Mapping[str, Any]:
    metadata = found
    if isinstance(found, str):  # as parquet holds it
        with suppress(ValueError, RecursionError):  # then it is still text, which is told below
            metadata = json.loads(found or "{}")
    if metadata is not None and not isinstance(metadata, dict):
        raise DocumentError(_not_a_document(path, number, f"'metadata' is {found!r:.80}"))
    return metadata or {}


def _not_a_document(path: str, number: int, found: str) -> str:
    return f"{path!r} line {number} is not a document ({found}). Expected an 'id' and a 'text'; make the shard again."
