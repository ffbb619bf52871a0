"""DCLM's form of Gopher's quality filter: words between white space, more bullets, every stop word counted."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.dclm.statistics import dclm_statistics
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import at_least, at_most, first_beyond


@dataclass(frozen=True, kw_only=True)
class DclmQualityThresholds:
    """None disables a threshold. Words are those between white space but for min_words and max_words."""

    min_words: int | None
    """Number of fastText's tokens that begin with a letter or digit."""
    max_words: int | None
    min_mean_word_length: float | None
    """Mean number of characters of a word."""
    max_mean_word_length: float | None
    max_symbol_ratio: float | None
    """Number of "#", "...", ". . ." and "…" per word."""
    max_bullet_line_ratio: float | None
    """Share of lines that begin with "●", "•", "*" or "-"."""
    max_ellipsis_line_ratio: float | None
    """Share of lines that end in "...", ". . ." or "…"."""
    max_nonalphabetic_word_ratio: float | None
    """Share of words without a letter."""
    min_stop_words: int | None
    """Number of occurrences of `stop_words`, in any case."""
    stop_words: tuple[str, ...]


MEASURES = (
    at_least("min_words", lambda text, _: dclm_statistics(text).token_count),
    at_most("max_words", lambda text, _: dclm_statistics(text).token_count),
    at_least("min_mean_word_length", lambda text, _: dclm_statistics(text).mean_word_length),
    at_most("max_mean_word_length", lambda text, _: dclm_statistics(text).mean_word_length),
    at_most("max_symbol_ratio", lambda text, _: dclm_statistics(text).symbol_ratio),
    at_most("max_bullet_line_ratio", lambda text, _: dclm_statistics(text).bullet_line_ratio),
    at_most("max_ellipsis_line_ratio", lambda text, _: dclm_statistics(text).ellipsis_line_ratio),
    at_most("max_nonalphabetic_word_ratio", lambda text, _: dclm_statistics(text).nonalphabetic_word_ratio),
    at_least("min_stop_words", lambda text, given: dclm_statistics(text).stop_word_count(given.stop_words)),
)
"""In the order in which they are applied."""


def filter_dclm_quality(statistics: TextStatistics, thresholds: DclmQualityThresholds) -> Decision:
    """Reject for the first threshold that is missed."""
    return first_beyond("dclm_quality", MEASURES, statistics, thresholds)
