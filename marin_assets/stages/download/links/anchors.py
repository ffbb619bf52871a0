"""The links of an HTML page, each with its text and the text around it.

A tokenizer (HTML standard, 13.2.5) without a tree: the start tags of links are in a browser's tree too. A tree builder
takes time that is quadratic in the depth or in the attributes of a page that means harm; this takes linear time.
Comments, scripts, styles and templates have no links.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

ANCHOR_CHARACTERS = 500
CONTEXT_CHARACTERS = 200
"""Characters before a link, and after it."""
_TOKEN = re.compile(
    r"<!--.*?(?:--!?>|\Z)"
    r"|<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9:-]{0,30}+)(?P<rest>(?:[^<>\"']++|\"[^\"]{0,20000}+\"|'[^']{0,20000}+')*+)>"
    r"|<[!?/][^<>]{0,2000}>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?""")
_REFERENCE = re.compile(r"&(?:#[xX]?[0-9a-fA-F]{1,7};?|[a-zA-Z][a-zA-Z0-9]{1,31};|[a-zA-Z]{2,8}(?![=a-zA-Z0-9;]))")
"""A reference in an attribute: one without ";" before "=" or a letter is text, as "&copy=" in a query."""
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "template", "textarea", "title", "iframe", "noembed", "noframes", "xmp")
}
"""Elements whose content has no links, and the pattern of their ends."""
_INLINE = frozenset(
    (  # noqa: SIM905
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark q s samp small span strike "
        "strong sub sup time tt u var wbr"
    ).split()
)
"""Elements that do not separate words."""
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A link as the page writes it."""

    href: str
    rel: frozenset[str]
    text: str
    context: str
    """Text around the link and its own, without markup."""


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The links of one page, in order."""

    base: str
    """The address that <base> states; "" without one."""
    nofollow: bool
    """Whether the page requests that its links are not followed."""
    anchors: list[Anchor]


def links_of(page: str) -> PageLinks:
    """Return the links of a page: of <a> and <area>. Raises nothing. Takes linear time."""
    scan = _Scan()
    position = 0
    while match := _TOKEN.search(page, position):
        scan.text(page[position : match.start()])
        position = match.end()
        name = (match["name"] or "").lower()
        if not name:
            continue
        scan.tag(name, match["rest"], is_end=bool(match["end"]))
        if not match["end"] and name in _RAW:
            end = _RAW[name].search(page, position)
            position = end.start() if end else len(page)
    scan.text(page[position:])
    return scan.links()


class _Scan:
    """The text of a page so far, and the places of its links in it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._open: tuple[str, frozenset[str], int] | None = None
        self._links: list[tuple[str, frozenset[str], int, int, str]] = []
        self._base, self._nofollow = "", False

    def text(self, text: str) -> None:
        if text:
            text = _BLANKS.sub(" ", html.unescape(text) if "&" in text else text)
            self._parts.append(text)
            self._size += len(text)

    def tag(self, name: str, rest: str, *, is_end: bool) -> None:
        if name not in _INLINE:
            self.text(" ")
        if name == "a":
            self._close()
        if is_end or name not in ("a", "area", "base", "meta"):
            return
        attributes = _attributes(rest)
        if name == "meta":
            content = attributes.get("content", "").lower()
            self._nofollow |= attributes.get("name", "").lower() == "robots" and bool(
                {"nofollow", "none"} & set(re.split(r"[\s,]+", content))
            )
        elif name == "base":
            self._base = self._base or attributes.get("href", "")
        elif "href" in attributes:
            rel = frozenset(attributes.get("rel", "").lower().split())
            if name == "area":
                self._links.append((attributes["href"], rel, self._size, self._size, attributes.get("alt", "")))
            else:
                self._open = (attributes["href"], rel, self._size)

    def _close(self) -> None:
        if self._open is not None:
            href, rel, start = self._open
            self._links.append((href, rel, start, self._size, ""))
            self._open = None

    def links(self) -> PageLinks:
        self._close()
        text = "".join(self._parts)
        anchors = [
            Anchor(
                href=href,
                rel=rel,
                text=_trimmed(text[start : min(end, start + ANCHOR_CHARACTERS)] or alt[:ANCHOR_CHARACTERS]),
                context=_trimmed(text[max(0, start - CONTEXT_CHARACTERS) : _behind(start, end)]),
            )
            for href, rel, start, end, alt in self._links
        ]
        return PageLinks(base=self._base, nofollow=self._nofollow, anchors=anchors)


def _behind(start: int, end: int) -> int:
    return min(end, start + ANCHOR_CHARACTERS) + CONTEXT_CHARACTERS


def _trimmed(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()


def _attributes(rest: str) -> dict[str, str]:
    """Attributes by name in lower case; of a repeated one the first."""
    attributes: dict[str, str] = {}
    for name, double, single, plain in _ATTRIBUTE.findall(rest):
        attributes.setdefault(
            name.lower(), _REFERENCE.sub(lambda match: html.unescape(match[0]), double or single or plain)
        )
    return attributes
