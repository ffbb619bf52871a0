"""The text of elements of JATS as blocks of Markdown: headings, paragraphs, lists, quotations, tables, formulas.

Elements that begin a block end the paragraph before them, wherever they are. Others are parts of a line; so are
elements of no known name, as publishers have their own. In a cell, a caption or a title all is one line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from marin_assets.documents.xml.inline import SIGNS, local_name
from marin_assets.documents.xml.superscripts import raised, with_blanks
from marin_assets.stages.transform.jats.citations import CUT, is_number, without_cut
from marin_assets.stages.transform.jats.formulas import formula_text
from marin_assets.stages.transform.jats.jats_content import JatsContent
from marin_assets.stages.transform.jats.tables import TABLES, outside_cells, table_blocks

if TYPE_CHECKING:
    from lxml import etree

BLOCKS = frozenset(
    ("abstract", "answer", "answer-set", "app-group", "array", "attrib", "body", "boxed-text", "caption",
     "chem-struct-wrap", "def", "disp-formula-group", "explanation", "fig-group", "floats-group", "floats-wrap",
     "list-item", "p", "question", "question-wrap", "sig-block", "speech", "statement", "subtitle", "table-wrap-foot",
     "table-wrap-group", "title", "verse-line", "tr", "row", "td", "th", "entry")
)  # fmt: skip
"""Elements that are a block, or consist of blocks."""
CUT_NAMES = {
    "alt-text": "alternative", "long-desc": "alternative", "object-id": "alternative", "permissions": "alternative",
    "index-term": "alternative", "sec-meta": "alternative", "ref-list": "reference", "sub-article": "article",
    "response": "article",
}  # fmt: skip
"""Elements that are cut wherever they are, and the name they are counted by."""
FORMULAS = ("disp-formula", "inline-formula", "tex-math", "math")
DEEPEST = 6
"""Levels of headings in Markdown."""


class Writer:
    """Blocks of one article. `counts` gets COUNTS of `jats_content`."""

    def __init__(self, fields: JatsContent, counts: Counter[str]) -> None:
        self.fields, self.counts = fields, counts
        self.blocks: list[str] = []
        self.notes: list[str] = []
        """Footnotes of the body."""
        self._line: list[str] = []
        self._is_one_line = False

    def heading(self, level: int, text: str) -> None:
        self.block(text if self._is_one_line or not text else f"{'#' * min(level, DEEPEST)} {text}")

    def block(self, text: str) -> None:
        """Add a block; in one line, text between blanks."""
        self.end()
        if self._is_one_line:
            self.write(text)
            self.end()
        elif text:
            self.blocks.append(text)

    def write(self, text: str) -> None:
        """Continue the line. Blanks in a row are one, so the first text in it is near its start."""
        if text and not (text.isspace() and self._line and self._line[-1].isspace()):
            self._line.append(text)

    def end(self) -> None:
        """End the paragraph. In one line it becomes a blank."""
        if self._is_one_line:
            self.write(" ")
            return
        text = without_cut(" ".join("".join(self._line).split()))
        self._line = []
        if text:
            self.blocks.append(text)

    def line(self, element: etree._Element | None) -> str:
        """The content of an element in one line."""
        return "" if element is None else without_cut(self.in_line(lambda: self.content(element, DEEPEST)))

    def in_line(self, write: Callable[[], None]) -> str:
        """The text that a function writes, in one line, with the places of marks that are cut."""
        return " ".join(self.captured(write).split())

    def captured(self, write: Callable[[], None]) -> str:
        """The text that a function writes, as it is."""
        outer = self._line, self._is_one_line
        self._line, self._is_one_line = [], True
        write()
        text = "".join(self._line)
        self._line, self._is_one_line = outer
        return text

    def content(self, element: etree._Element, level: int) -> None:
        """Write what is in an element. `level` is that of a heading in it."""
        self.parts(element, (), level)

    def parts(
        self, element: etree._Element, without: Collection[etree._Element | None], level: int = DEEPEST, blank: str = ""
    ) -> None:
        """Write what is in an element, but some of its children; `blank` after each other one."""
        skipped = set(without)
        self.write(element.text or "")
        for child in element:
            name = local_name(child)
            if name and child not in skipped:
                self.element(child, name, level)
            self.write((child.tail or "") + blank)

    def element(self, element: etree._Element, name: str, level: int) -> None:
        if name in CUT_NAMES:
            self.cut(element, CUT_NAMES[name])
        elif method := _METHODS.get(name):
            method(self, element, level)
        elif name in BLOCKS:
            self.end()
            self.content(element, level)
            self.end()
        else:
            self.content(element, level)

    def cut(self, element: etree._Element, name: str) -> None:
        """Leave an element out, and count it."""
        self.counts[f"cut_{name}"] += 1
        self.counts["cut_characters"] += sum(len("".join(text.split())) for text in element.itertext())

    def sec(self, element: etree._Element, level: int) -> None:
        title, label = element.find("title"), element.find("label")
        self.heading(level, " ".join(filter(None, (self.line(label), self.line(title)))))
        self.parts(element, (title, label), level + 1)
        self.end()

    def raised(self, element: etree._Element, level: int) -> None:
        inside = self.captured(lambda: self.content(element, level))
        text = " ".join(inside.split())
        is_bare = not text.strip(CUT + " ,;-–") or not any(part.strip() for part in self._line)
        self.write(with_blanks(inside, text if is_bare else raised(SIGNS[local_name(element)], text)))

    def xref(self, element: etree._Element, level: int) -> None:
        way = self.fields.citations
        is_mark = element.get("ref-type") == "bibr" and way != "keep"
        if is_mark and (way == "drop" or is_number("".join(element.itertext()))):
            self.cut(element, "citation")
            self.write(CUT)
        else:
            self.content(element, level)

    def line_break(self, element: etree._Element, level: int) -> None:
        self.write(" ")
        self.content(element, level)

    def fn(self, element: etree._Element, level: int) -> None:
        if any(local_name(parent) in ("table-wrap", "table-wrap-foot") for parent in element.iterancestors()):
            self.block(self.line(element))
        elif self.fields.footnotes:
            self.notes.append(self.line(element))
        else:
            self.cut(element, "footnote")

    def fig(self, element: etree._Element, level: int) -> None:
        if not self.fields.captions:
            self.cut(element, "caption")
            return
        self.block(self.captioned(element))

    def captioned(self, element: etree._Element, without: Collection[etree._Element] = ()) -> str:
        """The label and the caption of an element, and what else it has, in one line."""
        label = element.find("label")
        text = without_cut(self.in_line(lambda: self.parts(element, (label, *without), blank=" ")))
        mark = self.line(label)
        return f"{mark if not text or mark[-1:] in '.:' else mark + '.'} {text}".strip()

    def table_wrap(self, element: etree._Element, level: int) -> None:
        places = [element, *(child for child in element if local_name(child) == "alternatives")]
        tables = [child for place in places for child in place if local_name(child) in TABLES]
        feet = [child for child in element if local_name(child) == "table-wrap-foot"]
        self.block(self.captioned(element, [*places[1:], *tables, *feet]))
        for place in places[1:]:
            self.parts(place, tables, level)
            self.end()
        for table in tables:
            self.table(table, level)
        self.counts["table_images"] += not tables
        for foot in feet:
            self.element(foot, "table-wrap-foot", level)

    def table(self, element: etree._Element, level: int) -> None:
        if self._is_one_line:
            self.end()
            self.content(element, level)
            self.end()
            return
        self.end()
        self.counts["tables"] += 1
        for part in outside_cells(element):
            if isinstance(part, str):
                self.write(part)
            else:
                self.element(part, local_name(part), level)
        self.end()
        self.blocks += table_blocks(element, self.line)

    def item_list(self, element: etree._Element, level: int) -> None:
        if self._is_one_line:
            self.content(element, level)
            return
        is_ordered = element.get("list-type") in ("order", "ordered", "arabic", "number")
        items = element.findall("list-item")
        self.parts(element, items, level)  # a title, and what is no item
        lines = []
        for number, item in enumerate(items, 1):
            label = item.find("label")
            blocks = self.nested(lambda item=item, label=label: self.parts(item, (label,), level))  # type: ignore[misc]
            given = self.line(label)
            if not is_ordered and re.search(r"\w", given):
                blocks = [f"{given} {blocks[0]}" if blocks else given, *blocks[1:]]
            mark = f"{number}. " if is_ordered else "- "
            if blocks:
                lines.append(mark + "\n".join(blocks).replace("\n", "\n" + " " * len(mark)))
        self.block("\n".join(lines))

    def def_list(self, element: etree._Element, level: int) -> None:
        if self._is_one_line:
            self.content(element, level)
            return
        items = element.findall("def-item")
        self.parts(element, items, level)
        lines = []
        for item in items:
            term = item.find("term")
            text = without_cut(self.in_line(lambda item=item, term=term: self.parts(item, (term,))))  # type: ignore[misc]
            lines.append(": ".join(filter(None, (self.line(term), text))))
        self.block("\n".join(f"- {line}" for line in lines if line))

    def quote(self, element: etree._Element, level: int) -> None:
        if self._is_one_line:
            self.content(element, level)
            return
        blocks = self.nested(lambda: self.content(element, level))
        self.block("\n>\n".join("> " + block.replace("\n", "\n> ") for block in blocks))

    def nested(self, write: Callable[[], None]) -> list[str]:
        """The blocks that a function writes."""
        self.end()
        outer, self.blocks = self.blocks, []
        write()
        self.end()
        blocks, self.blocks = self.blocks, outer
        return blocks

    def code(self, element: etree._Element, level: int) -> None:
        text = "".join(element.itertext()).strip("\n")
        if self._is_one_line:
            self.write(f" {text} ")
        elif text.strip():
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            self.block(f"{fence}\n{text}\n{fence}")

    def supplement(self, element: etree._Element, level: int) -> None:
        if not self.fields.supplements:
            self.cut(element, "supplement")
            return
        self.block(self.captioned(element))

    def formula(self, element: etree._Element, level: int) -> None:
        name = local_name(element)
        is_block = name == "disp-formula" and not self._is_one_line
        label = element.find("label") if is_block else None
        text = formula_text(element, is_block=is_block)
        if not text:
            text = self.in_line(lambda: self.parts(element, (label,)))
        self.counts["formulas" if text else "formula_images"] += 1
        if is_block:
            self.block(" ".join(filter(None, (text, self.line(label)))))
        else:
            self.write(text)


_METHODS: dict[str, Callable[[Writer, etree._Element, int], None]] = {
    "sec": Writer.sec, "sup": Writer.raised, "sub": Writer.raised, "xref": Writer.xref, "break": Writer.line_break,
    "fn": Writer.fn, "fig": Writer.fig, "table-wrap": Writer.table_wrap, "table": Writer.table, "tgroup": Writer.table,
    **dict.fromkeys(("ack", "app", "bio", "fn-group", "glossary", "notes"), Writer.sec),
    "list": Writer.item_list, "def-list": Writer.def_list, "disp-quote": Writer.quote, "verse-group": Writer.quote,
    "code": Writer.code, "preformat": Writer.code, "supplementary-material": Writer.supplement,
    "media": Writer.supplement, **dict.fromkeys(FORMULAS, Writer.formula),
}  # fmt: skip
