"""FineWeb's own filter: reject lists, menus and assembled copies (Penedo et al. 2024, arXiv:2406.17557, 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.documents.attributes import Decision
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import at_least, at_most, first_beyond, rejected


@dataclass(frozen=True, kw_only=True)
class FineWebThresholds:
    """None disables a threshold. Lines of whitespace alone do not count."""

    line_punct_ratio: float | None
    """Smallest share of lines that end in a terminal mark."""
    short_line_ratio: float | None
    """Largest share of lines of at most `short_line_length` characters."""
    short_line_length: int
    """In characters."""
    char_dup_ratio: float | None
    """Largest share of characters in lines that repeat an earlier line."""
    list_ratio: float | None
    """Largest number of line feeds per word or mark."""


MEASURES = (
    at_least("line_punct_ratio", lambda statistics, _: statistics.terminal_line_ratio),
    at_most("short_line_ratio", lambda statistics, given: statistics.short_line_ratio(given.short_line_length)),
    at_most("char_dup_ratio", lambda statistics, _: statistics.duplicate_filled_line_characters),
    at_most("list_ratio", lambda statistics, _: statistics.line_feed_ratio),
)
"""In the order in which they are applied."""


def filter_fineweb(statistics: TextStatistics, thresholds: FineWebThresholds) -> Decision:
    """Reject for the first threshold that is missed. A text of whitespace alone is rejected as fineweb_empty."""
    if not statistics.filled_lines:
        return rejected("fineweb", "empty", 0)
    return first_beyond("fineweb", MEASURES, statistics, thresholds)
