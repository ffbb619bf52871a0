"""A chat is a list of messages {"role", "content"}. A row that is none is rejected by a reason, which is counted.

An answer that is read and not learnt has {"weight": 0} too, as in OpenAI's chats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
ROLES = (SYSTEM, USER, ASSISTANT)
WEIGHT = "weight"
CALLS = ("tool_calls", "function_call")
"""Keys of a message whose content is part of the assistant's answer, and which no template here renders."""
TEXT_PARTS = ("text", "input_text", "output_text")
EMPTY: tuple[Any, ...] = (None, "", [], {})

Message = dict[str, Any]
Messages = list[Message]


class NotAChat(ValueError):
    """The row is no chat that can be trained on. `reason` is the name by which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def messages_of(
    turns: Any,
    *,
    role: str = "role",
    content: str = "content",
    roles: Mapping[str, str] | None = None,
    system: Any = None,
) -> Messages:
    """Return the messages of a list of turns with these keys. `roles` maps the row's names of roles to ours.

    `system` is the text of a system message before the first turn. Raises NotAChat: no_messages, unknown_role,
    not_text, empty_message, tool_calls, unknown_weight, two_systems, no_assistant, nothing_to_learn.
    """
    if not isinstance(turns, Sequence) or isinstance(turns, str | bytes) or not turns:
        raise NotAChat("no_messages")
    names = roles if roles is not None else {name: name for name in ROLES}
    messages = _after_system(system, [_message(turn, role, content, names) for turn in turns])
    if not any(message["role"] == ASSISTANT for message in messages):
        raise NotAChat("no_assistant")
    if not any(map(is_learnt, messages)):
        raise NotAChat("nothing_to_learn")
    return messages


def is_learnt(message: Message) -> bool:
    """Whether the message is an answer that is learnt."""
    return message["role"] == ASSISTANT and message.get(WEIGHT, 1) != 0


def _after_system(system: Any, messages: Messages) -> Messages:
    text = _text(system)
    if not text.strip():
        return messages
    first = {"role": SYSTEM, "content": text}
    if messages[0]["role"] != SYSTEM:
        return [first, *messages]
    if messages[0] != first:
        raise NotAChat("two_systems")
    return messages


def _message(turn: Any, role: str, content: str, roles: Mapping[str, str]) -> Message:
    if not isinstance(turn, Mapping) or not isinstance(turn.get(role), str) or turn[role] not in roles:
        raise NotAChat("unknown_role")
    if any(turn.get(key) not in EMPTY for key in CALLS):
        raise NotAChat("tool_calls")
    text = _text(turn.get(content))
    if not text.strip():
        raise NotAChat("empty_message")
    return {"role": roles[turn[role]], "content": text, **_weight(turn.get(WEIGHT), roles[turn[role]])}


def _weight(weight: Any, role: str) -> Message:
    """{"weight": 0} for an answer that is not learnt. Only answers are learnt, and each as much as another."""
    if weight is None or (isinstance(weight, int | float) and weight == (role == ASSISTANT)):
        return {}
    if not isinstance(weight, int | float) or weight != 0:
        raise NotAChat("unknown_weight")
    return {WEIGHT: 0}


def _text(content: Any) -> str:
    """The text of a content: a string, or OpenAI's list of parts of text."""
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
