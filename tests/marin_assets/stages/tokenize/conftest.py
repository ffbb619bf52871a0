"""Documents to tokenize: pydoc's topics, cut into chunks; several chunks share a page."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import pytest

from marin_assets.documents import Document, shard_name, write_documents

CHUNK = 1000
SHARDS = 3


def chunks() -> list[Document]:
    return [
        Document(id=f"{name}#{start}", text=text[start : start + CHUNK], source="topics", metadata={"page": name})
        for name, text in sorted(topics.items())
        for start in range(0, len(text), CHUNK)
    ]


@pytest.fixture(scope="session")
def documents_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    documents = chunks()
    for i in range(SHARDS):
        write_documents(str(folder / shard_name(i, SHARDS)), documents[i::SHARDS])
    return folder
