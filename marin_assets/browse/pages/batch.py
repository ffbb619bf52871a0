"""The batch of a step of a training: its sequences, decoded, with the documents they are from.

The batch is drawn again from the caches by the functions of the training (`browse/batches/`): nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marin_assets.browse.batches.documents import RowInSequence, Splits
from marin_assets.browse.batches.drawer import draw_batch
from marin_assets.browse.batches.question import Answer, Drawn
from marin_assets.browse.cells.short_text import short_text
from marin_assets.browse.errors import BrowseError, NotThereError
from marin_assets.browse.pages.tokens import shown_tokens
from marin_assets.browse.query import address
from marin_assets.browse.site import Asked, Shown
from marin_assets.browse.stored.state import OutputState
from marin_assets.browse.stored.token_rows import tokenizer_at
from marin_assets.browse.stored.verdicts import today
from marin_assets.documents.caches.token_cache import CacheError
from marin_assets.documents.caches.tokens import TokenizerFileError

FUNCTION = "marin_assets.stages.train.train_lm:train_lm"
SEQUENCES, TOKENS = 8, 256
"""Sequences on a page, and tokens of each of several."""
TOKENS_OF_ONE = 2000
"""Tokens of a sequence that is alone on its page."""


def is_training(state: OutputState) -> bool:
    """Whether the output is a training of which batches are drawn."""
    return state.record.fn_name == FUNCTION and isinstance(state.record.config, Mapping)


def batch(asked: Asked) -> Shown:
    place, step = asked.place(), asked.query.number("step")
    state = asked.owner(place)
    if state is None or not is_training(state):
        raise NotThereError(
            f"{place.text!r:.300} is no output of train_lm with a record of its config. Open that of a training."
        )
    is_alone = asked.query.has("sequence")
    first = asked.query.number("sequence") if is_alone else asked.query.number("first")
    answer = draw_batch(asked, state, step=step, first=first, count=1 if is_alone else SEQUENCES)
    if not answer.sequences:
        raise NotThereError(f"Step {step:,} has no sequence {first:,}, counted from 0. Its batch has {answer.size:,}.")
    start = asked.query.number("start") if is_alone else 0
    tokenizer, note = _tokenizer(asked, state)
    split = _Sequences(asked, state, tokenizer)
    count = TOKENS_OF_ONE if is_alone else TOKENS
    facts: dict[str, Any] = {
        "place": place,
        "owner": state,
        "step": step,
        "last_step": _last_step(state),
        "size": answer.size,
        "first": first,
        "is_alone": is_alone,
        "sequences": [split.shown(first + i, drawn, start, count) for i, drawn in enumerate(answer.sequences)],
        "previous": max(first - SEQUENCES, 0) if first and not is_alone else None,
        "next": first + SEQUENCES if not is_alone and first + SEQUENCES < answer.size else None,
        "start": start,
        "step_tokens": TOKENS_OF_ONE,
        "length": max(len(drawn.tokens) for drawn in answer.sequences),
        "has_masks": _has_masks(answer),
        "note": note,
    }
    return Shown(template="batch", facts=facts)


class _Sequences:
    """The sequences of one page."""

    def __init__(self, asked: Asked, state: OutputState, tokenizer: Any) -> None:
        self._asked, self._state, self._tokenizer = asked, state, tokenizer
        self._splits = Splits(asked.places)

    def shown(self, number: int, drawn: Drawn, start: int, count: int) -> dict[str, Any]:
        """A sequence with its tokens from `start` on, document by document."""
        rows, note = self._rows(drawn)
        end = min(start + count, len(drawn.tokens))
        parts = [
            self._part(drawn, row, start, end) for row in rows if row.start < end and row.start + row.count > start
        ]
        text = self._asked.places.text_of(drawn.cache) if drawn.cache else None
        return {
            "number": number,
            "total": len(drawn.tokens),
            "end": end,
            "link": address(
                "batch", path=self._state.place.text, step=self._asked.query.number("step"), sequence=number
            )
            if end - start < len(drawn.tokens)
            else "",
            "cache": text,
            "first_token": drawn.first_token,
            "parts": parts or [{"row": None, "tokens": self._tokens(drawn, start, end)}],
            "more": len(rows) - len(parts) if rows else 0,
            "note": note,
        }

    def _rows(self, drawn: Drawn) -> tuple[list[RowInSequence], str]:
        """The documents of a sequence; none of packed chats, and none with the reason for a damaged cache."""
        if not drawn.cache:
            return [], ""
        try:
            return self._splits.rows(drawn.cache, drawn.first_token, len(drawn.tokens)), ""
        except BrowseError as error:
            return [], str(error)

    def _part(self, drawn: Drawn, row: RowInSequence, start: int, end: int) -> dict[str, Any]:
        low, high = max(row.start, start), min(row.start + row.count, end)
        output = self._asked.owner(self._asked.places.resolve(row.text))
        return {
            "row": row,
            "name": short_text(row.name, 120).text,
            "link": address("tokens", path=row.text, row=row.number),
            "way": address("way", path=output.place.text, id=row.name) if output is not None and row.name else "",
            "tokens": self._tokens(drawn, low, high),
        }

    def _tokens(self, drawn: Drawn, start: int, end: int) -> list[dict[str, Any]]:
        # the weight at a token is that of predicting the next one
        learnt = [False, *drawn.learnt[:-1]][start:end]
        return shown_tokens(drawn.tokens[start:end], learnt, self._tokenizer)


def _tokenizer(asked: Asked, state: OutputState) -> tuple[Any, str]:
    """The tokenizer of the training; None with the reason."""
    path = state.record.config.get("tokenizer_path")  # type: ignore[attr-defined]
    text = asked.places.text_of(today(state, path)) if isinstance(path, str) else None
    if text is None:
        return None, "the tokenizer is outside of what is shown. The ids are shown."
    try:
        return tokenizer_at(asked.places.resolve(text).path), ""
    except (TokenizerFileError, CacheError, FileNotFoundError) as error:
        return None, str(error)


def _last_step(state: OutputState) -> int | None:
    steps = state.record.config.get("num_train_steps")  # type: ignore[attr-defined]
    return steps - 1 if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0 else None


def _has_masks(answer: Answer) -> bool:
    """Whether the loss of a token does not count: the last weight of a sequence is always 0, as no token follows."""
    return any(not all(drawn.learnt[:-1]) for drawn in answer.sequences)
