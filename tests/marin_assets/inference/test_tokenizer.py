"""A model's tokenizer reads texts as training does, and conversations by its chat template."""

from __future__ import annotations

import json
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from random_llama import write_tokenizer
from tokenizer_settings import change_json

from marin_assets.documents.caches.tokens import TokenizerFileError
from marin_assets.inference.tokenizer import ModelTokenizer

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] | trim }}"
    "{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)
BOS, EOS = 0, 1
pytestmark = pytest.mark.long  # Levanter takes 3 s to import


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path, list(topics.values())[:50])
    change_json(tmp_path / "tokenizer_config.json", lambda found: found.update(chat_template=TEMPLATE))
    return tmp_path


def asked(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def test_a_special_token_in_a_message_is_text_and_the_templates_is_a_token(folder: Path) -> None:
    tokenizer = ModelTokenizer(str(folder))
    question = "Does <|eos|> end <|bos|>?"
    ids = tokenizer.encode_chat(asked(question))
    assert ids == [BOS, *tokenizer.encode(f"user: {question}"), EOS, *tokenizer.encode("\nassistant:")]
    assert (ids.count(BOS), ids.count(EOS)) == (1, 1)
    assert tokenizer.unmark(tokenizer.render_chat(asked(question))) == f"<|bos|>user: {question}<|eos|>\nassistant:"


def test_a_conversation_has_the_tokens_that_transformers_gives_it(folder: Path) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    chat = [*asked(" What is a class? "), {"role": "assistant", "content": "A type."}, *asked("And this?")]
    expected = theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=True)
    assert ModelTokenizer(str(folder)).encode_chat(chat) == getattr(expected, "input_ids", expected)


def test_a_message_without_and_with_a_written_token_are_read_alike(folder: Path) -> None:
    """The two ways of encoding a conversation, which differ only if a token is written in it."""
    change_json(folder / "tokenizer.json", lambda found: [t.update(rstrip=True) for t in found["added_tokens"][:2]])
    tokenizer = ModelTokenizer(str(folder))
    rendered = tokenizer.render_chat([*asked("one"), *asked("two")])
    for text in (rendered, f"  {rendered}  <|eos|>  <|pad|>"):
        whole = tokenizer.encode_rendered(text)
        with_marked = tokenizer.encode_rendered(tokenizer.mark("<|pad|>") + text)
        plain = tokenizer.encode("<|pad|>" + text[: len(text) - len(text.lstrip())])
        assert with_marked[len(plain) :] == whole[len(tokenizer.encode(text[: len(text) - len(text.lstrip())])) :]


def test_a_tokenizer_without_special_tokens_reads_every_text_as_text(folder: Path) -> None:
    change_json(folder / "tokenizer.json", lambda found: [t.update(special=False) for t in found["added_tokens"]])
    tokenizer = ModelTokenizer(str(folder))
    assert tokenizer.mark("a <|eos|>") == "a <|eos|>"
    assert tokenizer.encode("") == []


def test_a_tokenizer_with_neither_bos_nor_eos_begins_no_text(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    with pytest.raises(TokenizerFileError, match="has neither bos_token nor eos_token, expected one of them"):
        _ = ModelTokenizer(str(folder)).first_token_id


@pytest.mark.parametrize(
    ("content", "stops"),
    [(None, {EOS}), ("{}", {EOS}), ('{"eos_token_id": 7}', {EOS, 7}), ('{"eos_token_id": [7, 8]}', {EOS, 7, 8})],
)
def test_a_model_stops_at_eos_and_where_its_generation_config_says(
    folder: Path, content: str | None, stops: set[int]
) -> None:
    if content is not None:
        (folder / "generation_config.json").write_text(content)
    assert ModelTokenizer(str(folder)).stop_token_ids == stops


@pytest.mark.parametrize("content", ["", "[1]"])
def test_a_damaged_generation_config_is_one_sentence(folder: Path, content: str) -> None:
    (folder / "generation_config.json").write_text(content)
    with pytest.raises(TokenizerFileError, match=r"generation_config.json' is damaged \(.*\), expected a JSON object"):
        ModelTokenizer(str(folder))
