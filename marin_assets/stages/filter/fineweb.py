"""FineWeb's own filter: lists, menus and what is copied together (Penedo et al. 2024, arXiv:2406.17557, 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Verdict
from marin_assets.stages.filter.family import at_least, at_most, first_beyond, rejected
from marin_assets.stages.filter.statistics import TextStatistics


@dataclass(frozen=True, kw_only=True)
class FineWebThresholds:
    """None asks for nothing. Lines are those that are more than whitespace."""

    line_punct_ratio: float | None
    """The least share of lines that end in what ends a sentence."""
    short_line_ratio: float | None
    """The largest share of lines of at most `short_line_length` characters."""
    short_line_length: int
    char_dup_ratio: float | None
    """The largest share of characters in lines that are there before."""
    list_ratio: float | None
    """The most line feeds for each word or mark."""


MEASURES = (
    at_least("line_punct_ratio", lambda statistics, _: statistics.terminal_line_ratio),
    at_most("short_line_ratio", lambda statistics, asked: statistics.short_line_ratio(asked.short_line_length)),
    at_most("char_dup_ratio", lambda statistics, _: statistics.duplicate_filled_line_characters),
    at_most("list_ratio", lambda statistics, _: statistics.line_feed_ratio),
)
"""In the order in which they are asked."""


def judge_fineweb(statistics: TextStatistics, thresholds: FineWebThresholds) -> Verdict:
    """A text without a line is rejected as fineweb_empty."""
    if not statistics.filled_lines:
        return rejected("fineweb", "empty", 0)
    return first_beyond("fineweb", MEASURES, statistics, thresholds)
