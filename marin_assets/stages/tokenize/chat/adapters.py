"""Rows of known shapes as chats. An adapter is a pure function of a row; ADAPTERS has them by name.

Each raises NotAChat for a row that it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marin_assets.stages.tokenize.chat.messages import ASSISTANT, SYSTEM, USER, Messages, messages_of

Row = Mapping[str, Any]
SHAREGPT_ROLES = {"system": SYSTEM, "human": USER, "user": USER, "gpt": ASSISTANT, "chatgpt": ASSISTANT}


def openai(row: Row) -> Messages:
    """{"messages": [{"role": "user", "content": "…"}, …]}: OpenAI's chats; Tulu, UltraChat, SmolTalk."""
    return messages_of(row.get("messages"))


def sharegpt(row: Row) -> Messages:
    """{"conversations": [{"from": "human", "value": "…"}, …]}: ShareGPT; OpenHermes, SlimOrca."""
    return messages_of(row.get("conversations"), role="from", content="value", roles=SHAREGPT_ROLES)


def dolly(row: Row) -> Messages:
    """{"instruction": "…", "context": "…", "response": "…"}: Dolly. The context, if there is one, follows."""
    question = "\n\n".join(str(row[key]) for key in ("instruction", "context") if row.get(key))
    return messages_of(
        [{"role": USER, "content": question}, {"role": ASSISTANT, "content": row.get("response")}],
    )


ADAPTERS: dict[str, Callable[[Row], Messages]] = {"openai": openai, "sharegpt": sharegpt, "dolly": dolly}
