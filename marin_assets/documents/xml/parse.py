"""Parse XML of foreign origin with lxml: a whole text, or the elements of a stream.

No file and no address is opened, whatever the XML names: neither DTDs nor external entities. A document that declares
entities is refused, so none can expand. Documents of known formats declare none: their DTD is elsewhere.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml import etree

MAX_DEPTH = 100
"""Levels of elements. Articles have about 20. Python's recursion ends at 1,000 calls; a level takes up to 6."""


class BadXmlError(Exception):
    """The text is no XML that may be read: `reason` is "bad_xml", "entities" or "too_deep", and the text a phrase."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def parsed(content: bytes | str) -> etree._Element:
    """Return the root of a document, without comments and processing instructions. Raises BadXmlError.

    Named characters of HTML that only the DTD declares, such as &nbsp;, are resolved.
    """
    from lxml import etree

    try:
        root = etree.fromstring(content, etree.XMLParser(**_options()))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadXmlError(*_reason(error)) from error
    _require_no_entities(root)
    _resolve_names(root)
    return root


def elements(chunks: Iterable[bytes], names: tuple[str, ...], *, root: str, most_bytes: int) -> Iterator[Any]:
    """Yield the elements of these names, the children of the root, of which no other exists at that time.

    Each is cleared, with all before it, when the next one is requested, so memory stays flat. Raises BadXmlError, also
    for a document that ends early, whose root has another name, or that has more than `most_bytes` without an element.
    """
    from lxml import etree

    parser = etree.XMLPullParser(events=("start", "end"), tag=(root, *names), **_options())
    since, is_open = 0, False
    for chunk in chunks:
        failure = _failure(lambda chunk=chunk: parser.feed(chunk))  # type: ignore[misc]
        since += len(chunk)
        for event, element in parser.read_events():
            if event == "start" and not is_open:
                _require_no_entities(element)
                is_open = True
            elif event == "end" and element.tag != root and _is_child(element, root):
                since = 0
                yield element
                _clear(element)
        if failure is not None:
            raise failure
        if since > most_bytes:
            raise BadXmlError("bad_xml", f"more than {most_bytes:,} bytes without the end of an element")
    ends: list[Any] = []
    if failure := _failure(lambda: ends.append(parser.close())):
        raise failure
    if ends[0].tag != root:
        raise BadXmlError("bad_xml", f"its root is <{ends[0].tag}>, expected <{root}>")


def _failure(action: Callable[[], Any]) -> BadXmlError | None:
    """The error of a step of the parser. The elements before it can still be read."""
    from lxml import etree

    try:
        action()
    except etree.XMLSyntaxError as error:
        return BadXmlError(*_reason(error))
    return None


def _options() -> dict[str, Any]:
    return {
        "resolve_entities": False,
        "no_network": True,
        "load_dtd": False,
        "huge_tree": False,
        "remove_comments": True,
        "remove_pis": True,
    }


def _reason(error: Exception) -> tuple[str, str]:
    text = " ".join(str(error).split())
    if "amplification" in text or "entity reference loop" in text.lower():
        return "entities", "it declares entities that expand"
    return "too_deep" if "xcessive depth" in text else "bad_xml", text[:200]


def _require_no_entities(element: etree._Element) -> None:
    internal = element.getroottree().docinfo.internalDTD
    if internal is not None and next(iter(internal.iterentities()), None) is not None:
        raise BadXmlError("entities", "it declares entities")


def _resolve_names(root: etree._Element) -> None:
    """Put text in place of references to entities. Raises BadXmlError for a name that HTML lacks, and of depth."""
    from lxml import etree

    references = []
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        depth += {"start": 1, "end": -1}.get(event, 0)
        if depth > MAX_DEPTH:
            raise BadXmlError("too_deep", f"elements are nested deeper than {MAX_DEPTH}")
        if event == "start":
            references += [child for child in element if child.tag is etree.Entity]
    for reference in references:
        text = html.unescape(reference.text)
        if text == reference.text:
            raise BadXmlError("bad_xml", f"the entity {reference.text[:80]!r} is not declared")
        parent, before = reference.getparent(), reference.getprevious()
        text += reference.tail or ""
        if before is not None:
            before.tail = (before.tail or "") + text
        else:
            parent.text = (parent.text or "") + text
        reference.tail = None
        parent.remove(reference)


def _is_child(element: etree._Element, root: str) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == root and parent.getparent() is None


def _clear(element: etree._Element) -> None:
    element.clear()
    parent = element.getparent()
    while element.getprevious() is not None:
        del parent[0]
