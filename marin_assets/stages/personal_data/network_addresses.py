"""E-mail and IP addresses of persons and machines in a text; not versions, packages and private networks.

FineWeb replaces e-mail addresses and public IPv4 addresses (Penedo et al. 2024, arXiv:2406.17557, 3.6). A match here
has also a domain below one of IANA's top-level domains, and is no version, no path of a package and no account of git.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import cache

Span = tuple[int, int]

LOCAL = re.compile(r"[\w.+'-]{1,64}$")
"""The end of the text before an "@": what names have in fact. RFC 5322 allows also marks that are those of addresses of
pages, such as `/`, `?`, `=` and `&`."""
DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+([^\W\d_]{2,24}|xn--[a-z0-9-]{2,59})(?![\w@(-])")
NO_PERSON = frozenset({"git", "hg", "svn"})
"""Accounts of servers: `git@github.com:a/b` is an address of a repository."""
PLACEHOLDERS = ("email@example.com", "firstname.lastname@example.com")
"""The addresses that stand for others, as in FineWeb: they are not found again."""
USER_CHARACTERS = 131
USER = re.compile(r"://[^\s/@]{0,128}$")
"""The end of the text before the user of an address such as https://user:password@host/."""
NO_START = "'.-+"
"""Characters that a name may have, and does not begin with."""
IPV4 = re.compile(r"(?<![\w.])(?<![^\W\d][/-])(?<!:ffff:)(?:\d{1,3}\.){3}\d{1,3}(?!\w|-[^\W\d]|\.\d)", re.IGNORECASE)
"""Not behind a name, as in Chrome/120.0.0.0 and pkg-1.2.3.4, nor in front of one, as in 1.2.3.4-beta."""
IPV6 = re.compile(r"(?<![\w.:])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:]|\.\d)")
"""Global unicast addresses, 2000::/3: all that are in use."""
VERSION = re.compile(
    r"(?:\bv|§|\bversión|\bversao|\bversão|\bversie|\bversione|\bversions?|\bver\.?|\brev\.?|\brelease|\bверси[яию]|"
    r"\bsection|\babschnitt|\bkapitel|\bchapter|版|バージョン|\bsec\.|\bart\.)[\s.:=~^<>v]*$",
    re.IGNORECASE,
)
BEFORE = 16
"""Characters before an address in which it may be called a version."""


def emails(text: str) -> Iterator[Span]:
    """The e-mail addresses of a text."""
    at = text.find("@")
    while at >= 0:
        domain = DOMAIN.match(text, at + 1)
        local = LOCAL.search(text[max(at - 64, 0) : at]) if domain else None
        if domain and local:
            start = at - len(local[0].lstrip(NO_START))
            if _is_local(text[start:at]) and _is_address(text, start, at, domain):
                yield start, domain.end()
        at = text.find("@", at + 1)


def _is_local(name: str) -> bool:
    return bool(name) and not name.endswith(".") and ".." not in name and name.lower() not in NO_PERSON


def _is_address(text: str, start: int, at: int, domain: re.Match[str]) -> bool:
    if USER.search(text[max(start - USER_CHARACTERS, 0) : start]) or text[start - 1 : start] == "@":
        return False
    return domain[1].lower() in _top_level_domains() and text[start : domain.end()] not in PLACEHOLDERS


@cache
def _top_level_domains() -> frozenset[str]:
    import tldextract  # of the extra "curate"; its list is in the package

    names = {name.rpartition(".")[2] for name in tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None).tlds}
    return frozenset(names | {name.encode("idna").decode() for name in names if not name.isascii()})


def ipv4_addresses(text: str) -> Iterator[Span]:
    """The public IPv4 addresses of a text that are no versions or numbers of sections."""
    for match in IPV4.finditer(text):
        if _is_global(match[0]) and not VERSION.search(text[max(match.start() - BEFORE, 0) : match.start()]):
            yield match.span()


def ipv6_addresses(text: str) -> Iterator[Span]:
    """The global IPv6 addresses of a text."""
    return (match.span() for match in IPV6.finditer(text) if _is_global(match[0]))


def _is_global(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast
