"""An article in JATS as Markdown: title, abstract, body, footnotes, and by field what stands behind it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from marin_assets.documents.xml.inline import local_name
from marin_assets.stages.transform.jats.jats_content import JatsContent
from marin_assets.stages.transform.jats.writer import Writer

if TYPE_CHECKING:
    from lxml import etree

KEPT_ABSTRACTS = (None, "summary", "author-summary", "executive-summary", "editor-summary", "plain-language-summary")
"""Types of abstracts that are texts of their own. Graphical ones and those for a table of contents repeat another."""
IN_TITLE = ("fn", "xref", "related-article")


def article_markdown(root: etree._Element, fields: JatsContent, counts: Counter[str]) -> str | None:
    """Return the Markdown of an <article>; None if its body has no text. Adds COUNTS of `jats_content` to `counts`."""
    writer = Writer(fields, counts)
    body = root.find("body")
    if body is None or not "".join(body.itertext()).strip():
        return None
    meta = root.find("front/article-meta")
    if meta is not None:
        writer.heading(1, _title(meta, writer))
        _write_abstracts(meta, writer)
    writer.content(body, 2)
    writer.end()
    for child in root:
        _write_rest(child, local_name(child), writer)
    if notes := [note for note in writer.notes if note]:
        writer.heading(2, "Footnotes")
        writer.block("\n".join(f"- {note}" for note in notes))
    if fields.references:
        _write_references(root, writer)
    return "\n\n".join(writer.blocks)


def _title(meta: etree._Element, writer: Writer) -> str:
    """Title and subtitle, without the marks of their footnotes."""
    title, subtitle = (_title_line(meta.find(f"title-group/{name}"), writer) for name in ("article-title", "subtitle"))
    return ": ".join(filter(None, (title.rstrip(":"), subtitle))) if subtitle else title


def _title_line(element: etree._Element | None, writer: Writer) -> str:
    if element is None:
        return ""
    marks = [child for child in element if local_name(child) in IN_TITLE]
    return writer.in_line(lambda: writer.parts(element, marks))


def _write_abstracts(meta: etree._Element, writer: Writer) -> None:
    for abstract in meta:
        name = local_name(abstract)
        if name not in ("abstract", "trans-abstract"):
            continue
        title = abstract.find("title")
        is_kept = name == "abstract" and abstract.get("abstract-type") in KEPT_ABSTRACTS and writer.fields.abstract
        if not is_kept:
            writer.cut(abstract, "abstract")
            continue
        writer.heading(2, writer.line(title) or "Abstract")
        for child in abstract:
            if child is not title and (part := local_name(child)):
                writer.element(child, part, 3)
        writer.end()


def _write_rest(child: etree._Element, name: str, writer: Writer) -> None:
    """Write what stands behind the body: floating figures and tables always, the back matter by field."""
    if name in ("floats-group", "floats-wrap"):
        writer.element(child, name, 2)
    elif name in ("sub-article", "response"):
        writer.cut(child, "article")
    elif name == "back":
        for part in child:
            kind = local_name(part)
            if kind == "ref-list":
                if not writer.fields.references:
                    writer.cut(part, "reference")
            elif kind and writer.fields.back_matter:
                writer.element(part, kind, 2)
            elif kind:
                writer.cut(part, "back_matter")


def _write_references(root: etree._Element, writer: Writer) -> None:
    lines = []
    for reference in root.iterfind("back//ref"):
        texts = [_reference(part, writer) for part in reference if "citation" in local_name(part)]
        if line := "; ".join(filter(None, texts)):
            lines.append(f"- {line}")
    if lines:
        writer.heading(2, "References")
        writer.block("\n".join(lines))


def _reference(citation: etree._Element, writer: Writer) -> str:
    """A reference as it is written, or, of one that has only fields, its fields with commas."""
    if local_name(citation) in ("mixed-citation", "citation") and any((child.tail or "").strip() for child in citation):
        return writer.line(citation)
    fields = []
    for field in citation:
        if local_name(field) == "person-group":
            fields += [_joined(name) for name in field]
        elif local_name(field) == "name":
            fields.append(_joined(field))
        elif local_name(field):
            fields.append(writer.line(field))
    return ", ".join(filter(None, fields))


def _joined(element: etree._Element) -> str:
    return " ".join(" ".join(element.itertext()).split())
