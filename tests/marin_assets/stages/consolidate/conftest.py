"""Real text with attributes: topics of Python's own documentation, decided about by their length and by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from decided import Corpus

from marin_assets.documents import Document


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    """Some 900 paragraphs of real text, from two sources."""
    return list(_paragraphs())


def _paragraphs() -> Iterator[Document]:
    for topic, text in sorted(topics.items())[:40]:
        for n, paragraph in enumerate(p for p in text.split("\n\n") if p.strip()):
            source = "short" if len(topic) < 6 else "long"
            id = hashlib.sha256(f"{topic}{n}".encode()).hexdigest()[:16]
            yield Document(id=id, text=paragraph, source=source, metadata={"page": topic, "n": n})


@pytest.fixture
def corpus(tmp_path: Path, documents: list[Document]) -> Corpus:
    return Corpus(tmp_path, documents)


@pytest.fixture
def small(tmp_path: Path) -> Corpus:
    """Six documents in two shards: 0, 2, 4 and 1, 3, 5."""
    return Corpus(
        tmp_path, [Document(id=str(i), text=f'line {i}\nand "some" more text {i}') for i in range(6)], shards=2
    )


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marin_resources.ray_tpu.shards.map_shards._ray_is_up", lambda: False)
