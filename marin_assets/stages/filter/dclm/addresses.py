"""The web addresses in a text that DCLM cuts: host names with a top-level domain, and IPv4 addresses.

The matches are those of DCLM's two expressions, found in linear time: the first is looked for around its dots alone.
"""

from __future__ import annotations

import re
import string
from functools import cache
from importlib.resources import files

from marin_assets.stages.filter.spans import Span

CORE = frozenset(string.ascii_letters + string.digits + "-@:%._+~#=")
"""Characters of a host name, and of what may stand before it."""
CORE_RUN = re.compile(r"[-a-zA-Z0-9@:%._+~#=]{1,256}")
MAX_CORE = 256
TAIL = re.compile(r"[-a-zA-Z0-9()@:%_+.~#?&/=]*")
SCHEMES = ("http://", "https://", "ftp://")
SPACE = re.compile(r"\s")
MAX_SPACES = 10
"""Blanks before an address that are cut with it."""
IP = re.compile(r"\s{0,10}\b(?:(?:https?|ftp)://)?(?:[0-2]?[0-9]{1,2}\.){3}[0-2]?[0-9]{1,2}[-a-zA-Z0-9()@:%_+.~#?&/=]*")
MAYBE_IP = re.compile(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")


def begins_with_domain(text: str) -> bool:
    """Whether the text begins with the letters of a top-level domain in any case, such as "The" with those of ".th"."""
    return _beginning().match(text) is not None


def host_addresses(text: str) -> list[Span]:
    """Return the spans of addresses with a host name, each with its scheme, path and the blanks before it."""
    domains = [match.span() for match in _dots().finditer(text) if _is_domain(match)]
    spans: list[Span] = []
    end = 0
    for i, (dot, _) in enumerate(domains):
        if dot < end:
            continue
        start = _core_start(text, dot, max(end, dot - MAX_CORE))
        if start == dot:
            continue
        run = CORE_RUN.match(text, start)
        assert run is not None  # of the characters before the dot
        last = max(b for a, b in _until(domains, i, min(run.end(), start + MAX_CORE)))
        begin = _with_spaces(text, _with_scheme(text, start, end), end)
        end = TAIL.match(text, last).end()  # type: ignore[union-attr]  # it matches nothing, too
        spans.append((begin, end))
    return spans


def ip_addresses(text: str) -> list[Span]:
    """Return the spans of IPv4 addresses, each with its scheme, path and the blanks before it."""
    return [match.span() for match in IP.finditer(text)] if MAYBE_IP.search(text) else []


def _core_start(text: str, dot: int, least: int) -> int:
    start = dot
    while start > least and text[start - 1] in CORE:
        start -= 1
    return start


def _until(domains: list[Span], i: int, last_dot: int) -> list[Span]:
    """Return the domains from the i-th on whose dots are at `last_dot` at most, the i-th at least."""
    end = i + 1
    while end < len(domains) and domains[end][0] <= last_dot:
        end += 1
    return domains[i:end]


def _with_scheme(text: str, start: int, least: int) -> int:
    for scheme in SCHEMES:
        if start - len(scheme) >= least and text.startswith(scheme, start - len(scheme)):
            return start - len(scheme)
    return start


def _with_spaces(text: str, start: int, least: int) -> int:
    least = max(least, start - MAX_SPACES)
    while start > least and SPACE.match(text, start - 1):
        start -= 1
    return start


def _is_domain(match: re.Match[str]) -> bool:
    return match[1] is None or match[1] in _domains()


@cache
def _domains() -> frozenset[str]:
    """The top-level domains of IANA's list as DCLM has it, but for those with a mark of direction."""
    text = files("marin_assets.stages.filter.dclm").joinpath("top_level_domains.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@cache
def _dots() -> re.Pattern[str]:
    """A dot with the letters of a domain behind it: any ASCII letters, in group 1, or those of another script."""
    others = sorted((domain for domain in _domains() if not domain.isascii()), key=len, reverse=True)
    return re.compile(rf"\.(?:([a-z]+)\b|(?:{'|'.join(map(re.escape, others))})\b)")


@cache
def _beginning() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(_domains()))), re.IGNORECASE)
