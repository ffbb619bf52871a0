"""Cut what is no main content from the blocks of a page: menus, notices, lists of links, repeated captions.

The input is minimal HTML whose code blocks and tables are marks already, and whose links are marks around their text. A
block is a heading, a paragraph, an item or another line. Each is kept or cut by its own length, the share of its
characters that are links, its last character and its place. No rule knows a site or a language, but for the few words
of notices.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from marin_assets.stages.transform.html.html_marks import BLOCK, LINK, LINK_END

BLOCK_BORDER = re.compile(r"(?<!<br>)\n")
TAGS = re.compile(r"<[^<>]*>")
LINKED = re.compile(f"{LINK}([^{LINK}{LINK_END}]*){LINK_END}")
STRUCTURE = re.compile(r"(?:\s*</?[uo]l>)*\s*")
KIND = re.compile(r"<(h[1-6]|p|li)>")
WIDE = re.compile("[\u0e00-\u0e7f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of which each is worth about three of others, or stands without blanks between words."""
SENTENCE_END = re.compile(r"[.!?…:;。！？：।॥؟۔։။።][\"'”’»“)\]]*\s*$")
NOTICE = ("cookie", "クッキー", "쿠키", "куки", "newsletter", "©", "javascript")
MAX_NOTICE = 600
"""Characters of a notice. A longer text with such a word is an article about it."""
SHORT, LONG = 40, 150
"""Characters of a paragraph, and of a line without a sentence's end, that make a block text."""
LINKED_TEXT, ONLY_LINKS = 0.5, 0.8
"""Shares of the characters that are links: at most in a text, at least in a list of links."""
LAST = 8
"""Characters in which a sentence ends, with its quotation marks and brackets."""
MOST = 0.5
"""Share of the characters outside of links that must be left, else edges are not cut: a page of short lines, such as a
poem or a list of names, has no blocks of text to be recognised by."""
INVISIBLE = re.compile(r"\s*&lt;(?:img|iframe|script|style)\b", re.IGNORECASE)


@dataclass(kw_only=True, slots=True)
class Block:
    source: str
    kind: str
    """"h1" to "h6", "p", "li", "block" for code and tables, "line", or "" for a border of a list and a blank line."""
    size: int = 0
    """Characters, a wide one as three."""
    linked: int = 0
    """Those of them that are links."""
    text: str = ""
    cut: str = ""
    """Reason of REASONS; empty if the block is kept."""

    @property
    def is_heading(self) -> bool:
        return self.kind[:1] == "h"

    @property
    def is_text(self) -> bool:
        """Whether a block is text by itself, of which the first and the last one are the edges of the content."""
        if self.kind == "block":
            return True
        if self.is_heading or self.size < SHORT or self.linked > LINKED_TEXT * self.size:
            return False
        if self.kind != "p" and self.size <= LONG and not SENTENCE_END.search(self.text[-LAST:]):
            return False
        return self.size > MAX_NOTICE or not is_notice(self.text)


def main_blocks(minimal: str, counts: Counter[str], *, keep_title: bool) -> str:
    """Return minimal HTML without the blocks that are no main content. Adds to counts cut_<reason>, in blocks, and
    cut_characters. Takes linear time."""
    blocks = blocks_of(minimal)
    cut_edges(blocks, keep_title=keep_title)
    cut_links(blocks)
    cut_duplicates(blocks)
    cut_headings(blocks)
    for block in blocks:
        if block.cut:
            counts[f"cut_{block.cut}"] += 1
            counts["cut_characters"] += sum(map(len, block.text.split()))
    return "\n".join([block.source for block in blocks if not block.cut])


def blocks_of(minimal: str) -> list[Block]:
    """Return the blocks in order, with blank lines and borders of lists.

    A link counts in the block in which it begins and ends. One around several blocks may be a whole article.
    """
    blocks = []
    # The pattern alone takes five times as long.
    for source in BLOCK_BORDER.split(minimal) if "<br>\n" in minimal else minimal.split("\n"):
        if not source or ((source[0] == "<" or source[0].isspace()) and STRUCTURE.fullmatch(source)):
            blocks.append(Block(source=source, kind=""))
            continue
        text = (TAGS.sub("", source) if "<" in source else source).strip()
        size, linked = size_of(text), 0
        if LINK in text:
            linked = sum(map(size_of, LINKED.findall(text)))
            text = text.replace(LINK, "")
        text = text.replace(LINK_END, "")
        blocks.append(Block(source=source, kind=kind_of(source.lstrip(), text), size=size, linked=linked, text=text))
    return blocks


def kind_of(source: str, text: str) -> str:
    """Return the kind of a block that begins with `source`."""
    if text.startswith(BLOCK):
        return "block"
    if not text:
        return ""
    name = KIND.match(source)
    return name[1] if name else "line"


def size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text) + 2 * len(WIDE.findall(text))


def is_notice(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in NOTICE)


def cut_edges(blocks: list[Block], *, keep_title: bool) -> None:
    """Cut what is before the first block of text, but for its headings and the page's title, and after the last."""
    texts = [number for number, block in enumerate(blocks) if block.is_text]
    if not texts:
        return
    first, last = texts[0], texts[-1]
    unlinked = [block.size - block.linked for block in blocks]
    outside, inside = sum(unlinked), sum(unlinked[first : last + 1])
    if inside < MOST * outside:
        return
    while first > 0 and (blocks[first - 1].is_heading or not blocks[first - 1].kind):
        first -= 1
    title = max((number for number, block in enumerate(blocks[: texts[0]]) if block.kind == "h1"), default=-1)
    for number, block in enumerate(blocks[: texts[0]]):
        is_kept = number >= first and block.kind != "h1"
        if block.kind and not is_kept and not (number == title and keep_title):
            block.cut = "before"
    for block in blocks[last + 1 :]:
        if block.kind:
            block.cut = "after"


def cut_links(blocks: list[Block]) -> None:
    """Cut blocks that consist of links, and sources of elements that a page shows only without scripts."""
    for block in blocks:
        if block.cut or block.is_heading or not block.kind:
            continue
        if INVISIBLE.match(block.text):
            block.cut = "markup"
        elif block.linked > ONLY_LINKS * block.size:
            block.cut = "links"


def cut_duplicates(blocks: list[Block]) -> None:
    """Cut blocks whose text the page has before."""
    seen: set[str] = set()
    for block in blocks:
        if block.cut or block.kind == "block" or block.size < SHORT:
            continue
        if block.text in seen:
            block.cut = "duplicate"
        seen.add(block.text)


def cut_headings(blocks: list[Block]) -> None:
    """Cut headings below the first level that are followed by one of the same or a higher level, or by nothing."""
    below = 0
    for block in reversed(blocks):
        if block.cut or not block.kind:
            continue
        if not block.is_heading:
            below = 9
            continue
        level = int(block.kind[1])
        if level > 1 and below <= level:
            block.cut = "heading"
        else:
            below = level
