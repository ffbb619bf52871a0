"""The rules of DCLM's URL filters (Li et al. 2024, arXiv:2406.11794; the steps `url_substring_filter`).

The address is compared in small letters. Its host, with port and user and without "www", is a banned domain; a strict
word occurs in it without "-" and "."; a hard word, or as many soft words as the threshold, occur between the borders of
words. "_" belongs to a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from marin_assets.stages.filter.url.lists import UrlLists
from marin_assets.stages.filter.url.subwords import any_of
from marin_assets.stages.filter.url.thresholds import Hit, UrlThresholds

WORD = re.compile(r"[a-z0-9_]+")


class DclmRules:
    """Decides about addresses."""

    def __init__(self, lists: UrlLists, thresholds: UrlThresholds) -> None:
        self._domains = lists.addresses.get("domains")
        # Letters may have other small forms, which DCLM's patterns find too: "\u017f" is an s.
        self._subwords = any_of((word.lower() for word in lists.words.get("subwords", ())), re.IGNORECASE)
        self._hard = WholeWords(lists.words.get("hard_words", ()))
        self._soft = WholeWords(lists.words.get("soft_words", ()))
        self._least_soft = thresholds.soft_words

    def hit(self, url: str) -> Hit | None:
        """Return the first rule that rejects the address, with the measured number; None if none does."""
        if self._domains is not None and _host(url) in self._domains:
            return "domain", 1
        lower = url.lower()
        if self._subwords is not None and self._subwords.search(lower.replace("-", "").replace(".", "")):
            return "subwords", 1
        if self._hard.in_text(lower):
            return "hard_words", 1
        if self._least_soft is not None and (count := len(self._soft.in_text(lower))) >= self._least_soft:
            return "soft_words", count
        return None


class WholeWords:
    """Entries that may occur between the borders of words."""

    def __init__(self, entries: Iterable[str]) -> None:
        ordered = _longest_first(entries)
        self._words = frozenset(filter(WORD.fullmatch, ordered))
        self._others = tuple(entry for entry in ordered if entry not in self._words)
        self._pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\b", re.IGNORECASE) if ordered else None

    def in_text(self, lower: str) -> set[str] | frozenset[str]:
        """Return the different entries that occur in a text of small letters, without those inside of others."""
        if self._pattern is None:
            return frozenset()
        if lower.isascii() and not any(map(lower.__contains__, self._others)):
            return self._words.intersection(WORD.findall(lower))
        return set(self._pattern.findall(lower))


def _host(url: str) -> str:
    """Host of an address, with port and user and without each "www"; "" for an address that has none."""
    try:
        return urlsplit(url).netloc.lower().replace("www", "")
    except ValueError:  # such as "http://[", of which DCLM's own program fails
        return ""


def _longest_first(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({entry.lower() for entry in entries}, key=lambda entry: (-len(entry), entry)))
