"""DCLM's form of Gopher's repetition filter: all occurrences of what repeats are counted, the first ones too."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.dclm.statistics import dclm_statistics
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import Measure, at_most, first_beyond, rejected


@dataclass(frozen=True, kw_only=True)
class DclmRepetitionThresholds:
    """The largest shares that are kept. None disables a threshold. N-grams consist of words by Unicode's borders."""

    dup_line_frac: float | None
    """Lines that occur more than once."""
    dup_para_frac: float | None
    """Paragraphs that occur more than once."""
    dup_line_char_frac: float | None
    """Characters in such lines."""
    dup_para_char_frac: float | None
    """Characters in such paragraphs."""
    top_2_gram: float | None
    """Characters in all occurrences of the longest of the most frequent 2-grams."""
    top_3_gram: float | None
    top_4_gram: float | None
    dup_5_gram: float | None
    """Characters in 5-grams that occur more than once, each character once."""
    dup_6_gram: float | None
    dup_7_gram: float | None
    dup_8_gram: float | None
    dup_9_gram: float | None
    dup_10_gram: float | None


def _top(n: int) -> Measure:
    return at_most(
        f"top_{n}_gram",
        lambda text, _: dclm_statistics(text).top_ngram_characters(n),
        upper_bound=lambda text, _: dclm_statistics(text).top_ngram_characters_bound(n),
    )


def _repeated(n: int) -> Measure:
    return at_most(
        f"dup_{n}_gram",
        lambda text, _: dclm_statistics(text).repeated_ngram_characters(n),
        upper_bound=lambda text, _: dclm_statistics(text).repeated_ngram_characters_bound(n),
    )


MEASURES = (
    at_most("dup_line_frac", lambda text, _: dclm_statistics(text).repeated_lines[0]),
    at_most("dup_para_frac", lambda text, _: dclm_statistics(text).repeated_paragraphs[0]),
    at_most("dup_line_char_frac", lambda text, _: dclm_statistics(text).repeated_lines[1]),
    at_most("dup_para_char_frac", lambda text, _: dclm_statistics(text).repeated_paragraphs[1]),
    *(_top(n) for n in range(2, 5)),
    *(_repeated(n) for n in range(5, 11)),
)
"""In the order in which they are applied."""


def filter_dclm_repetition(statistics: TextStatistics, thresholds: DclmRepetitionThresholds) -> Decision:
    """Reject for the first threshold that is missed. A text of white space alone is rejected as …_empty."""
    if not dclm_statistics(statistics).lines:
        return rejected("dclm_repetition", "empty", 0)
    return first_beyond("dclm_repetition", MEASURES, statistics, thresholds)
