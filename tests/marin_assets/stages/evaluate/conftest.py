"""A small corpus, and a small Llama with random weights in a Hugging Face export."""

from __future__ import annotations

import re

import pytest
from random_llama import write_random_llama

from marin_assets.documents import Document, shard_name, write_documents

WINDOW = 64


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    """The topics of Python's help, in chunks of at least 600 characters."""
    from pydoc_data.topics import topics

    return [
        Document(id=f"{page}#{index}", text=chunk, source="pydoc", metadata={"page": page})
        for page, text in sorted(topics.items())
        for index, chunk in enumerate(re.findall(r"(?s).{600,}?(?:\n\n|\Z)", text))
    ]


@pytest.fixture(scope="session")
def documents_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("documents")
    for index in range(3):
        write_documents(str(path / shard_name(index, 3)), corpus[index::3])
    return str(path)


@pytest.fixture(scope="session")
def model_path(corpus: list[Document], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two layers, hidden size 32, window of 64 tokens, weights large enough that predictions differ."""
    return write_random_llama(tmp_path_factory.mktemp("hf"), [document.text for document in corpus[:200]], WINDOW)
