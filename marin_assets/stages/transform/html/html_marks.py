"""Mark what Resiliparse drops: cells of tables, inline code, super- and subscripts, numbers of items, MathML.

A mark is a noncharacter, U+FDD0 to U+FDDF. It is inserted as text right after a start tag or before an end tag, so it
passes through the extraction at its place. Reading each element from Resiliparse's tree instead takes ten times as
long as the extraction. `mark` also repairs preformatted text, which Resiliparse would join or leave open.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from marin_assets.documents.xml.math_text import math_text

CODE, CODE_END, SUP, SUP_END, SUB, SUB_END = "\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5"
INFO, INFO_END = "\ufdd6", "\ufdd7"
"""Around the facts of a cell, an item or the end of a table: digits, letters and commas."""
BLOCK, BLOCK_END = "\ufdd8", "\ufdd9"
"""Around the number of a code block or a table, which is put in its place at the end."""
DROPPED = "\ufdda"
"""The place of a removed mark of a layout table."""
LINK, LINK_END = "\ufddb", "\ufddc"
"""Around the text of a link, in main content."""
ALL = re.compile("[\ufdd0-\ufddf]")
ALL_BYTES = b"\xef\xb7"
"""The first bytes of a mark in UTF-8."""
NUMBER = r"(\d{1,9})"
CELL = re.compile(rf"{INFO}c{NUMBER},{NUMBER},([hdp]),{NUMBER},{NUMBER}{INFO_END}|{INFO}e{NUMBER}{INFO_END}")
"""A cell's table, row, kind (header, data or presentation), colspan and rowspan; or the end of a table."""
ITEM = rf"{INFO}i(-?\d{{1,9}}){INFO_END}"
"""The number of an item."""

