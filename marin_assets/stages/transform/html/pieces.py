"""Divide Markdown at the borders of its paragraphs, never in a fenced code block or a table."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

FENCE_OR_ROW = re.compile(r"^(?:```|\|).*", re.MULTILINE)
FENCE = re.compile(r"(`{3,})[^`]*")
CLOSING_FENCE = re.compile(r"^`{3,}$", re.MULTILINE)


def pieces(text: str, min_characters: int, max_characters: int) -> Iterator[str]:
    """Yield pieces of at least `min_characters`, divided at the last paragraph border before `max_characters`.

    Without a paragraph border the last line border is used. Three kinds of pieces exceed `max_characters`: one long
    line, code block or table, which is never divided, and a piece with a rest below `min_characters`, which stays
    with it.
    """
    blocks = Blocks(text)
    start = 0
    while len(text) - start > max_characters + min_characters:
        borders = (
            blocks.last_border("\n\n", start + min_characters, start + max_characters + 2),
            blocks.last_border("\n", start + min_characters, start + max_characters + 1),
            blocks.first_border(start + max_characters),
        )
        cut = next((border for border in borders if border >= 0), len(text))
        rest = cut
        while text.startswith("\n", rest):
            rest += 1
        if len(text) - rest < min_characters:
            break
        yield text[start:cut].rstrip("\n")
        start = rest
    yield text[start:]


class Blocks:
    """The fenced code blocks and tables of a text, and the borders outside of them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = list(block_spans(text))
        self.starts = [start for start, _ in self.spans]

    def around(self, border: int) -> tuple[int, int] | None:
        """Return the block that a border is in."""
        index = bisect_right(self.starts, border) - 1
        return self.spans[index] if index >= 0 and border < self.spans[index][1] else None

    def last_border(self, line_ends: str, low: int, high: int) -> int:
        """Return the last border in a range of the text, -1 without one."""
        while (border := self.text.rfind(line_ends, low, high)) >= 0 and (block := self.around(border)):
            high = block[0]
        return border

    def first_border(self, low: int) -> int:
        """Return the first border from a position on, -1 without one."""
        while (border := self.text.find("\n", low)) >= 0 and (block := self.around(border)):
            low = block[1]
        return border


def block_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each fenced code block and table: of their first line, and after their last one."""
    last = {match[0]: match.start() for match in CLOSING_FENCE.finditer(text)}
    fence, since = "", 0
    rows: tuple[int, int] | None = None
    for match in FENCE_OR_ROW.finditer(text):
        line, (start, end) = match[0], match.span()
        if rows and line[0] == "|" and start == rows[1] + 1:
            rows = rows[0], end
            continue
        if rows:
            yield rows
            rows = None
        if fence:
            if line == fence:
                yield since, end
                fence = ""
        elif line[0] == "|":
            rows = (start, end) if text.startswith("| ---", end + 1) else None
        elif (opening := FENCE.fullmatch(line)) and last.get(opening[1], -1) > start:
            fence, since = opening[1], start
    if rows:
        yield rows
