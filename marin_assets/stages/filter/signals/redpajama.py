"""RedPajama-V2's quality signals that need the text alone (Weber et al. 2024, arXiv:2411.12372, appendix).

The names are those of the published data, and so are the values: rounded to 8 decimals, None where a ratio has no
denominator. `rps_lines_…` is a list with one number a line; `rps_lines_…_mean` is its mean, which RedPajama does not
publish. Not here, for they need more than the text: scores of classifiers, importance weights, perplexity,
`rps_doc_ldnoobw_words` and `rps_doc_ut1_blacklist`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from functools import reduce

from marin_assets.stages.filter.signals.redpajama_lines import DECIMALS
from marin_assets.stages.filter.signals.redpajama_text import DUPLICATE, TOP, RedPajamaText

Value = float | list[float] | list[int] | None
"""A number, one number a line, or None."""
Signal = Callable[[RedPajamaText], Value]

WORD = re.compile(r"\w")
LOREM_IPSUM = re.compile("lorem ipsum", re.IGNORECASE)
SYMBOLS = ("#", "...", "…")


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, DECIMALS) if whole else None


def _lorem_ipsum(text: RedPajamaText) -> float:
    if "ipsum" not in text.normalized or "lorem ipsum" not in (words := " ".join(text.words)):
        return 0.0
    return round(len(LOREM_IPSUM.findall(words)) / len(words), DECIMALS)


def _num_sentences(text: RedPajamaText) -> int:
    """Number of pieces between the marks . ! ? with a letter or digit. RedPajama's expression finds as many matches."""
    between = text.text.replace("!", ".").replace("?", ".").split(".")
    return sum(map(bool, map(WORD.search, filter(None, between))))


def _no_alph_words(text: RedPajamaText) -> float | None:
    if not text.raw_words:
        return None
    return round(1.0 - text.raw_words_with_letter / text.raw_words, DECIMALS)  # of the complement, as RedPajama rounds


def _unigram_entropy(text: RedPajamaText) -> float | None:
    """Summed from the first word to the last: another order has another last digit."""
    if not (total := len(text.words)):
        return None
    counts = text.word_counts.values()
    terms = {count: -count / total * math.log(count / total) for count in set(counts)}
    return round(reduce(operator.add, map(terms.__getitem__, counts), 0.0), DECIMALS)


def _top(n: int) -> Signal:
    return lambda text: _ratio(text.repeats.top.get(n, 0), text.word_characters) or 0.0


def _duplicate(n: int) -> Signal:
    return lambda text: _ratio(text.repeats.covered.get(n, 0), text.word_characters) or 0.0


DOCUMENT_SIGNALS: dict[str, Signal] = {
    "rps_doc_curly_bracket": lambda text: _ratio(text.text.count("{") + text.text.count("}"), len(text.text)) or 0.0,
    "rps_doc_frac_all_caps_words": lambda text: _ratio(text.raw_words_in_capitals, text.raw_words),
    "rps_doc_frac_lines_end_with_ellipsis": lambda text: _ratio(text.lines.with_ellipsis, text.lines.count),
    "rps_doc_frac_no_alph_words": _no_alph_words,
    "rps_doc_frac_unique_words": lambda text: _ratio(len(text.word_counts), len(text.words)),
    "rps_doc_lorem_ipsum": _lorem_ipsum,
    "rps_doc_mean_word_length": lambda text: _ratio(text.word_characters, len(text.words)),
    "rps_doc_num_sentences": _num_sentences,
    "rps_doc_stop_word_fraction": lambda text: _ratio(text.raw_stop_words, text.raw_words) if text.words else 0.0,
    "rps_doc_symbol_to_word_ratio": lambda text: _ratio(sum(map(text.text.count, SYMBOLS)), text.raw_words),
    "rps_doc_unigram_entropy": _unigram_entropy,
    "rps_doc_word_count": lambda text: len(text.words),
    **{f"rps_doc_frac_chars_top_{n}gram": _top(n) for n in TOP},
    **{f"rps_doc_frac_chars_dupe_{n}grams": _duplicate(n) for n in DUPLICATE},
}
"""One number a document."""

LINE_SIGNALS: dict[str, Callable[[RedPajamaText], list[int] | list[float]]] = {
    "rps_lines_ending_with_terminal_punctution_mark": lambda text: text.lines.terminal_marks,
    "rps_lines_javascript_counts": lambda text: text.lines.javascripts,
    "rps_lines_num_words": lambda text: text.lines.words,
    "rps_lines_numerical_chars_fraction": lambda text: text.lines.numerals,
    "rps_lines_start_with_bulletpoint": lambda text: text.lines.bullets,
    "rps_lines_uppercase_letter_fraction": lambda text: text.lines.capitals,
}
"""One number a line, in the order of the lines. "punctution" is RedPajama's spelling."""


def _mean(signal: Callable[[RedPajamaText], list[int] | list[float]]) -> Signal:
    def mean(text: RedPajamaText) -> float | None:
        values = signal(text)
        return _ratio(math.fsum(values), len(values))

    return mean


LINE_MEANS: dict[str, Signal] = {f"{name}_mean": _mean(signal) for name, signal in LINE_SIGNALS.items()}
"""The mean over the lines of each."""
