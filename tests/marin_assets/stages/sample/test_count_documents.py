"""Counts of documents equal those of a loop over the texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from marin_assets.documents import Document
from marin_assets.stages.sample.count_documents import CountDocumentsConfig, count_documents
from marin_assets.stages.tokenize.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from marin_assets.step.values import unwrap_versioned_value
from marin_resources.storage.files import read_json

Write = Callable[[list[Document], int], str]


def count(path: str, output: Path, tokenizer: str | None = None) -> dict[str, int | float]:
    config = CountDocumentsConfig(documents_path=path, tokenizer_path=tokenizer, output_path=str(output))
    return count_documents(unwrap_versioned_value(config))


def test_counts_are_those_of_the_texts_in_all_and_by_source(
    tmp_path: Path, documents: list[Document], write: Write
) -> None:
    result = count(write([*documents, Document(id="\u00e9", text="\u00e9\u00e9 a")], 3), tmp_path / "out")
    counts = read_json(str(tmp_path / "out/counts.json"))
    texts = {source: [d.text for d in documents if d.source == source] for source in ("long", "short")}
    texts[""] = ["\u00e9\u00e9 a"]
    expected = {
        source: {
            "documents": len(those),
            "characters": sum(map(len, those)),
            "bytes": sum(len(text.encode()) for text in those),
            "words": sum(len(text.split()) for text in those),
        }
        for source, those in texts.items()
    }
    total = {what: sum(numbers[what] for numbers in expected.values()) for what in expected["long"]}
    assert counts == {"format_version": 1, "total": total, "by_source": dict(sorted(expected.items()))}
    assert result == {**total, "sources": 3, "shards": 3}
    assert counts["by_source"][""] == {"documents": 1, "characters": 4, "bytes": 6, "words": 2}


def test_tokens_are_counted_if_there_is_a_tokenizer(tmp_path: Path, documents: list[Document], write: Write) -> None:
    from tokenizers import Tokenizer

    path = write(documents, 2)
    config = TrainTokenizerConfig(documents_path=path, output_path=f"{tmp_path}/tokenizer", vocab_size=400)
    train_tokenizer(unwrap_versioned_value(config))
    result = count(path, tmp_path / "out", f"{tmp_path}/tokenizer")
    tokenizer = Tokenizer.from_file(f"{tmp_path}/tokenizer/tokenizer.json")
    tokens = sum(len(tokenizer.encode(d.text, add_special_tokens=False).ids) for d in documents)
    assert result["tokens"] == tokens
    assert result["bytes_per_token"] == result["bytes"] / tokens
    by_source = read_json(str(tmp_path / "out/counts.json"))["by_source"]
    assert sum(numbers["tokens"] for numbers in by_source.values()) == tokens


def test_a_missing_tokenizer_is_an_error(tmp_path: Path, documents: list[Document], write: Write) -> None:
    with pytest.raises(FileNotFoundError, match=r"Nothing exists at '.*nowhere'"):
        count(write(documents, 1), tmp_path / "out", f"{tmp_path}/nowhere")


def test_counts_are_the_same_here_and_on_ray_and_for_any_number_of_shards(
    tmp_path: Path, documents: list[Document], write: Write, shared_ray: None, request: pytest.FixtureRequest
) -> None:
    count(write(documents, 3), tmp_path / "on_ray")
    request.getfixturevalue("in_process")
    count(write(documents, 1), tmp_path / "here")
    assert (tmp_path / "here/counts.json").read_bytes() == (tmp_path / "on_ray/counts.json").read_bytes()