INLINE = {name: (CODE, CODE_END) for name in ("code", "kbd", "samp", "tt")}
INLINE |= {"sup": (SUP, SUP_END), "sub": (SUB, SUB_END)}
OPAQUE = ("script", "style", "textarea", "title", "pre", "math")
ATTRIBUTES = r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+"""
INVISIBLE = ("script", "style", "!--")
OUTSIDE = tuple(">;} \t\r\n")
"""Characters before a script. After another one it may be part of an attribute, and the parser decides."""
OPAQUE_START = re.compile(
    rf"<(?=[!sS\u017ftTpPmM][-cCtTeEiI\u0130\u0131rRaA])(?:(!--)|((?i:{'|'.join(OPAQUE)}))(?=[\s/>])({ATTRIBUTES})>?)"
)
"""The look-ahead for two letters in both cases takes half of the time, as most tags are others; so below. `(?i:s)`,
`(?i:k)` and `(?i:i)` match U+017F, U+212A, and U+0130 and U+0131 too."""
OPAQUE_END = {name: re.compile(rf"</{name}(?=[\s/>])[^>]*>", re.IGNORECASE) for name in OPAQUE}
OPAQUE_END["!--"] = re.compile("-->")


def tags_of(names: str, first: str, second: str) -> re.Pattern[str]:
    """Return the pattern of tags with these names, which begin with these letters."""
    return re.compile(
        rf"<(?=/?[{first}][{second}])(?!/(?i:li|td|th)>)(/?)((?i:{names}))(?:>|(?=[\s/>])({ATTRIBUTES})(>?))"
    )


MARKED = "code|kbd|s(?:amp|u[pb])|t(?:able|head|body|foot|[trdh])|ol|li"
FIRST, SECOND = "cCkK\u212asS\u017ftToOlL", "oObBaAuUtThHfFrRdDlLiI\u0130\u0131"
TAG = tags_of(MARKED, FIRST, SECOND)
"""A tag that may get a mark: of inline code, a table or a list. </li>, </td> and </th> get none."""
CHANGED = "body|fig(?:ure|caption)"
CHANGED_TAG = tags_of(CHANGED, "bBfF", "oOiI\u0130\u0131")
"""A tag that `mark_main` changes."""
MAIN_TAG = tags_of(f"{MARKED}|{CHANGED}", f"{FIRST}bBfF", SECOND)
"""A tag of both kinds."""
WORTHY = frozenset([*INLINE, "td", "th", "ol"])
FIGURES = frozenset(["figure", "figcaption"])
"""Elements that Resiliparse leaves out with the author and the date."""
DEEPER = "<div><div>"
"""Elements around the content of <body>: Resiliparse takes any list of its first two levels for a menu."""
WORTH_MARKING = re.compile(r"<(?=[cCkK\u212asS\u017ftTpPmMoO])(?i:code|kbd|s(?:amp|u[pb])|t[tdh]|pre|math|ol)[\s/>]")
ATTRIBUTE = {
    name: re.compile(rf"""(?<![^\s"']){name}\s*=\s*["']?\s*([-+]?\w{{1,12}})""", re.IGNORECASE)
    for name in ("colspan", "rowspan", "start", "value", "role")
}
MAX_COLSPAN, MAX_ROWSPAN = 1000, 65534
"""The HTML standard's limits."""
LINE_NUMBER = re.compile(
    r"""<(span|a|div|td)\b[^<>]{0,200}?\b(?:class|id)\s*=\s*["']?[^"'<>]{0,200}?"""
    r"""\b(?:linenos?|line-?num(?:ber)?s?|lnt?|hljs-ln-n|gutter)\b[^<>]{0,200}>"""
    r"""\s{0,20}(?:<a\b[^<>]{0,200}>)?\s{0,20}\d{1,6}[ \t]{0,20}(?:</a>)?[ \t]{0,20}</\1>""",
    re.IGNORECASE,
)
DIGITS = re.compile("[0-9]{1,6}")
PREFORMATTED = re.compile(
    rf"<(?:(/?)(br|div|p|li|tr|h[1-6])(?=[\s/>])|(img)(?=[\s/>])|/?[a-z!]){ATTRIBUTES}>?", re.IGNORECASE
)


Part = tuple[str, bool]
"""A part of a page, and whether its tags are read."""


@dataclass
class OpenTable:
    """A table of the page whose end tag has not been reached."""

    number: int
    presentation: bool
    row: int = 0
    in_head: bool = False


def mark(page: str) -> str:
    """Return the page with marks, or the page itself if it has nothing to mark. Takes linear time."""
    page = without_own_marks(page, page.encode("utf-8", "surrogatepass"))
    return Marker(TAG).marked(parts_of(page, text_alone=False)[0]) if WORTH_MARKING.search(page) else page


def mark_main(page: str, last: LastPage, *, keep_figures: bool) -> str:
    """Return the page with marks, without comments, scripts, styles, and line numbers of preformatted text, and with
    DEEPER. Takes linear time. `last` keeps the parts of the page.

    With `keep_figures`, figures and their captions are other elements, which Resiliparse does not leave out.
    """
    page = without_own_marks(page, last.encoded(page))
    parts, marker = last.parts(page), Marker(MAIN_TAG, keep_figures=keep_figures)
    marked = marker.marked(parts)
    if marker.is_worth or last.has(page, "pre", "math"):
        return marked
    return Marker(CHANGED_TAG, keep_figures=keep_figures).marked(parts)


def without_own_marks(page: str, encoded: bytes) -> str:
    """Return a page without marks of its own."""
    # One byte is found ten times as fast as two, and two in the bytes ten times as fast as ALL in the text.
    return ALL.sub("", page) if ALL_BYTES[:1] in encoded and ALL_BYTES in encoded else page


def without_scripts(page: str) -> str:
    """Return a page without comments, scripts and styles. Takes linear time."""
    return LastPage().text(page)


class LastPage:
    """The page that was read last: what its limits, its marks and its counts all need is computed once."""

    def __init__(self) -> None:
        self._page: str | None = None
        self._encoded: bytes | None = None
        self._parts: list[Part] | None = None
        self._opaque: set[str] = set()
        self._text: str | None = None

    def encoded(self, page: str) -> bytes:
        """Return a page in UTF-8."""
        self._turn_to(page)
        if self._encoded is None:
            self._encoded = page.encode("utf-8", "surrogatepass")
        return self._encoded

    def parts(self, page: str) -> list[Part]:
        """Return the parts of a page without comments, scripts and styles."""
        self._turn_to(page)
        if self._parts is None:
            self._parts, self._opaque = parts_of(page, text_alone=True)
        return self._parts

    def has(self, page: str, *names: str) -> bool:
        """Whether a page has an element of one of these names of OPAQUE."""
        self.parts(page)
        return not self._opaque.isdisjoint(names)

    def text(self, page: str) -> str:
        """Return a page without comments, scripts and styles. Takes linear time."""
        parts = self.parts(page)
        if self._text is None:
            self._text = "".join([text for text, _ in parts])
        return self._text

    def _turn_to(self, page: str) -> None:
        if self._page is not page:
            self._page, self._encoded, self._parts, self._text = page, None, None, None


def parts_of(page: str, *, text_alone: bool) -> tuple[list[Part], set[str]]:
    """Return the parts of a page, code and formulas as Resiliparse needs, and the names of OPAQUE that it has. Takes
    linear time.

    With `text_alone`, comments, scripts, styles, and line numbers of preformatted text are left out.
    """
    parts: list[Part] = []
    names: set[str] = set()
    unclosed: set[str] = set()
    done = searched = 0
    while match := OPAQUE_START.search(page, searched):
        name = match[1] or match[2].lower()
        names.add(name)
        start, searched = match.span()
        # From the start tag on, as <!--> is a whole comment.
        end = None if name in unclosed else OPAQUE_END[name].search(page, start + 2)
        if end is None:
            unclosed.add(name)  # searched once, so a million of them take linear time
            continue
        parts.append((page[done:start], True))
        done = end.end()
        if name == "pre":
            content = page[searched : end.start()]
            parts.append((preformatted(without_line_numbers(content) if text_alone else content), False))
        elif name == "math":
            parts.append((html.escape(math_text(match[3], page[searched : end.start()]), quote=False), False))
        elif not (text_alone and name in INVISIBLE and page[start - 1] in OUTSIDE):
            parts.append((page[start:done], False))
        searched = done
    parts.append((page[done:], True))
    return parts, names


class Marker:
    """One pass over the tags of a page that a pattern finds: TAG, MAIN_TAG or CHANGED_TAG."""

    def __init__(self, pattern: re.Pattern[str], *, keep_figures: bool = False) -> None:
        self.pattern, self.keep_figures = pattern, keep_figures
        self.deeper = DEEPER
        """Text to insert after <body>, once."""
        self.tables: list[OpenTable] = []
        self.table_count = 0
        self.start: int | None = None
        """The start of the `<ol start=…>` whose first item is still to come."""
        self.repeated: dict[str, str] = {}
        """Tag of an inline element -> the same with its mark; tag of an item without a number, or of a figure -> what
        stands for it. A page has few different ones."""
        self.is_worth = False
        """Whether a start tag of WORTHY has been reached. Without one, marks of end tags and items mean nothing."""

    def marked(self, parts: Iterable[Part]) -> str:
        replaced = self.pattern.sub
        return "".join([replaced(self.tag, text) if is_open and "<" in text else text for text, is_open in parts])

    def tag(self, match: re.Match[str]) -> str:
        """Return a tag with its mark."""
        if self.start is None and (repeated := self.repeated.get(match[0])):
            return repeated
        tag, closes, name, attributes, end = match.group(0, 1, 2, 3, 4)
        name = name.lower()
        if end == "":
            return tag  # the page ends in it
        self.is_worth |= not closes and name in WORTHY
        if name in INLINE:
            self.repeated[tag] = INLINE[name][1] + tag if closes else tag + INLINE[name][0]
            return self.repeated[tag]
        if name in FIGURES:
            self.repeated[tag] = f"<{closes}div{tag[1 + len(closes + name) :]}" if self.keep_figures else tag
            return self.repeated[tag]
        if name == "body":
            deeper, self.deeper = ("" if closes else self.deeper), (self.deeper if closes else "")
            return tag + deeper
        if name == "li":
            return tag if closes else tag + self.item(tag, attributes)
        if name == "ol":
            self.start = number("start", attributes) if attributes and not closes else None
        elif name == "table":
            return self.table_end(tag) if closes else self.table(tag, attributes or "")
        elif self.tables and name in ("td", "th"):
            return tag if closes else tag + cell(self.tables[-1], name, attributes)
        elif self.tables:
            self.tables[-1].row += 1
            if name != "tr":
                self.tables[-1].in_head = name == "thead" and not closes
        return tag

    def item(self, tag: str, attributes: str | None) -> str:
        """Return the mark of an item that has a number of its own, or is the first after `<ol start=…>`."""
        value = number("value", attributes) if attributes else None
        if value is None:
            value = self.start
            self.repeated[tag] = tag
        self.start = None
        return "" if value is None else f"{INFO}i{value}{INFO_END}"

    def table(self, tag: str, attributes: str) -> str:
        self.table_count += 1
        role = ATTRIBUTE["role"].search(attributes)
        presentation = role is not None and role[1].lower() in ("presentation", "none")
        self.tables.append(OpenTable(self.table_count, presentation))
        return tag

    def table_end(self, tag: str) -> str:
        return f"{tag}{INFO}e{self.tables.pop().number}{INFO_END}" if self.tables else tag


def cell(table: OpenTable, name: str, attributes: str | None) -> str:
    """Return the mark of a cell."""
    kind = "p" if table.presentation else "h" if name == "th" or table.in_head else "d"
    columns = rows = 1
    if attributes:
        columns = min(max(number("colspan", attributes) or 1, 1), MAX_COLSPAN)
        span = number("rowspan", attributes)
        rows = MAX_ROWSPAN if span == 0 else min(max(span or 1, 1), MAX_ROWSPAN)
    return f"{INFO}c{table.number},{table.row},{kind},{columns},{rows}{INFO_END}"


def number(name: str, attributes: str) -> int | None:
    """Return an attribute that is an integer; None without one."""
    if name not in attributes.casefold():  # a tenth of the time of a search
        return None
    match = ATTRIBUTE[name].search(attributes)
    digits = re.match(r"[-+]?[0-9]{1,9}", match[1]) if match else None
    return int(digits[0]) if digits else None


def without_line_numbers(content: str) -> str:
    """Return the content of a <pre> without elements of line numbers; "" if it has nothing but numbers in a row."""
    content = LINE_NUMBER.sub("", content)
    numbers = re.sub(r"<[^<>]*>", "", content).split()
    if len(numbers) > 1 and all(map(DIGITS.fullmatch, numbers)):
        values = list(map(int, numbers))
        if values == list(range(values[0], values[0] + len(values))):
            return ""
    return content


def preformatted(content: str) -> str:
    """Return a <pre> element with nothing but text, images and line breaks, or an empty <div> if it is blank.

    Resiliparse joins the lines of a <div> each, and does not close an empty <pre>: the text after it would be code.
    """

    def replace(match: re.Match[str]) -> str:
        if match[3]:
            return match[0]
        if not match[2]:
            return ""
        ends_line = match[2].lower() == "br" or match[1]
        return "\n" if ends_line and not content.startswith("\n", match.end()) else ""

    text = PREFORMATTED.sub(replace, content)
    return f"<pre>\n{text}</pre>" if text.strip() else "<div></div>"
