"""Gopher's quality filter: reject documents whose words are unlike prose (Rae et al. 2021, arXiv:2112.11446, A.1)."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import at_least, at_most, first_beyond


@dataclass(frozen=True, kw_only=True)
class GopherQualityThresholds:
    """None disables a threshold."""

    min_words: int | None
    """Number of words that are not symbols."""
    max_words: int | None
    min_mean_word_length: float | None
    """Mean number of characters of such words."""
    max_mean_word_length: float | None
    max_hash_ratio: float | None
    """Number of "#" per word or mark."""
    max_ellipsis_ratio: float | None
    """Number of "..." and "…" per word or mark."""
    max_bullet_line_ratio: float | None
    """Share of lines that begin with "•" or "-"."""
    max_ellipsis_line_ratio: float | None
    """Share of lines that end in "..." or "…"."""
    min_alphabetic_word_ratio: float | None
    """Share of words and marks that contain a letter."""
    min_stop_words: int | None
    """Number of different `stop_words` that occur, case-sensitive."""
    stop_words: tuple[str, ...]


MEASURES = (
    at_least("min_words", lambda statistics, _: statistics.word_count),
    at_most("max_words", lambda statistics, _: statistics.word_count),
    at_least("min_mean_word_length", lambda statistics, _: statistics.mean_word_length),
    at_most("max_mean_word_length", lambda statistics, _: statistics.mean_word_length),
    at_most("max_hash_ratio", lambda statistics, _: statistics.hash_ratio),
    at_most("max_ellipsis_ratio", lambda statistics, _: statistics.ellipsis_ratio),
    at_most("max_bullet_line_ratio", lambda statistics, _: statistics.bullet_line_ratio),
    at_most("max_ellipsis_line_ratio", lambda statistics, _: statistics.ellipsis_line_ratio),
    at_least("min_alphabetic_word_ratio", lambda statistics, _: statistics.alphabetic_word_ratio),
    at_least("min_stop_words", lambda statistics, thresholds: statistics.stop_word_count(thresholds.stop_words)),
)
"""In the order in which they are applied."""


def filter_gopher_quality(statistics: TextStatistics, thresholds: GopherQualityThresholds) -> Decision:
    """Reject for the first threshold that is missed."""
    return first_beyond("gopher_quality", MEASURES, statistics, thresholds)
