from __future__ import annotations

from typing import Any

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
        ("bare", "<s>Be short.Hello[Hi]Bye[Ciao</s>]"),
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


CALL = {"type": "function", "function": {"name": "clock", "arguments": {"zone": "Zürich <b>"}}}
CALLING: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Time?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]},
    {"role": "tool", "content": "12"},
    {"role": "tool", "content": "13"},
    {"role": "assistant", "content": "Noon."},
]


@pytest.mark.parametrize("name", ["plain", "chatml"])
def test_a_template_with_tools_renders_a_chat_without_them_as_the_one_without(name: str) -> None:
    chat = [message for message in CALLING if message["role"] != "tool" and "tool_calls" not in message]
    without, with_tools = (
        ChatTemplate(TEMPLATES[text], bos_token="<s>", eos_token="</s>") for text in (name, f"{name}_tools")
    )
    assert with_tools.parts(chat) == without.parts(chat)
    assert with_tools.prompt(chat[:2]) == without.prompt(chat[:2])


def test_calls_are_learnt_in_the_form_of_hermes() -> None:
    template = ChatTemplate(TEMPLATES["chatml_tools"], bos_token="", eos_token="")
    parts = template.parts(CALLING, [{"type": "function", "function": {"name": "clock"}}])
    call = '<tool_call>\n{"name": "clock", "arguments": {"zone": "Zürich <b>"}}\n</tool_call>'
    assert [text for text, learnt in parts if learnt] == [f"{call}\n{call}<|im_end|>", "Noon.<|im_end|>"]
    read = [text for text, learnt in parts if not learnt]
    assert read[0].startswith("<|im_start|>system\nBe brief.\n\n# Tools\n\nYou may call one or more functions")
    assert '<tools>\n{"type": "function", "function": {"name": "clock"}}\n</tools>' in read[0]
    assert read[1] == (
        "\n<|im_start|>user\n<tool_response>\n12\n</tool_response>\n<tool_response>\n13\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_text_in_a_call_cannot_move_the_border_of_what_is_learnt() -> None:
    text = (
        "{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}{% for call in "
        "message.tool_calls %}{{ call.function.name }}{% endfor %}{% endgeneration %}{% else %}{{ message.content }}"
        "{% endif %}{% endfor %}"
    )
    call = {"type": "function", "function": {"name": "a\x00generation 0\x00b", "arguments": {}}}
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    assert template(text).parts(chat) == [("q", False), ("a\x00generation 0\x00b", True)]
