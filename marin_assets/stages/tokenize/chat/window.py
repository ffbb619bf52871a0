"""The part of a chat that fits into a training sequence of `max_seq_len` tokens, and the fields of its cached row.

A chat is cut on the right; a preference is never cut, as an answer without its end is another answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.stages.tokenize.chat.encoder import Encoded

IDS, MASKS = "input_ids", "assistant_masks"


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One row of a cache."""

    fields: Mapping[str, list[int]]
    loss_tokens: int
    cut_tokens: int = 0


def chat_row(chat: Encoded, max_seq_len: int) -> CacheRow:
    """Raises NotAChat for a chat of which no answer is left: cut_before_answer."""
    ids, mask = chat.ids[:max_seq_len], _learnable(chat.mask[:max_seq_len])
    if not any(mask):
        raise NotAChat("cut_before_answer")
    return CacheRow({IDS: ids, MASKS: mask}, sum(mask), len(chat.ids) - len(ids))


def preference_row(chosen: Encoded, rejected: Encoded, max_seq_len: int) -> CacheRow:
    """Raises NotAChat if one of both is longer than the window: too_long."""
    if max(len(chosen.ids), len(rejected.ids)) > max_seq_len:
        raise NotAChat("too_long")
    sides = {"chosen": chosen, "rejected": rejected}
    masks = {side: _learnable(chat.mask) for side, chat in sides.items()}
    fields = {f"{side}_{IDS}": chat.ids for side, chat in sides.items()}
    fields |= {f"{side}_{MASKS}": mask for side, mask in masks.items()}
    return CacheRow(dict(sorted(fields.items())), sum(map(sum, masks.values())))


def _learnable(mask: list[int]) -> list[int]:
    """The mask without the first token: nothing predicts it, or the end of the chat that is packed before it would."""
    return [0, *mask[1:]] if mask else []
