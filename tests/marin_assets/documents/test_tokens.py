"""Every program here reads texts with one loader, whatever a tokenizer.json brings along."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import pytest
from random_llama import write_tokenizer
from tokenizer_settings import with_settings

from marin_assets.documents.caches.tokens import TokenizerFileError, read_tokenizer, token_counter

TEXTS = ["a <|eos|> in a text", "short", "", *list(topics.values())[:3]]


@pytest.fixture(scope="module")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder, list(topics.values())[:50])
    return folder


def ids_of(path: Path | str, *, special_tokens: bool = False) -> list[list[int]]:
    tokenizer = read_tokenizer(str(path), special_tokens=special_tokens)
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]


def test_a_tokenizers_own_truncation_padding_and_dropout_are_off(tokenizer_path: Path, tmp_path: Path) -> None:
    changed = with_settings(tokenizer_path, tmp_path / "changed")
    expected = ids_of(tokenizer_path)
    assert max(map(len, expected)) > 48
    assert ids_of(changed) == expected
    assert token_counter(changed)(TEXTS) == [len(ids) for ids in expected]


def test_a_special_token_written_in_a_text_is_text_unless_a_template_writes_it(tokenizer_path: Path) -> None:
    assert 1 not in ids_of(tokenizer_path)[0]
    assert ids_of(tokenizer_path, special_tokens=True)[0].count(1) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {}}', "\x00\x01"])
def test_a_damaged_tokenizer_is_one_sentence_with_its_path(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TokenizerFileError, match=r"tokenizer.json' is no tokenizer .* Download or save it again\.$"):
        read_tokenizer(str(tmp_path))


def test_a_tokenizer_in_no_text_at_all_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TokenizerFileError, match="is no tokenizer of Hugging Face's library"):
        read_tokenizer(str(tmp_path))
