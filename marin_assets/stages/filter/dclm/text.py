"""The first of DCLM's edits: cut web addresses, and line feeds beyond two in a row."""

from __future__ import annotations

import re
from dataclasses import dataclass

from marin_assets.documents.attributes import KEPT, Decision
from marin_assets.stages.filter.dclm.addresses import begins_with_domain, host_addresses, ip_addresses
from marin_assets.stages.filter.spans import CutText
from marin_assets.stages.filter.statistics import TextStatistics
from marin_assets.stages.filter.threshold_filter import rejected


@dataclass(frozen=True, kw_only=True)
class DclmTextThresholds:
    """None or false disables a rule."""

    addresses: bool
    """Cut web addresses with a top-level domain, and IPv4 addresses."""
    addresses_after_domain: bool
    """Cut those with a top-level domain only from a text that begins with the letters of one, such as "The" with those
    of ".th". DCLM's code does, as it looks for a domain at the beginning of the text alone."""
    max_line_feeds: int | None
    """Cut more line feeds in a row."""


def filter_dclm_text(statistics: TextStatistics, thresholds: DclmTextThresholds) -> Decision:
    """Cut the addresses and line feeds. A text that is empty then is rejected as dclm_text_empty."""
    text = CutText(statistics.text)
    if thresholds.addresses:
        if not thresholds.addresses_after_domain or begins_with_domain(text.text):
            text = text.without(host_addresses(text.text))
        text = text.without(ip_addresses(text.text))
    if not text.text:
        return rejected("dclm_text", "empty", 0)
    most = thresholds.max_line_feeds
    if most is not None and "\n" * (most + 1) in text.text:
        text = text.without([(a + most, b) for a, b in _runs_of_line_feeds(text.text) if b - a > most])
    return Decision(keep=True, cut=cut) if (cut := text.cut) else KEPT


def _runs_of_line_feeds(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\n+", text)]
