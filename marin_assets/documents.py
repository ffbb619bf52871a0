"""Documents: the rows that text travels in, as shards of JSONL compressed with zstd.

    {"id": "...", "text": "...", "source": "...", "metadata": {...}}

One line a document, keys in this order, one zstd frame a shard: the same documents are the same bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from marin_resources.storage.files import filesystem_of, list_files, open_atomic

SUFFIX = ".jsonl.zst"


class DocumentError(ValueError):
    """A shard that does not hold documents: one sentence with file and line."""


@dataclass(frozen=True, kw_only=True)
class Document:
    id: str
    text: str
    """Text, or HTML where a stage says so."""
    source: str = ""
    """Where it came from, for example "pydoc"."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def shard_name(index: int, of: int) -> str:
    """ "part-00003-of-00008.jsonl.zst"."""
    return f"part-{index:05d}-of-{of:05d}{SUFFIX}"


def list_shards(path: str) -> list[str]:
    """The shards below `path`, in order. Raises FileNotFoundError if there are none."""
    shards = list_files(path, SUFFIX)
    if not shards:
        raise FileNotFoundError(f"There is no shard of documents (*{SUFFIX}) below {path!r}.")
    return shards


def write_documents(path: str, documents: Iterable[Document]) -> int:
    """Write one shard, whole or not at all; returns how many documents it holds."""
    import zstandard

    count = 0
    with open_atomic(path) as raw, zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as out:
        for document in documents:
            row = {"id": document.id, "text": document.text, "source": document.source}
            line = json.dumps({**row, "metadata": dict(document.metadata)}, ensure_ascii=False)
            out.write(line.encode() + b"\n")
            count += 1
    return count


def read_documents(path: str) -> Iterator[Document]:
    """The documents of one shard. Raises DocumentError for a line that is not one, or a shard cut short."""
    import zstandard

    fs, p = filesystem_of(path)
    with fs.open(p, "rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8")
        number = 0
        while True:
            number += 1
            try:
                line = lines.readline()
                if not line:
                    return
                row = json.loads(line)
                yield Document(
                    id=row["id"], text=row["text"], source=row.get("source", ""), metadata=row.get("metadata") or {}
                )
            except (ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
                raise DocumentError(
                    f"{path!r} line {number} is not a document ({type(error).__name__}: {error}). "
                    "Expected JSON with 'id' and 'text'; make the shard again."
                ) from error
