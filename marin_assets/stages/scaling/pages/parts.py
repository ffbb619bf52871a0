"""Parts that the pages of fits share: style, numbers, tables, doubts and pictures. HTML and CSS alone."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #ccc; --quiet: #666; --doubt: #fdf0c4; }
@media (prefers-color-scheme: dark) { :root { --line: #555; --quiet: #aaa; --doubt: #5a4a10; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .5em 0 1em; font-variant-numeric: tabular-nums; }
tr { border-bottom: 1px solid var(--line); } thead th { border-bottom: 2px solid var(--line); }
th, td { text-align: right; padding: .2em .8em .2em 0; white-space: nowrap; }
th:first-child { text-align: left; }
tbody th { font-weight: normal; max-width: 30em; overflow-wrap: anywhere; white-space: normal; }
.quiet { color: var(--quiet); } p { overflow-wrap: anywhere; max-width: 60em; }
ul.doubts { background: var(--doubt); padding: .6em 1em .6em 2em; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; background: white; } code { font-size: 105%; }
"""


def page_of(title: str, parts: Iterable[str]) -> bytes:
    head = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
    )
    return ("\n".join([head, *parts, "</body></html>"]) + "\n").encode("utf-8", "backslashreplace")


def number(value: Any, digits: int = 4) -> str:
    """A number as text: with thousands below a million, else with a power of ten; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.3g}"


def interval(of: Any, digits: int = 4) -> str:
    """ "[low, high]" of a mapping; empty without bounds."""
    if of is None or of["low"] is None:
        return ""
    return f"[{number(of['low'], digits)}, {number(of['high'], digits)}]"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells of text, which are escaped. The first cell of a row is its name."""
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads) + "</tr></thead><tbody>"
    for first, *cells in rows:
        yield f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
    yield "</tbody></table></div>"


def doubts(warnings: Sequence[str]) -> Iterator[str]:
    if not warnings:
        yield '<p class="quiet">No doubt: no check of the fit failed.</p>'
        return
    yield f"<h2>Doubts</h2><ul class=doubts>{''.join(f'<li>{escape(warning)}</li>' for warning in warnings)}</ul>"


def picture(data: bytes, description: str) -> str:
    return f'<p><img alt="{escape(description)}" src="data:image/png;base64,{base64.b64encode(data).decode()}"></p>'
