"""One form of an address of the web, so that two spellings of a page are one: the identity of pages in a crawl.

In:  text of a link, and the address of the page that it is on.
Out: scheme and host in lower case, the host in IDNA (UTS 46) without its last dot, no default port, no fragment, a path
     without "." and "..", %XX in upper case and only where needed (RFC 3986, 6.2.2; by w3lib what is not ASCII as
     UTF-8). The query is kept: its order may have a meaning.

Refused are userinfo, hosts that are no public names or no proper addresses ("666.0.0.1", "localhost", "0x7f.1"), ports
of other services, and other schemes than http and https.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

MAX_CHARACTERS = 2000
"""A longer address is refused: browsers and servers limit them to 2 to 8 kB."""
REASONS = ("scheme", "userinfo", "host", "port", "too_long", "malformed")
DEFAULT_PORTS = {"http": 80, "https": 443}
FIRST_FREE_PORT = 1024
"""Ports below it, but those of http and https, belong to other services."""
_STRIPPED = "".join(map(chr, range(33)))
_BREAKS = re.compile(r"[\t\n\r]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)\Z")
_ESCAPE = re.compile(r"(?<!%)(?<!%[0-9a-fA-F])%([0-9a-fA-F]{2})")
"""An escape, not behind a half of one: of "%2%41" would become "%2A"."""
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = re.compile(r"[A-Za-z0-9/._~%?&=+,;:@!$()*-]*\Z")
"""A path and a query that need no encoding. w3lib takes 50 µs for an address."""
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")


@dataclass(frozen=True, slots=True)
class Url:
    """An address in its one form."""

    url: str
    scheme: str
    host: str
    """In lower case; an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query, as a request has them."""

    @property
    def origin(self) -> str:
        """Scheme, host and port, for which a robots.txt holds."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if DEFAULT_PORTS[self.scheme] == self.port else f':{self.port}'}"

    @property
    def extension(self) -> str:
        """The end of the path's last name, such as ".pdf"; "" without one."""
        name = self.target.partition("?")[0].rpartition("/")[2]
        stem, dot, end = name.rpartition(".")
        return f".{end.lower()}" if dot and stem and 1 <= len(end) <= 8 else ""


def canonical_url(text: str, base: str | None = None) -> Url | str:
    """Return the address that `text` means on the page `base`, or the reason why it is none, one of REASONS."""
    text = _BREAKS.sub("", text.strip(_STRIPPED))
    scheme = _SCHEME.match(text)
    if scheme and scheme[1].lower() not in DEFAULT_PORTS:
        return "scheme"
    if len(text) > MAX_CHARACTERS:
        return "too_long"
    try:
        return _canonical(_slashed(text), base)
    except (ValueError, UnicodeError):  # of urllib: brackets, ports; of encodings: half of a surrogate pair
        return "malformed"


def _slashed(text: str) -> str:
    """Backslashes before the query are slashes, as in browsers (URL standard, "special" schemes)."""
    place, mark, query = text.partition("?")
    return place.replace("\\", "/") + mark + query


def _canonical(text: str, base: str | None) -> Url | str:
    parts = urlsplit(urljoin(base, text) if base else text)
    if parts.scheme not in DEFAULT_PORTS:
        return "scheme"
    if "@" in parts.netloc:
        return "userinfo"
    host = _host(parts.hostname or "")
    if host is None:
        return "host"
    port = parts.port if parts.port is not None else DEFAULT_PORTS[parts.scheme]
    if port not in DEFAULT_PORTS.values() and port < FIRST_FREE_PORT:
        return "port"
    place = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    path, _, query = (place if _PLAIN.match(place) else _encoded(place)).partition("?")
    path = _without_dots(_ESCAPE.sub(_escape, path))
    query = _ESCAPE.sub(lambda match: match[0].upper(), query)
    target = path + (f"?{query}" if query else "")
    shown = f"[{host}]" if ":" in host else host
    suffix = "" if port == DEFAULT_PORTS[parts.scheme] else f":{port}"
    url = f"{parts.scheme}://{shown}{suffix}{target}"
    return "too_long" if len(url) > MAX_CHARACTERS else Url(url, parts.scheme, host, port, target)


def _encoded(place: str) -> str:
    from w3lib.url import safe_url_string  # late, for its weight

    encoded: str = safe_url_string(f"http://host{place}")
    return encoded.removeprefix("http://host")


def _host(name: str) -> str | None:
    """The host in its one form; None for one that no public page has."""
    if ":" in name:
        return str(ipaddress.IPv6Address(name))
    host = _ascii(name).removesuffix(".")
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        return str(ipaddress.IPv4Address(host)) if _is_ipv4(host) else None
    is_name = len(labels) >= 2 and len(host) <= 253 and all(_LABEL.match(label) for label in labels)
    return host if is_name else None


def _is_ipv4(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def _ascii(name: str) -> str:
    name = name.lower()
    if name.isascii():
        return name
    import idna  # late, for its weight

    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:  # symbols, which some registries allow: IDNA 2003, as w3lib has it
        return name.encode("idna").decode()


def _escape(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986, 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


@functools.cache
def _domains() -> Callable[[str], str]:
    import tldextract  # late, for its weight

    # Without URLs of lists it takes the one of its package, and requests nothing.
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)

    @functools.lru_cache(maxsize=2**16)
    def domain(host: str) -> str:
        return extract(host).top_domain_under_public_suffix or host

    return domain


def domain_of(host: str) -> str:
    """The registered domain of a host, "example.co.uk" of "a.b.example.co.uk"; the host itself if it has none.

    Suffixes are those of the Public Suffix List in the package tldextract, the private ones too: "me.github.io".
    """
    return host if ":" in host else _domains()(host)
