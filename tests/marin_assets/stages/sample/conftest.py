"""Real text in any number of shards: paragraphs of topics of Python's own documentation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from marin_assets.documents import Document, list_shards, read_documents, shard_name, write_documents


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    found = []
    for topic, text in sorted(topics.items())[:40]:
        for n, paragraph in enumerate(p for p in text.split("\n\n") if p.strip()):
            id = hashlib.sha256(f"{topic}{n}".encode()).hexdigest()[:16]
            source = "short" if len(topic) < 6 else "long"
            found.append(Document(id=id, text=paragraph, source=source, metadata={"page": topic, "n": n}))
    return found


@pytest.fixture
def write(tmp_path: Path) -> Callable[[list[Document], int], str]:
    """Write documents into shards, round robin."""

    def write(documents: list[Document], shards: int) -> str:
        for i in range(shards):
            write_documents(f"{tmp_path}/in{shards}/{shard_name(i, shards)}", documents[i::shards])
        return f"{tmp_path}/in{shards}"

    return write


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)


@pytest.fixture(scope="session")
def read() -> Callable[[Path], list[Document]]:
    return lambda path: [d for shard in list_shards(str(path)) for d in read_documents(shard)]


@pytest.fixture(scope="session")
def data_below() -> Callable[[Path], dict[str, bytes]]:
    """The bytes of every file except the notes, which have durations."""

    def data_below(folder: Path) -> dict[str, bytes]:
        found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        return {name: data for name, data in found.items() if not name.startswith(".marin/shards")}

    return data_below
