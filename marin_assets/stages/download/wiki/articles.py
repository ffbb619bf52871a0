"""One line of an HTML dump as a page: a document whose text is HTML, or the reason why it is none.

{"name": "Owl", "identifier": 22, "url": …, "version": {"identifier": 9, …}, "namespace": {"identifier": 0},
 "in_language": {"identifier": "en"}, "is_part_of": {"identifier": "enwiki"}, "date_modified": …,
 "categories": [{"name": "Category:Owls", …}], "redirects": […], "license": [{"name": …, "url": …}],
 "article_body": {"html": …, "wikitext": …}}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from marin_assets.documents import BadRow, Document
from marin_assets.documents.jsonl.json_line import LineParser
from marin_assets.documents.jsonl.lines import TooLong

DAMAGES = ("line_too_long", "bad_line", "bad_article")
"""A line of more than 64 MiB; one that is no object of JSON; an article without a name, an id or a version."""
REASONS = ("namespace", "no_html", "too_large", "redirect", "disambiguation", "superseded")
"""Reasons of a whole article: another namespace, no HTML, more than max_page_bytes of it; a redirect or a list of
meanings; a version of it that is greater, or equal and before it."""
MAX_ID = 2**63
HEAD = 20_000
"""Characters in which Parsoid has a page's properties that concern all of it."""
REDIRECT = re.compile(r"""<link\b[^<>]{0,500}\brel=["']mw:PageProp/redirect["']""")
DISAMBIGUATION = re.compile(
    r"""<meta\b[^<>]{0,500}\bproperty=["']mw:PageProp/disambiguation["']|\bid=["']disambigbox["']"""
    r"""|\bclass=["'][^"'<>]{0,200}\b(?:disambigbox|dmbox-disambig)\b"""
)


@dataclass(frozen=True, kw_only=True)
class Article:
    """A page, and what it is compared by with another version of it."""

    wiki: str
    number: int
    version: int
    page: Document


def article_of(
    line: bytes | TooLong, parser: LineParser, *, source: str, namespaces: tuple[int, ...], max_page_bytes: int
) -> Article | tuple[str, str]:
    """Return the article of a line, or its reason, of DAMAGES or REASONS, and a detail for the log."""
    if isinstance(line, TooLong):
        return "line_too_long", "more than 64 MiB"
    row = parser.row(line)
    if isinstance(row, BadRow):
        return "bad_line", f"{row.reason}: {row.detail}"
    name, number, version = row.get("name"), row.get("identifier"), _in(row, "version", "identifier")
    if not isinstance(name, str) or not name or not _is_id(number) or not _is_id(version):
        return "bad_article", f"name {name!r:.80}, identifier {number!r:.40}, version {version!r:.40}"
    namespace = _in(row, "namespace", "identifier")
    if namespaces and (namespace if namespace is not None else 0) not in namespaces:
        return "namespace", ""
    text = _in(row, "article_body", "html")
    if not isinstance(text, str) or not text.strip():
        return "no_html", ""
    if len(text.encode()) > max_page_bytes:
        return "too_large", ""
    if REDIRECT.search(text, 0, HEAD):
        return "redirect", ""
    if DISAMBIGUATION.search(text):
        return "disambiguation", ""
    wiki = _text(_in(row, "is_part_of", "identifier"))
    metadata = {
        "url": _text(row.get("url")),
        "title": name,
        "language": _text(_in(row, "in_language", "identifier")),
        "date": _text(row.get("date_modified")),
        "license": _names(row.get("license")),
        "categories": [name.partition(":")[2] or name for name in _names(row.get("categories"))],
        "redirects": len(_rows(row.get("redirects"))),
        "wiki": wiki,
        "version": version,
    }
    page = Document(id=f"{wiki}/{number}" if wiki else str(number), text=text, source=source, metadata=metadata)
    return Article(wiki=wiki, number=number, version=version, page=page)


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_ID


def _in(row: Any, *names: str) -> Any:
    for name in names:
        row = row.get(name) if isinstance(row, dict) else None
    return row


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [name for row in _rows(value) if (name := _text(_in(row, "name")))]
