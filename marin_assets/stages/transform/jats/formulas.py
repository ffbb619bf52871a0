"""Formulas of JATS: TeX, where an article has that, else MathML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from marin_assets.documents.xml.inline import local_name, mathml_text

if TYPE_CHECKING:
    from lxml import etree

DOCUMENT = re.compile(r"\\begin\{document\}(.*)\\end\{document\}", re.DOTALL)
DOLLARS = re.compile(r"\A(\${1,2})(.*)\1\Z", re.DOTALL)


def formula_text(element: etree._Element, *, is_block: bool) -> str:
    """Return a formula by its TeX, `$…$` or `$$…$$`, else by its MathML; "" for one that has neither."""
    tex = next((part for part in element.iter() if local_name(part) == "tex-math"), None)
    math = next((part for part in element.iter() if local_name(part) == "math"), None)
    text = "" if tex is None else tex_of(tex)
    if not text and math is not None:
        linear = mathml_text(math)
        if (bare := DOLLARS.fullmatch(linear)) is None:
            return linear
        text = bare[2]
    dollars = "$$" if is_block else "$"
    return f"{dollars}{text}{dollars}" if text else ""


def tex_of(element: etree._Element) -> str:
    """The TeX of a formula, without the document that PMC puts around it."""
    text = "".join(element.itertext())
    if whole := DOCUMENT.search(text):
        text = whole[1]
    text = " ".join(text.split())
    while bare := DOLLARS.fullmatch(text):
        text = bare[2].strip()
    return text.removeprefix(r"\[").removesuffix(r"\]").strip()
