"""Documents into shards, and the files of an output out again."""

from __future__ import annotations

from pathlib import Path

from marin_assets.documents import Document, shard_name, write_documents


def write_shards(folder: Path, documents: list[Document], shards: int) -> str:
    for i in range(shards):
        write_documents(f"{folder}/{shard_name(i, shards)}", documents[i::shards])
    return str(folder)


def data_of(folder: Path) -> dict[str, bytes]:
    """The output's files without control files."""
    found = (path for path in folder.rglob("*") if path.is_file())
    named = ((path.relative_to(folder), path) for path in found)
    return {str(name): path.read_bytes() for name, path in named if not any(p.startswith(".") for p in name.parts)}
