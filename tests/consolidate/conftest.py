"""Real text with attributes of it: topics of Python's own documentation, judged by their length and by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pydoc_data.topics import topics

import pytest

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
