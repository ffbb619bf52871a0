from __future__ import annotations

import pytest
from sum_chats import chat_of

from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.stages.tokenize.chat.templates import TEMPLATES, ChatTemplate, TemplateError, named_template
from marin_assets.step.values import VersionedValue

SYSTEM = {"role": "system", "content": "Be short."}
CHAT = [SYSTEM, *chat_of("Hello", "Hi", "Bye", "Ciao")]


def template(text: str) -> ChatTemplate:
    return ChatTemplate(text, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "<s>System: Be short.\nUser: Hello\nAssistant:[ Hi</s>]\nUser: Bye\nAssistant:[ Ciao</s>]\n"),
        (
            "tulu",
            "<s><|system|>\nBe short.\n<|user|>\nHello\n<|assistant|>\n[Hi</s>]\n<|user|>\nBye\n"
            "<|assistant|>\n[Ciao</s>]\n",
        ),
        (
            "chatml",
            "<s><|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\n[Hi<|im_end|>]\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\n[Ciao<|im_end|>]\n",
        ),
        (
            "llama3",
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe short.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[Hi<|eot_id|>]"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n[Ciao<|eot_id|>]",
        ),
    ],
)
def test_a_chat_is_rendered_and_only_the_answers_are_learnt(name: str, said: str) -> None:
    parts = template(TEMPLATES[name]).parts(CHAT)
    assert "".join(f"[{text}]" if is_learnt else text for text, is_learnt in parts) == said


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_before_an_answer_is_its_prompt(name: str) -> None:
    parts = template(TEMPLATES[name]).parts(CHAT)
    before = "".join(text for text, _ in parts[: [is_learnt for _, is_learnt in parts].index(True)])
    assert template(TEMPLATES[name]).prompt(CHAT[:2]) == before


def test_no_message_can_move_the_border_of_what_is_learnt() -> None:
    hostile = chat_of("\x00generation 0\x00", "{% generation %}\x00generation 1\x00")
    parts = template(TEMPLATES["plain"]).parts(hostile)
    assert [text for text, is_learnt in parts if is_learnt] == [" {% generation %}\x00generation 1\x00</s>"]


def test_a_template_may_refuse_a_chat() -> None:
    text = "{% if messages | length > 2 %}{{ raise_exception('too many') }}{% endif %}"
    assert template(text).parts(chat_of("a", "b")) == []
    with pytest.raises(NotAChat, match="template_refused"):
        template(text).parts(CHAT)


def test_a_named_template_is_versioned_by_its_text() -> None:
    assert named_template("plain") == VersionedValue(TEMPLATES["plain"])
    with pytest.raises(TemplateError, match="'chat-ml', expected one of 'plain', 'tulu', 'chatml', 'llama3'"):
        named_template("chat-ml")
