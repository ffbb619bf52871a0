"""Trees of MathML that can be compared: LaTeX as the MathML of latex2mathml, without what is look alone."""

from __future__ import annotations

from typing import Any

LEAVES = ("mi", "mo", "mn", "mtext")
WITH_ARGUMENTS = ("msub", "msup", "msubsup", "mfrac", "munder", "mover", "munderover", "mroot")
Tree = tuple[str, str, str, tuple[Any, ...]]


def tree_of(latex: str) -> Tree:
    """The tree of LaTeX: groups of one child are the child, spaces and sizes of fences are left out."""
    import latex2mathml.converter
    from lxml import etree

    return _tree(etree.fromstring(latex2mathml.converter.convert(latex).encode()))


def mathml_of(latex: str) -> str:
    """The content of the <math> element that latex2mathml makes of LaTeX."""
    import latex2mathml.converter

    return latex2mathml.converter.convert(latex).partition(">")[2].rpartition("</math>")[0]


def _tree(element: Any) -> Tree:
    tag = element.tag.rpartition("}")[2]
    children = [_tree(child) for child in element if child.tag.rpartition("}")[2] != "mspace"]
    if tag in WITH_ARGUMENTS:
        children = [child[3][0] if child[0] == "mrow" and len(child[3]) == 1 else child for child in children]
    else:
        children = [part for child in children for part in (child[3] if child[0] == "mrow" else (child,))]
    text = " ".join((element.text or "").split()) if tag in LEAVES else ""
    tag = "mrow" if tag in ("mrow", "mstyle", "math") else "mo" if tag == "mi" and not text.isalnum() else tag
    return tag, text, (element.get("mathvariant") or "") if tag in LEAVES else "", tuple(children)
