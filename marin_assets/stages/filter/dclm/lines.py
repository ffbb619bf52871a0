"""DCLM's rules for lines, after RefinedWeb's: cut headings in capitals, counters and buttons (Penedo et al. 2023,
arXiv:2306.01116, G.2). A document that loses many words is rejected."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.stages.filter.dclm.statistics import dclm_statistics
from marin_assets.stages.filter.dclm.words import count_tokens
from marin_assets.stages.filter.spans import CutText, Span
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import rejected

COUNTED = "likes|shares|comments|retweets|reposts|quotes|bookmarks|upvotes|downvotes|downloads|views|followers"
COUNTER = re.compile(rf"^\W*\d(?:,|\.|\d)*(?:k|m|b)?\s+(?:{COUNTED})\W*$")
"""A line in lower case, such as "3 likes"."""
PHRASES = tuple(
    re.compile(phrase, re.IGNORECASE | re.MULTILINE)
    for phrase in (r"\s?items in cart", r"\s?read more...$", r"^sign-in\s?")
)
"""In the order in which they are cut. The three dots stand for any three characters, as in DCLM's code."""
MAX_PHRASE_WORDS = 10
"""Words of the longest line from which a phrase is cut."""
UPPERCASE, DIGITS = string.ascii_uppercase.encode(), string.digits.encode()


@dataclass(frozen=True, kw_only=True)
class DclmLinesThresholds:
    """None or false disables a rule. Lines are those between line feeds; empty ones are kept."""

    max_uppercase_ratio: float | None
    """Cut lines with a larger share of upper-case characters."""
    max_digit_ratio: float | None
    """Cut lines with a larger share of digits."""
    counters: bool
    """Cut lines such as "3 likes"."""
    min_words_per_line: int | None
    """Cut lines with fewer words between white space."""
    phrases: bool
    """Cut "items in cart", "Read more..." at the end and "Sign-in" at the beginning of lines of ten words at most."""
    max_removed_word_ratio: float | None
    """Reject a document that loses a larger share of its words: fastText's tokens that begin with a letter or digit."""


def filter_dclm_lines(statistics: TextStatistics, thresholds: DclmLinesThresholds) -> Decision:
    """Reject the document, or cut lines, phrases and white space at the ends of the text."""
    text = CutText(statistics.text)
    for cut in _rules(thresholds):
        text = cut(text)
        if not text.text:
            return rejected("dclm_lines", "empty", 0)
    most = thresholds.max_removed_word_ratio
    if most is not None:
        before, after = dclm_statistics(statistics).token_count, count_tokens(text.text)
        removed = (before - after) / before if before else 1.0
        if removed > most:
            return rejected("dclm_lines", "max_removed_word_ratio", removed)
    return Decision(keep=True, cut=spans) if (spans := text.cut) else KEPT


def _rules(thresholds: DclmLinesThresholds) -> list[Callable[[CutText], CutText]]:
    """Return the rules that are enabled, in DCLM's order."""
    rules: list[Callable[[CutText], CutText]] = []
    if (uppercase := thresholds.max_uppercase_ratio) is not None:
        rules.append(
            lambda text: _with(text, lambda line: _share(line, UPPERCASE, str.isupper) <= uppercase).stripped()
        )
    if (digits := thresholds.max_digit_ratio) is not None:
        rules.append(lambda text: _with(text, lambda line: _share(line, DIGITS, str.isdigit) <= digits).stripped())
    if thresholds.counters:
        rules.append(lambda text: _with(text, lambda line: not COUNTER.search(line.lower())).stripped())
    if (words := thresholds.min_words_per_line) is not None:
        rules.append(lambda text: _with(text, lambda line: len(line.split(maxsplit=words)) >= words))
    if thresholds.phrases:
        rules += [partial(_without_phrase, phrase=phrase) for phrase in PHRASES]
    return rules


def _with(text: CutText, keep: Callable[[str], bool]) -> CutText:
    """Return the text of the empty lines and of those to keep."""
    kept = [not line or keep(line) for line in text.text.split("\n")]
    return text if all(kept) else text.with_lines(kept)


def _share(line: str, ascii_characters: bytes, counts: Callable[[str], bool]) -> float:
    """Return the share of a line's characters that count; `ascii_characters` are those of ASCII."""
    if line.isascii():
        return (len(line) - len(line.encode().translate(None, ascii_characters))) / len(line)
    return sum(map(counts, line)) / len(line)


def _without_phrase(text: CutText, phrase: re.Pattern[str]) -> CutText:
    """Return the text without the phrase in short lines, and without the lines of which nothing else is left."""
    if not phrase.search(text.text):
        return text.stripped()
    text = _with(text, lambda line: not _is_short(line) or not _is_blank(phrase.sub("", line)))
    cut: list[Span] = []
    at = 0
    for line in text.text.split("\n"):
        if _is_short(line):
            cut += [(at + match.start(), at + match.end()) for match in phrase.finditer(line)]
        at += len(line) + 1
    return text.without(cut).stripped()


def _is_short(line: str) -> bool:
    return len(line.split(maxsplit=MAX_PHRASE_WORDS)) <= MAX_PHRASE_WORDS


def _is_blank(line: str) -> bool:
    return not line or line.isspace()
