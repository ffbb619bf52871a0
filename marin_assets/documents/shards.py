"""Shards of documents: name, list, read and write them, and group them into work for `map_shards`.

Stages write JSONL compressed with zstd, one document a line, in frames with an index (see `frames`). They read any of
READABLE.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.document import BadRow, Document, DocumentError
from marin_assets.documents.formats import READABLE, is_readable, without_format
from marin_assets.documents.rows import read_rows, write_rows
from marin_resources.ray_tpu.shards.file_shards import FileShard, file_shards
from marin_resources.storage.files import StoredFile, stored_files
from marin_resources.storage.paths import join

SUFFIX = ".jsonl.zst"
"""The suffix of shards that stages write."""
NAMED = 5
"""Names of ignored files in a log line or an error."""

log = logging.getLogger(__name__)


def shard_name(index: int, of: int) -> str:
    """Return a name such as "part-00003-of-00008.jsonl.zst". `index` counts from 0."""
    return f"part-{index:05d}-of-{of:05d}{SUFFIX}"


@dataclass(frozen=True, kw_only=True)
class DocumentFiles:
    """The files below a folder: shards of documents, and others. A stage lists once, for all its phases."""

    path: str
    shards: tuple[StoredFile, ...]
    """In order, in the state in which they must be read."""
    ignored: tuple[str, ...]
    """Names of the files that are no shards by their names, such as README.md."""

    @property
    def counts(self) -> dict[str, int]:
        """The entry of a stage's result: ignored_files, if any exist."""
        return {"ignored_files": len(self.ignored)} if self.ignored else {}


def document_files(path: str, *, allow_none: bool = False) -> DocumentFiles:
    """List the files below `path`, and log the names of those that are ignored.

    Raises FileNotFoundError if no shard exists, unless `allow_none`; SpecialFileError for a FIFO, a socket or a device.
    """
    files = stored_files(path)
    shards = tuple(file for file in files if is_readable(file.name))
    ignored = tuple(file.name for file in files if not is_readable(file.name))
    if not shards and not allow_none:
        ignored_note = f", only {_some(ignored)}" if ignored else ""
        raise FileNotFoundError(
            f"No shard of documents exists below {path!r}{ignored_note}. Expected names that end with one of "
            f"{', '.join(READABLE)}. Correct the path, or rename the files."
        )
    if ignored:
        log.info("%d files below %r are ignored, as their names are not those of documents: %s",
                 len(ignored), path, _some(ignored))  # fmt: skip
    return DocumentFiles(path=path, shards=shards, ignored=ignored)


def list_shards(path: str) -> list[str]:
    """Return the paths of the shards below `path`, of any format, in order. Raises FileNotFoundError for none."""
    return [file.path for file in document_files(path).shards]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more


def document_shards(
    documents: str | DocumentFiles,
    output_path: str,
    config: Any,
    *,
    suffix: str = SUFFIX,
    also_read: Sequence[StoredFile] = (),
) -> list[FileShard]:
    """Return work for `map_shards`: the shards of `documents` in groups, with one output file for each.

    A stage with several phases passes the files that it listed once, so that all phases read the same. An output file
    has the name of its input below `output_path`, with the format `suffix`. `also_read` is what the function reads
    beside the documents. Raises FileNotFoundError if no shard exists, DocumentError if two names differ only in their
    format.
    """
    files = (document_files(documents) if isinstance(documents, str) else documents).shards
    named: dict[str, StoredFile] = {}
    for file in files:
        twin = named.setdefault(output_name(file, suffix), file)
        if twin is not file:
            raise DocumentError(
                f"{twin.path!r} and {file.path!r} differ only in their format, so their outputs would have one name. "
                "Rename one of them."
            )
    return file_shards(files, [join(output_path, name) for name in named], config=config, also_read=also_read)


def output_name(file: StoredFile, suffix: str) -> str:
    """Return the file's name below its folder, with its format replaced by `suffix`."""
    return without_format(file.name) + suffix


def write_documents(path: str, documents: Iterable[Document], *, replace: bool = True) -> int:
    """Write one shard atomically. Return the number of documents. `replace` is as in `write_rows`."""
    return write_rows(path, (document.row() for document in documents), replace=replace)


def read_documents(path: str) -> Iterator[Document]:
    """Yield the documents of one shard. Raises DocumentError for any other line, or a damaged or truncated shard."""
    for number, row in read_rows(path):
        if isinstance(row, BadRow):
            raise DocumentError(_not_a_document(path, number, f"{row.reason}: {row.detail}"))
        yield _document(path, number, row)


def _document(path: str, number: int, row: Mapping[str, Any]) -> Document:
    for key in ("id", "text"):
        if not isinstance(row.get(key), str):
            detail = f"{key!r} is {row[key]!r:.80}" if key in row else f"no {key!r} among {sorted(row)}"
            raise DocumentError(_not_a_document(path, number, detail))
    source, metadata = row.get("source"), row.get("metadata")
    if source is not None and not isinstance(source, str):
        raise DocumentError(_not_a_document(path, number, f"'source' is {source!r:.80}"))
    return Document(id=row["id"], text=row["text"], source=source or "", metadata=_metadata(path, number, metadata))


def _metadata(path: str, number: int, stored: Any) -> Mapping[str, Any]:
    metadata = stored
    if isinstance(stored, str):  # parquet holds metadata as JSON text
        with suppress(ValueError, RecursionError):  # it stays text, and is reported below
            metadata = json.loads(stored or "{}")
    if metadata is not None and not isinstance(metadata, dict):
        raise DocumentError(_not_a_document(path, number, f"'metadata' is {stored!r:.80}"))
    return metadata or {}


def _not_a_document(path: str, number: int, detail: str) -> str:
    return f"{path!r} line {number} is not a document ({detail}). Expected an 'id' and a 'text'; write the shard again."
