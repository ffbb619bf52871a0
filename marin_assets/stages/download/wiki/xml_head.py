"""The head of an XML dump: its encoding, its elements' prefix, and the wiki that it is of.

    <mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
      <siteinfo><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base>
        <namespaces><namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>

Elements are matched by their local names, so any version of the schema is read. The XML parser finds the encoding.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from marin_assets.stages.download.warc.record import CrawlError

MAX_HEAD_BYTES = 2**22
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NAMED_NAMESPACES = ("6", "14")
"""Namespaces of files and of categories: the links to them have these names."""


@dataclass(kw_only=True)
class Head:
    encoding: str = "utf-8"
    """A name that Python has."""
    prefix: str = ""
    """Before each element's name, with its colon, such as "mw:"."""
    wiki: str = ""
    base: str = ""
    language: str = ""
    namespaces: dict[str, str] = field(default_factory=dict)
    """Number -> name, of NAMED_NAMESPACES."""


class _AtFirstPage(Exception):
    """The head has ended."""


def read_head(chunks: Iterator[bytes], name: str) -> Head:
    """Return the head of a dump. Raises CrawlError for a file that is none."""
    head, size, first = Head(), 0, b""
    parser = _parser(head, name)
    try:
        for chunk in chunks:
            first = first or chunk[:4]
            parser.Parse(chunk)
            size += len(chunk)
            if size > MAX_HEAD_BYTES:
                raise CrawlError(f"The file {name!r} has no page in its first {size} bytes, expected a dump of a wiki.")
        parser.Parse(b"", True)
    except _AtFirstPage:
        pass
    except (expat.ExpatError, LookupError) as error:
        raise CrawlError(
            f"The file {name!r} does not begin as an XML dump of a wiki ({error}). Leave it out, or download it again."
        ) from error
    head.encoding = next((encoding for bom, encoding in BOMS.items() if first.startswith(bom)), head.encoding)
    return head


def _parser(head: Head, name: str) -> expat.XMLParserType:
    stack: list[str] = []
    text: list[str] = []

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        head.encoding = codecs.lookup(encoding).name if encoding else head.encoding

    def begin(tag: str, attributes: dict[str, str]) -> None:
        local = tag.rpartition(":")[2]
        if not stack:
            if local != "mediawiki":
                raise CrawlError(
                    f"The file {name!r} has the root <{tag:.40}>, expected <mediawiki>: a dump of pages in XML. Leave "
                    "it out."
                )
            head.prefix, head.language = tag[: -len(local)], attributes.get("xml:lang", "")
        if local == "page":
            raise _AtFirstPage
        stack.append(attributes.get("key", "") if local == "namespace" else local)
        text.clear()

    def end(tag: str) -> None:
        last, value = stack.pop(), "".join(text).strip()
        if stack and stack[-1] == "siteinfo" and last in ("dbname", "base"):
            head.wiki, head.base = (value, head.base) if last == "dbname" else (head.wiki, value)
        if stack and stack[-1] == "namespaces" and last in NAMED_NAMESPACES:
            head.namespaces[last] = value

    def refuse(*_: object) -> None:
        raise CrawlError(f"The file {name!r} declares entities, as no dump of a wiki does. Leave it out.")

    parser = expat.ParserCreate()
    parser.XmlDeclHandler, parser.EntityDeclHandler = declared, refuse
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler = text.append
    return parser
