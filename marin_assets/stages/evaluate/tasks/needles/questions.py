"""Questions of a length in tokens: a haystack with needles at their places, or a list of words."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marin_assets.stages.evaluate.tasks.needles.forms import (
    ANSWER_TOKENS,
    COMMON,
    COMMON_WORDS,
    HIDING,
    WITH_DEPTH,
    Hidden,
    common,
)
from marin_assets.stages.evaluate.tasks.needles.haystack import Haystack, NeedleError, TokenCounter

FIRST_TOKEN = 1
"""The token before a text."""
LEAST_PIECES = 2
"""Pieces of the haystack around a needle."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes questions of any form and length."""

    haystack: Haystack
    words: tuple[str, ...]
    """The words of the form "common"."""
    count_tokens: TokenCounter
    seed: int

    def questions(self, form: str, length: int, depths: tuple[float, ...], count: int) -> Iterator[dict[str, Any]]:
        """Yield `count` questions of each depth; of a form without depths as many in all. A question has `prompt`,
        `answers`, `length`, `depth` (None of a form without), `tokens` (of the prompt with the token before it) and
        `must_fit`, so that a model with a shorter window is refused.

        Raises NeedleError for a length with too little room.
        """
        for depth in depths:
            for number in range(count):
                rng = random.Random(f"{self.seed} {form} {length} {depth} {number}")
                prompt, answers = (
                    self._list(rng, length) if form == COMMON else self._hide(form, rng, length, depth=depth)
                )
                yield {
                    "prompt": prompt,
                    "answers": list(answers),
                    "length": length,
                    "depth": depth if form in WITH_DEPTH else None,
                    "tokens": self._tokens(prompt) + FIRST_TOKEN,
                    "must_fit": True,
                }

    def _hide(self, form: str, rng: random.Random, length: int, *, depth: float) -> tuple[str, tuple[str, ...]]:
        start = rng.randrange(len(self.haystack.pieces))
        hidden = HIDING[form](rng)
        frame = self._tokens(" ".join((hidden.before, *hidden.needles, hidden.after)))
        room = length - FIRST_TOKEN - ANSWER_TOKENS[form]
        budget = room - frame
        pieces = self.haystack.from_piece(start, budget)
        while len(pieces) >= LEAST_PIECES:
            prompt = hidden.before + " ".join(_with_needles(pieces, hidden, rng, depth)) + hidden.after
            if any(re.search(rf"\b{re.escape(answer)}\b", " ".join(pieces)) for answer in hidden.answers):
                return self._hide(form, rng, length, depth=depth)  # the haystack has an answer by chance
            if self._tokens(prompt) <= room:
                return prompt, hidden.answers
            pieces = pieces[:-1]
        raise NeedleError(
            f"A context of {length} tokens has no room for a question of the form {form!r}: it has {length - budget} "
            f"tokens without the haystack, of which {LEAST_PIECES} pieces at least are expected. Raise the length, or "
            "leave the form out."
        )

    def _list(self, rng: random.Random, length: int) -> tuple[str, tuple[str, ...]]:
        """A list of as many words as fit, by halving: the words are drawn again for each number, from one seed."""
        seed = rng.random()
        fits, too_many = -1, min(length, len(self.words) - COMMON_WORDS) + 1
        while too_many - fits > 1:
            others = (fits + too_many) // 2
            prompt, _ = common(random.Random(seed), self.words, others, length)
            if self._tokens(prompt) <= length - FIRST_TOKEN - ANSWER_TOKENS[COMMON]:
                fits = others
            else:
                too_many = others
        if fits < COMMON_WORDS:
            raise NeedleError(
                f"A context of {length} tokens has no room for a list with {COMMON_WORDS} words beside the common "
                "ones. Raise the length, or leave the form 'common' out."
            )
        if fits == len(self.words) - COMMON_WORDS:
            raise NeedleError(
                f"The documents have {len(self.words)} different words, expected enough for a list of {length} tokens. "
                "Pass more documents, lower the length, or leave the form 'common' out."
            )
        return common(random.Random(seed), self.words, fits, length)

    def _tokens(self, text: str) -> int:
        return self.count_tokens([text])[0]


def _with_needles(pieces: list[str], hidden: Hidden, rng: random.Random, depth: float) -> list[str]:
    """The pieces with the needles between them. The deep needle is at `depth`, from 0 (in front) to 1 (at the end)."""
    places = sorted(rng.randint(0, len(pieces)) for _ in hidden.needles)
    if not hidden.in_order:
        rng.shuffle(places)
    if hidden.deep is not None:
        places[hidden.deep] = round(depth * len(pieces))
    by_place: dict[int, list[str]] = {}
    for place, needle in zip(places, hidden.needles, strict=True):
        by_place.setdefault(place, []).append(needle)
    texts: list[str] = []
    for place in range(len(pieces) + 1):
        texts += by_place.get(place, [])
        texts += pieces[place : place + 1]
    return texts
