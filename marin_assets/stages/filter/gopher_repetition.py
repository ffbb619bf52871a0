"""Gopher's repetition filter: reject documents that repeat themselves (Rae et al. 2021, arXiv:2112.11446, A.1)."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import Measure, at_most, first_beyond


@dataclass(frozen=True, kw_only=True)
class GopherRepetitionThresholds:
    """The largest shares that are kept. None disables a threshold. N-grams consist of words and marks."""

    dup_para_frac: float | None
    """Paragraphs that repeat an earlier one."""
    dup_para_char_frac: float | None
    """Characters in such paragraphs."""
    dup_line_frac: float | None
    """Lines that repeat an earlier one."""
    dup_line_char_frac: float | None
    """Characters in such lines."""
    top_2_gram: float | None
    """Characters in all occurrences of the most frequent 2-gram."""
    top_3_gram: float | None
    top_4_gram: float | None
    dup_5_gram: float | None
    """Characters in 5-grams that repeat an earlier one."""
    dup_6_gram: float | None
    dup_7_gram: float | None
    dup_8_gram: float | None
    dup_9_gram: float | None
    dup_10_gram: float | None


def _top(n: int) -> Measure:
    return at_most(
        f"top_{n}_gram",
        lambda statistics, _: statistics.top_ngram_characters(n),
        upper_bound=lambda statistics, _: statistics.top_ngram_characters_bound(n),
    )


def _duplicates(n: int) -> Measure:
    return at_most(
        f"dup_{n}_gram",
        lambda statistics, _: statistics.duplicate_ngram_characters(n),
        upper_bound=lambda statistics, _: statistics.duplicate_ngram_characters_bound(n),
    )


MEASURES = (
    at_most("dup_para_frac", lambda statistics, _: statistics.duplicate_paragraphs[0]),
    at_most("dup_para_char_frac", lambda statistics, _: statistics.duplicate_paragraphs[1]),
    at_most("dup_line_frac", lambda statistics, _: statistics.duplicate_lines[0]),
    at_most("dup_line_char_frac", lambda statistics, _: statistics.duplicate_lines[1]),
    *(_top(n) for n in range(2, 5)),
    *(_duplicates(n) for n in range(5, 11)),
)
"""In the order in which they are applied."""


def filter_gopher_repetition(statistics: TextStatistics, thresholds: GopherRepetitionThresholds) -> Decision:
    """Reject for the first threshold that is missed."""
    return first_beyond("gopher_repetition", MEASURES, statistics, thresholds)
