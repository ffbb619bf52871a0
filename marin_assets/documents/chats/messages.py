"""A chat is a list of messages {"role", "content"}. A row that is none is rejected by a reason, which is counted.

An answer that is read and not learnt has {"weight": 0} too, as in OpenAI's chats. With tools an answer may have
"tool_calls", and a message of the role "tool" has what a tool returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.chats.not_a_chat import EMPTY, NotAChat
from marin_assets.documents.chats.tools import call_of_text, calls_of

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"
ROLES = (SYSTEM, USER, ASSISTANT)
TOOL_CALL = "tool_call"
"""Stands in a map of roles for an assistant's message whose content is a call, as JSON."""
WEIGHT = "weight"
CALLS = ("tool_calls", "function_call")
"""Keys of a message whose content is part of the assistant's answer."""
OF_TOOLS = ("tool_call_id", "name")
"""Keys of a message with the result of a tool."""
TEXT_PARTS = ("text", "input_text", "output_text")

Message = dict[str, Any]
Messages = list[Message]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The way in which turns become messages."""

    roles: Mapping[str, str] | None = None
    """Names of roles -> one of ROLES, "tool" or "tool_call"; with ours among the names. None: those of the shape."""
    any_case: bool = False
    """Whether names of roles are compared without case and without blanks around them."""
    tools: bool = False
    """Whether calls and results of tools are read; a row with one is rejected otherwise."""
    drop_empty_system: bool = False
    """Whether a system message without text is left out; its row is rejected otherwise."""
    require_answer: bool = True
    """Whether a chat without an answer that is learnt is rejected."""
    system_column: str = SYSTEM
    """The column with the text of a system message before the first message."""

    def role_of(self, name: Any, of_shape: Mapping[str, str] | None) -> str:
        """Return the role of a turn. Raises NotAChat: unknown_role."""
        names = self.roles if self.roles is not None else of_shape
        if names is None:
            names = {role: role for role in (*ROLES, *((TOOL,) if self.tools else ()))}
        key = name.strip().lower() if self.any_case and isinstance(name, str) else name
        if not isinstance(key, str) or key not in names:
            raise NotAChat("unknown_role")
        return names[key]


TRAINED = Rules()
"""The rules of `tokenize_chats`."""
TRAINED_WITH_TOOLS = Rules(tools=True)
"""The rules of `tokenize_chats` for a chat template that renders tools."""


def messages_of(
    turns: Any,
    *,
    role: str = "role",
    content: str = "content",
    roles: Mapping[str, str] | None = None,
    system: Any = None,
    rules: Rules = TRAINED,
) -> Messages:
    """Return the messages of a list of turns with these keys. `roles` maps the row's names of roles to ours.

    `system` is the text of a system message before the first turn. Raises NotAChat: no_messages, unknown_role,
    not_text, empty_message, tool_calls, bad_tool_call, unknown_weight, two_systems, no_assistant, nothing_to_learn.
    """
    if not isinstance(turns, Sequence) or isinstance(turns, str | bytes) or not turns:
        raise NotAChat("no_messages")
    read = (_message(turn, role, content, roles, rules) for turn in turns)
    messages = _after_system(system, [message for message in read if message is not None])
    if rules.require_answer:
        require_answer(messages)
    return messages


def require_answer(messages: Messages) -> None:
    """Raise NotAChat unless a message is an answer that is learnt: no_assistant, nothing_to_learn."""
    if not any(message["role"] == ASSISTANT for message in messages):
        raise NotAChat("no_assistant")
    if not any(map(is_learnt, messages)):
        raise NotAChat("nothing_to_learn")


def is_learnt(message: Message) -> bool:
    """Whether the message is an answer that is learnt."""
    return message["role"] == ASSISTANT and message.get(WEIGHT, 1) != 0


def _after_system(system: Any, messages: Messages) -> Messages:
    text = text_of(system)
    if not text.strip():
        return messages
    first = {"role": SYSTEM, "content": text}
    if not messages or messages[0]["role"] != SYSTEM:
        return [first, *messages]
    if messages[0] != first:
        raise NotAChat("two_systems")
    return messages


def _message(turn: Any, role: str, content: str, roles: Mapping[str, str] | None, rules: Rules) -> Message | None:
    """The message of a turn; None for a system message without text that is left out."""
    if not isinstance(turn, Mapping):
        raise NotAChat("unknown_role")
    name = rules.role_of(turn.get(role), roles)
    has_calls = any(turn.get(key) not in EMPTY for key in CALLS)
    if has_calls and not rules.tools:
        raise NotAChat("tool_calls")
    text = text_of(turn.get(content))
    if name == TOOL_CALL:
        name, calls, text = ASSISTANT, call_of_text(text), ""
    else:
        calls = calls_of(turn, is_answer=name == ASSISTANT) if has_calls else []
    if not text.strip() and not calls and name != TOOL:
        if name == SYSTEM and rules.drop_empty_system:
            return None
        raise NotAChat("empty_message")
    message = {"role": name, "content": text, **({"tool_calls": calls} if calls else {})}
    if name == TOOL:
        message |= {key: turn[key] for key in OF_TOOLS if isinstance(turn.get(key), str) and turn[key]}
    return message | _weight(turn.get(WEIGHT), name)


def _weight(weight: Any, role: str) -> Message:
    """{"weight": 0} for an answer that is not learnt. Only answers are learnt, and each as much as another."""
    if weight is None or (isinstance(weight, int | float) and weight == (role == ASSISTANT)):
        return {}
    if not isinstance(weight, int | float) or weight != 0:
        raise NotAChat("unknown_weight")
    return {WEIGHT: 0}


def text_of(content: Any) -> str:
    """Return the text of a content: a string, or OpenAI's list of parts of text. Raises NotAChat: not_text."""
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        return "".join(map(_part, content))
    if content is not None and not isinstance(content, str):
        raise NotAChat("not_text")
    return content or ""


def _part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type", "text") not in TEXT_PARTS:
        raise NotAChat("not_text")
    if not isinstance(part.get("text"), str):
        raise NotAChat("not_text")
    return str(part["text"])
