"""Rollouts to read, from the first step, the quarters and the last: prompt and answer, with the replies marked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from marin_assets.browse.cells.short_text import ShortText, short_text, visible
from marin_assets.browse.query import address
from marin_assets.browse.stored.reward_training import RewardTraining
from marin_assets.documents.document import DocumentError
from marin_assets.stages.train.rl.measures.selection import rows_to_read

PROMPT, ANSWER = 1000, 1500
"""Characters that are shown: of a prompt the last ones."""


def samples_of(training: RewardTraining, tokenizer: Any) -> list[dict[str, Any]]:
    """The rollouts by step. One that is damaged, or whose table is combined with others meanwhile, ends them with a
    note."""
    texts = {table.path: table.text for table in training.tables}
    samples = []
    try:
        for path, number, row in rows_to_read({table.path: table.rows for table in training.tables}):
            samples.append(_sample(row, address("rollout", path=texts[path], row=number), tokenizer))
    except DocumentError as error:
        training.notes.append(str(error))
    except FileNotFoundError as error:
        training.notes.append(f"The table {error.filename!r:.300} was combined with others. Load this again.")
    steps = sorted({sample["step"] for sample in samples})
    return [{"step": step, "samples": [of for of in samples if of["step"] == step]} for step in steps]


def answer_parts(row: Mapping[str, Any], tokenizer: Any) -> list[tuple[str, bool]]:
    """The parts of an answer, and whether each is a reply of the environment; one part without a tokenizer."""
    whole = [(str(row.get("answer") or ""), False)]
    ids, mask = list_of(row, "ids"), list_of(row, "mask")
    if tokenizer is None or len(ids) != len(mask) or all(mask) or not are_ids(ids):
        return whole
    runs = groupby(zip(ids, mask, strict=True), key=lambda pair: bool(pair[1]))
    return [(tokenizer.decode([id for id, _ in pairs]), not is_drawn) for is_drawn, pairs in runs]


def list_of(row: Mapping[str, Any], column: str) -> Sequence[Any]:
    """A list of a rollout, which is JSON; empty for another value."""
    text = row.get(column)
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def are_ids(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32 for value in values)


def _sample(row: Mapping[str, Any], link: str, tokenizer: Any) -> dict[str, Any]:
    prompt, room, parts = str(row.get("prompt") or ""), ANSWER, []
    for text, is_reply in answer_parts(row, tokenizer):
        if room > 0:
            parts.append((visible(text[:room]), is_reply))
        room -= len(text)
    return {
        "step": row["step"],
        "lesson": short_text(row["lesson"], 100).text,
        "reward": None if row["reward"] is None else f"{row['reward']:.4g}",
        "reason": short_text(row["reason"], 100).text,
        "finish": short_text(row["finish"], 40).text,
        "prompt": ShortText(visible(prompt[-PROMPT:]), f"{len(prompt):,} characters" * (len(prompt) > PROMPT)),
        "parts": parts,
        "cut": -room if room < 0 else 0,
        "link": link,
    }
