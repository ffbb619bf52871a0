"""A message, and its JSON as Slack's incoming webhooks take it (and Mattermost's, and Discord's at `/slack`).

Source: https://api.slack.com/messaging/webhooks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_CHARACTERS = 3000
"""Limit of a text; Slack cuts longer ones."""
MOST_LINES = 10
GROUPED_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Message:
    """An event for people."""

    id: str
    """Equal for the same event."""
    title: str
    """A few words: which step, which check."""
    sentence: str
    link: str = ""
    log: Sequence[str] = ()
    """The last lines."""


def slack_json(messages: Sequence[Message]) -> dict[str, Any]:
    """One message in full, or several as a list."""
    text = _in_full(messages[0]) if len(messages) == 1 else _as_list(messages)
    return {"text": text[:MOST_CHARACTERS]}


def _in_full(message: Message) -> str:
    parts = [f"*{_escaped(message.title)}*", _escaped(message.sentence)]
    if message.log:
        parts.append("```\n" + _escaped("\n".join(message.log[-MOST_LINES:])) + "\n```")
    if message.link:
        parts.append(f"<{message.link}>")
    return "\n".join(parts)


def _as_list(messages: Sequence[Message]) -> str:
    lines = [f"*{len(messages)} things broke*"]
    for message in messages[:GROUPED_SHOWN]:
        link = f" <{message.link}>" if message.link else ""
        lines.append(f"• *{_escaped(message.title)}*: {_escaped(message.sentence)[:200]}{link}")
    if len(messages) > GROUPED_SHOWN:
        lines.append(f"• and {len(messages) - GROUPED_SHOWN} more")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Slack reads `<`, `>` and `&` as its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
