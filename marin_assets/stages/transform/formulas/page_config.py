r"""The delimiters of formulas that a page itself declares to MathJax or KaTeX, and whether it loads AsciiMath.

    tex2jax: {inlineMath: [['$','$'], ['\\(','\\)']]}                  MathJax 2
    MathJax = {tex: {inlineMath: {'[+]': [['$', '$']]}}}               MathJax 3 and 4
    delimiters: [{left: '$', right: '$', display: false}]              KaTeX's auto-render

A dollar is a delimiter only where the page declares it: elsewhere it is money.
"""

from __future__ import annotations

import re

STRING = r"""(?:'(?:[^'\\\n]|\\.){1,20}'|"(?:[^"\\\n]|\\.){1,20}")"""
PAIR = re.compile(rf"\[\s*+({STRING})\s*+,\s*+({STRING})\s*+\]")
LISTS = re.compile(
    r"""\b(inlineMath|displayMath)["']?\s*+:\s*+(?:\{\s*+["']\[[+-]\]["']\s*+:\s*+)?"""
    rf"\[\s*+((?:\[\s*+{STRING}\s*+,\s*+{STRING}\s*+\]\s*+,?\s*+){{1,20}})\]"
)
KATEX = re.compile(
    rf"""\bleft["']?\s*+:\s*+({STRING})\s*+,\s*+["']?right["']?\s*+:\s*+({STRING})"""
    r"""(?:\s*+,\s*+["']?display["']?\s*+:\s*+(true|false))?"""
)
ASCIIMATH = re.compile(r"asciimath|(?<![A-Za-z])AM_(?:HTMLorMML|CHTML|SVG)", re.IGNORECASE)
ESCAPE = re.compile(r"\\(.)")

Marks = dict[str, tuple[str, str]]
"""Opening delimiter -> its closing one, and the dollars that take their place."""


def declared_delimiters(page: str) -> Marks:
    """Return the delimiters of the page's own configuration; {} without one."""
    marks: Marks = {}
    for kind, pairs in LISTS.findall(page):
        dollars = "$" if kind == "inlineMath" else "$$"
        marks |= {_text(opening): (_text(closing), dollars) for opening, closing in PAIR.findall(pairs)}
    for opening, closing, display in KATEX.findall(page):
        marks[_text(opening)] = (_text(closing), "$$" if display == "true" else "$")
    return {opening: mark for opening, mark in marks.items() if opening.strip() and mark[0].strip()}


def loads_asciimath(page: str) -> bool:
    return ASCIIMATH.search(page) is not None


def _text(literal: str) -> str:
    """The text of a string of JavaScript."""
    return ESCAPE.sub(r"\1", literal[1:-1])
