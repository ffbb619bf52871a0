"""A chat is a list of messages {"role", "content"}. A row that is none is rejected by a reason, which is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
ROLES = (SYSTEM, USER, ASSISTANT)

Message = dict[str, str]
Messages = list[Message]


class NotAChat(ValueError):
    """The row is no chat that can be trained on. `reason` is the name by which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def messages_of(
    turns: Any, *, role: str = "role", content: str = "content", roles: Mapping[str, str] | None = None
) -> Messages:
    """Return the messages of a list of turns with these keys. `roles` maps the row's names of roles to ours.

    Raises NotAChat: no_messages, unknown_role, not_text, empty_message, no_assistant.
    """
    if not isinstance(turns, Sequence) or isinstance(turns, str | bytes) or not turns:
        raise NotAChat("no_messages")
    names = roles if roles is not None else {name: name for name in ROLES}
    found = [_message(turn, role, content, names) for turn in turns]
    if not any(message["role"] == ASSISTANT for message in found):
        raise NotAChat("no_assistant")
    return found


def _message(turn: Any, role: str, content: str, roles: Mapping[str, str]) -> Message:
    if not isinstance(turn, Mapping) or not isinstance(turn.get(role), str) or turn[role] not in roles:
        raise NotAChat("unknown_role")
    text = _text(turn.get(content))
    if not text.strip():
        raise NotAChat("empty_message")
    return {"role": roles[turn[role]], "content": text}


def _text(content: Any) -> str:
    """The text of a content: a string, or OpenAI's list of parts of type "text"."""
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content):
            raise NotAChat("not_text")
        return "".join(part["text"] for part in content)
    if content is not None and not isinstance(content, str):
        raise NotAChat("not_text")
    return content or ""
