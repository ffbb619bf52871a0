"""Limits of pages that would exhaust the parser: lists and unclosed elements in one another, attributes of one tag."""

from __future__ import annotations

import re
from collections import defaultdict

LISTS = ("ul", "ol", "menu", "dir")
FORMATTING = ("b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u")
"""Elements that the parser reopens in every paragraph until they are closed (HTML standard, 13.2.4.3). <a> and <nobr>
are left out: a second one closes the first."""
SCANNED = rf"((?i:{'|'.join(LISTS + FORMATTING)}))(?=[\s/>])"
SCANNED_TAG = re.compile(rf"<(/?){SCANNED}")
SCANNED_START = re.compile(rf"<(?=[uUoOmMdDbBcCeEfFiI\u0130\u0131sS\u017ftT]){SCANNED}")
MAX_NODES = 4_000_000
"""Elements that the parser creates, and indentations of lists: 1.5 GB at 380 bytes each. 3,000 times `<p><b id=…>`, a
page of 42 kB, create 4.5 million."""
MAX_ATTRIBUTES = 1000
"""Attributes of one tag. The parser's time is quadratic in them: 100,000 take 20 s."""
ATTRIBUTES_ARE_COUNTED_FROM = 50_000
"""Characters of a page. A shorter page has too few attributes to take the parser 1 s."""
WHOLE_TAG = re.compile(r"""<[a-zA-Z](?:[^>"']++|"[^"]*+"|'[^']*+')*+""")
QUOTED = re.compile(r""""[^"]*"|'[^']*'""")


def is_too_deep(page: str, max_depth: int) -> bool:
    """Whether lists are nested deeper than `max_depth`, or unclosed elements create more than MAX_NODES.

    The depth of other elements is not limited: a million <div> take 0.5 s.
    """
    tags = page.count("<")
    if tags <= max_depth and tags * tags <= MAX_NODES:
        return False
    starts = sum(1 for _ in SCANNED_START.finditer(page))
    if starts <= max_depth and starts * tags <= MAX_NODES:  # even if none of them were closed
        return False
    nodes = lists = formatting = last = 0
    still_open: defaultdict[str, int] = defaultdict(int)
    for match in SCANNED_TAG.finditer(page):
        nodes += (lists + formatting) * page.count("<", last, match.start() + 1)
        last = match.start() + 1
        name = match[2].lower()
        change = -1 if match[1] else 1
        if change < 0 and not still_open[name]:
            continue  # an end tag without a start tag
        still_open[name] += change
        if name in LISTS:
            lists += change
        else:
            formatting += change
        if lists > max_depth or nodes > MAX_NODES:
            return True
    return nodes + (lists + formatting) * page.count("<", last) > MAX_NODES


def has_too_many_attributes(page: str) -> bool:
    """Whether a tag has more than MAX_ATTRIBUTES."""
    if len(page) < ATTRIBUTES_ARE_COUNTED_FROM:
        return False
    return any(
        match.end() - match.start() > 2 * MAX_ATTRIBUTES and len(QUOTED.sub(" ", match[0]).split()) > MAX_ATTRIBUTES
        for match in WHOLE_TAG.finditer(page)
    )
