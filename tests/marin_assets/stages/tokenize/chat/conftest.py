"""A tokenizer of 600 tokens, with "<|bos|>" (0) and "<|eos|>" (1)."""

from __future__ import annotations

from pydoc_data.topics import topics

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_documents(str(folder / "d/a.jsonl.zst"), [Document(id=n, text=t) for n, t in sorted(topics.items())])
    config = TrainTokenizerConfig(documents_path=f"{folder}/d", output_path=f"{folder}/t", vocab_size=600)
    train_tokenizer(unwrap_versioned_value(config))
    return f"{folder}/t"
