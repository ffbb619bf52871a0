"""The inputs of a training run: a tokenizer of 512 tokens, and two token caches of pydoc's topics."""

from __future__ import annotations

from dataclasses import dataclass
from pydoc_data.topics import topics

import pytest

from marin_assets.documents import Document, write_documents
from marin_assets.stages.tokenize.tokenize import TokenizeConfig, tokenize
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value


@dataclass(frozen=True)
class Inputs:
    tokenizer_path: str
    components: dict[str, str]
    tokens: dict[str, int]
    """Tokens of the train side."""


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    pages = [Document(id=name, text=text) for name, text in sorted(topics.items())]
    write_documents(str(folder / "documents/most/a.jsonl.zst"), pages[:-20])
    write_documents(str(folder / "documents/few/a.jsonl.zst"), pages[-20:])
    tokenizer = str(folder / "tokenizer")
    config = TrainTokenizerConfig(documents_path=f"{folder}/documents", output_path=tokenizer, vocab_size=512)
    train_tokenizer(unwrap_versioned_value(config))
    components, tokens = {}, {}
    for name in ("most", "few"):
        components[name] = f"{folder}/cache/{name}"
        cache = TokenizeConfig(
            documents_path=f"{folder}/documents/{name}",
            tokenizer_path=tokenizer,
            output_path=components[name],
            validation_fraction=0.2,
        )
        tokens[name] = tokenize(cache)["train_tokens"]
    return Inputs(tokenizer, components, tokens)
