"""Rows of known shapes as preferences: a chat whose last answer is chosen, and the same chat with a rejected one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marin_assets.documents.chats.adapters import Adapter, Row
from marin_assets.documents.chats.messages import (
    ASSISTANT,
    SYSTEM,
    TRAINED,
    USER,
    Messages,
    Rules,
    is_learnt,
    messages_of,
)
from marin_assets.documents.chats.not_a_chat import NotAChat

Pair = tuple[Messages, Messages]
SPEAKER = re.compile(r"(?:\A|\n\n)(Human|Assistant):")
SPEAKERS = {"Human": USER, "Assistant": ASSISTANT}


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Two answers to one prompt. Each is a text; or a list of messages, which may begin with the prompt."""

    chosen: str = "chosen"
    rejected: str = "rejected"
    prompt: str | None = None
    """The column of the prompt, a text or a list of messages; None: both lists begin with it."""
    role: str = "role"
    """The key of a message's role."""
    content: str = "content"
    """The key of its text."""
    transcript: bool = False
    """Whether the texts are whole chats as HH-RLHF has them: "\\n\\nHuman: …\\n\\nAssistant: …"."""


PAIR_FORMS: Mapping[str, Pairs] = {
    # {"chosen": [messages], "rejected": [messages]}: UltraFeedback, Tulu's preferences.
    "chats": Pairs(),
    # {"prompt": "…", "chosen": "…", "rejected": "…"}: a question and two answers, as texts or lists of messages.
    "answers": Pairs(prompt="prompt"),
    # {"chosen": "\n\nHuman: …\n\nAssistant: …", "rejected": "…"}: HH-RLHF.
    "transcripts": Pairs(transcript=True),
}


def pair_adapter_of(form: Pairs, rules: Rules = TRAINED) -> Adapter[Pair]:
    """Return the adapter of a shape. It checks the pair if the rules require an answer."""

    def read(row: Row) -> Pair:
        chosen, rejected = (_chat(row, row.get(side), form, rules) for side in (form.chosen, form.rejected))
        return checked(chosen, rejected) if rules.require_answer else (chosen, rejected)

    prompt = () if form.prompt is None else (form.prompt,)
    return Adapter(
        read=read, turns=(*prompt, form.chosen, form.rejected), role=form.role, content=form.content, rules=rules
    )


def checked(chosen: Messages, rejected: Messages) -> Pair:
    """Return the pair. Raises NotAChat: no_answer_at_the_end, different_prompts, equal_answers, nothing_to_learn."""
    if not chosen or not rejected or chosen[-1]["role"] != ASSISTANT or rejected[-1]["role"] != ASSISTANT:
        raise NotAChat("no_answer_at_the_end")
    if chosen[:-1] != rejected[:-1]:
        raise NotAChat("different_prompts")
    if _answer(chosen) == _answer(rejected):
        raise NotAChat("equal_answers")
    if not is_learnt(chosen[-1]) or not is_learnt(rejected[-1]):
        raise NotAChat("nothing_to_learn")
    return chosen, rejected


def turns_of(transcript: Any) -> list[dict[str, str]]:
    """Return the turns of a text as HH-RLHF has them. Raises NotAChat: not_text, no_messages."""
    if not isinstance(transcript, str):
        raise NotAChat("no_messages" if transcript is None else "not_text")
    before, *turns = SPEAKER.split(transcript)
    if before.strip() or not turns:
        raise NotAChat("no_messages")
    return [
        {"role": SPEAKERS[name], "content": text.strip()} for name, text in zip(turns[::2], turns[1::2], strict=True)
    ]


def _answer(messages: Messages) -> tuple[Any, Any]:
    return messages[-1]["content"], messages[-1].get("tool_calls")


def _chat(row: Row, side: Any, form: Pairs, rules: Rules) -> Messages:
    names: dict[str, Any] = {"role": form.role, "content": form.content}
    if form.transcript:
        side, names = turns_of(side), {}
    elif form.prompt is not None:
        side = _with_prompt(row.get(form.prompt), side, form)
    return messages_of(side, system=row.get(rules.system_column), rules=rules, **names)


def _with_prompt(prompt: Any, side: Any, form: Pairs) -> list[Any]:
    answer = _turns(side, ASSISTANT, form)
    first = answer[0] if answer else {}
    if answer is side and isinstance(first.get(form.role), str) and first[form.role].lower() in (SYSTEM, USER, "human"):
        return answer  # it begins with the prompt
    return [*_turns(prompt, USER, form), *answer]


def _turns(value: Any, role: str, form: Pairs) -> list[Any]:
    is_list = isinstance(value, list) and all(isinstance(item, Mapping) and form.role in item for item in value)
    return value if is_list else [{form.role: role, form.content: value}]


PREFERENCE_ADAPTERS = {name: pair_adapter_of(form) for name, form in PAIR_FORMS.items()}
