"""Rows of known shapes as preferences: a chat whose last answer is chosen, and the same chat with a rejected one."""

from __future__ import annotations

from marin_assets.stages.tokenize.chat.adapters import Adapter, Row
from marin_assets.stages.tokenize.chat.messages import (
    ASSISTANT,
    SYSTEM,
    USER,
    Messages,
    NotAChat,
    is_learnt,
    messages_of,
)

Pair = tuple[Messages, Messages]


def _chats(row: Row) -> Pair:
    system = row.get(SYSTEM)
    return _pair(messages_of(row.get("chosen"), system=system), messages_of(row.get("rejected"), system=system))


def _answers(row: Row) -> Pair:
    question = {"role": USER, "content": row.get("prompt")}
    chosen, rejected = (
        messages_of([question, {"role": ASSISTANT, "content": row.get(side)}], system=row.get(SYSTEM))
        for side in ("chosen", "rejected")
    )
    return _pair(chosen, rejected)


def _pair(chosen: Messages, rejected: Messages) -> Pair:
    if chosen[-1]["role"] != ASSISTANT or rejected[-1]["role"] != ASSISTANT:
        raise NotAChat("no_answer_at_the_end")
    if chosen[:-1] != rejected[:-1]:
        raise NotAChat("different_prompts")
    if chosen[-1]["content"] == rejected[-1]["content"]:
        raise NotAChat("equal_answers")
    if not is_learnt(chosen[-1]) or not is_learnt(rejected[-1]):
        raise NotAChat("nothing_to_learn")
    return chosen, rejected


PREFERENCE_ADAPTERS = {
    # {"chosen": [messages], "rejected": [messages]}: UltraFeedback, Tulu's preferences.
    "chats": Adapter(read=_chats, turns=("chosen", "rejected")),
    # {"prompt": "…", "chosen": "…", "rejected": "…"}: a question and two answers, as texts.
    "answers": Adapter(read=_answers, keys=("prompt", "chosen", "rejected")),
}
