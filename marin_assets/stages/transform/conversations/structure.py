"""The order of the roles of a conversation: who begins, who follows whom, who ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from marin_assets.documents.chats.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    WEIGHT,
    Message,
    Messages,
    require_answer,
)
from marin_assets.documents.chats.not_a_chat import NotAChat

FOLLOWERS: Mapping[str, tuple[str, ...]] = {
    SYSTEM: (USER,),
    USER: (ASSISTANT,),
    ASSISTANT: (USER, TOOL),
    TOOL: (TOOL, ASSISTANT),
}
"""Role -> roles of the next message. A call of a tool is followed by its result alone."""


def structured(messages: Messages, *, alternation: str, end: str) -> Messages:
    """Return the messages in order, or with what `alternation` and `end` change.

    Raises NotAChat: no_messages, only_system, no_assistant, nothing_to_learn, no_answer_at_the_end, not_alternating.
    """
    if not messages:
        raise NotAChat("no_messages")
    if all(message["role"] == SYSTEM for message in messages):
        raise NotAChat("only_system")
    require_answer(messages)
    if alternation == "merge":
        messages = merged(messages)
    if messages[-1]["role"] != ASSISTANT and end != "keep":
        if end == "reject":
            raise NotAChat("no_answer_at_the_end")
        last = max(i for i, message in enumerate(messages) if message["role"] == ASSISTANT)
        messages = messages[: last + 1]
    if alternation != "keep" and not _alternates(messages):
        raise NotAChat("not_alternating")
    return messages


def merged(messages: Messages) -> Messages:
    """Return the messages with neighbours of one role as one, with a blank line between their texts.

    Results of tools, and answers of which only one is learnt or one has calls, stay apart.
    """
    together: Messages = []
    for message in messages:
        if together and _can_merge(together[-1], message):
            before = together[-1]
            texts = [text for text in (before["content"], message["content"]) if text]
            together[-1] = {**before, "content": "\n\n".join(texts)}
        else:
            together.append(message)
    return together


def _can_merge(before: Message, after: Message) -> bool:
    same = before["role"] == after["role"] != TOOL and before.get(WEIGHT) == after.get(WEIGHT)
    return same and "tool_calls" not in before and "tool_calls" not in after


def _alternates(messages: Messages) -> bool:
    if messages[0]["role"] not in (SYSTEM, USER):
        return False
    for before, after in pairwise(messages):
        allowed = (TOOL,) if "tool_calls" in before else FOLLOWERS[before["role"]]
        if after["role"] not in allowed:
            return False
    return True


class Replacer:
    """Replaces texts in messages, all in one pass."""

    def __init__(self, replacements: Mapping[str, str]) -> None:
        longest_first = sorted(replacements, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        self._replacements = replacements

    def __call__(self, messages: Messages) -> Messages:
        """Return the messages with other contents. Raises NotAChat for one of which nothing is left: empty_message."""
        if not self._replacements:
            return messages
        return [self._replaced(message) for message in messages]

    def _replaced(self, message: Message) -> Message:
        text = self._pattern.sub(lambda match: self._replacements[match[0]], message["content"])
        if not text.strip() and message["content"].strip() and "tool_calls" not in message and message["role"] != TOOL:
            raise NotAChat("empty_message")
        return {**message, "content": text}
