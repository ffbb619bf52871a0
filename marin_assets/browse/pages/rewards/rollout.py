"""A rollout: its tokens, coloured by their log-probability and marked by the mask, and the others of its group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from marin_assets.browse.cells.short_text import short_text
from marin_assets.browse.errors import NotThereError
from marin_assets.browse.pages.file_of_rows import FileOfRows, file_of_rows
from marin_assets.browse.pages.rewards.samples import are_ids, list_of
from marin_assets.browse.pages.tokens import shown_tokens
from marin_assets.browse.rows.reader import PARQUET, read_page
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.reward_training import tokenizer_of
from marin_assets.documents.document import BadRow, DocumentError
from marin_assets.stages.train.rl.measures.selection import read_small
from marin_assets.stages.train.rl.rollout import LISTS

COUNT = 2000
"""Tokens on a page."""
LEVELS = (0.9, 0.5, 0.1, 0.01)
"""Probabilities of a token, from which on it has the colour of the level before."""
MOST_OF_GROUP = 200
FIELDS = ("lesson", "step", "reward", "used", "reason", "note", "finish", "weights_step", "weights_digest", "example")


def is_rollout(row: Any) -> bool:
    """Whether a row has the columns of a rollout."""
    return isinstance(row, Mapping) and all(name in row for name in (*LISTS, "reward", "lesson", "group"))


def rollout(asked: Asked) -> Shown:
    shown, number, start = file_of_rows(asked), asked.query.number("row"), asked.query.number("start")
    rows = read_page(shown.place.path, start=number, count=1).rows
    row = rows[0] if rows else None
    if isinstance(row, BadRow) or not is_rollout(row):
        raise NotThereError(f"Row {number:,} of {shown.place.text!r:.300} is no rollout. Open a table of rollouts.")
    assert isinstance(row, dict)
    tokenizer, note = (
        tokenizer_of(asked.places, shown.owner) if shown.owner is not None else (None, "it is in no output")
    )
    prompt, answer, damage = _tokens(row, tokenizer)
    tokens = prompt + answer
    group, group_damage = _group(shown, row)
    facts: dict[str, Any] = {
        "shown": shown,
        "number": number,
        "id": short_text(row.get("id"), 100).text,
        "fields": [(name, short_text(row.get(name), 2000)) for name in FIELDS if row.get(name) not in (None, "")],
        "damage": damage,
        "note": note,
        "tokens": tokens[start : start + COUNT],
        "prompt_tokens": len(prompt),
        "drawn": sum(token["is_drawn"] for token in answer),
        "replied": sum(not token["is_drawn"] for token in answer),
        "nats": sum(token["logprob"] for token in answer),
        "answer": short_text(row.get("answer"), 20_000),
        "start": start,
        "total": len(tokens),
        "step": COUNT,
        "levels": LEVELS,
        "group": group,
        "group_damage": group_damage,
        "has_next": shown.total is None or number + 1 < shown.total,
    }
    return Shown(template="rollout", facts=facts)


def _tokens(row: Mapping[str, Any], tokenizer: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """The tokens of the prompt and those of the answer; and a sentence if the lists do not fit."""
    prompt, ids, logprobs, mask = (list_of(row, name) for name in ("prompt_ids", "ids", "logprobs", "mask"))
    is_whole = (
        len(ids) == len(logprobs) == len(mask)
        and are_ids([*prompt, *ids])
        and all(isinstance(value, int | float) and -1e6 < value < 1e6 for value in [*logprobs, *mask])
    )
    if not is_whole:
        return [], [], "The lists of tokens, log-probabilities and mask do not fit, so the answer is shown as a text."
    before = [
        {**token, "logprob": 0.0, "is_drawn": False, "kind": "prompt", "title": "of the prompt"}
        for token in shown_tokens(prompt, None, tokenizer)
    ]
    after = [
        {**token, "logprob": logprob if is_drawn else 0.0, "is_drawn": bool(is_drawn), **_look(logprob, bool(is_drawn))}
        for token, logprob, is_drawn in zip(shown_tokens(ids, None, tokenizer), logprobs, mask, strict=True)
    ]
    return before, after, ""


def _look(logprob: float, is_drawn: bool) -> dict[str, str]:
    """The class of a token, and the text that is shown when it is pointed at."""
    if not is_drawn:
        return {"kind": "reply", "title": "of a reply: not trained on"}
    probability = math.exp(min(logprob, 0.0))
    level = sum(probability < bound for bound in LEVELS)
    return {"kind": f"lp{level}", "title": f"log-probability {logprob:.3f} ({probability:.2g})"}


def _group(shown: FileOfRows, row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The rollouts of the same example, with their rewards; and a sentence if the table is damaged elsewhere."""
    if not shown.place.name.endswith(PARQUET):
        return [], ""
    try:
        rows = read_small(shown.place.path)
    except DocumentError as error:
        return [], str(error)
    group = [
        {"number": number, "reward": of["reward"], "finish": of["finish"], "reason": short_text(of["reason"], 60).text}
        for number, of in enumerate(rows)
        if (of["step"], of["group"]) == (row.get("step"), row.get("group"))
    ]
    return group[:MOST_OF_GROUP], ""
