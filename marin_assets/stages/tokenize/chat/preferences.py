"""Rows of known shapes as preferences: a chat whose last answer is chosen, and the same chat with a rejected one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marin_assets.stages.tokenize.chat.messages import ASSISTANT, USER, Messages, NotAChat, messages_of

Row = Mapping[str, Any]
Pair = tuple[Messages, Messages]


def chats(row: Row) -> Pair:
    """{"chosen": [messages], "rejected": [messages]}: UltraFeedback, Tulu's preferences."""
    return _pair(messages_of(row.get("chosen")), messages_of(row.get("rejected")))


def answers(row: Row) -> Pair:
    """{"prompt": "…", "chosen": "…", "rejected": "…"}: a question and two answers, as texts."""
    question = {"role": USER, "content": row.get("prompt")}
    chosen, rejected = (
        messages_of([question, {"role": ASSISTANT, "content": row.get(side)}]) for side in ("chosen", "rejected")
    )
    return _pair(chosen, rejected)


def _pair(chosen: Messages, rejected: Messages) -> Pair:
    if chosen[-1]["role"] != ASSISTANT or rejected[-1]["role"] != ASSISTANT:
        raise NotAChat("no_answer_at_the_end")
    if chosen[:-1] != rejected[:-1]:
        raise NotAChat("different_prompts")
    if chosen[-1] == rejected[-1]:
        raise NotAChat("equal_answers")
    return chosen, rejected


PREFERENCE_ADAPTERS: dict[str, Callable[[Row], Pair]] = {"chats": chats, "answers": answers}
