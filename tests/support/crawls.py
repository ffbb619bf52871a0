"""Crawls as they were read: documents, and counts by reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from marin_assets.documents import Document, list_shards, read_documents

Read = Callable[..., tuple[dict[str, Any], list[Document]]]


def documents_of(folder: Path | str) -> list[Document]:
    return [document for shard in list_shards(str(folder)) for document in read_documents(shard)]


def reasons(counts: dict[str, Any]) -> dict[str, int]:
    return {key.removeprefix("rejected_"): n for key, n in counts.items() if key.startswith("rejected_") and n}
