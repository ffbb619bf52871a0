"""The rules of datatrove 0.10's URL filter, which reproduces RefinedWeb's (Penedo et al. 2023, arXiv:2306.01116, G.1).

Domains are compared as they are written, capitals too; so are the words of an address with hard and soft words, which
are in small letters. An IP address has no domain. Suffixes are those of the Public Suffix List in the package
tldextract, without the private ones: the domain of "me.github.io" is "github.io".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from marin_assets.stages.filter.url.hashed_set import HashedSet
from marin_assets.stages.filter.url.lists import UrlLists
from marin_assets.stages.filter.url.subwords import any_of
from marin_assets.stages.filter.url.thresholds import Hit, UrlThresholds

if TYPE_CHECKING:
    from tldextract import TLDExtract

NO_WORD = re.compile(r"[^a-zA-Z0-9]+")
PLAIN_HOST = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?=[/?#]|\Z)")
"""The beginning of almost every address, and its host."""
MAX_NAME = 253
"""Characters of a name in the DNS; the ends of a longer one would take time quadratic in its length."""


class DatatroveRules:
    """Decides about addresses."""

    def __init__(self, lists: UrlLists, thresholds: UrlThresholds) -> None:
        self._thresholds = thresholds
        self._domains = lists.addresses.get("domains")
        self._urls = lists.addresses.get("urls")
        self._hard = _words(lists.words.get("hard_words", ()))
        self._soft = _words(lists.words.get("soft_words", ()))
        self._subwords = any_of(_words(lists.words.get("subwords", ())))
        self._extract = _extractor()

    def hit(self, url: str) -> Hit | None:
        """Return the first rule that rejects the address, with the measured number; None if none does."""
        if self._domains is not None and (rule := self._rule_of_host(url, self._domains)):
            return rule, 1
        if self._urls is not None and url in self._urls:
            return "url", 1
        words = NO_WORD.split(url)
        if not self._hard.isdisjoint(words):
            return "hard_words", 1
        least = self._thresholds.soft_words
        if least is not None and (count := len(self._soft.intersection(words))) >= least:
            return "soft_words", count
        if self._subwords is not None and self._subwords.search("".join(words).lower()):
            return "subwords", 1
        return None

    def _rule_of_host(self, url: str, domains: HashedSet) -> str:
        """The rule that rejects the host of an address; "" if none does."""
        plain = PLAIN_HOST.match(url)
        if plain and len(plain[1]) <= MAX_NAME and not _has_listed_end(plain[1], domains):
            return ""  # without tldextract, which would take most of the time
        parts = self._extract.extract_str(url)
        if self._thresholds.domain and parts.top_domain_under_public_suffix in domains:
            return "domain"
        if self._thresholds.subdomain and parts.fqdn in domains:
            return "subdomain"
        return ""


@cache
def _extractor() -> TLDExtract:
    import tldextract  # late, for its weight

    # Without URLs of lists it takes the one of its package, and requests nothing.
    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def _has_listed_end(host: str, domains: HashedSet) -> bool:
    """Whether the host is listed, or an end of it of two labels or more, of which one is its registered domain."""
    while "." in host:
        if host in domains:
            return True
        host = host.partition(".")[2]
    return False


def _words(entries: Iterable[str]) -> frozenset[str]:
    """Letters and digits of the entries, in small letters."""
    return frozenset(filter(None, (NO_WORD.sub("", entry).lower() for entry in entries)))
