"""The fields of the main content of foreign pages, which `main_markdown` extracts."""

from __future__ import annotations

from dataclasses import dataclass

from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

EXTRACTORS = ("blocks-1",)
REASONS = ("before", "after", "links", "duplicate", "heading", "markup")
"""Reasons to cut a block: it is before the first or after the last block of text, consists of links, repeats another
one, is a heading without text below it, or is the source of an invisible element."""
COUNTS = ("page_characters", "main_characters", "cut_characters", *(f"cut_{reason}" for reason in REASONS))


class MainContentError(MarinError, ValueError):
    """An unknown extractor of main content."""


@dataclass(frozen=True, kw_only=True)
class MainContent:
    """Keep the main content of pages alone."""

    extractor: str = versioned("blocks-1")
    """Name of the rules: its number grows when their text changes, so the steps get other versions."""
    keep_title: bool = versioned(True)
    """Whether the page's heading of the first level stays before the text."""
    keep_links: bool = versioned(False)
    """Whether links become [text](address), as the page writes the address; else their text alone stays."""
    keep_comments: bool = versioned(False)
    """Whether comments of readers are content."""
    keep_captions: bool = versioned(False)
    """Whether captions of figures are content."""
    keep_alt_texts: bool = versioned(False)
    """Whether the alternative texts of images are content."""


def check_main_content(fields: MainContent) -> None:
    """Raise MainContentError for an unknown extractor."""
    if fields.extractor not in EXTRACTORS:
        raise MainContentError(
            f"main_content.extractor is {fields.extractor!r}, {expected_one_of(fields.extractor, EXTRACTORS)}"
        )
