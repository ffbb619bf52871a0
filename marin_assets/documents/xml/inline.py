"""The text of an XML element in one line: x^2 of a superscript, H_2O of a subscript, formulas as `math_text`."""

from __future__ import annotations

import html
from copy import deepcopy
from typing import TYPE_CHECKING

from marin_assets.documents.xml.math_text import math_text
from marin_assets.documents.xml.superscripts import raised, with_blanks

if TYPE_CHECKING:
    from lxml import etree

SIGNS = {"sup": "^", "sub": "_"}


def inline_text(element: etree._Element) -> str:
    """Return the text of an element, with the marks of its superscripts, subscripts and formulas, in one line."""
    parts: list[str] = []
    _write(element, parts)
    return " ".join("".join(parts).split())


def _write(element: etree._Element, parts: list[str]) -> None:
    if element.text:
        parts.append(element.text)
    for child in element:
        name = local_name(child)
        if name == "math":
            parts.append(mathml_text(child))
        elif name in SIGNS:
            inner: list[str] = []
            _write(child, inner)
            inside = "".join(inner)
            text = " ".join(inside.split())
            if inside:
                parts.append(with_blanks(inside, raised(SIGNS[name], text) if text and any(parts) else text))
        elif name:
            _write(child, parts)
        else:
            parts.append(html.unescape(child.text or ""))  # a reference to an entity
        if child.tail:
            parts.append(child.tail)


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace; "" for a comment, an instruction or an entity."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def mathml_text(element: etree._Element) -> str:
    """Return a <math> element as text: `$…$` around its TeX if it has that, else in a linear form."""
    from lxml import etree

    plain = deepcopy(element)
    plain.tail = None
    for child in plain.iter():
        if isinstance(child.tag, str):
            child.tag = local_name(child)
    etree.cleanup_namespaces(plain)
    start, _, content = etree.tostring(plain, encoding="unicode").partition(">")
    return "" if start.endswith("/") else math_text(start, content.removesuffix("</math>"))
