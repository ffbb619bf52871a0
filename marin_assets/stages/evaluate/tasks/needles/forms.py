"""The forms of questions about long contexts, as RULER has them (Hsieh et al. 2024, arXiv 2404.06654, section 3).

single       one needle; its value is requested
multikey     four needles with different keys, so that three are in the way; the value of one is requested
multivalue   four needles with one key; all four values are requested
multiquery   four needles with different keys; the values of all are requested
tracking     a chain of five variables, each with the value of the one before; all that have the value are requested
common       no haystack, but a list of words in which ten occur more often; these are requested
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marin_assets.stages.evaluate.tasks.needles.words import ADJECTIVES, NOUNS

NEEDLES, CHAIN, COMMON_WORDS = 4, 5, 10
LONG = 4096
"""Tokens from which a list has more occurrences of each word."""
SHORT_LIST, LONG_LIST = (6, 1), (30, 3)
"""Occurrences of the common words, and of the others."""


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """A question: its needles, the values that it requests, and its words around the haystack."""

    needles: tuple[str, ...]
    answers: tuple[str, ...]
    before: str
    after: str
    """The question, with the beginning of its answer."""
    deep: int | None = None
    """The needle whose place is the depth of the question; the others have places by chance. None: all have."""
    in_order: bool = False
    """Whether the needles stay in their order."""


def _keys(rng: random.Random, count: int) -> list[str]:
    places = rng.sample(range(len(ADJECTIVES) * len(NOUNS)), count)
    return [f"{ADJECTIVES[place // len(NOUNS)]} {NOUNS[place % len(NOUNS)]}" for place in places]


def _values(rng: random.Random, count: int) -> list[str]:
    return [str(value) for value in rng.sample(range(1_000_000, 10_000_000), count)]


def _numbers(keys: Sequence[str], values: Sequence[str], requested: Sequence[str], answers: Sequence[str]) -> Hidden:
    """Needles of a key and a value each; the values of the requested keys are the answers."""
    listed = ", ".join(f"the {key}" for key in requested)
    verb, noun = ("is", "number") if len(answers) == 1 else ("are", "numbers")
    return Hidden(
        needles=tuple(f"The secret number of the {key} is {value}." for key, value in zip(keys, values, strict=True)),
        answers=tuple(answers),
        before="Read the text. Some secret numbers are hidden in it, which you will have to repeat.\n\n",
        after=f"\n\nQuestion: Which secret {noun} does the text have for {listed}?\nAnswer: The secret {noun} {verb}",
        deep=0 if len(answers) == 1 else None,
    )


def single(rng: random.Random) -> Hidden:
    keys, values = _keys(rng, 1), _values(rng, 1)
    return _numbers(keys, values, keys, values)


def multikey(rng: random.Random) -> Hidden:
    keys, values = _keys(rng, NEEDLES), _values(rng, NEEDLES)
    return _numbers(keys, values, keys[:1], values[:1])


def multivalue(rng: random.Random) -> Hidden:
    keys, values = _keys(rng, 1), _values(rng, NEEDLES)
    return _numbers(keys * NEEDLES, values, keys, values)


def multiquery(rng: random.Random) -> Hidden:
    keys, values = _keys(rng, NEEDLES), _values(rng, NEEDLES)
    return _numbers(keys, values, keys, values)


def tracking(rng: random.Random) -> Hidden:
    names: list[str] = []
    while len(names) < CHAIN:
        name = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=5))
        names += [name] * (name not in names)
    value = str(rng.randrange(10_000, 100_000))
    assigned = [value, *(f"VAR {name}" for name in names[:-1])]
    return Hidden(
        needles=tuple(f"VAR {name} = {source}." for name, source in zip(names, assigned, strict=True)),
        answers=tuple(names),
        before="Read the text. Some variables are assigned in it, of which you will have to know the values.\n\n",
        after=f"\n\nQuestion: Which variables have the value {value}?\nAnswer: The {CHAIN} variables with the value "
        f"{value} are",
        in_order=True,
    )


def common(rng: random.Random, words: Sequence[str], others: int, length: int) -> tuple[str, tuple[str, ...]]:
    """Return a question with `others` words beside the common ones, and its answers. `length` in tokens is that which
    decides how often words occur."""
    often, seldom = LONG_LIST if length >= LONG else SHORT_LIST
    drawn = rng.sample(words, COMMON_WORDS + others)
    answers = drawn[:COMMON_WORDS]
    listed = answers * often + drawn[COMMON_WORDS:] * seldom
    rng.shuffle(listed)
    numbered = " ".join(f"{number}. {word}" for number, word in enumerate(listed, 1))
    return (
        f"Read the list of words. Some occur more often than others.\n\n{numbered}\n\nQuestion: Which {COMMON_WORDS} "
        f"words occur most often in the list?\nAnswer: The {COMMON_WORDS} words that occur most often are",
        tuple(answers),
    )


COMMON = "common"
HIDING: dict[str, Callable[[random.Random], Hidden]] = {
    "single": single,
    "multikey": multikey,
    "multivalue": multivalue,
    "multiquery": multiquery,
    "tracking": tracking,
}
"""The forms that hide needles in a haystack."""
FORMS = (*HIDING, COMMON)
ANSWER_TOKENS = {"single": 24, "multikey": 24, "multivalue": 64, "multiquery": 128, "tracking": 64, "common": 144}
"""Room for the answer: the bytes of its values, each a token at most, and other words."""
WITH_DEPTH = ("single", "multikey")
"""The forms whose questions have a depth."""
