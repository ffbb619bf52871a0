"""One <page> of an XML dump as an article, or the reason why it is none.

    <page><title>Owl</title><ns>0</ns><id>22</id><redirect title="…"/>
      <revision><id>9</id><timestamp>…</timestamp><model>wikitext</model><text bytes="7">…</text></revision></page>

A page of several revisions, as dumps of histories have, is the one of the greatest id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote
from xml.parsers import expat

from marin_assets.documents import Document
from marin_assets.stages.download.wiki.articles import MAX_ID, Article
from marin_assets.stages.download.wiki.xml_head import Head

DAMAGES = ("lost_stream", "bad_page")
"""Pages of a damaged stream: one, unless the dump's index has their number; and one that is no XML, or has no end, no
title or no id."""
REASONS = ("namespace", "redirect", "other_model", "no_text", "too_large")
"""Another namespace, a redirect, another model than wikitext, no text or an empty or deleted one, more XML than
max_page_bytes."""
REDIRECT = re.compile(r"\s*#REDIRECT\s*:?\s*\[\[", re.IGNORECASE)
REVISION = ("page", "revision")


@dataclass(kw_only=True)
class Revision:
    values: dict[str, str] = field(default_factory=dict)
    is_deleted: bool = False

    @property
    def number(self) -> int:
        return _number(self.values.get("id", ""))


def article_of_page(xml: bytes, head: Head, *, source: str, namespaces: tuple[int, ...]) -> Article | tuple[str, str]:
    """Return the article of a page's XML, in UTF-8, or its reason, of DAMAGES or REASONS, and a detail for the log."""
    parser = _Page()
    try:
        parser.parse(xml)
    except (expat.ExpatError, ValueError) as error:
        return "bad_page", str(error)
    values, revision = parser.values, parser.revision
    title, number = " ".join(values.get("title", "").split()), _number(values.get("id", ""))
    if not title or number < 0 or revision.number < 0:
        return (
            "bad_page",
            f"title {title!r:.80}, id {values.get('id')!r:.40}, revision {revision.values.get('id')!r:.40}",
        )
    if namespaces and _number(values.get("ns", "0")) not in namespaces:
        return "namespace", ""
    text = revision.values.get("text", "")
    if parser.is_redirect or REDIRECT.match(text):
        return "redirect", ""
    if revision.values.get("model", "wikitext").strip() != "wikitext":
        return "other_model", ""
    if revision.is_deleted or not text.strip():
        return "no_text", ""
    metadata = {
        "url": url_of(head, title),
        "title": title,
        "language": head.language,
        "date": revision.values.get("timestamp", "").strip(),
        "wiki": head.wiki,
        "version": revision.number,
        "namespaces": head.namespaces,
    }
    page_id = f"{head.wiki}/{number}" if head.wiki else str(number)
    page = Document(id=page_id, text=text, source=source, metadata=metadata)
    return Article(wiki=head.wiki, number=number, version=revision.number, page=page)


def url_of(head: Head, title: str) -> str:
    """The address of a page: the main page's, with another title."""
    folder, slash, _ = head.base.rpartition("/")
    return f"{folder}/{quote(title.replace(' ', '_'), safe='/:,()!*;@$')}" if slash else ""


def _number(text: str) -> int:
    """-1 for a text that is no number of a page."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < MAX_ID else -1


class _Page:
    """The values of one page. Those of an element that is repeated are of the last one."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.revision = Revision()
        self.is_redirect = False
        self._now = Revision()
        self._stack: list[str] = []
        self._text: list[str] = []

    def parse(self, xml: bytes) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._end
        parser.CharacterDataHandler = self._text.append
        parser.Parse(xml, True)

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(":")[2]
        self._stack.append(local)
        self._text.clear()
        self.is_redirect |= local == "redirect" and len(self._stack) == 2
        if self._stack[1:] == ["revision"]:
            self._now = Revision()
        elif local == "text" and "deleted" in attributes:
            self._now.is_deleted = True

    def _end(self, tag: str) -> None:
        local, parents = self._stack.pop(), tuple(self._stack)
        if parents == REVISION:
            self._now.values[local] = "".join(self._text)
        elif parents == ("page",):
            if local != "revision":
                self.values[local] = "".join(self._text)
            elif self._now.number >= self.revision.number:
                self.revision = self._now
        self._text.clear()
